"""Budgets, skills and todos by the methods of the one object: what each process reads is what any other wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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
from gaia_sessions.session.retention import RESERVED_BYTES
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


def change_by_hand(root: str, **keys: object) -> None:
    Path(root, "agent-1", "state.json").write_text(json.dumps({**document(root), **keys}), encoding="utf-8")


def test_e1_defaults_come_from_the_settings(agent_id: str, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    child = {"parent_id": "agent-0"}
    assert Sessions().usage(agent_id) == {
        "agent_id": "agent-1",
        "tokens": 0,
        "max_tokens": 200_000,
        "limit_reached": False,
        "elapsed_secs": 0,
        "skill_tokens": 0,
    }
    monkeypatch.setenv("GAIA_SESSIONS_MAX_TOKENS", "30")
    monkeypatch.setenv("GAIA_SESSIONS_SUB_AGENT_MAX_TOKENS", "20")
    assert Sessions().usage(agent_id)["max_tokens"] == 30
    change_by_hand(root, **child)
    assert Sessions().usage(agent_id)["max_tokens"] == 20
    change_by_hand(root, max_tokens=10)
    assert Sessions().usage(agent_id)["max_tokens"] == 10


def test_l8_64000_tokens_reach_the_limit_of_a_sub_agent_and_63999_do_not(agent_id: str, root: str) -> None:
    change_by_hand(root, parent_id="agent-0")

    answers = [Sessions().charge(agent_id, tokens) for tokens in (63_999, 1, 1)]

    assert [answer["limit_reached"] for answer in answers] == [False, True, True]
    assert [answer["tokens"] for answer in answers] == [63_999, 64_000, 64_001]


def test_e8_e9_a_skill_counts_once_and_for_its_own_session_only(agent_id: str, root: str) -> None:
    child = gaia_sessions.create_session("scribe", agent_id="agent-2")

    assert [Sessions().add_skill(agent_id, "s", tokens)["added"] for tokens in (100, 500)] == [
        True,
        False,
    ]
    assert Sessions().usage(agent_id)["skill_tokens"] == 100
    assert Sessions().add_skill(agent_id, "t", 30)["added"] is True
    assert Sessions().add_skill(child, "u", 7)["added"] is True

    assert (document(root)["skills"], document(root, child)["skills"]) == ({"s": 100, "t": 30}, {"u": 7})
    usages = [Sessions().usage(one) for one in (agent_id, child)]
    assert [(usage["tokens"], usage["skill_tokens"]) for usage in usages] == [(130, 130), (7, 7)]
    assert document(root)["revision"] == 3  # the second time wrote nothing


def test_a_total_holds_and_what_follows_adds_to_it(agent_id: str, root: str) -> None:
    Sessions().charge(agent_id, 900)
    Sessions().add_skill(agent_id, "s", 100)["added"]

    assert Sessions().set_token_total(agent_id, 50)["tokens"] == 50
    change_by_hand(root, usage={"output_tokens": 5, "total_tokens": 5})
    assert Sessions().charge(agent_id, 1)["tokens"] == 56
    assert Sessions().set_token_total(agent_id, 0)["tokens"] == 0


def test_e13_the_time_is_the_same_in_another_process_and_frozen_at_the_end(agent_id: str, root: str) -> None:
    change_by_hand(root, created_at="2026-01-08T18:00:00.000000Z")
    program = f"import gaia_sessions; print(gaia_sessions.Sessions().usage({agent_id!r})['elapsed_secs'])"

    here = Sessions().usage(agent_id)["elapsed_secs"]
    there = int(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
    record = gaia_sessions.finalize_session(agent_id, "completed")
    frozen = Sessions().usage(agent_id)["elapsed_secs"]

    assert 0 < here <= there <= frozen == int(record["duration_seconds"])
    change_by_hand(root, finalized_at="2026-01-08T18:03:00.500000Z")
    assert Sessions().usage(agent_id)["elapsed_secs"] == 180


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


def test_the_whole_list_can_be_replaced_and_emptied(agent_id: str, root: str) -> None:
    Sessions().add_todo(agent_id, "read")["number"]

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
    "skill": lambda: Sessions().add_skill("agent-1", "new", 5)["added"],
    "todo": lambda: Sessions().add_todo("agent-1", "new")["number"],
    "status": lambda: Sessions().set_todo_status("agent-1", 1),
    "todos": lambda: Sessions().set_todos("agent-1", []),
}


@table("write", WRITES.values())
def test_every_write_is_one_revision_and_activity_of_the_work(
    agent_id: str, root: str, write: Callable[[], object]
) -> None:
    Sessions().add_todo(agent_id, "read")["number"]
    before = document(root)

    write()

    after = document(root)
    assert after["revision"] == before["revision"] + 1
    assert after["last_updated"] > before["last_updated"]
    assert after["phase"] == before["phase"]


def test_a_final_session_and_one_that_is_missing_take_none(agent_id: str, root: str) -> None:
    Sessions().add_todo(agent_id, "read")["number"]
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
        lambda: Sessions().add_skill("agent-1", "s", -1)["added"],
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


def test_in_a_record_that_is_full_skills_and_todos_are_refused_charges_count_and_the_end_is_written(
    agent_id: str, root: str
) -> None:
    Sessions().add_todo(agent_id, "read")["number"]
    room = DOCUMENT_LIMIT - RESERVED_BYTES - len(Path(root, agent_id, "state.json").read_bytes())
    gaia_sessions.update_state(agent_id, metadata={"fill": ""})
    spare = DOCUMENT_LIMIT - RESERVED_BYTES - len(Path(root, agent_id, "state.json").read_bytes())
    gaia_sessions.update_state(agent_id, metadata={"fill": "x" * spare})
    assert 0 < spare < room
    before = document(root)

    for write in (WRITES["skill"], WRITES["todo"], WRITES["status"]):
        with pytest.raises(TooLarge):
            write()
    assert document(root) == before
    for _ in range(20):
        Sessions().charge(agent_id, 10**12)
    assert Sessions().set_token_total(agent_id, 5)["tokens"] == 5
    assert gaia_sessions.finalize_session(agent_id, "completed", "s" * 1500)["phase"] == "completed"


def test_of_a_later_version_nothing_is_guessed_and_nothing_written(agent_id: str, root: str) -> None:
    change_by_hand(root, schema=99, skills=[], todos={"of": "theirs"})
    before = document(root)
    for read in (Sessions().usage, Sessions().todos):
        with pytest.raises(NewerSchema):
            read(agent_id)
    for write in WRITES.values():
        with pytest.raises(NewerSchema):
            write()
    assert document(root) == before


def test_reading_writes_nothing(agent_id: str, root: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path(root).rglob("*")}
    Sessions().usage(agent_id)
    Sessions().todos(agent_id)
    assert {path: path.stat().st_mtime_ns for path in Path(root).rglob("*")} == before
