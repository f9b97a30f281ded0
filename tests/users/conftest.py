"""Two users made for the tests, and root: each runs commands and hooks as processes of that user."""

from __future__ import annotations

import importlib
import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import gaia_sessions
from tests.forks import Forks, package

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ("click", "filelock")
OLDEST = "import sys; sys.exit(sys.version_info < (3, 11))"


class Ended(NamedTuple):
    code: int
    out: str
    err: str


SILENT = Ended(0, "", "")


class Machine(NamedTuple):
    """What every user can read. python: an interpreter. folder: the package, its dependencies and the hooks."""

    python: str
    folder: Path


class User(NamedTuple):
    name: str
    uid: int
    gid: int
    home: Path
    world: Path
    machine: Machine
    forks: Forks

    def gaia(self, cwd: Path, *words: str, stdin: str = "", **environment: str) -> Ended:
        """Runs the command."""
        return self._run(cwd, ["-m", "gaia_sessions", *words], stdin, environment)

    def hook(self, cwd: Path, told: object, **environment: str) -> Ended:
        """Runs the hook for every event."""
        return self._run(cwd, [f"{self.machine.folder}/hooks/every_event.py"], json.dumps(told), environment)

    def ask(self, cwd: Path, hook: str, told: object, **environment: str) -> Any:
        """The answer of the direct form of ``hook``."""
        ended = self._run(cwd, [f"{self.machine.folder}/hooks/{hook}.py"], json.dumps(told), environment)
        assert (ended.code, ended.err) == (0, "")
        return json.loads(ended.out)

    def make(self, *folders: Path, mode: int = 0o755) -> Path:
        """Makes folders that belong to this user, and returns the last one."""
        for folder in folders:
            folder.mkdir(mode=mode)
            os.chown(folder, self.uid, self.gid)
            folder.chmod(mode)
        return folders[-1]

    def _run(self, cwd: Path, words: list[str], stdin: str, environment: dict[str, str]) -> Ended:
        own = {
            "HOME": str(self.world.parent),
            "XDG_CONFIG_HOME": f"{self.home}/.config",
            "XDG_STATE_HOME": f"{self.home}/.local/state",
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.machine.folder),
        }
        done = self.forks.run(
            [self.machine.python, *words],
            stdin,
            folder=str(cwd),
            environment=own | environment,
            user=self.uid,
            group=self.gid,
        )
        return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def machine() -> Iterator[Machine]:
    if os.geteuid():
        pytest.skip("needs root to make users and act as them")
    folder = Path(tempfile.mkdtemp(prefix="gaia-sessions-users-"))
    folder.chmod(0o755)
    for source in [Path(gaia_sessions.__file__).parent, *map(_folder_of, PACKAGES)]:
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("*.pyc.*"))
    shutil.copytree(CHECKOUT / "hooks", folder / "hooks")
    _make_readable(folder)
    for script in (folder / "hooks").glob("*.py"):
        script.chmod(0o755)
    yield Machine(_interpreter_for_all(), folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def user_forks(machine: Machine) -> Iterator[Forks]:
    """Forks processes of any user. They have imported the package already."""
    started = Forks(package(), machine.python, {"PATH": os.environ["PATH"], "PYTHONPATH": str(machine.folder)})
    yield started
    started.close()


def _folder_of(package: str) -> Path:
    return Path(importlib.import_module(package).__file__ or "").parent


def _make_readable(folder: Path) -> None:
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _interpreter_for_all() -> str:
    """The interpreter of the tests if every user can start it, else the one of the system."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            done = subprocess.run([python, "-c", OLDEST], check=False, cwd="/", user=65534, group=65534)
        except OSError:
            continue
        if done.returncode == 0:
            return python
    return pytest.skip("needs a Python 3.11 or later that every user can start")


@pytest.fixture(scope="session")
def names() -> Iterator[list[str]]:
    """The names of two users that exist while the tests run."""
    if os.geteuid() or not shutil.which("useradd"):
        pytest.skip("needs root and useradd to make users")
    names = [f"gaia-{who}-{os.getpid()}" for who in ("alice", "bob")]
    for name in names:
        subprocess.run(["useradd", "--no-create-home", "--user-group", name], check=True, capture_output=True)
    yield names
    for name in names:
        subprocess.run(["userdel", "--force", name], check=True, capture_output=True)


@pytest.fixture
def world(names: list[str]) -> Iterator[Path]:
    """A world-writable folder of root, like ``/tmp``. The search for a project ends at its parent."""
    above = Path(tempfile.mkdtemp(prefix="gaia-sessions-world-"))
    above.chmod(0o755)
    folder = above / "world"
    folder.mkdir()
    folder.chmod(0o1777)
    assert names
    yield folder
    shutil.rmtree(above)


def _user(name: str, machine: Machine, forks: Forks, world: Path) -> User:
    known = pwd.getpwnam(name)
    home = world / f"home-{name}"
    home.mkdir()
    os.chown(home, known.pw_uid, known.pw_gid)
    return User(name, known.pw_uid, known.pw_gid, home, world, machine, forks)


@pytest.fixture
def alice(names: list[str], machine: Machine, user_forks: Forks, world: Path) -> User:
    return _user(names[0], machine, user_forks, world)


@pytest.fixture
def bob(names: list[str], machine: Machine, user_forks: Forks, world: Path) -> User:
    return _user(names[1], machine, user_forks, world)


@pytest.fixture
def root_user(machine: Machine, user_forks: Forks, world: Path) -> User:
    return _user("root", machine, user_forks, world)


def tree(folder: Path) -> dict[str, tuple[int, int, int, int, bytes]]:
    """Mode, owner, group, time of change and content of everything in ``folder``, by path."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path)] = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, content)
    return found


def findings(user: User, cwd: Path, **environment: str) -> dict[str, Any]:
    """The problems that ``doctor`` finds, by name, without the packages that the tests leave out."""
    report = json.loads(user.gaia(cwd, "doctor", "--json", **environment).out)
    return {
        found["name"]: found
        for found in report["checks"]
        if found["state"] == "problem" and found["name"] != "packages"
    }
