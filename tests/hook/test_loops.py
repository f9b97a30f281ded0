"""Loops of sub-agents in the hook before each tool call, with ``--enforce`` and ``limits.repeats``."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.hosts import agent_files
from gaia_sessions.session import agent_limits, repeats
from gaia_sessions.system import streams
from tests import commands
from tests.hook.conftest import own_host
from tests.hook.test_enforcement import asked, enforced, use
from tests.hosts.late import without_pauses
from tests.hosts.loops import BASH, asks, gives, rounds, told, written
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hook.conftest import Host
    from tests.hosts.loops import Line

__all__ = ["enforced"]  # the fixture is found by its name

DENY = {"GAIA_SESSIONS_LIMITS_REPEATS": "deny"}
CANCEL = {"GAIA_SESSIONS_LIMITS_REPEATS": "cancel"}
REFUSED = repeats.refusal("Bash", cancels=False)
CANCELLED = repeats.refusal("Bash", cancels=True)
WARNED = f"told: {repeats.warning('Bash')}"
OWN = asks("own")


def wrote(host: Host, *lines: Line) -> Path:
    return written(host.agents / "agent-a1.jsonl", told(), *lines)


def test_the_fourth_identical_call_is_warned_and_each_later_call_is_refused(enforced: Host) -> None:
    enforced.work()
    answers: list[str | None] = []
    lines: list[Line] = []
    for number in range(8):
        key = f"c{number}"
        wrote(enforced, *lines, asks(key))
        answers.append(asked(enforced, key, **DENY))
        is_refused = answers[-1] == REFUSED
        lines += [
            asks(key),
            gives(key, f"PreToolUse:Bash hook error: {REFUSED}" if is_refused else "ok", failed=is_refused),
        ]
        lines[-1] |= {"permissionDecision": {"decision": "reject", "source": "hook"}} if is_refused else {}
    assert answers == [None, None, None, WARNED, REFUSED, REFUSED, REFUSED, REFUSED]
    wrote(enforced, *lines, asks("o", {}), gives("o"), asks("own"))
    assert asked(enforced, "own", **DENY) is None, "it does something else, and may try again"
    assert [line["decision"] for line in enforced.log("hook")[-6:]] == ["warned", *["denied"] * 4, "allowed"]
    assert "warned_at" not in enforced.record()["runs"][0]
    assert enforced.record()["phase"] == "investigating"


@table(
    ("settings", "words"), [({}, ["--enforce"]), ({"GAIA_SESSIONS_LIMITS_REPEATS": "off"}, ["--enforce"]), (DENY, [])]
)
@own_host
def test_without_the_setting_or_the_option_no_loop_is_refused(
    host: Host, settings: dict[str, str], words: list[str]
) -> None:
    host.words = words
    host.work()
    wrote(host, *rounds(9), OWN)
    assert asked(host, "own", **settings) is None


def test_the_loop_limit_and_other_limits_each_give_their_own_message(enforced: Host) -> None:
    agent_id = enforced.work()
    both = {**DENY, "GAIA_SESSIONS_LIMITS_ROUNDS": "4", "GAIA_SESSIONS_LIMITS_TOKENS": "100"}
    wrote(enforced, *rounds(4), OWN)
    assert asked(enforced, "own", **both) == REFUSED
    wrote(enforced, *[{**line, "timestamp": "2126-01-08T18:00:00.000Z"} for line in (*rounds(3), OWN)])
    assert str(asked(enforced, "own", **both)).startswith("Sub-agent iteration limit reached (4)")
    enforced.edit(agent_id, charged_tokens=90)
    beside = {**DENY, "GAIA_SESSIONS_LIMITS_TOKENS": "100"}
    assert asked(enforced, "own", **beside) == WARNED
    assert "You have used 90 of your 100 tokens" in str(asked(enforced, "other", "Read", **beside))


def test_a_search_that_is_refused_as_a_loop_is_not_counted(enforced: Host) -> None:
    enforced.work()
    wrote(enforced, *rounds(4, tool="WebSearch"), asks("own", None, "WebSearch"))
    assert asked(enforced, "own", "WebSearch", GAIA_SESSIONS_LIMITS_SEARCHES="3", **DENY) is not None
    assert "searches" not in enforced.record()["runs"][0]


LATE: dict[str, tuple[list[Line], list[Line]]] = {
    "the result of the last call": ([*rounds(3), asks("x"), OWN], [*rounds(3), asks("x"), OWN, gives("x")]),
    "the line of the call": (rounds(4), [*rounds(4), OWN]),
}


@table("name", [*LATE])
@own_host
def test_the_hook_waits_for_late_lines_of_the_transcript(host: Host, name: str) -> None:
    host.words = ["--enforce"]
    host.work()
    before, after = LATE[name]
    wrote(host, *before)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(agent_files, "monotonic", lambda: 0.0)
        patched.setattr(agent_files, "sleep", lambda _: wrote(host, *after))
        assert asked(host, "own", **DENY) == REFUSED


@table("lines", [rounds(4), [*rounds(3), asks("x"), OWN], [*rounds(2), asks("x"), OWN]])
@own_host
def test_a_loop_whose_transcript_lines_come_too_late_is_allowed(host: Host, lines: list[Line]) -> None:
    host.words = ["--enforce"]
    host.work()
    wrote(host, *lines)
    with pytest.MonkeyPatch.context() as patched:
        without_pauses(patched)
        assert asked(host, "own", **DENY) is None


@table("lines", [[*rounds(1), OWN], [*rounds(4), asks("o", {})], []])
@own_host
def test_the_hook_does_not_wait_if_no_loop_is_possible(host: Host, lines: list[Line]) -> None:
    host.words = ["--enforce"]
    host.work()
    wrote(host, *lines)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(agent_files, "sleep", lambda _: pytest.fail("waited"))
        assert asked(host, "own", **DENY) is None


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def somebody_elses(file: Path) -> None:
    file.rename(file.with_name("moved"))
    file.symlink_to("moved")


def half_a_line(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-200])


def no_text(file: Path) -> None:
    file.write_bytes(b"\xff\xfe" * (3 << 20))


def forged_garbage(file: Path) -> None:
    file.write_text(file.read_text() + '{"type":"user","x":' + "[" * 5000 + "\n")


@table("damage", [a_folder, a_pipe, somebody_elses, half_a_line, no_text, forged_garbage, os.unlink])
@own_host
def test_an_unreadable_transcript_refuses_no_call(host: Host, damage: Any) -> None:
    host.words = ["--enforce"]
    host.work()
    file = wrote(host, *rounds(4), OWN)
    assert asked(host, "own", **DENY) == REFUSED
    damage(file)
    assert asked(host, "own", **DENY) is None
    is_told = damage in (a_folder, a_pipe, somebody_elses)
    assert ("limits" in host.log("hook")[-1]) == is_told, "what keeps it from being looked at is in the log"


@table("value", ['"\\u0000"', "[" * 100 + "]" * 100, '{"a":1,"a":2}', f'"{"x" * (9 << 20)}"'])
@own_host
def test_an_unreadable_tool_input_is_not_refused_as_a_loop(host: Host, value: str) -> None:
    host.words = ["--enforce"]
    host.work()
    wrote(host, *rounds(4), OWN)
    payload = json.dumps(use(host, "own")).replace('{"command": "ls"}', f'{{"command": {value}}}')
    assert host.hear(payload.encode(), DENY) is None


def test_after_clear_loops_are_found_in_the_new_transcript(enforced: Host) -> None:
    agent_id = enforced.work()
    old = wrote(enforced, *rounds(4), OWN)
    moved = enforced.transcript.with_name("other.jsonl")
    payload = {**use(enforced, "own"), "transcript_path": str(moved)}
    new = written(moved.with_suffix("") / "subagents" / old.name, *rounds(2), OWN)
    assert enforced.hear(payload, DENY) is None
    written(new, *rounds(4), OWN)
    assert enforced.hear(payload, DENY)["permissionDecision"] == "deny"
    new.unlink()
    assert enforced.hear(payload, DENY)["permissionDecision"] == "deny", "it is looked for where the run says it is"
    assert list(enforced.records()) == [agent_id]


def gaia(host: Host, *words: str) -> str:
    ran = commands.gaia(*words, "--root", str(host.root))
    return (ran.out + ran.err).decode()


def test_a_loop_cancels_the_parent_session_with_all_below_and_commands_show_why(enforced: Host) -> None:
    store = gaia_sessions.Sessions(str(enforced.root))
    top = store.create(agent_id="top")
    above = store.create(agent_id="above", parent_id=top)
    beside = store.create(agent_id="beside", parent_id=above)
    enforced.begin(settings={"GAIA_SESSION_ID": above})
    enforced.hear(enforced.starting())
    [agent_id] = set(enforced.records()) - {top, above, beside}
    wrote(enforced, *rounds(3), OWN)
    assert asked(enforced, "own", **CANCEL) == WARNED
    wrote(enforced, *rounds(4), OWN)
    assert asked(enforced, "own", **CANCEL) == CANCELLED

    reason = repeats.reason_to_cancel(agent_id, "Bash")
    mark = json.loads((enforced.root / above / "cancelled.json").read_bytes())
    assert mark == {"at": mark["at"], "below": True, "reason": reason}
    assert [one.parent.name for one in enforced.root.glob("*/cancelled.json")] == [above]
    assert asked(enforced, "next", "Read", **CANCEL) == asked(enforced, "next", "Read")
    assert str(asked(enforced, "next", "Read")).endswith(f"{reason}. {agent_limits.USE_NO_MORE_TOOLS}")
    shown = {word: gaia(enforced, word, one) for word in ("show", "report") for one in (above, beside, agent_id)}
    assert {word: "a loop: " in text for word, text in shown.items()} == dict.fromkeys(shown, True)
    listed = {one["agent_id"]: one.get("cancelled") for one in json.loads(gaia(enforced, "list", "--json"))}
    assert listed == {top: None, above: True, beside: True, agent_id: True}


def test_the_mark_is_written_before_the_agent_is_told(enforced: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    agent_id = enforced.work()
    wrote(enforced, *rounds(4), OWN)
    write, seen = streams.write_output, []

    def looking(data: bytes, seconds: float) -> bool:
        seen.append((enforced.root / agent_id / "cancelled.json").exists())
        return write(data, seconds)

    monkeypatch.setattr(streams, "write_output", looking)
    assert asked(enforced, "own", **CANCEL) == CANCELLED
    assert seen == [True]


def test_a_loop_in_a_session_without_a_parent_cancels_that_session(enforced: Host) -> None:
    agent_id = enforced.work()
    wrote(enforced, *rounds(4), OWN)
    assert asked(enforced, "own", **CANCEL) == CANCELLED
    assert [one.parent.name for one in enforced.root.glob("*/cancelled.json")] == [agent_id]
    enforced.hear(enforced.ending("a1", "I stop here."))
    assert enforced.record()["phase"] == "abandoned"
    assert repeats.reason_to_cancel(agent_id, "Bash") in gaia(enforced, "show", agent_id)


def finished(host: Host) -> None:
    gaia_sessions.Sessions(str(host.root)).finalize("above", "completed", summary="All is done.")


def removed(host: Host) -> None:
    shutil.rmtree(host.root / "above")


@table("what", [finished, removed])
@own_host
def test_a_loop_does_not_cancel_a_parent_that_has_ended_or_was_removed(host: Host, what: Any) -> None:
    host.words = ["--enforce"]
    agent_id = host.work()
    above = gaia_sessions.Sessions(str(host.root)).create(agent_id="above")
    host.edit(agent_id, parent_id=above)
    what(host)
    wrote(host, *rounds(4), OWN)
    assert asked(host, "own", **CANCEL) == CANCELLED
    assert [one.parent.name for one in host.root.glob("*/cancelled.json")] == [agent_id]


def test_a_call_is_refused_while_the_session_is_locked_and_the_next_call_cancels(
    enforced: Host,
) -> None:
    agent_id = enforced.work()
    wrote(enforced, *rounds(4), OWN)
    with enforced.held(agent_id):
        assert asked(enforced, "own", **CANCEL) == REFUSED
    assert agent_id in enforced.log("hook")[-1]["limits"]
    assert [*enforced.root.glob("*/cancelled.json")] == []
    assert asked(enforced, "own", **CANCEL) == CANCELLED


def polls(**more: Any) -> list[Line]:
    return [*rounds(6, **more), asks("own", more.get("tool_input"), more.get("tool", "Bash"))]


def answers(*contents: str) -> list[Line]:
    return [line for place, text in enumerate(contents) for line in (asks(f"c{place}"), gives(f"c{place}", text))]


TASK = "/run-dir/claude-0/-project/s/tasks/b1.output"
POLLS: dict[str, list[Line]] = {
    "a build that tells its progress": [*answers("10 %", "20 %", "20 %", "20 %", "30 %", "30 %"), OWN],
    "a date": [*answers(*(f"18:05:{second}" for second in range(10, 20))), OWN],
    "a command that sleeps": polls(second=6),
    "a build of a minute that always fails alike": polls(content="Exit code 2", failed=True, second=61),
    "TaskOutput": polls(tool="TaskOutput", tool_input={"task_id": "b1", "block": False}),
    "BashOutput": polls(tool="BashOutput", tool_input={"bash_id": "b1"}),
    "the file of a task, read": polls(tool="Read", tool_input={"file_path": TASK}),
    "the file of a task, by a command": polls(tool_input={"command": f"tail -3 {TASK}"}),
    "a queue, with work between": [
        line
        for n in range(6)
        for line in (*rounds(1, first=f"q{n}"), *rounds(1, "done", {"command": "work"}, first=f"w{n}"))
    ]
    + [OWN],
    "a status that a person asks for again": [
        line for n in range(6) for line in (told("And now?"), *rounds(1, first=f"q{n}"))
    ]
    + [told("And now?"), OWN],
}


@table("name", [*POLLS])
@own_host
def test_a_poll_is_not_a_loop(host: Host, name: str) -> None:
    host.words = ["--enforce"]
    host.work()
    lines = POLLS[name]
    wrote(host, *lines)
    own = lines[-1]["message"]["content"][0]
    assert asked(host, "own", own["name"], **CANCEL) is None
    assert [*host.root.glob("*/cancelled.json")] == []


LOOPS: dict[str, tuple[str, Any, Any, bool]] = {
    "a test that fails": ("Bash", BASH, "Exit code 1\n1 failed", True),
    "a command without output": ("Bash", {"command": "true"}, "", False),
    "a file that is not there": ("Read", {"file_path": "/project/no"}, "File does not exist.", True),
    "a file that is read again": ("Read", {"file_path": "/project/a"}, "1\tone\n2\ttwo", False),
    "a picture that is looked at again": (
        "Read",
        {"file_path": "/project/a.png"},
        [{"type": "image", "source": {}}],
        False,
    ),
    "a search without a hit": ("Grep", {"pattern": "x", "path": "/project"}, "No files found", False),
    "a page that does not answer": ("WebFetch", {"url": "http://127.0.0.1", "prompt": "x"}, "ECONNREFUSED", True),
    "a permission that nobody gives": (
        "WebFetch",
        {"url": "http://a", "prompt": "x"},
        "you haven't granted it yet.",
        True,
    ),
    "the same text written again": (
        "Write",
        {"file_path": "/project/a", "content": "x"},
        "The file was updated.",
        False,
    ),
    "a tool of a server": (
        "mcp__db__query",
        {"sql": "select 1", "rows": [{"n": 1}]},
        [{"type": "text", "text": "[]"}],
        False,
    ),
}


@table("name", [*LOOPS])
@own_host
def test_a_loop_is_warned_then_refused_and_with_cancel_cancelled(host: Host, name: str) -> None:
    tool, tool_input, content, failed = LOOPS[name]
    host.words = ["--enforce"]
    agent_id = host.work()
    found = []
    for number in range(6):
        wrote(host, *rounds(number, content, tool_input, tool, failed=failed), asks("own", tool_input, tool))
        found.append(asked(host, "own", tool, **(DENY if number < 5 else CANCEL)))
    refused = [repeats.refusal(tool, cancels=cancels) for cancels in (False, True)]
    assert found == [None, None, None, f"told: {repeats.warning(tool)}", *refused]
    assert (host.root / agent_id / "cancelled.json").exists()
