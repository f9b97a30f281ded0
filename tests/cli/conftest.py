"""What the tests of the command line share: running it here or as a process, and sessions put in place by hand."""

from __future__ import annotations

import gc
import inspect
import io
import json
import os
import pty
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.cli.main import main
from gaia_sessions.session.clock import format_time
from tests.calls import streams
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Gaia = Callable[..., Any]
"""A fixture of this file that is called."""

PATIENCE = 60
_END = b"\0the end\0"


class Ended:
    """How a command ended: its exit code, what it said where."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        return f"Ended({self.code}, {self.out!r}, {self.err!r})"

    @property
    def all(self) -> tuple[int, str, str]:
        return self.code, self.out.decode(), self.err.decode()

    @property
    def lines(self) -> list[str]:
        """What was answered to a person, whatever became of it."""
        return self.out.decode().splitlines()

    @property
    def answer(self) -> list[str]:
        """The lines that a command, which was content, answered to a person."""
        assert (self.code, self.err, self.out[-1:]) == (0, b"", b"\n"), self
        return self.out[:-1].decode().split("\n")

    @property
    def json(self) -> Any:
        """The answer, of a command that was content."""
        assert (self.code, self.err) == (0, b""), self
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The error in JSON, of a command that gave no answer."""
        assert (self.code > 0, self.out) == (True, b""), self
        document = json.loads(self.err)
        assert list(document) == ["error"]
        assert list(document["error"]) == ["code", "message", "hint"]
        return document["error"]

    @property
    def refusal(self) -> tuple[int, str, str]:
        """The exit code of a command that gave no answer, the error and the hint that it said for people."""
        said = re.fullmatch("Error: (.*)\nHint: (.*)\n", self.err.decode())
        assert (self.out, said is None) == (b"", False), self
        return (self.code, *said.groups())  # type: ignore[union-attr]  # it is there


def fresh_table(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Any]:
    """A table of which each row starts without sessions, in a folder that is empty; the innermost of several."""

    def decorate(test: Callable[..., None]) -> Any:
        @wraps(test)
        def run(*, anew: Callable[[], None], **arguments: Any) -> None:
            anew()
            test(**arguments)

        signature = inspect.signature(test)
        parameters = [*signature.parameters.values(), inspect.Parameter("anew", inspect.Parameter.KEYWORD_ONLY)]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # a table asks for it
        return table(names, rows)(run)

    return decorate


@pytest.fixture(autouse=True)
def own_root(root: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands find ``root`` unless told otherwise; what a command switched off is switched on again."""
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", root)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    yield
    gc.enable()


@pytest.fixture
def gaia(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Runs a command line in this process."""

    def run(*words: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsysbinary.readouterr()
        code = main(list(words))
        return Ended(code, *capsysbinary.readouterr())

    return run


@pytest.fixture
def session(gaia: Callable[..., Ended]) -> str:
    """A session that has just begun."""
    assert gaia("create", "--id", "agent-123").code == 0
    return "agent-123"


@pytest.fixture
def program() -> Callable[..., Ended]:
    """Runs a command line as a process of its own, ``through`` another program if need be."""

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


def run_on(words: tuple[str, ...], descriptors: tuple[int | None, ...], **environment: str) -> int:
    """Runs a command line in this process with ``descriptors`` as its standard streams; returns the exit code.

    A stream without a descriptor is closed.
    """
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    with pytest.MonkeyPatch.context() as patch, streams(*(one or 0 for one in descriptors)), ExitStack() as stack:
        for name, value in environment.items():
            patch.setenv(name, value)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            if descriptors[number] is None:
                os.close(number)
                stream = None
            else:
                stream = open(number, "w" if number else "r", encoding=encoding, closefd=False)  # noqa: SIM115
            for attribute in (name, f"__{name}__"):
                patch.setattr(sys, attribute, stream)
            stack.callback(_close, name)
        return main(list(words))


def _close(name: str) -> None:
    """Closes one of Python's own streams, which the command may have replaced."""
    stream = getattr(sys, name)
    with suppress(OSError):
        if stream is not None:
            stream.close()


def run_with(*words: str, **elsewhere: int | None) -> Ended:
    """The same with files as streams, but for those that are ``elsewhere`` or closed."""
    with ExitStack() as stack:
        files = {name: stack.enter_context(tempfile.TemporaryFile()) for name in ("stdin", "stdout", "stderr")}
        numbers = {name: file.fileno() for name, file in files.items()}
        code = run_on(words, tuple({**numbers, **elsewhere}.values()))
        return Ended(code, *(os.pread(numbers[name], 1 << 24, 0) for name in ("stdout", "stderr")))


@pytest.fixture
def terminal(plain_environment: None) -> Callable[..., Ended]:  # noqa: ARG001
    """Runs a command line in this process at a terminal so many columns wide; what it shows is the answer.

    stdout: another place for the answer; then the terminal shows only what goes to stderr.
    """

    def run(*words: str, columns: int = 80, stdout: int | None = None, **environment: str) -> Ended:
        with a_terminal(columns) as (end, shown):
            descriptors = (end, end if stdout is None else stdout, end)
            code = run_on(words, descriptors, **{"TERM": "xterm-256color", **environment})
        return Ended(code, bytes(shown), b"")

    return run


@pytest.fixture
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said of colours or of the size of a terminal."""
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def a_terminal(columns: int) -> Iterator[tuple[int, bytearray]]:
    """A terminal for programs, and what it has shown once the block has ended.

    A terminal that nobody has open may lose its rest, so this one is open until a last word was read.
    """
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
        os.write(their_end, _END)
        reading.join()
        os.close(own_end)
        os.close(their_end)
    shown[:] = shown.removesuffix(_END).replace(b"\r\n", b"\n")


@pytest.fixture(scope="session")
def shell_words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ``gaia-sessions`` that only writes down, beside itself, what it was asked."""
    folder = tmp_path_factory.getbasetemp() / "shell-words"
    folder.mkdir()
    asked = folder / "gaia-sessions"
    asked.write_text('#!/bin/sh\nset -C\nprintf \'%s\\0\' "$@" > "$0.words"\n', encoding="utf-8")
    asked.chmod(0o700)
    return folder


@pytest.fixture
def typed(gaia: Callable[..., Ended], shell_words: Path) -> Callable[[str], None]:
    """Types a line in a shell, where ``gaia-sessions``, once at most, is run in this process; nothing may fail."""
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
    """Empties the folder of the root, for the next row of a table."""

    def empty() -> None:
        for path in Path(root).parent.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    return empty


@pytest.fixture
def put(root: str) -> Callable[..., dict[str, Any]]:
    """Puts a record in place by hand; ``idle`` says how long ago its last activity was, ``without`` what it lacks."""

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
    """Puts something in place of a record; returns the file."""

    def write(agent_id: str, data: bytes = b'{"agent_id": ') -> Path:
        path = Path(root, agent_id, "state.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def state(root: str) -> Callable[[str], Any]:
    """The record of a session as it is on disk."""
    return lambda agent_id: json.loads(Path(root, agent_id, "state.json").read_bytes())


@pytest.fixture
def tree(root: str) -> Callable[[], dict[str, tuple[int, int, bytes]]]:
    """All that stands in the folder of the root: path to mode, time of change and content."""

    def look() -> dict[str, tuple[int, int, bytes]]:
        found = {}
        for path in [Path(root).parent, *Path(root).parent.rglob("*")]:
            status = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[str(path)] = (status.st_mode, status.st_mtime_ns, content)
        return found

    return look
