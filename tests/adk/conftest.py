"""Skips the tests if google-adk is not installed (it comes with the extra ``adk``)."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.servers import root_of

if TYPE_CHECKING:
    from pathlib import Path

collect_ignore_glob = [] if find_spec("google") and find_spec("google.adk") else ["test_*.py"]


@pytest.fixture
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder, or with ``on_both`` also the URL of a database."""
    return root_of(getattr(request, "param", "files"), tmp_path)
