"""A hook that a person starts at a terminal: it says what it waits for or what it is for. A host sees none of this."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.hook import TOTAL_TIMEOUT
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOOKS = Path(__file__).resolve().parents[2] / "hooks"
COMMAND = [sys.executable, "-m", "gaia_sessions", "hook"]
SCRIPTS = {
    f"{name}.py": [sys.executable, str(HOOKS / f"{name}.py")]
    for name in ("every_event", "pre_delegate", "subagent_stop")
}
CALLS = [*SCRIPTS.values(), COMMAND]
PROMPT = b"Waiting for JSON on standard input. End it with Ctrl-D on an empty line.\r\n"
START = {"hook_event_name": "SubagentStart", "session_id": "s", "agent_id": "a1", "agent_type": "Explore"}
DELEGATION = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Agent", "tool_use_id": "t"}
OWN = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
"""Starts a program whose controlling terminal is its stdin."""


class Terminal:
    """Both ends of a terminal."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()

    def start(self, call: list[str], **streams: int) -> subprocess.Popen[bytes]:
        given = {"stdin": self.theirs, "stdout": subprocess.PIPE, "stderr": self.theirs, **streams}
        return subprocess.Popen([sys.executable, "-c", OWN, *call], start_new_session=True, **given)  # type: ignore[call-overload,no-any-return]  # streams

    def read(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            data += os.read(self.ours, length - len(data))
        return data

    def lines(self, number: int) -> list[str]:
        data = b""
        while data.count(b"\r\n") < number:
            data += os.read(self.ours, 1)
        return data.decode().splitlines()

    def close(self) -> None:
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def terminals(root: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Terminal]]:
    """Makes terminals; programs find an empty root."""
    made: list[Terminal] = []

    def new() -> Terminal:
        made.append(Terminal())
        return made[-1]

    monkeypatch.setenv("GAIA_SESSIONS_ROOT", root)
    yield new
    for one in made:
        one.close()


def test_a_script_at_a_terminal_prompts_and_waits_longer_than_for_a_host(
    terminals: Callable[[], Terminal], root: str
) -> None:
    started = [(call[-1], terminal := terminals(), terminal.start(call)) for call in SCRIPTS.values()]
    assert [terminal.read(len(PROMPT)) for _, terminal, _ in started] == [PROMPT] * 3
    time.sleep(TOTAL_TIMEOUT + 0.4)
    assert [process.poll() for _, _, process in started] == [None] * 3
    for script, terminal, process in started:
        asked = START if "every" in script else {"agent_id": "nobody"}
        os.write(terminal.ours, json.dumps(asked).encode() + b"\n\x04")
        out, _ = process.communicate(timeout=30)
        assert (process.returncode, set(json.loads(out)) & {"hookSpecificOutput", "reason"} != set()) == (0, True)
    assert sorted(os.listdir(os.path.join(root, ".logs"))) == ["hook.log", "pre_delegate.log", "subagent_stop.log"]


@table("call", SCRIPTS.values())
def test_a_script_ends_when_a_terminal_has_sent_complete_json(
    terminals: Callable[[], Terminal], call: list[str]
) -> None:
    terminal = terminals()
    process = terminal.start(call)
    terminal.read(len(PROMPT))
    os.write(terminal.ours, json.dumps(START, indent=1).encode() + b"\n")
    process.communicate(timeout=6)
    assert process.returncode == 0


@table("call", SCRIPTS.values())
def test_a_script_ends_at_ctrl_d_and_creates_nothing(
    terminals: Callable[[], Terminal], call: list[str], root: str
) -> None:
    terminal = terminals()
    process = terminal.start(call)
    terminal.read(len(PROMPT))
    os.write(terminal.ours, b"\x04")
    assert (process.communicate(timeout=30)[0], process.returncode, os.path.exists(root)) == (b"", 0, False)


def test_a_hook_with_a_terminal_only_on_stdin_is_silent_and_does_not_wait(terminals: Callable[[], Terminal]) -> None:
    started = [terminals().start(call, stderr=subprocess.PIPE) for call in CALLS]
    ended = [(*process.communicate(timeout=30), process.returncode) for process in started]
    assert ended == [(b"", b"", 0)] * 4


@table("call", CALLS)
def test_a_hook_without_a_terminal_on_stdin_prints_nothing(call: list[str], root: str) -> None:
    ours, theirs = pty.openpty()
    told = json.dumps(DELEGATION).encode()
    environ = {**os.environ, "GAIA_SESSIONS_ROOT": root}
    ended = subprocess.run(call, input=told, stdout=theirs, stderr=theirs, env=environ, timeout=30, check=False)
    os.close(theirs)
    with pytest.raises(OSError, match="Input/output error"):  # nothing was written to it before it was closed
        os.read(ours, 1)
    os.close(ours)
    assert ended.returncode == 0


TYPED = {
    "hook": (
        0,
        "Note",
        "clients call this command, with JSON on standard input",
        ["hooks install", "hook --test"],
    ),
    "hook --host codex": (0, "Note", "clients call this command, with JSON on standard input", ["hook --test"]),
    "hook status": (2, "Error", "hook takes no argument 'status'", ["did you mean gaia-sessions hooks status?"]),
    "--root r hook status": (2, "Error", "hook takes no argument 'status'", ["gaia-sessions --root r hooks status?"]),
    "hook install --host codex --user": (
        2,
        "Error",
        "hook takes no argument 'install'",
        ["hooks install --host codex --user?"],
    ),
    "hook frobnicate": (
        2,
        "Error",
        "hook takes no argument 'frobnicate'",
        ["gaia-sessions hooks --help lists the commands"],
    ),
}


@table("typed", TYPED)
def test_the_hook_command_typed_by_a_person_says_at_once_what_it_is_for(
    terminals: Callable[[], Terminal], typed: str, root: str
) -> None:
    code, kind, message, hints = TYPED[typed]
    terminal = terminals()
    process = terminal.start([*COMMAND[:-1], *typed.split()])
    assert (process.communicate(timeout=30)[0], process.returncode) == (b"", code)  # before anything is typed
    os.write(terminal.theirs, b"END\n")
    said, hint, end = terminal.lines(3)
    assert (said, hint.startswith("Hint: "), end) == (f"{kind}: {message}", True, "END")
    assert ([text for text in hints if text not in hint], max(map(len, (said, hint))) <= 80) == ([], True)
    assert not os.path.exists(root)
