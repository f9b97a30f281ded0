"""The todos of a session: a list of tasks, each with a number from 1 and a status.

A number is a place in the list, so no single todo is ever removed.
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
    """Returns ``description`` if it is neither blank nor too long."""
    if not isinstance(description, str) or not description.strip():
        raise errors.InvalidInput("must be a text that is not blank", "description")
    if len(description) > MAX_DESCRIPTION_LENGTH:
        raise errors.InvalidInput(f"must have at most {MAX_DESCRIPTION_LENGTH:,} characters", "description")
    return description


def check_status(status: object) -> str:
    """Returns ``status`` if it is one of ``TODO_STATUSES``."""
    if status not in TODO_STATUSES:
        raise errors.BadArgument("status", status, "one of " + ", ".join(TODO_STATUSES))
    return str(status)


def check_number(number: object) -> int:
    """Returns ``number`` if it can be the number of a todo."""
    if not is_integer(number) or not 1 <= number <= LARGEST_INTEGER:
        value = number if not is_integer(number) or abs(number) <= LARGEST_INTEGER else "a number too large"
        raise errors.BadArgument("number", value, "the number of a todo, from 1")
    return number


def check_todos(todos: object) -> list[Todo]:
    """Checks ``todos``, and returns a copy with only the keys of a todo."""
    checked: list[Todo] = []
    for place, todo in enumerate(todos if isinstance(todos, list) else [None]):
        check_todo(todo, f"todos[{place}]")
        check_description(todo["description"])
        checked.append({"description": todo["description"], "status": todo["status"]})
    return checked


def with_todo(record: Record, description: str, now: datetime) -> Record:
    """Adds a pending todo at the end; this counts as activity at ``now``."""
    return with_todos(record, [*record.get("todos", []), {"description": description, "status": TODO_PENDING}], now)


def with_todo_status(record: Record, number: int, status: str, now: datetime) -> Record:
    """Sets the status of one todo, which counts as activity; returns ``record`` if nothing changes."""
    todos = record.get("todos", [])
    if not 1 <= number <= len(todos):
        raise errors.NoSuchTodo(record["agent_id"], number, len(todos))
    todo = todos[number - 1]
    if todo["status"] == status:
        return record
    return with_todos(record, [*todos[: number - 1], {**todo, "status": status}, *todos[number:]], now)


def with_todos(record: Record, todos: list[Todo], now: datetime) -> Record:
    """Replaces the whole list of todos, which counts as activity; the key is absent if the list is empty."""
    check_open(record)
    rest: Record = {key: value for key, value in record.items() if key != "todos"}  # type: ignore[assignment]
    return with_activity({**rest, "todos": todos} if todos else rest, now)


def open_todos(record: Record) -> list[NumberedTodo]:
    """Returns the todos that are neither completed nor cancelled, with their numbers."""
    return [
        {"number": number, "description": todo["description"], "status": todo["status"]}
        for number, todo in enumerate(record.get("todos", ()), 1)
        if todo["status"] not in (TODO_COMPLETED, TODO_CANCELLED)
    ]


def numbered_todos(record: Record) -> list[NumberedTodo]:
    """Returns all todos of ``record`` with their numbers."""
    check_readable(record)
    return [
        {"number": number, "description": todo["description"], "status": todo["status"]}
        for number, todo in enumerate(record.get("todos", ()), 1)
    ]
