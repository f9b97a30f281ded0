"""Unreadable input, and output that nobody reads: the hook ends with code 0 and answers with one object or silence."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.hook.run import main
from gaia_sessions.system import streams
from tests.calls import call
from tests.hook.conftest import LONGEST, NO, SCRIPTS, SILENT, refused
from tests.jsonio.test_strict import ABUSES
from tests.session.test_ids import BAD
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.calls import Ran
    from tests.hook.conftest import Host

HOOKS = ["pre_delegate", "subagent_stop"]


@pytest.fixture(autouse=True)
def _nothing_else_is_touched(host: Host, away_from_home: Path) -> Iterator[None]:
    """A hook may change only the sessions and their logs."""

    def elsewhere() -> dict[str, object]:
        ours = (str(host.root), str(host.logs))
        everything = host.tree(host.folder, away_from_home).items()
        return {
            path: entry for path, entry in everything if not path.startswith(ours) and Path(path) != host.logs.parent
        }

    before = elsewhere()
    yield
    assert elsewhere() == before


UNREADABLE: list[bytes] = [
    *(data for data, _, _ in ABUSES if data),
    b"bad",
    b'""',
    b'"agent-1"',
    b"3",
    b"null",
    b"true",
    b"[1]",
    b'[{"agent_name": "x"}]',
    b'{"agent_name": "x", "agent_id"',
    b'{"agent_name": "x",}',
    b'{"metadata": {"a": NaN}}',
    b'{"metadata": {"a": Infinity}}',
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    b'{"agent_name": "' + b"x" * (9 << 20) + b'"}',
    b" " * (9 << 20),
]


def of_a_host(data: bytes) -> bytes:
    """The same bytes, marked as the payload of a host."""
    return data + b' "hook_event_name": "PreToolUse"'


@table("hook", HOOKS)
@table("data", UNREADABLE)
def test_unreadable_input_is_answered_with_one_object_that_names_the_error(host: Host, data: bytes, hook: str) -> None:
    answer = host.ask(hook, data)

    error = answer.pop("error")
    assert isinstance(error, str)
    assert error.isprintable()
    assert answer == {**NO[hook], "reason": "invalid_input", "agent_id": None, "original_context": None}
    assert not host.root.exists()


@table("hook", HOOKS)
@table("data", [data for data in UNREADABLE if len(data) < 9 << 20])
def test_a_hook_answers_unreadable_input_of_a_host_with_silence(host: Host, data: bytes, hook: str) -> None:
    assert host.run(hook, of_a_host(data)) == SILENT

    assert not host.root.exists()


@table("hook", HOOKS)
def test_a_hook_answers_a_host_payload_of_nine_mebibytes_with_silence(host: Host, hook: str) -> None:
    told = host.delegation(tool_input={"prompt": "x" * (9 << 20)})

    assert host.start(hook, told) == SILENT

    assert not host.root.exists()


def test_unreadable_input_leaves_an_error_line_in_the_log(host: Host) -> None:
    host.start("pre_delegate", of_a_host(b"{torn"))

    [line] = host.log("pre_delegate")
    assert line["decision"] == "error"


def test_a_host_payload_of_almost_eight_mebibytes_is_recorded(host: Host) -> None:
    told = host.delegation(tool_input={"description": "Long", "prompt": "x" * ((8 << 20) - 1_000)})

    assert host.start("pre_delegate", told) == SILENT

    assert host.record()["purpose"] == "Long"


@table("hook", HOOKS)
def test_a_direct_request_of_almost_eight_mebibytes_is_answered(host: Host, hook: str) -> None:
    asked = {"agent_name": "x" * ((8 << 20) - 1_000)}

    assert host.start(hook, asked).answer["original_context"] == asked


ECHOED_AT_LENGTH = {
    "64 levels": b'{"agent_name": "x", "metadata": ' + b"[" * 63 + b"]" * 63 + b"}",
    "half a mebibyte of numbers at level 56": b'{"metadata": ' + b"[" * 55 + b"0," * 300_000 + b"0" + b"]" * 55 + b"}",
}


@table("hook", HOOKS)
@table("data", ECHOED_AT_LENGTH.values())
def test_input_nested_to_the_limit_is_answered(host: Host, data: bytes, hook: str) -> None:
    answer = host.start(hook, data).answer

    assert answer == {**answer, **NO[hook]}


def on_streams(host: Host, hook: str, told: bytes = b"", *, stdin: int = 0, stdout: int = 1) -> Ran:
    """Runs the hook in this process with these file descriptors as stdin and stdout."""

    def run() -> int:
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        return main(hook, [])

    return call(run, told, host.environment(), host.project)


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks wait only 0.2 seconds for input."""
    monkeypatch.setattr("gaia_sessions.hook.run.READ_TIMEOUT", 0.2)


@contextmanager
def pipe(*first: bytes) -> Iterator[tuple[int, int]]:
    """A pipe that stays open, with ``first`` in it."""
    reader, writer = os.pipe()
    try:
        for data in first:
            os.write(writer, data)
        yield reader, writer
    finally:
        os.close(reader)
        os.close(writer)


@contextmanager
def terminal(typed: bytes = b"") -> Iterator[int]:
    """A terminal at which a user has ``typed``."""
    near, far = pty.openpty()
    try:
        os.write(near, typed)
        yield far
    finally:
        os.close(near)
        os.close(far)


@table("hook", HOOKS)
def test_a_hook_without_input_is_silent_and_creates_no_root(host: Host, hook: str) -> None:
    assert host.run(hook, b"") == SILENT
    assert host.start(hook, b"", {}, "sh", "-c", 'exec "$@" <&-', "sh") == SILENT
    assert not host.root.exists()


@pytest.mark.usefixtures("briefly")
@table("hook", HOOKS)
def test_a_hook_gives_up_on_a_pipe_or_terminal_that_sends_nothing(host: Host, hook: str) -> None:
    with pipe() as (reader, _):
        assert on_streams(host, hook, stdin=reader) == SILENT
    with terminal() as far:
        assert on_streams(host, hook, stdin=far) == SILENT


def test_each_script_ends_silently_if_its_input_pipe_stays_empty(host: Host) -> None:
    started = []
    with pipe() as (reader, _):
        for hook in (*HOOKS, "every_event"):
            command = [sys.executable, str(SCRIPTS / f"{hook}.py")]
            script = subprocess.Popen(
                command, stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=host.environment()
            )
            started.append(script)
        told = [process.communicate(timeout=LONGEST) for process in started]
    assert [(process.returncode, *said) for process, said in zip(started, told, strict=True)] == [SILENT] * 3


def test_a_request_typed_at_a_terminal_is_answered(host: Host) -> None:
    with terminal(b'{"agent_name": "x"}\n\x04') as far:
        answer = on_streams(host, "pre_delegate", stdin=far).answer

    assert answer["reason"] == "no_existing_session"


@pytest.mark.usefixtures("briefly")
def test_a_delegation_is_recorded_if_the_host_leaves_the_pipe_open(host: Host) -> None:
    with pipe(json.dumps(host.delegation()).encode()) as (reader, _):
        assert on_streams(host, "pre_delegate", stdin=reader) == SILENT

    assert host.record()["agent_name"] == "Explore"


@pytest.mark.usefixtures("briefly")
def test_a_hook_gives_up_on_a_pipe_that_never_stops_trickling(host: Host) -> None:
    is_over = threading.Event()
    with pipe(b'{"agent_name": "') as (reader, writer):

        def trickle() -> None:
            while not is_over.wait(0.02):
                os.write(writer, b"x")

        trickling = threading.Thread(target=trickle)
        trickling.start()
        try:
            answer = on_streams(host, "pre_delegate", stdin=reader).answer
        finally:
            is_over.set()
            trickling.join()

    assert answer["reason"] == "invalid_input"


@table("hook", HOOKS)
def test_a_hook_gives_up_on_endless_input(host: Host, hook: str) -> None:
    with Path("/dev/zero").open("rb") as zeros:
        answers = [on_streams(host, hook, stdin=zeros.fileno()).answer]
    with subprocess.Popen(["yes", "{"], stdout=subprocess.PIPE) as endless:
        assert endless.stdout is not None
        answers.append(on_streams(host, hook, stdin=endless.stdout.fileno()).answer)
        endless.kill()

    assert [(answer["reason"], answer["original_context"]) for answer in answers] == [("invalid_input", None)] * 2


@contextmanager
def full_device() -> Iterator[int]:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full, a device that is always full")
    with Path("/dev/full").open("wb") as full:
        yield full.fileno()


@contextmanager
def broken_pipe() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


@contextmanager
def end_that_nobody_may_write_to() -> Iterator[int]:
    with pipe() as (reader, _):
        yield reader


@pytest.mark.parametrize("output", [full_device, broken_pipe, end_that_nobody_may_write_to, ">&-", ">&- 2>&-"])
def test_a_request_takes_effect_even_if_its_answer_cannot_be_written(
    host: Host, output: str | Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ending, other = (gaia_sessions.create_session(agent_id=name, root=str(host.root)) for name in ("one", "two"))
    asked = {"agent_id": ending, "summary": "Done", "noise": "x" * 100_000}
    write = streams.write_output
    monkeypatch.setattr(streams, "write_output", lambda data, seconds: write(data, min(seconds, 0.1)))

    def tell(hook: str, told: dict[str, Any]) -> Ran:
        if isinstance(output, str):
            return host.start(hook, told, {}, "sh", "-c", f'exec "$@" {output}', "sh")
        with output() as stdout:
            return on_streams(host, hook, json.dumps(told).encode(), stdout=stdout)

    assert tell("subagent_stop", asked) == SILENT
    assert tell("pre_delegate", {"agent_id": "three", "create": True}) == SILENT
    assert tell("pre_delegate", host.delegation()) == SILENT

    records = host.records()
    delegated = set(records) - {ending, other, "three"}
    assert len(delegated) == 1
    assert {name: records[name]["phase"] for name in (ending, other, "three", *delegated)} == {
        ending: "completed",
        other: "initializing",
        "three": "initializing",
        **dict.fromkeys(delegated, "initializing"),
    }
    assert records[ending]["summary"] == "Done"


@table("closed", ["<&-", "2>&-", "<&- >&-", "<&- 2>&-", "<&- >&- 2>&-"])
@table("hook", HOOKS)
def test_a_hook_with_closed_standard_streams_exits_with_code_0(host: Host, hook: str, closed: str) -> None:
    ran = host.start(hook, b'{"agent_name": "x"}', {}, "sh", "-c", f'exec "$@" {closed}', "sh")

    assert (ran.code, ran.err) == (0, b"")
    assert bool(ran.out) is (closed == "2>&-")
    assert not host.root.exists()


# Without the values that JSON cannot hold, and without None, which means no id.
IMPOSSIBLE_IDS = [one for one, _ in BAD if not isinstance(one, bytes) and one not in (None, "a\0b", "a\ud800")]


def test_an_invalid_session_id_is_refused_and_touches_no_file(host: Host) -> None:
    gaia_sessions.create_session(agent_id="agent-1", root=str(host.root))
    ids = [*IMPOSSIBLE_IDS, {}, {"agent_id": "agent-1"}, 1.5, "../" * 1_000]
    before = host.tree(host.root)

    def unexpected(hook: str, agent_id: object) -> object:
        asked = {"agent_id": agent_id, "create": True}
        answer = host.ask(hook, asked)
        expected = refused(hook, asked, "invalid_input", error=str(answer["error"]))
        return None if answer == expected else answer

    assert [answer for hook, agent_id in product(HOOKS, ids) if (answer := unexpected(hook, agent_id))] == []

    assert host.tree(host.root) == before
