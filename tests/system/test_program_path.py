"""Which program a name means: relative folders in PATH never count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gaia_sessions.system import program_path
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with the program ``git``; the current folder has another ``git``."""
    for folder in ("programs", "repository"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "git").touch(mode=0o755)
    monkeypatch.chdir(tmp_path / "repository")
    return str(tmp_path / "programs")


@table("before", ["", ".:", ":", "../repository:", "/gone:.::"])
def test_relative_folders_in_path_are_skipped(there: str, before: str) -> None:
    assert program_path("git", {"PATH": before + there}) == f"{there}/git"


@table("path", ["", ".", "../repository", ":"])
def test_a_program_only_in_a_relative_folder_is_not_found(there: str, path: str) -> None:
    assert there
    with pytest.raises(FileNotFoundError):
        program_path("git", {"PATH": path})
