"""Fixtures for tests of the file store."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.store.directory import Directory
from gaia_sessions.store.file_store import FileStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def new_folder(tmp_path: Path) -> Callable[[], Path]:
    """Makes a new empty folder at each call, for each row of a table."""
    return lambda: Path(tempfile.mkdtemp(prefix="", dir=tmp_path))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Directory]:
    with Directory.at(str(tmp_path)) as opened:
        yield opened


@pytest.fixture
def store(root: str) -> FileStore:
    return FileStore(root, durable=False)
