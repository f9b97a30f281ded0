"""Fixtures of all tests, and a guard that keeps the tests away from the home and the settings of the user."""

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
    from collections.abc import Generator, Iterator

# No deadline: a slow machine is not an error. No example store: the tests leave no files.
# By default, each property is tested with a sample of examples. scripts/test --thorough uses the other profile.
settings.register_profile("thorough", deadline=None, database=None)
settings.register_profile("sample", settings.get_profile("thorough"), max_examples=25)  # of 100
settings.load_profile("sample")

_numbers = count()
_OURS = ("GAIA_SESSIONS_", "CLAUDE_", "XDG_", "GIT_", "CLAUDECODE", "CODEX_", "QWEN_CODE", "GEMINI_CLI")
_NO_PSYCOPG = "No module named 'psycopg'"
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


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skips a module that imports psycopg if it is not installed (it comes with the extra ``postgres``)."""
    report = yield
    if report.failed and _NO_PSYCOPG in str(report.longrepr):
        report.outcome = "skipped"
        report.longrepr = (report.nodeid, 0, f"Skipped: {_NO_PSYCOPG}")
    return report


def _is_usable_memory() -> bool:
    """Whether temporary files can be in memory. Tests also run programs there."""
    try:
        found = os.statvfs(_MEMORY)
    except OSError:
        return False
    has_room = found.f_bavail * found.f_frsize >= 1 << 30  # in containers it often has 64 MiB
    return has_room and os.access(_MEMORY, os.W_OK) and not found.f_flag & os.ST_NOEXEC


@pytest.fixture(scope="session")
def own_home() -> str:
    """The home of the user who runs the tests, for the few tests that need it."""
    return pwd.getpwuid(os.getuid()).pw_dir


@pytest.fixture(scope="session")
def folder_on_disk() -> Iterator[Path]:
    """A folder on a file system that is on a disk."""
    with tempfile.TemporaryDirectory(prefix="gaia-sessions-tests-", dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def on_disk() -> None:
    """For tests of durability, file systems or other users: their folders are not in memory."""


@pytest.fixture
def folder_of_test(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A new folder with a number. It is faster than the one of pytest, which looks through all earlier folders."""
    name = re.sub(r"\W", "_", request.node.name.removeprefix("test_"))[:16]  # some answers cut long paths
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
    """Gives every test a new home, a working folder below it, and no settings of the user.

    The search for a project stops at the home, so it never finds a real project.
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
    """Lets signals reach the children of a test even if the process that runs the tests ignores signals."""
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
