"""``todo``: the plan of an agent, with numbers from 1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


def test_todos_are_added_done_and_listed(gaia: Gaia, session: str) -> None:
    assert gaia("todo", "list", session).answer == ["No todos"]
    assert gaia("todo", "list", session, "--json").json == []
    assert gaia("todo", "add", session, "read it").answer == ["agent-123: todo 1 pending: read it"]
    assert gaia("todo", "add", session, "write").answer == ["agent-123: todo 2 pending: write"]
    assert gaia("todo", "done", session, "1").answer == ["agent-123: todo 1 completed: read it"]
    assert gaia("todo", "list", session).answer == ["1  completed    read it", "2  pending      write"]
    assert gaia("todo", "list", session, "--json").json == [
        {"number": 1, "description": "read it", "status": "completed"},
        {"number": 2, "description": "write", "status": "pending"},
    ]


def test_a_todo_can_be_cancelled(gaia: Gaia, session: str) -> None:
    gaia("todo", "add", session, "read")
    assert gaia("todo", "cancel", session, "1").answer == ["agent-123: todo 1 cancelled: read"]
    assert gaia("todo", "list", session).answer == ["1  cancelled    read"]


def test_todo_commands_accept_the_host_ids_of_an_agent_instead_of_the_session_id(
    gaia: Gaia, put: Gaia, tree: Gaia
) -> None:
    put("a", runs=[{"run": 1, "host_session_id": "s", "host_agent_id": "x:1", "started_at": "2026-01-08T18:05:30Z"}])
    agent = ("--host-agent", "s", "x:1")
    assert gaia("todo", "add", *agent, "read").answer == ["a: todo 1 pending: read"]
    assert gaia("todo", "add", "1", *agent).answer == ["a: todo 2 pending: 1"]
    assert gaia("todo", "done", *agent, "1").answer == ["a: todo 1 completed: read"]
    assert gaia("todo", "cancel", "2", *agent).answer == ["a: todo 2 cancelled: 1"]
    assert gaia("todo", "list", *agent).answer == ["1  completed    read", "2  cancelled    1"]
    before = tree()
    both = "Error: ID and --host-agent cannot be combined\nHint: leave out one of them: both select a session\n"
    assert gaia("todo", "done", "a", "1", *agent).all == (2, "", both)
    assert gaia("todo", "list", "a", *agent).all == (2, "", both)
    assert gaia("todo", "done", *agent, "one").code == 2
    assert gaia("todo", "done", *agent).code == 2
    assert gaia("todo", "list", "--host-agent", "s", "nobody").code == 3
    assert tree() == before


def test_each_todo_change_prints_the_todo_as_json(gaia: Gaia, session: str) -> None:
    todo = {"agent_id": session, "number": 1, "description": "read", "status": "pending"}
    assert gaia("todo", "add", session, "read", "--json").json == todo
    assert gaia("todo", "--json", "done", session, "1").json == {**todo, "status": "completed"}


def test_todo_done_twice_succeeds_and_changes_nothing(gaia: Gaia, state: Gaia, session: str) -> None:
    gaia("todo", "add", session, "read")
    first = gaia("todo", "done", session, "1")
    before = state(session)
    assert gaia("todo", "done", session, "1").all == first.all
    assert (state(session), first.code) == (before, 0)


def test_a_missing_todo_is_refused_with_a_hint(gaia: Gaia, tree: Gaia, session: str) -> None:
    gaia("todo", "add", session, "read")
    before = tree()
    assert gaia("todo", "done", session, "2").refusal == (
        4,
        "session 'agent-123' has no todo 2: its todos are numbered from 1 to 1",
        "`gaia-sessions todo list agent-123` shows its todos",
    )
    assert gaia("todo", "done", session, "0").code == 2
    assert tree() == before


@table(("text", "code"), [(" ", 7), ("x" * 1001, 7), ("x" * 1000, 0), ("two\nlines", 0)])
def test_the_length_of_a_todo_is_bounded(gaia: Gaia, session: str, text: str, code: int) -> None:
    assert gaia("todo", "add", session, text).code == code


def test_todo_list_prints_no_control_characters(gaia: Gaia, put: Gaia) -> None:
    put("a", todos=[{"description": "\x1b[2Jone\ntwo", "status": "cancelled"}])
    assert gaia("todo", "list", "a").out == b"1  cancelled    [2Jone two\n"


def test_show_prints_the_tokens_skills_and_todos_only_if_there_are_any(gaia: Gaia, put: Gaia) -> None:
    put("plain")
    put(
        "a",
        max_tokens=64_000,
        skills={"aws": 300},
        todos=[{"description": "read", "status": "completed"}, {"description": "write", "status": "pending"}],
    )

    shown = gaia("show", "a").out.decode()

    assert "\ntodos\n  1  completed    read\n  2  pending      write\n\n" in shown
    assert "\ntokens     300 of 64,000 tokens, 300 for skills\nskills     aws (300)\n" in shown
    assert re.search("tokens|skills|todos", gaia("show", "plain").out.decode()) is None
