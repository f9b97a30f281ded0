from __future__ import annotations

from typing import Any

import pytest

from gaia_sessions.errors import InvalidInput
from gaia_sessions.events import KINDS, check_event

STOP: dict[str, Any] = {
    "kind": "stop",
    "at": "2026-01-08T18:05:30Z",
    "host": "claude-code",
    "host_session_id": "h",
    "host_agent_id": "a",
    "tool_use_id": "t",
    "parent_host_agent_id": "p",
    "agent_id": "agent-1",
    "agent_name": "Explore",
    "purpose": "general",
    "background": False,
    "transcript_path": "t.jsonl",
    "last_message": "done",
    "marked": "approval",
    "marked_id": "agent-1",
    "spoke": True,
    "again": True,
    "outcome": "completed",
    "summary": "s",
    "error": "e",
}

TEXTS = [
    "host",
    "host_session_id",
    "host_agent_id",
    "tool_use_id",
    "parent_host_agent_id",
    "agent_id",
    "agent_name",
    "purpose",
    "transcript_path",
    "last_message",
    "marked_id",
    "summary",
    "error",
]

FAULTS: list[tuple[str, Any, str, str]] = [
    ("an array", [], "an object is wanted, not an array", ""),
    ("no kind", {"at": "2026-01-08T18:05:30Z"}, "missing", "kind"),
    ("no time", {"kind": "stop"}, "missing", "at"),
    ("unknown kind", {**STOP, "kind": "start"}, "one of delegate, stop, finalize is wanted", "kind"),
    ("no real time", {**STOP, "at": "today"}, "an ISO 8601 time is wanted", "at"),
    (
        "marked otherwise",
        {**STOP, "marked": "executing"},
        "one of investigating, planning, approval, failed is wanted",
        "marked",
    ),
    ("unknown outcome", {**STOP, "outcome": "done"}, "one of completed, failed, abandoned is wanted", "outcome"),
    ("background a word", {**STOP, "background": "yes"}, "true or false is wanted, not a string", "background"),
    ("spoke null", {**STOP, "spoke": None}, "true or false is wanted, not null", "spoke"),
    ("again a number", {**STOP, "again": 1}, "true or false is wanted, not a number", "again"),
    *((f"{key} null", {**STOP, key: None}, "a string is wanted, not null", key) for key in TEXTS),
]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(STOP, id="everything known"),
        pytest.param({"kind": "delegate", "at": "2026-01-08T18:05:30Z"}, id="nothing known"),
        pytest.param({**STOP, "kind": "finalize", "of later": [1]}, id="an unknown key"),
        *(pytest.param({**STOP, "marked": marked}, id=marked) for marked in ("investigating", "planning", "failed")),
        *(pytest.param({**STOP, "outcome": outcome}, id=outcome) for outcome in ("failed", "abandoned")),
    ],
)
def test_an_event_may_know_little_or_much(event: dict[str, Any]) -> None:
    check_event(event, "")


@pytest.mark.parametrize(("event", "problem", "where"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_a_faulty_event_is_refused_with_its_first_bad_key(event: Any, problem: str, where: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_event(event, "")
    assert (caught.value.problem, caught.value.where) == (problem, where)


def test_there_are_three_kinds_of_news() -> None:
    assert KINDS == ("delegate", "stop", "finalize")
