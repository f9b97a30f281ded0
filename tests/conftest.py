"""What every test may ask for, and the guard that keeps the suite away from whoever runs it."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import tempfile
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.durations import DurationsByFolder

if TYPE_CHECKING:
    from collections.abc import Iterator

# No deadline: a slow machine is no wrong answer. No example store: the suite leaves nothing behind.
# Of each property a sample of its examples; scripts/test --thorough asks for the other profile.
settings.register_profile("thorough", deadline=None, database=None)
settings.register_profile("sample", settings.get_profile("thorough"), max_examples=25)  # of 100
settings.load_profile("sample")

_numbers = count()
_OURS = ("GAIA_SESSIONS_", "CLAUDE_", "XDG_", "GIT_", "CLAUDECODE", "CODEX_", "QWEN_CODE", "GEMINI_CLI")
_MEMORY = "/dev/shm"  # noqa: S108  # where Linux has a file system in memory


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--durations-by-folder",
        action="store_true",
        help="print the seconds and processor seconds of each folder",
    )


@pytest.hookimpl(tryfirst=True)  # before pytest chooses a folder for temporary files
def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if config.option.basetemp is None and not is_worker and _is_usable_memory():
        config.option.basetemp = tempfile.mkdtemp(prefix="gaia-sessions-tests-", dir=_MEMORY)
        config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp, ignore_errors=True))
    if config.option.durations_by_folder:
        config.pluginmanager.register(DurationsByFolder())


def _is_usable_memory() -> bool:
    """Whether temporary files may be in memory: tests also run programs there."""
    try:
        found = os.statvfs(_MEMORY)
    except OSError:
        return False
    has_room = found.f_bavail * found.f_frsize >= 1 << 30  # containers often give it 64 MiB
    return has_room and os.access(_MEMORY, os.W_OK) and not found.f_flag & os.ST_NOEXEC


@pytest.fixture(scope="session")
def own_home() -> str:
    """The home of whoever runs the tests, for the few that need what is set up there; asked for before any test."""
    return pwd.getpwuid(os.getuid()).pw_dir


@pytest.fixture(scope="session")
def folder_on_disk() -> Iterator[Path]:
    """A folder on a file system that keeps what is synced, as that of people's records does."""
    with tempfile.TemporaryDirectory(prefix="gaia-sessions-tests-", dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def on_disk() -> None:
    """Asked for by a test of durability, of file systems or of other users: its folders are not in memory."""


@pytest.fixture
def folder_of_test(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder with a number of its own: pytest's way to one looks through those of all tests before."""
    name = re.sub(r"\W", "_", request.node.name.removeprefix("test_"))[:16]  # answers cut long paths off
    is_on_disk = "on_disk" in request.fixturenames
    above: Path = request.getfixturevalue("folder_on_disk") if is_on_disk else tmp_path_factory.getbasetemp()
    folder = above / "tests" / f"{next(_numbers)}-{name}"
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
def talks(away_from_home: Path) -> Path:
    """The folder in which Claude Code keeps the conversations of a project."""
    folder = away_from_home / ".claude" / "projects" / "-project"
    folder.mkdir(mode=0o700, parents=True)
    return folder


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
