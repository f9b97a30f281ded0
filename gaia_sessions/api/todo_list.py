"""The todos of a session."""

from __future__ import annotations

from gaia_sessions.session.retention import RESERVED_BYTES, ROOM_FOR_ENDS
from gaia_sessions.session.schema import TODO_COMPLETED
from gaia_sessions.session.todos import (
    check_description,
    check_number,
    check_status,
    check_todos,
    numbered_todos,
    with_todo,
    with_todo_status,
    with_todos,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gaia_sessions.session.todos import NumberedTodo

    from .at import Reading, Writing


def todos(at: Reading, agent_id: str) -> Sequence[NumberedTodo]:
    """Returns the todos of a session in their order."""
    return numbered_todos(at.store.read(agent_id))


def add_todo(at: Writing, agent_id: str, description: str) -> NumberedTodo:
    """Adds a pending todo at the end.

    Returns:
        The todo.

    Raises:
        InvalidInput: the description is blank or has more than 1,000 characters.

    Example:
        agent_id = sessions.create("reviewer")
        todo = sessions.add_todo(agent_id, "read the diff")
        sessions.set_todo_status(agent_id, todo["number"])
        print(sessions.todos(agent_id))
    """
    check_description(description)
    record = at.change(agent_id, lambda record, now: with_todo(record, description, now), ROOM_FOR_ENDS)
    return numbered_todos(record)[-1]


def set_todo_status(at: Writing, agent_id: str, number: int, status: str = TODO_COMPLETED) -> NumberedTodo:
    """Changes the status of one todo.

    Args:
        status: ``pending``, ``in_progress``, ``completed``, or ``cancelled`` if nobody will do the todo.

    Returns:
        The todo.

    Raises:
        BadArgument: ``number`` or ``status`` is not acceptable.
        NoSuchTodo: no todo has this number.
    """
    check_number(number)
    check_status(status)
    record = at.change(agent_id, lambda record, now: with_todo_status(record, number, status, now), RESERVED_BYTES)
    return numbered_todos(record)[number - 1]


def set_todos(at: Writing, agent_id: str, todos: Iterable[Mapping[str, object]]) -> Sequence[NumberedTodo]:
    """Replaces all todos of a session.

    Args:
        todos: the new todos, each ``{description, status}``.

    Returns:
        The new todos with their numbers.

    Raises:
        InvalidInput: as in ``add_todo``.
    """
    checked = check_todos([*todos])
    return numbered_todos(at.change(agent_id, lambda record, now: with_todos(record, checked, now), ROOM_FOR_ENDS))
