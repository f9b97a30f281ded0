"""What agents report of their own means: tokens that they used, skills that they loaded, todos.

Owns how many bytes each write must leave free, and what the caller learns of it. The rules are in ``session.budget``
and ``session.todos``.
"""

from __future__ import annotations

from gaia_sessions.session import budget, todos
from gaia_sessions.session.record import check_readable
from gaia_sessions.session.retention import RESERVED_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.session.budget import DefaultBudgets, TokenUsage
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store

    class LoadedSkill(TypedDict):
        """A skill that is loaded. added: whether by this call; skill_tokens: the sum of all skills of the session."""

        agent_id: str
        name: str
        tokens: int
        added: bool
        skill_tokens: int

    class NumberedTodo(TypedDict):
        """A todo with its number, from 1."""

        number: int
        description: str
        status: str


class Budgets:
    """The budgets, skills and todos of the sessions in ``store``, to be changed at ``now``.

    Each method changes one session in one write, in which no other write is lost, and which is activity of the work. A
    session that is final only takes what holds already. They raise ``SessionFinal`` and what ``Store.change`` raises.
    """

    __slots__ = ("_defaults", "_now", "_store")

    def __init__(self, store: Store, now: datetime, defaults: DefaultBudgets) -> None:
        self._store = store
        self._now = now
        self._defaults = defaults

    def charge(self, agent_id: str, tokens: int) -> TokenUsage:
        """Counts ``tokens`` more, also beyond the limit. Raises ``BadArgument``.

        Nothing needs to stay free after it: it adds a number of a bounded length to the record.
        """
        budget.check_tokens("tokens", tokens)
        record = self._store.change(agent_id, lambda record: budget.with_charge(record, tokens, self._now))
        return budget.usage_of(record, self._now, self._defaults)

    def set_total(self, agent_id: str, total: int) -> TokenUsage:
        """States what was used so far; what is charged, loaded or consumed later adds to it. Raises ``BadArgument``."""
        budget.check_tokens("total", total)
        record = self._store.change(agent_id, lambda record: budget.with_total(record, total, self._now))
        return budget.usage_of(record, self._now, self._defaults)

    def add_skill(self, agent_id: str, name: str, tokens: int) -> LoadedSkill:
        """Counts a skill that was loaded, unless it was before; its tokens then stay what they are.

        Raises ``InvalidInput``, ``BadArgument``, ``TooLarge``.
        """
        budget.check_skill_name(name)
        budget.check_tokens("tokens", tokens)
        added = False

        def rule(record: Record) -> Record:
            nonlocal added
            changed = budget.with_skill(record, name, tokens, self._now)
            added = changed is not record
            return changed

        record = self._store.change(agent_id, rule, reserved=RESERVED_BYTES)
        return {
            "agent_id": agent_id,
            "name": name,
            "tokens": record["skills"][name],
            "added": added,
            "skill_tokens": budget.skill_tokens_of(record),
        }

    def add_todo(self, agent_id: str, description: str) -> NumberedTodo:
        """Adds a pending todo at the end. Raises ``InvalidInput``, ``TooLarge``."""
        todos.check_description(description)
        record = self._store.change(
            agent_id, lambda record: todos.with_todo(record, description, self._now), reserved=RESERVED_BYTES
        )
        return numbered_todos(record)[-1]

    def set_todo_status(self, agent_id: str, number: int, status: str) -> NumberedTodo:
        """Changes where one todo stands. Raises ``BadArgument``, ``NoSuchTodo``, ``TooLarge``."""
        todos.check_number(number)
        todos.check_status(status)
        record = self._store.change(
            agent_id,
            lambda record: todos.with_todo_status(record, number, status, self._now),
            reserved=RESERVED_BYTES,
        )
        return numbered_todos(record)[number - 1]

    def set_todos(self, agent_id: str, wanted: object) -> list[NumberedTodo]:
        """Replaces the whole list by ``wanted``: ``[{description, status}]``. Raises ``InvalidInput``, ``TooLarge``."""
        checked = todos.check_todos(wanted)
        record = self._store.change(
            agent_id, lambda record: todos.with_todos(record, checked, self._now), reserved=RESERVED_BYTES
        )
        return numbered_todos(record)


def numbered_todos(record: Record) -> list[NumberedTodo]:
    """The todos of ``record``, each with its number. Raises ``NewerSchema``."""
    check_readable(record)
    return [
        {"number": number, "description": todo["description"], "status": todo["status"]}
        for number, todo in enumerate(record.get("todos", ()), 1)
    ]
