"""What a resumed agent is told of the earlier runs, which is what ``context`` returns.

These tests write transcripts as Claude Code does. ``tests/hook/test_realclient_context.py`` has real ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.session.context import context_lines
from tests.hook.conftest import own_host
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.hook.conftest import Host

    Line = dict[str, Any]

ASKS = "The plan.\n[gaia-sessions: approval] shall I?"
GONE = "(only the last message of run 1 is known, because no file of this run can be read)"
LAST = ["Run 1:", "  assistant: The plan.", "    [gaia-sessions: approval] shall I?"]


def said(role: str, *blocks: Line | str, agent: str = "a1") -> Line:
    """A line of the client's transcript, without a time."""
    content: Any = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return {"type": role, "agentId": agent, "message": {"role": role, "content": content}}


def sent(text: str, agent: str = "a1") -> Line:
    return {"type": "user", "agentId": agent, "message": {"role": "user", "content": text}}


def call(number: int) -> Line:
    return {"type": "tool_use", "id": f"toolu_c{number}", "name": "Bash", "input": {"command": f"echo {number}"}}


def result(number: int, text: str = "") -> Line:
    return {"type": "tool_result", "tool_use_id": f"toolu_c{number}", "content": text or str(number)}


def rounds(*numbers: int, text: str = "") -> list[Line]:
    return [line for n in numbers for line in (said("assistant", call(n)), said("user", result(n, text)))]


WORK = [sent("Count them."), *rounds(1, 2), said("assistant", ASKS)]
TOLD = [
    "Run 1:",
    "  user: Count them.",
    '  call 1, Bash: {"command": "echo 1"}',
    "  result 1: 1",
    '  call 2, Bash: {"command": "echo 2"}',
    "  result 2: 2",
    *LAST[1:],
]


def file_of(host: Host, agent: str = "a1") -> Path:
    host.agents.mkdir(parents=True, exist_ok=True)
    return host.agents / f"agent-{agent}.jsonl"


def write(host: Host, lines: list[Line], agent: str = "a1") -> None:
    """Adds ``lines`` to the client's transcript, each with the current time."""
    seconds = count()
    stamped = [{**line, "timestamp": host.ago(seconds=-next(seconds) / 1e6)} for line in lines]
    with file_of(host, agent).open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in stamped)


def pause(host: Host, lines: list[Line] | None = None, message: str | None = ASKS) -> str:
    agent_id = host.work()
    if lines is not None:
        write(host, lines)
    host.hear(host.ending(message=message))
    host.hear(host.returning())
    return agent_id


def resume(host: Host, agent_id: str, tool_use_id: str = "toolu_2") -> str:
    """The prompt of the resumed agent."""
    asked = {"description": "Apply", "prompt": f"Yes.\n[gaia-sessions: resume {agent_id}]", "subagent_type": "Explore"}
    prompt = host.hear(host.delegation(tool_use_id, tool_input=asked, session_id="another"))["updatedInput"]["prompt"]
    assert len(prompt.partition("\n\n")[2]) <= 6000
    return str(prompt)


def context(host: Host, agent_id: str, **bound: int) -> list[str]:
    return context_lines(gaia_sessions.Sessions(str(host.root)).context(agent_id, **bound))


def told(host: Host, agent_id: str) -> list[str]:
    """What the resumed agent is told of earlier turns; ``context`` returns the same."""
    lines = context(host, agent_id)
    shown = "".join(f"| {line}".rstrip() + "\n" for line in lines)
    assert resume(host, agent_id).endswith(f"-> approval\n{shown}=== gaia-sessions: end of data ===")
    return lines


def test_the_context_lists_messages_and_calls_in_order(host: Host) -> None:
    assert told(host, pause(host, WORK)) == TOLD


def test_each_turn_has_the_id_of_its_task(host: Host) -> None:
    agent_id = pause(host, WORK)
    sessions = gaia_sessions.Sessions(str(host.root))

    [turn] = sessions.context(agent_id)["turns"]

    assert (turn["run"], turn["turn_id"]) == (1, sessions.report(agent_id)["task_id"])
    assert [message["role"] for message in turn["messages"]] == ["user", *["assistant", "tool"] * 2, "assistant"]


def test_lines_that_the_client_adds_are_left_out_and_an_interruption_stays_in_its_turn(host: Host) -> None:
    lines = [
        *WORK[:1],
        {"type": "attachment", "agentId": "a1", "attachment": {"type": "user", "content": "assistant"}},
        said("assistant", {"type": "thinking", "thinking": "Hm."}),
        {"type": "api-request", "agentId": "a1", "message": {"content": '"user"'}},
        sent("Of another agent.", agent="a9"),
        *WORK[1:3],
        sent("[Request interrupted by user]"),
        sent("Stop hook feedback:\nCount again."),
        *WORK[3:],
    ]
    interrupted = ["  user: [Request interrupted by user]", "  user: Stop hook feedback:", "    Count again."]
    assert told(host, pause(host, lines)) == [*TOLD[:4], *interrupted, *TOLD[4:]]


def test_a_message_that_wakes_an_agent_begins_a_turn_of_its_new_run(host: Host) -> None:
    agent_id = pause(host, WORK)
    host.hear(host.messaging())
    host.hear(host.starting())
    write(host, [sent("Apply it."), said("assistant", "Applied.")])
    host.hear(host.ending(message="Applied."))

    assert context(host, agent_id) == [*TOLD, "Run 2:", "  user: Apply it.", "  assistant: Applied."]


def test_the_message_that_woke_an_agent_is_shown_even_after_a_long_run(host: Host) -> None:
    agent_id = pause(host, WORK)
    host.hear(host.messaging())
    host.hear(host.starting())
    write(host, [sent("Apply it."), *rounds(*range(300), text="x" * 6000), said("assistant", "Applied.")])
    host.hear(host.ending(message="Applied."))

    lines = context(host, agent_id)

    assert lines[:2] == ["Earlier turns:", "  (older turns are left out)"]
    assert lines[2:5] == ["Run 2:", "  user: Apply it.", "  (a part of it is left out)"]
    assert lines[-1] == "  assistant: Applied."


def test_briefings_do_not_nest(host: Host) -> None:
    agent_id = pause(host, WORK)
    prompt = resume(host, agent_id)
    host.hear(host.starting("a2", session_id="another"))
    host.knows("a2", "toolu_2")
    host.hear(host.starting("a2", session_id="another"))
    write(host, [sent(prompt, agent="a2"), said("assistant", ASKS, agent="a2")], "a2")
    host.hear(host.ending("a2", ASKS, session_id="another"))

    assert context(host, agent_id) == [*TOLD, "Run 2:", "  user: Yes.", *LAST[1:]]
    assert resume(host, agent_id, "toolu_3").count("[gaia-sessions: briefing") == 1


def test_a_transcript_without_its_first_message_is_marked_as_incomplete(host: Host) -> None:
    lines = told(host, pause(host, WORK[1:]))

    beyond = ["Earlier turns:", "  (older turns are left out)"]
    assert lines == [*beyond, "Run 1:", "  (a part of it is left out)", *TOLD[2:]]


def test_a_very_long_last_result_is_shown_with_its_call(host: Host) -> None:
    agent_id = host.work()
    write(host, [sent("Count them."), *rounds(1, 2, 3, text="x" * 300_000)])

    lines = context(host, agent_id)

    assert lines[1:4] == [
        "  user: Count them.",
        "  (a part of it is left out)",
        '  call 1, Bash: {"command": "echo 3"}',
    ]
    assert lines[4].startswith("  result 1: xxx")


def test_the_first_prompt_of_a_long_run_is_shown_even_if_it_is_long(host: Host) -> None:
    work = [sent("Count them. " + "p" * 100_000), *rounds(*range(300), text="x" * 6000), said("assistant", ASKS)]
    lines = told(host, pause(host, work))

    assert lines[1].startswith("  user: Count them. ppp")
    assert lines[2] == "  (a part of it is left out)"


def test_runs_of_a_client_and_of_commands_are_listed_in_order(host: Host) -> None:
    agent_id = pause(host, WORK)
    script = "cat > /dev/null; echo Part {0}.; echo '[gaia-sessions: approval] more?'"
    for number in (2, 3):
        command = ["run", agent_id, "--quiet", "--", "sh", "-c", script.format(number)]
        subprocess.run([sys.executable, "-m", "gaia_sessions", "--root", str(host.root), *command], check=True)
    resume(host, agent_id)
    host.knows("a2", "toolu_2")
    host.hear(host.starting("a2", session_id="another"))
    write(host, [{**line, "agentId": "a2"} for line in WORK], "a2")
    host.hear(host.ending("a2", ASKS, session_id="another"))

    of_commands = [
        line
        for number in (2, 3)
        for line in (f"Run {number}:", f"  assistant: Part {number}.", "    [gaia-sessions: approval] more?")
    ]
    assert context(host, agent_id) == [*TOLD, *of_commands, "Run 4:", *TOLD[1:]]


def fifo(file: Path) -> None:
    os.mkfifo(file)


def link(file: Path) -> None:
    target = file.with_suffix(".target")
    target.write_text("".join(json.dumps(line) + "\n" for line in WORK), encoding="utf-8")
    file.symlink_to(target)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "a missing file": lambda _: None,
    "an empty file": lambda file: file.write_bytes(b""),
    "a pipe": fifo,
    "a link": link,
    "a folder": lambda file: file.mkdir(),
    "bytes": lambda file: file.write_bytes(bytes(range(256)) * 4096),
    "a line of 8 MiB without its end": lambda file: file.write_bytes(
        b'{"type": "user", "agentId": "a1", "x": "' + b"x" * (8 << 20)
    ),
    "a line of 8 MiB with its end": lambda file: file.write_bytes(
        b'{"type": "user", "x": "' + b"x" * (8 << 20) + b'"}\n'
    ),
    "deep nesting": lambda file: file.write_bytes(b'{"user":' * 100_000 + b"\n"),
    "newlines": lambda file: file.write_bytes(b"\n" * (8 << 20)),
    "lines of another agent": lambda file: file.write_text((json.dumps(sent("x", agent="a9")) + "\n") * 40_000),
    "lines without a time": lambda file: file.write_text((json.dumps(sent("x")) + "\n") * 40_000),
    "no content": lambda file: file.write_text('{"type": "user", "agentId": "a1", "message": 7}\n' * 20_000),
}


@table("damage", HOSTILE.values())
@own_host
def test_an_unusable_transcript_costs_little_time_and_leaves_the_last_message(
    host: Host, damage: Callable[[Path], object]
) -> None:
    agent_id = host.work()
    damage(file_of(host))
    host.hear(host.ending(message=ASKS))

    assert told(host, agent_id) == [GONE, *LAST]
    assert host.log("hook")[-1]["ms"] < 2600


def test_an_incomplete_last_line_is_not_read_as_a_message(host: Host) -> None:
    agent_id = pause(host, WORK)
    with file_of(host).open("a", encoding="utf-8") as file:
        file.write(json.dumps({**sent("More."), "timestamp": host.ago()})[:-5])

    assert told(host, agent_id) == TOLD


def test_a_last_message_that_is_missing_in_the_transcript_is_added(host: Host) -> None:
    recovered = "(the last message of run 1 was recovered: the client's file does not end with it)"
    assert told(host, pause(host, WORK[:-1])) == [recovered, *TOLD]


def test_a_run_without_a_last_message_is_recovered_from_the_transcript(host: Host) -> None:
    agent_id = host.work()
    write(host, WORK[:-1])
    host.hear(host.failing(error="Interrupted", is_interrupt=True))

    recovered = "(run 1 ended without a last message; what it said was recovered from the client's file)"
    assert context(host, agent_id) == [recovered, *TOLD[:-2]]


def test_a_long_run_is_shown_by_its_beginning_last_rounds_and_answer(host: Host) -> None:
    lines = told(host, pause(host, [sent("Count them."), *rounds(*range(10_000)), said("assistant", ASKS)]))

    assert lines[:3] == ["Run 1:", "  user: Count them.", "  (a part of it is left out)"]
    assert lines[-2:] == LAST[1:]
    assert lines[-3].startswith("  result ")
    assert lines[-3].endswith(": 9999")
    calls = [line.partition(",")[0].split()[1] for line in lines if line.startswith("  call ")]
    results = [line.partition(":")[0].split()[1] for line in lines if line.startswith("  result ")]
    assert calls == results != []


def test_added_turns_are_shown_even_if_the_transcript_is_gone(host: Host) -> None:
    agent_id = host.work()
    sessions = gaia_sessions.Sessions(str(host.root))
    sessions.add_turn(agent_id, [{"role": "user", "content": "First."}, {"role": "assistant", "content": "Zero."}])
    sessions.add_message(agent_id, "assistant", "So far 41.")
    write(host, WORK)
    host.hear(host.ending(message=ASKS))
    first = ["Turn 1:", "  user: First.", "  assistant: Zero."]

    assert told(host, agent_id) == [*first, *TOLD]
    file_of(host).unlink()
    assert context(host, agent_id) == [GONE, *first, "Turn 2:", "  assistant: So far 41.", *LAST]


def test_the_system_prompt_comes_first_and_does_not_count_against_the_limit(host: Host) -> None:
    sessions = gaia_sessions.Sessions(str(host.root))
    agent_id = sessions.create("Explore", system_prompt="You count.\n\n" + "Twice. " * 2000)
    sessions.add_turn(agent_id, [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "x" * 9000}])

    for lines in (context(host, agent_id), context(host, agent_id, max_tokens=200)):
        assert lines[:3] == ["System prompt:", "  You count.", ""]
        rest = lines[lines.index("Turn 1:") :]
        assert rest[:2] == ["Turn 1:", "  user: Go"]
        assert sum(len(line) + 1 for line in rest) <= 6000
    assert sum(len(line) + 1 for line in rest) <= 800


@table("bound", [{"turns": 0}, {"max_tokens": 0}, {"turns": True}, {"max_tokens": 2.5}])
def test_an_invalid_bound_is_refused(host: Host, bound: dict[str, Any]) -> None:
    agent_id = gaia_sessions.Sessions(str(host.root)).create("Explore")

    with pytest.raises(gaia_sessions.errors.BadArgument):
        gaia_sessions.Sessions(str(host.root)).context(agent_id, **bound)


def test_the_last_runs_are_shown_in_full_and_older_runs_in_one_line_each(host: Host) -> None:
    agent_id = pause(host, [sent("Job 1"), said("assistant", ASKS)])
    for number in range(2, 9):
        agent, delegation = f"a{number}", f"toolu_{number}"
        resume(host, agent_id, delegation)
        host.knows(agent, delegation)
        host.hear(host.starting(agent, session_id="another"))
        write(host, [sent(f"Job {number}", agent=agent), said("assistant", ASKS, agent=agent)], agent)
        host.hear(host.ending(agent, ASKS, session_id="another"))

    lines = context(host, agent_id)

    line = "  run {0}: Job {0} -> The plan. [gaia-sessions: approval] shall I?"
    assert lines[:4] == ["Earlier turns:", *(line.format(number) for number in (1, 2, 3))]
    assert [one for one in lines if one.startswith("Run ")] == [f"Run {number}:" for number in range(4, 9)]
    assert context(host, agent_id, turns=1)[-4:] == ["Run 8:", "  user: Job 8", *LAST[1:]]
