"""Captured lives of agents that wait for their own command or monitor, as Claude Code 2.1.332 reports them.

Each with and without a readable transcript, with and without a shell of the main agent, in order, doubled, and in
every possible order.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

from gaia_sessions.api.sessions import Sessions
from tests.hook.test_lives import CAPTURES, DONE, ENDS, STATES, lives
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.hook.test_lives import Life, Line

__all__ = ["lives"]  # the fixture is found by its name

WAITING = [capture for capture in CAPTURES if capture.stem.startswith("background-waits-for-")]
WOKEN = [capture for capture in WAITING if ENDS[capture.stem] == [DONE] and "foreground" not in capture.stem]
WAYS = [*itertools.product((True, False), (False, True))]
"""Whether the transcript is readable, and whether a shell of the main agent runs too."""

SHELL = {"id": "bmain0001", "type": "shell", "status": "running", "description": "Server", "command": "serve"}


def told(life: Life, capture: Path, *, readable: bool, beside: bool) -> list[Line]:
    lines = life.lines(capture)
    for line in lines:
        if not readable:
            line.files = {file: text for file, text in line.files.items() if file.suffix != ".jsonl"}
        if beside and "background_tasks" in line.payload:
            line.payload["background_tasks"] = [SHELL, *line.payload["background_tasks"]]
    return lines


def outcome(life: Life) -> list[Any]:
    """The errors, the ends, the number of runs of each record, and the waits that are left."""
    records = life.records()
    left = [run["own_work"] for record in records for run in record["runs"] if "own_work" in run]
    return [life.errors, life.ends(), [len(record["runs"]) for record in records], left]


@table("capture", WAITING)
def test_an_agent_that_waits_for_its_own_command_is_one_run_with_its_true_end(capture: Path, lives: Any) -> None:
    for readable, beside in WAYS:
        life = lives()
        life.live(told(life, capture, readable=readable, beside=beside))

        assert outcome(life) == [[], ENDS[capture.stem], [1], []], (readable, beside)
        assert life.states() == [STATES[ENDS[capture.stem][0]]]


@table("capture", WAITING)
def test_events_of_a_waiting_agent_that_arrive_twice_change_nothing(capture: Path, lives: Any) -> None:
    for readable, beside in WAYS:
        once = lives()
        once.live(told(once, capture, readable=readable, beside=beside))
        twice = lives()
        twice.live([line for line in told(twice, capture, readable=readable, beside=beside) for _ in range(2)])

        assert (twice.errors, twice.timeless()) == ([], once.timeless()), (readable, beside)


def orders(lines: list[Line]) -> Iterator[tuple[int, int]]:
    """The pairs of places: the first line may also arrive right after the second.

    Agents do not wait for the main agent. The notification that an agent waits may arrive much later.
    """
    for place, (one, other) in enumerate(itertools.pairwise(lines)):
        of_main = {"Stop", "UserPromptSubmit"}
        turn_and_agent = one.event in of_main and other.event in {"SubagentStart", "SubagentStop"}
        turn_and_agent |= one.event == "SubagentStop" and other.event in of_main
        if one.is_beside(other) or turn_and_agent:
            yield place, place + 1
    for place, line in enumerate(lines):
        if "is waiting on its own background work" in line.payload.get("prompt", ""):
            yield from ((place, later) for later in range(place + 1, len(lines)) if lines[later].event != "SessionEnd")


@table("capture", WAITING)
def test_events_of_a_waiting_agent_may_arrive_in_any_order(capture: Path, lives: Any) -> None:
    for readable, beside in WAYS:
        once = lives()
        lines = told(once, capture, readable=readable, beside=beside)
        once.live(lines)
        for place, later in orders(lines):
            life = lives()
            moved = told(life, capture, readable=readable, beside=beside)
            moved.insert(later, moved.pop(place))
            life.live(moved)
            assert (life.errors, life.timeless()) == ([], once.timeless()), (readable, beside, place, later)


def interim(lines: list[Line]) -> int:
    """The number of lines until the agent ends its first turn."""
    return next(place for place, line in enumerate(lines, 1) if line.event == "SubagentStop")


@table("capture", WOKEN)
def test_an_agent_counts_as_working_until_its_own_command_wakes_it(capture: Path, lives: Any) -> None:
    for readable, beside in WAYS:
        life = lives()
        lines = told(life, capture, readable=readable, beside=beside)
        woken = next(
            place for place, line in enumerate(lines) if place > interim(lines) and line.event == "SubagentStart"
        )
        for heard in range(interim(lines), woken + 1):
            life = lives()
            life.live(told(life, capture, readable=readable, beside=beside)[:heard])
            sessions = Sessions(str(life.root))
            line: Any
            [line] = sessions.list()
            since = line["liveness"].pop("since")
            awaits = "command" if beside and not readable else capture.stem.split("-")[3]
            assert (line["state"], line["liveness"]) == ("working", {"state": "working", "awaits": awaits})
            assert (line["phase"], sessions.report(line["agent_id"])["status"]) == ("investigating", "running")
            [run] = life.records()[0]["runs"]
            assert (run["last_message"], run["own_work"]["since"]) == (
                lines[interim(lines) - 1].payload["last_assistant_message"],
                since,
            )
            assert "ended_at" not in run


@table("capture", WOKEN)
def test_the_last_message_of_a_woken_agent_is_its_result(capture: Path, lives: Any) -> None:
    life = lives()
    lines = told(life, capture, readable=True, beside=False)
    life.live(lines)

    [record] = life.records()
    said = [line.payload["last_assistant_message"] for line in lines if line.event == "SubagentStop"]
    assert [run["last_message"] for run in record["runs"]] == said[-1:]
    assert Sessions(str(life.root)).report(record["agent_id"])["result"] == said[-1]


@table("capture", WOKEN)
def test_a_question_asked_while_the_agent_waits_for_its_command_stays_open(
    capture: Path, lives: Callable[[], Life]
) -> None:
    life = lives()
    lines = told(life, capture, readable=True, beside=False)
    stop = lines[interim(lines) - 1]
    stop.payload["last_assistant_message"] = "It builds.\n[gaia-sessions: approval] may I publish it?"
    life.live(lines)

    [record] = life.records()
    assert (record["phase"], len(record["runs"]), "approval" in record) == ("approval", 1, False)
    [asked] = Sessions(str(life.root)).pending()
    assert asked["question"] == "may I publish it?", json.dumps(asked)
