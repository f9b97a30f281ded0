"""Shared fixtures of the tests in tests/cli: they run command lines and write records by hand."""

from __future__ import annotations

import gc
import inspect
import json
import os
import pty
import shutil
import stat
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions
from gaia_sessions.session.clock import format_time
from tests import commands
from tests.commands import Ended
from tests.servers import empty_url
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Gaia = Callable[..., Any]
"""The type of a fixture that is a function."""

PATIENCE = 60
_END = b"\0the end\0"


def fresh_table(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Any]:
    """A table whose rows each start in an empty folder; of several tables on one test it must be the last."""

    def decorate(test: Callable[..., None]) -> Any:
        @wraps(test)
        def run(*, anew: Callable[[], None], **arguments: Any) -> None:
            anew()
            test(**arguments)

        signature = inspect.signature(test)
        parameters = [*signature.parameters.values(), inspect.Parameter("anew", inspect.Parameter.KEYWORD_ONLY)]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # `table` reads it
        return table(names, rows)(run)

    return decorate


@pytest.fixture(autouse=True)
def own_root(root: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes ``root`` the default root of all commands, and turns garbage collection on again afterwards."""
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", root)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    yield
    gc.enable()


@pytest.fixture
def gaia() -> Callable[..., Ended]:
    """Runs a command line in this process."""
    return commands.gaia


@pytest.fixture
def session(gaia: Callable[..., Ended]) -> str:
    """Creates a session."""
    assert gaia("create", "--id", "agent-123").code == 0
    return "agent-123"


@pytest.fixture
def program() -> Callable[..., Ended]:
    """Runs a command line in a new process, optionally ``through`` another program."""

    def run(*words: str | bytes, stdin: bytes = b"", through: tuple[str, ...] = (), **environment: str) -> Ended:
        ended = subprocess.run(
            [*through, sys.executable, "-m", "gaia_sessions", *words],
            input=stdin,
            capture_output=True,
            env={**os.environ, **environment},
            timeout=PATIENCE,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return run


@pytest.fixture
def terminal(plain_environment: None) -> Callable[..., Ended]:  # noqa: ARG001
    """Runs a command line at a terminal and returns what it shows; with another ``stdout``, that is only stderr."""

    def run(*words: str, columns: int = 80, stdout: int | None = None, **environment: str) -> Ended:
        with a_terminal(columns) as (end, shown):
            settings = {**os.environ, "TERM": "xterm-256color", **environment}
            ended = commands.gaia(
                *words, stdin=end, stdout=end if stdout is None else stdout, stderr=end, environment=settings
            )
        return Ended(ended.code, bytes(shown), b"")

    return run


@pytest.fixture
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unsets the variables for colours and for the size of a terminal."""
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def a_terminal(columns: int) -> Iterator[tuple[int, bytearray]]:
    """A terminal, and the bytes that it has shown; they are complete after the block."""
    own_end, their_end = pty.openpty()
    termios.tcsetwinsize(their_end, (24, columns))
    shown = bytearray()

    def read() -> None:
        while not shown.endswith(_END):
            shown.extend(os.read(own_end, 1 << 16))

    reading = threading.Thread(target=read)
    reading.start()
    try:
        yield their_end, shown
    finally:
        os.write(their_end, _END)  # and close it only when this was read: a closed terminal can lose output
        reading.join()
        os.close(own_end)
        os.close(their_end)
    shown[:] = shown.removesuffix(_END).replace(b"\r\n", b"\n")


@pytest.fixture(scope="session")
def shell_words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a script ``gaia-sessions`` that only writes its arguments to a file beside it."""
    folder = tmp_path_factory.getbasetemp() / "shell-words"
    folder.mkdir()
    asked = folder / "gaia-sessions"
    asked.write_text('#!/bin/sh\nset -C\nprintf \'%s\\0\' "$@" > "$0.words"\n', encoding="utf-8")
    asked.chmod(0o700)
    return folder


@pytest.fixture
def typed(gaia: Callable[..., Ended], shell_words: Path) -> Callable[[str], None]:
    """Runs a line in a shell, and then its one ``gaia-sessions`` command in this process; both must succeed."""
    words = shell_words / "gaia-sessions.words"

    def run(line: str) -> None:
        words.unlink(missing_ok=True)
        environment = {**os.environ, "PATH": f"{shell_words}{os.pathsep}{os.environ['PATH']}"}
        subprocess.run(["sh", "-euc", line], check=True, stdin=subprocess.DEVNULL, capture_output=True, env=environment)
        if words.exists():
            ended = gaia(*map(os.fsdecode, words.read_bytes().split(b"\0")[:-1]))
            assert ended.code == 0, ended

    return run


@pytest.fixture
def anew(root: str) -> Callable[[], None]:
    """Empties the folder that contains the root, for the next row of a table."""

    def empty() -> None:
        for path in Path(root).parent.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    return empty


@pytest.fixture
def put(root: str) -> Callable[..., dict[str, Any]]:
    """Writes a record by hand; ``idle`` is the age of its last activity, ``without`` names keys to leave out."""

    def record(
        agent_id: str, *, idle: timedelta = timedelta(minutes=1), without: tuple[str, ...] = (), **changed: Any
    ) -> dict[str, Any]:
        moment = format_time(datetime.now(UTC) - idle)
        document = {
            "agent_id": agent_id,
            "agent_name": "tester",
            "purpose": "test",
            "created_at": moment,
            "last_updated": moment,
            "phase": "approval",
            "metadata": {},
            "resume_ready": True,
            "history": [],
            "error_count": 0,
            "last_error": None,
            "schema": 1,
            "revision": 1,
            **changed,
        }
        for key in without:
            del document[key]
        folder = Path(root, agent_id)
        folder.mkdir(parents=True, exist_ok=True)
        folder.joinpath("state.json").write_text(json.dumps(document), encoding="utf-8")
        return document

    return record


@pytest.fixture
def spoil(root: str) -> Callable[[str, bytes], Path]:
    """Writes bytes in place of a record; returns the path."""

    def write(agent_id: str, data: bytes = b'{"agent_id": ') -> Path:
        path = Path(root, agent_id, "state.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def state(root: str) -> Callable[[str], Any]:
    """Reads the record of a session from disk."""
    return lambda agent_id: json.loads(Path(root, agent_id, "state.json").read_bytes())


def everything_in(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, time of change and content of ``folder`` and of each path below it."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path)] = (status.st_mode, status.st_mtime_ns, content)
    return found


@pytest.fixture
def tree(root: str) -> Callable[[], dict[str, tuple[int, int, bytes]]]:
    """``everything_in`` the folder that contains the root."""
    return lambda: everything_in(Path(root).parent)


def ids_in(root: str) -> list[str]:
    """The IDs of all session folders."""
    return sorted(path.name for path in Path(root).glob("[!.]*"))


def records(root: str) -> dict[str, Any]:
    """All records, by ID."""
    return {path.parent.name: json.loads(path.read_bytes()) for path in Path(root).glob("*/state.json")}


def only_record(root: str) -> Any:
    [record] = records(root).values()
    return record


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes an empty database the root in the variable."""
    url = empty_url()
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", url)
    return url


@pytest.fixture
def own(away_from_home: Path) -> str:  # noqa: ARG001  # it changes the folder
    """Makes the folder in which hooks store."""
    Path(".git").mkdir()
    root = f"{os.path.realpath(os.getcwd())}/.claude/session"
    os.makedirs(root)
    return root


@pytest.fixture
def pair(url: str, own: str) -> tuple[Sessions, Sessions]:
    """The two roots of a project: a server, which the variable names, and the project's own root."""
    return Sessions(url), Sessions(own)
