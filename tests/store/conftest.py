"""What tests of the parts of the file store share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gaia_sessions.store.directory import Directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Directory]:
    with Directory.at(str(tmp_path)) as opened:
        yield opened
