"""A command that a real shell starts in a real terminal: Ctrl-C, Ctrl-Z, ``fg``, and a closed window."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import sys
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.runner.conftest import CHECKOUT, PATIENCE, PRELUDE, TAG, becomes, carriers, linux, state_of
from tests.runner.test_supervise import OBEDIENT, STUBBORN, SUPERVISOR, pass_time, python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Typing = Callable[..., "Terminal"]

pytestmark = [linux, pytest.mark.usefixtures("interruptible")]


class Terminal:
    """A terminal with a shell that runs one command under a wrapper; ``shown`` has the output."""

    def __init__(self, folder: Path, argv: tuple[str, ...], **options: Any) -> None:
        self.tag = uuid.uuid4().hex
        self.path = folder / "ended"
        self.shown = b""
        (folder / "wrapper.py").write_text(PRELUDE + SUPERVISOR)
        starter = folder / "start.py"
        words = [sys.executable, f"{folder}/wrapper.py", str(self.path), json.dumps(options), *argv]
        starter.write_text(f"import os\nos.execv({sys.executable!r}, {words!r})\n")
        self.pid, self._fd = pty.fork()
        if not self.pid:
            environment = {TAG: self.tag, "PYTHONPATH": str(CHECKOUT), "PATH": os.environ["PATH"], "PS1": "", "ENV": ""}
            os.execve("/bin/sh", ["sh", "-i"], environment)  # noqa: S606  # the shell
        self.type(f"{sys.executable} {starter}\n")

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def until(self, wanted: bytes) -> None:
        """Reads output until ``wanted`` appears in the new output."""
        begin = len(self.shown)
        while wanted not in self.shown[begin:]:
            self.shown += os.read(self._fd, 1 << 12)

    def wrapper(self) -> int:
        path = self.path.with_suffix(".pid")
        assert becomes(path.exists, PATIENCE)
        return int(path.read_text())

    def state(self) -> str:
        """The states of the wrapper and its descendants: one letter each, as the kernel shows them."""
        below = [pid for pid in carriers(self.tag) if pid not in (self.pid, self.wrapper())]
        return "".join(state_of(pid) for pid in (self.wrapper(), *sorted(below)))

    def ended(self) -> dict[str, Any]:
        """How the command ended; reads the output meanwhile."""
        until = time.monotonic() + PATIENCE
        os.set_blocking(self._fd, False)
        while not self.path.exists() and time.monotonic() < until:
            with contextlib.suppress(OSError):
                self.shown += os.read(self._fd, 1 << 12)
            time.sleep(0.01)
        os.set_blocking(self._fd, True)
        return json.loads(self.path.read_text())  # type: ignore[no-any-return]  # as the wrapper writes it

    def close(self) -> None:
        """Closes the window."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def kill(self) -> None:
        self.close()
        for pid in carriers(self.tag):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Typing]:
    opened: list[Terminal] = []

    def begin(*argv: str, **options: Any) -> Terminal:
        opened.append(Terminal(tmp_path, argv, **options))
        return opened[-1]

    yield begin
    for one in opened:
        one.kill()


def test_ctrl_c_is_passed_on_once_and_the_command_chooses_its_exit_code(terminal: Typing) -> None:
    shell = terminal(*OBEDIENT)
    shell.until(b"ready")
    shell.type("\x03")
    ended = shell.ended()
    assert (ended["cause"], ended["exit_code"], ended["message"]) == ("signalled", 5, "ready\ngot 2\n")


def test_a_second_ctrl_c_kills_the_command_at_once(terminal: Typing) -> None:
    shell = terminal(*STUBBORN, after_signal=PATIENCE)
    shell.until(b"ready")
    shell.type("\x03")
    shell.until(b"got 2")
    shell.type("\x03")
    ended = shell.ended()
    assert (ended["cause"], ended["exit_code"], ended["message"]) == ("signalled", 137, "ready\ngot 2\n")
    assert (ended["seconds"] < PATIENCE / 2, ended["left"]) == (True, 0)


def test_a_suspended_command_and_its_time_limit_are_paused_until_fg(terminal: Typing) -> None:
    source = """
if not os.fork():
    os.setsid()
    time.sleep(300)
print("ready", flush=True)
sys.exit(int(sys.stdin.readline()))
"""
    shell = terminal(*python(source), timeout=60, grace=0)
    shell.until(b"ready")
    shell.type("\x1a")
    assert becomes(lambda: shell.state() == "TTT", PATIENCE), shell.state()
    pass_time(shell.path, 100)
    assert shell.state() == "TTT"

    shell.type("fg\n")
    shell.until(b"start.py")
    shell.type("7\n")
    ended = shell.ended()

    assert (ended["cause"], ended["exit_code"], ended["left"]) == ("exited", 7, 0)
    assert ended["seconds"] > 100


def test_after_fg_the_command_has_the_rest_of_its_time_limit(terminal: Typing) -> None:
    shell = terminal("sleep", "300", timeout=60, grace=0)
    shell.wrapper()
    assert becomes(lambda: "S" in shell.state()[1:], PATIENCE)
    shell.type("\x1a")
    assert becomes(lambda: shell.state() == "TT", PATIENCE), shell.state()
    pass_time(shell.path, 100)
    shell.type("fg\n")
    assert becomes(lambda: shell.state() == "SS", PATIENCE), shell.state()
    pass_time(shell.path, 160)
    ended = shell.ended()
    assert (ended["cause"], ended["exit_code"], ended["left"]) == ("timeout", 143, 0)
    assert ended["seconds"] >= 160


@pytest.mark.parametrize("command", [OBEDIENT, STUBBORN], ids=["obeys", "does not"])
def test_closing_the_terminal_ends_the_command_and_its_end_is_recorded(
    terminal: Typing, command: tuple[str, ...]
) -> None:
    shell = terminal(*command, after_signal=0.5)
    shell.until(b"ready")
    began = time.monotonic()
    shell.close()
    assert becomes(shell.path.exists, PATIENCE)
    ended = json.loads(shell.path.read_text())
    assert ended["cause"] == "signalled"
    assert ended["left"] == 0
    assert ended["exit_code"] == (5 if command is OBEDIENT else 137)
    assert time.monotonic() - began < 5 + 15
    assert becomes(lambda: carriers(shell.tag) == [], PATIENCE)
