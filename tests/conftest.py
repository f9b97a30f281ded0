"""What every test may ask for, and the guard that keeps the suite away from whoever runs it."""

from __future__ import annotations

import os
import pwd
import re
import signal
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# No deadline: a slow machine is no wrong answer. No example store: the suite leaves nothing behind.
# Of each property a sample of its examples; scripts/test --all asks for the thorough profile.
settings.register_profile("thorough", deadline=None, database=None)
settings.register_profile("sample", settings.get_profile("thorough"), max_examples=25)  # of 100
settings.load_profile("sample")

_numbers = count()
_OURS = ("GAIA_SESSIONS_", "CLAUDE_", "XDG_", "GIT_")


@pytest.fixture(scope="session")
def own_home() -> str:
    """The home of whoever runs the tests, for the few that need what is set up there; asked for before any test."""
    return pwd.getpwuid(os.getuid()).pw_dir


@pytest.fixture
def folder_of_test(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder with a number of its own: pytest's way to one looks through those of all tests before."""
    name = re.sub(r"\W", "_", request.node.name.removeprefix("test_"))[:16]  # answers cut long paths off
    folder = tmp_path_factory.getbasetemp() / "tests" / f"{next(_numbers)}-{name}"
    folder.mkdir(mode=0o700, parents=True)
    return folder


@pytest.fixture
def tmp_path(folder_of_test: Path) -> Path:
    path = folder_of_test / "tmp"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture(autouse=True)
def away_from_home(folder_of_test: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test lives in a home of its own, somewhere below it, with no setting of the user's in sight.

    The working directory lies below that home because the search for a project stops there: it can
    never climb into a real one.
    """
    home = folder_of_test / "home"
    home.mkdir(mode=0o700)
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
def interruptible() -> Iterator[None]:
    """Signals reach the children of a test, which otherwise inherit that whoever runs the tests ignores them."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    others = [(number, signal.signal(number, signal.SIG_DFL)) for number in (signal.SIGQUIT, signal.SIGHUP)]
    yield
    for number, handler in (signal.SIGINT, old), *others:
        signal.signal(number, handler)


@pytest.fixture
def now() -> datetime:
    return datetime(2026, 1, 8, 18, 5, 30, 123456, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "session")
