"""The functions about budgets, skills and todos.

Owns their arguments, as ``gaia_sessions`` exports them.
"""

from __future__ import annotations

from gaia_sessions.session.schema import TODO_COMPLETED

from .sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gaia_sessions.session.budget import TokenUsage
    from gaia_sessions.usecases.budgets import NumberedTodo


def session_usage(agent_id: str, *, root: str | None = None) -> TokenUsage:
    """How much of its budget a session has used.

    ``{agent_id, tokens, max_tokens, limit_reached, elapsed_secs, skill_tokens}``:
    ``tokens`` is the sum of all charges, of the skills and of what hosts say was consumed, or what followed a total
    that was stated. ``limit_reached`` is true from ``max_tokens`` on. ``elapsed_secs`` are whole seconds from the
    creation to now, or to the end. Writes nothing. Raises ``SessionNotFound``, ``CorruptSession``, ``NewerSchema``,
    ``InvalidId``, ``StoreFailure``.
    """
    sessions = Sessions(root)
    return sessions.usage(sessions.preview(agent_id))


def charge_tokens(agent_id: str, tokens: int, *, root: str | None = None) -> TokenUsage:
    """Counts ``tokens`` more against the budget, and returns what ``session_usage`` would.

    No charge is lost, however many processes charge at once. It never fails for a limit that is reached; it is activity
    of the work. Raises ``BadArgument`` unless ``tokens`` is a whole number from 0 to 10**12, ``SessionFinal``, and
    where the session cannot be written what ``update_state`` raises.
    """
    return Sessions(root).budgets().charge(agent_id, tokens)


def set_token_total(agent_id: str, total: int, *, root: str | None = None) -> TokenUsage:
    """States that ``total`` tokens were used so far, and returns what ``session_usage`` would.

    What is charged, loaded or consumed later adds to it. Raises what ``charge_tokens`` raises.
    """
    return Sessions(root).budgets().set_total(agent_id, total)


def add_skill(agent_id: str, name: str, tokens: int, *, root: str | None = None) -> bool:
    """Counts a skill that the agent loaded against the budget; False, and nothing changes, if it was loaded before.

    The skills of a session are the keys of ``skills`` in its record; no other session has them. Raises ``InvalidInput``
    unless ``name`` is a line of at most 200 printable characters, ``TooLarge``, and what ``charge_tokens`` raises.
    """
    return Sessions(root).budgets().add_skill(agent_id, name, tokens)["added"]


def add_todo(agent_id: str, description: str, *, root: str | None = None) -> int:
    """Adds a pending todo, and returns its number, from 1.

    Raises ``InvalidInput`` for a description that is blank or has more than 1,000 characters, ``TooLarge``,
    ``SessionFinal``, and where the session cannot be written what ``update_state`` raises.
    """
    return Sessions(root).budgets().add_todo(agent_id, description)["number"]


def set_todo_status(
    agent_id: str, number: int, status: str = TODO_COMPLETED, *, root: str | None = None
) -> NumberedTodo:
    """Changes where a todo stands (``pending``, ``in_progress``, ``completed`` or ``cancelled``), and returns it.

    A status that it has already changes nothing. Raises ``NoSuchTodo``, ``BadArgument``, and what ``add_todo`` raises.
    """
    return Sessions(root).budgets().set_todo_status(agent_id, number, status)


def set_todos(agent_id: str, todos: Iterable[Mapping[str, object]], *, root: str | None = None) -> list[NumberedTodo]:
    """Replaces all todos of a session by ``todos``, each ``{description, status}``, and returns them.

    Raises what ``add_todo`` raises.
    """
    return Sessions(root).budgets().set_todos(agent_id, list(todos))


def session_todos(agent_id: str, *, root: str | None = None) -> list[NumberedTodo]:
    """The todos of a session in their order: ``[{number, description, status}]``, numbered from 1.

    Writes nothing. Raises what ``session_usage`` raises.
    """
    from gaia_sessions.usecases.budgets import numbered_todos

    return numbered_todos(Sessions(root).read(agent_id))
