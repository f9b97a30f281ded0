"""Budgets, skills and todos by the methods of ``Sessions``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions import Sessions
from gaia_sessions.errors import (
    BadArgument,
    InvalidInput,
    NewerSchema,
    NoSuchTodo,
    SessionFinal,
    SessionNotFound,
    TooLarge,
)
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT
from gaia_sessions.session.retention import ROOM_FOR_ENDS
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

HUGE = 10**5000


@pytest.fixture(autouse=True)
def one_root(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", root)


@pytest.fixture
def agent_id() -> str:
    return gaia_sessions.create_session("scribe", agent_id="agent-1")


def document(root: str, agent_id: str = "agent-1") -> Any:
    return json.loads(Path(root, agent_id, "state.json").read_bytes())


def change_by_hand(root: str, agent_id: str = "agent-1", **keys: object) -> None:
    changed = json.dumps({**document(root, agent_id), **keys})
    Path(root, agent_id, "state.json").write_text(changed, encoding="utf-8")


@table("agent", [{}, {"parent_id": "agent-0"}, {"runs": [{"run": 1, "host": "claude-code"}]}])
def test_usage_shows_a_budget_only_if_the_record_has_it_and_something_enforces_it(
    root: str, agent: dict[str, object]
) -> None:
    agent_id = gaia_sessions.create_session("scribe")
    change_by_hand(root, agent_id, **agent)
    none = {
        "agent_id": agent_id,
        "tokens": 300_000,
        "max_tokens": None,
        "limit_reached": False,
        "elapsed_secs": 0,
        "skill_tokens": 0,
    }
    assert Sessions().set_token_total(agent_id, 300_000) == none
    assert Sessions().usage(agent_id) == none
    report = Sessions().report(agent_id)
    assert (report["tokens"], report["max_tokens"], report["limit_reached"]) == (300_000, None, False)
    gaia_sessions.update_state(agent_id, max_tokens=10)
    if "runs" in agent:
        assert Sessions().usage(agent_id) == none, "a host runs its agent, and no hook holds it"
        return
    assert Sessions().usage(agent_id) == {**none, "max_tokens": 10, "limit_reached": True}
    report = Sessions().report(agent_id)
    assert (report["max_tokens"], report["limit_reached"]) == (10, True)


def test_todos_are_numbered_from_1_and_keep_their_numbers(agent_id: str) -> None:
    assert [Sessions().add_todo(agent_id, text)["number"] for text in ("read", "write", "check")] == [
        1,
        2,
        3,
    ]
    written = {"number": 2, "description": "write", "status": "completed"}
    assert Sessions().set_todo_status(agent_id, 2) == written
    assert Sessions().set_todo_status(agent_id, 2) == written
    assert Sessions().set_todo_status(agent_id, 3, "in_progress")["status"] == "in_progress"
    assert Sessions().todos(agent_id) == [
        {"number": 1, "description": "read", "status": "pending"},
        written,
        {"number": 3, "description": "check", "status": "in_progress"},
    ]
    with pytest.raises(NoSuchTodo):
        Sessions().set_todo_status(agent_id, 4)


def test_the_todo_list_can_be_replaced_and_emptied(agent_id: str, root: str) -> None:
    Sessions().add_todo(agent_id, "read")

    wanted = [{"description": "write", "status": "in_progress"}]
    assert Sessions().set_todos(agent_id, wanted) == [{"number": 1, **wanted[0]}]
    assert Sessions().set_todos(agent_id, []) == Sessions().todos(agent_id) == []
    assert "todos" not in document(root)
    for bad in (
        [{"description": "x"}],
        [{"description": "x", "status": "done"}],
        [{**wanted[0], "description": ""}],
        ["x"],
    ):
        with pytest.raises(InvalidInput):
            Sessions().set_todos(agent_id, bad)  # type: ignore[arg-type]  # on purpose


WRITES: dict[str, Callable[[], object]] = {
    "charge": lambda: Sessions().charge("agent-1", 1),
    "total": lambda: Sessions().set_token_total("agent-1", 9),
    "skill": lambda: Sessions().add_skill("agent-1", "new", 5),
    "todo": lambda: Sessions().add_todo("agent-1", "new"),
    "status": lambda: Sessions().set_todo_status("agent-1", 1),
    "todos": lambda: Sessions().set_todos("agent-1", []),
}


@table("write", WRITES.values())
def test_every_write_adds_one_revision_and_counts_as_activity(
    agent_id: str, root: str, write: Callable[[], object]
) -> None:
    Sessions().add_todo(agent_id, "read")
    before = document(root)

    write()

    after = document(root)
    assert after["revision"] == before["revision"] + 1
    assert after["last_updated"] > before["last_updated"]
    assert after["phase"] == before["phase"]


def test_a_final_or_missing_session_refuses_every_write(agent_id: str, root: str) -> None:
    Sessions().add_todo(agent_id, "read")
    gaia_sessions.finalize_session(agent_id, "completed")
    before = document(root)
    for write in WRITES.values():
        with pytest.raises(SessionFinal):
            write()
    assert document(root) == before
    Path(root, agent_id, "state.json").unlink()
    os.rmdir(Path(root, agent_id))
    for write in WRITES.values():
        with pytest.raises(SessionNotFound):
            write()


@table(
    "refused",
    [
        lambda: Sessions().charge("agent-1", -1),
        lambda: Sessions().charge("agent-1", HUGE),
        lambda: Sessions().set_token_total("agent-1", 10**12 + 1),
        lambda: Sessions().add_skill("agent-1", "s", -1),
        lambda: Sessions().set_todo_status("agent-1", 0),
        lambda: Sessions().set_todo_status("agent-1", HUGE),
        lambda: Sessions().set_todo_status("agent-1", 1, "done"),
    ],
)
def test_absurd_numbers_and_unknown_statuses_are_usage_errors(
    agent_id: str, root: str, refused: Callable[[], object]
) -> None:
    before = document(root, agent_id)
    with pytest.raises(BadArgument):
        refused()
    assert document(root, agent_id) == before


def test_a_full_record_refuses_new_skills_and_todos_but_takes_statuses_and_tokens(agent_id: str, root: str) -> None:
    Sessions().add_todo(agent_id, "read")
    room = DOCUMENT_LIMIT - ROOM_FOR_ENDS - len(Path(root, agent_id, "state.json").read_bytes())
    gaia_sessions.update_state(agent_id, metadata={"fill": ""})
    spare = DOCUMENT_LIMIT - ROOM_FOR_ENDS - len(Path(root, agent_id, "state.json").read_bytes())
    gaia_sessions.update_state(agent_id, metadata={"fill": "x" * spare})
    assert 0 < spare < room
    before = document(root)

    for write in (WRITES["skill"], WRITES["todo"]):
        with pytest.raises(TooLarge) as refused:
            write()
        told = f"the record of {agent_id} is over the limit of {DOCUMENT_LIMIT - ROOM_FOR_ENDS} bytes"
        assert (str(refused.value), f"gaia-sessions show {agent_id} --json" in refused.value.hint) == (told, True)
    assert document(root) == before
    assert Sessions().set_todo_status(agent_id, 1)["status"] == "completed"
    for _ in range(20):
        Sessions().charge(agent_id, 10**12)
    assert Sessions().set_token_total(agent_id, 5)["tokens"] == 5
    assert gaia_sessions.finalize_session(agent_id, "completed", "s" * 1500)["phase"] == "completed"


def test_a_record_of_a_newer_version_is_neither_read_nor_written(agent_id: str, root: str) -> None:
    change_by_hand(root, schema=99, skills=[], todos={"of": "theirs"})
    before = document(root)
    for read in (Sessions().usage, Sessions().todos):
        with pytest.raises(NewerSchema):
            read(agent_id)
    for write in WRITES.values():
        with pytest.raises(NewerSchema):
            write()
    assert document(root) == before


def test_usage_and_todos_write_nothing(agent_id: str, root: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path(root).rglob("*")}
    Sessions().usage(agent_id)
    Sessions().todos(agent_id)
    assert {path: path.stat().st_mtime_ns for path in Path(root).rglob("*")} == before
