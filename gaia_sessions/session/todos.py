"""What the agent of a session means to do: a list, in which each thing has a number from 1 and a status.

Owns what a todo may be and how the list changes. Numbers are places in the list, so no single one is ever taken out of
it. Pure: ``now`` is an argument. Must never judge by the todos whether the work is done.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.jsonio.strict import LARGEST_INTEGER

from .checks import is_integer
from .record import check_readable
from .schema import TODO_CANCELLED, TODO_COMPLETED, TODO_PENDING, TODO_STATUSES, check_todo
from .updates import check_open, with_activity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import TypedDict

    from .schema import Record, Todo

    class NumberedTodo(TypedDict):
        """A todo with its number, from 1."""

        number: int
        description: str
        status: str


MAX_DESCRIPTION_LENGTH = 1000


def check_description(description: object) -> str:
    """Returns ``description``; raises ``InvalidInput`` if it is blank or too long."""
    if not isinstance(description, str) or not description.strip():
        raise errors.InvalidInput("must be a text that is not blank", "description")
    if len(description) > MAX_DESCRIPTION_LENGTH:
        raise errors.InvalidInput(f"must have at most {MAX_DESCRIPTION_LENGTH:,} characters", "description")
    return description


def check_status(status: object) -> str:
    """Returns ``status``; raises ``BadArgument`` if it is no status of a todo."""
    if status not in TODO_STATUSES:
        raise errors.BadArgument("status", status, "one of " + ", ".join(TODO_STATUSES))
    return str(status)


def check_number(number: object) -> int:
    """Returns ``number``; raises ``BadArgument`` if no todo can have it."""
    if not is_integer(number) or not 1 <= number <= LARGEST_INTEGER:
        value = number if not is_integer(number) or abs(number) <= LARGEST_INTEGER else "a number too large"
        raise errors.BadArgument("number", value, "the number of a todo, from 1")
    return number


def check_todos(todos: object) -> list[Todo]:
    """A copy of ``todos`` with the keys of a todo only; raises ``InvalidInput`` if one of them is none."""
    checked: list[Todo] = []
    for place, todo in enumerate(todos if isinstance(todos, list) else [None]):
        check_todo(todo, f"todos[{place}]")
        check_description(todo["description"])
        checked.append({"description": todo["description"], "status": todo["status"]})
    return checked


def with_todo(record: Record, description: str, now: datetime) -> Record:
    """With a pending todo at the end, and activity at ``now``. Raises ``SessionFinal``."""
    return with_todos(record, [*record.get("todos", []), {"description": description, "status": TODO_PENDING}], now)


def with_todo_status(record: Record, number: int, status: str, now: datetime) -> Record:
    """With ``status`` in the todo with this ``number``, and activity at ``now``; ``record`` itself if it has that.

    Raises ``NoSuchTodo``, ``SessionFinal``.
    """
    todos = record.get("todos", [])
    if not 1 <= number <= len(todos):
        raise errors.NoSuchTodo(record["agent_id"], number, len(todos))
    todo = todos[number - 1]
    if todo["status"] == status:
        return record
    return with_todos(record, [*todos[: number - 1], {**todo, "status": status}, *todos[number:]], now)


def with_todos(record: Record, todos: list[Todo], now: datetime) -> Record:
    """With ``todos`` as the whole list, and activity at ``now``; without any, the key is absent.

    Raises ``SessionFinal``.
    """
    check_open(record)
    rest: Record = {key: value for key, value in record.items() if key != "todos"}  # type: ignore[assignment]
    return with_activity({**rest, "todos": todos} if todos else rest, now)


def open_todos(record: Record) -> list[NumberedTodo]:
    """The todos that are neither completed nor cancelled, each with its number."""
    return [
        {"number": number, "description": todo["description"], "status": todo["status"]}
        for number, todo in enumerate(record.get("todos", ()), 1)
        if todo["status"] not in (TODO_COMPLETED, TODO_CANCELLED)
    ]


def numbered_todos(record: Record) -> list[NumberedTodo]:
    """The todos of ``record``, each with its number. Raises ``NewerSchema``."""
    check_readable(record)
    return [
        {"number": number, "description": todo["description"], "status": todo["status"]}
        for number, todo in enumerate(record.get("todos", ()), 1)
    ]
