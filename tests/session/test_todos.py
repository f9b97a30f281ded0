"""The todos of a session: adding todos, setting a status, and which values are refused."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.errors import BadArgument, InvalidInput, NoSuchTodo, SessionFinal
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.todos import (
    MAX_DESCRIPTION_LENGTH,
    check_description,
    check_status,
    with_todo,
    with_todo_status,
    with_todos,
)
from gaia_sessions.session.updates import with_phase
from tests.records import START, record_with, unchanged
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

LATER = START + timedelta(minutes=3)
TWO: list[Any] = [{"description": "read", "status": "completed"}, {"description": "write", "status": "pending"}]


def test_a_todo_is_added_at_the_end_as_pending_and_is_activity() -> None:
    record = record_with(todos=TWO)

    changed = unchanged(lambda one: with_todo(one, "check", LATER), record)

    todos = [*TWO, {"description": "check", "status": "pending"}]
    assert changed == {**record, "todos": todos, "last_updated": format_time(LATER)}


def test_a_status_changes_one_todo_and_setting_it_again_changes_nothing() -> None:
    record = record_with(todos=TWO)

    done = unchanged(lambda one: with_todo_status(one, 2, "completed", LATER), record)

    todos = [TWO[0], {"description": "write", "status": "completed"}]
    assert done == {**record, "todos": todos, "last_updated": format_time(LATER)}
    assert with_todo_status(done, 2, "completed", LATER) is done


def test_a_change_of_status_keeps_unknown_keys_of_a_todo() -> None:
    record = record_with(todos=[{**TWO[1], "theirs": 1}])
    assert with_todo_status(record, 1, "in_progress", LATER)["todos"] == [
        {"description": "write", "status": "in_progress", "theirs": 1}
    ]


@table(("todos", "number"), [(TWO, 0), (TWO, 3), (TWO, -1), ([], 1)])
def test_a_missing_todo_is_reported_with_its_number_and_the_count(todos: list[Any], number: int) -> None:
    with pytest.raises(NoSuchTodo) as refused:
        with_todo_status(record_with(todos=todos), number, "completed", LATER)
    assert (refused.value.agent_id, refused.value.number, refused.value.count) == ("agent-1", number, len(todos))


def test_an_empty_list_removes_the_todos_of_the_record() -> None:
    assert "todos" not in with_todos(record_with(todos=TWO), [], LATER)
    assert with_todos(record_with(), TWO, LATER)["todos"] == TWO


def test_a_final_session_accepts_only_a_status_that_already_holds() -> None:
    ended: Record = with_phase(record_with(todos=TWO), "completed", LATER)

    assert with_todo_status(ended, 1, "completed", LATER) is ended
    with pytest.raises(SessionFinal):
        with_todo_status(ended, 2, "completed", LATER)
    with pytest.raises(SessionFinal):
        with_todo(ended, "x", LATER)
    with pytest.raises(SessionFinal):
        with_todos(ended, [], LATER)


@table("description", ["", " \n", "x" * (MAX_DESCRIPTION_LENGTH + 1), 5, None])
def test_an_invalid_description_is_refused(description: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_description(description)
    assert refused.value.where == "description"


def test_a_description_may_be_any_text_up_to_the_limit() -> None:
    text = "line\nü" + "x" * (MAX_DESCRIPTION_LENGTH - 6)
    assert check_description(text) == text


@table("status", ["done", "", None, 1])
def test_a_status_is_one_of_four(status: object) -> None:
    assert [check_status(one) for one in ("pending", "in_progress", "completed", "cancelled")][3] == "cancelled"
    with pytest.raises(BadArgument):
        check_status(status)
