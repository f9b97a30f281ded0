"""What every test may ask for, and the guard that keeps the suite away from whoever runs it."""

from __future__ import annotations

import os
import pwd
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pathlib import Path

# No deadline: a slow machine is no wrong answer. No example store: the suite leaves nothing behind.
# Of each property a sample of its examples; scripts/test --all asks for the thorough profile.
settings.register_profile("thorough", deadline=None, database=None)
settings.register_profile("sample", settings.get_profile("thorough"), max_examples=25)  # of 100
settings.load_profile("sample")

_OURS = ("GAIA_SESSIONS_", "CLAUDE_", "XDG_", "GIT_")


@pytest.fixture(scope="session")
def own_home() -> str:
    """The home of whoever runs the tests, for the few that need what is set up there; asked for before any test."""
    return pwd.getpwuid(os.getuid()).pw_dir


@pytest.fixture(autouse=True)
def away_from_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test lives in a home of its own, somewhere below it, with no setting of the user's in sight.

    The working directory lies below that home because the search for a project stops there: it can
    never climb into a real one.
    """
    home = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    known = pwd.getpwuid
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd((*known(uid)[:5], str(home), known(uid)[6])))
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return home


@pytest.fixture
def now() -> datetime:
    return datetime(2026, 1, 8, 18, 5, 30, 123456, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "session")
