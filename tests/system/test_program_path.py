"""Which program a name stands for: one that is found from everywhere, never one of the folder where we stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gaia_sessions.system import program_path
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The program ``git`` in a folder of programs; another one is where we stand."""
    for folder in ("programs", "repository"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "git").touch(mode=0o755)
    monkeypatch.chdir(tmp_path / "repository")
    return str(tmp_path / "programs")


@table("before", ["", ".:", ":", "../repository:", "/gone:.::"])
def test_a_relative_folder_of_the_path_is_passed_over(there: str, before: str) -> None:
    assert program_path("git", {"PATH": before + there}) == f"{there}/git"


@table("path", ["", ".", "../repository", ":"])
def test_what_only_a_relative_folder_has_is_not_there(there: str, path: str) -> None:
    assert there
    with pytest.raises(FileNotFoundError):
        program_path("git", {"PATH": path})
