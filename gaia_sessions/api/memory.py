"""The memory of an agent that your program runs itself: messages, todos, and tokens. All of it is on disk."""

from __future__ import annotations

from gaia_sessions.session.budget import max_tokens_of_memory
from gaia_sessions.session.compaction import is_due
from gaia_sessions.session.schema import TODO_COMPLETED

from . import at, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.budget import TokenUsage
    from gaia_sessions.session.todos import NumberedTodo
    from gaia_sessions.session.transcript import Message

    from .sessions import Sessions


class Memory:
    """The messages and todos of one session alone, and the tokens that count against its budget.

    When a method that writes returns, its change is on disk. Once the session has ended, the methods raise
    ``SessionFinal``. They also raise the errors of ``Sessions.update``.
    """

    def __init__(self, sessions: Sessions, agent_id: str) -> None:
        self._sessions = sessions
        self._agent_id = agent_id

    def add_message(
        self,
        role: str,
        content: str,
        *,
        tool_name: str | None = None,
        tool_call_id: str | None = None,
        tokens: int | None = None,
    ) -> Message:
        """Adds a message and charges its ``tokens``, as ``Sessions.add_message`` does with ``is_charged``.

        A message is added even if the budget is used up.
        """
        return self._sessions.add_message(
            self._agent_id,
            role,
            content,
            tool_name=tool_name,
            tool_call_id=tool_call_id,
            tokens=tokens,
            is_charged=True,
        )

    def get_messages(self, last: int | None = None) -> list[Message]:
        """Returns the messages, the oldest first; with ``last``, only so many of the newest.

        The system prompt, if any, comes first. After ``compact``, the summary is next, as a system message. With
        ``last``, a tool result without its call is left out. A message that cannot be read is left out too;
        ``Sessions.messages`` returns an error for it.
        """
        return [*self._sessions.remembered(self._agent_id, last)]

    @property
    def compaction_due(self) -> bool:
        """Whether 90 % of the budget is used."""
        return is_due(self.token_count, self.max_tokens)

    def compact(self) -> bool:
        """Replaces the older messages by one summary, as ``Sessions.compact`` does.

        Pairs of a call and its result stay together. A summary has at most 41 lines. Nothing is compacted unless you
        call this method.
        """
        return self._sessions.compact(self._agent_id)

    @property
    def token_count(self) -> int:
        """The number of tokens that count against the budget, in all processes."""
        return self._usage()["tokens"]

    @property
    def max_tokens(self) -> int:
        """The budget of the session, or the default of the settings."""
        record = at.read(self._sessions, records.as_applied, self._agent_id)
        return max_tokens_of_memory(record, self._sessions.config.budgets)

    @property
    def limit_reached(self) -> bool:
        """Whether the budget is used up."""
        return self._usage()["limit_reached"]

    def sync_token_count(self, total: int) -> TokenUsage:
        """States that ``total`` tokens were used so far. Later charges add to this total."""
        return with_budget_of_memory(self._sessions, self._sessions.set_token_total(self._agent_id, total))

    def clear(self) -> None:
        """Forgets all todos and all messages except the system prompt, and counts from 0 tokens again.

        Skills stay loaded, and the messages stay on disk: this is ``Sessions.reset`` with ``forget``.
        """
        self._sessions.reset(self._agent_id, forget=True)

    @property
    def todos(self) -> list[NumberedTodo]:
        """The todos, each ``{number, description, status}``."""
        return [*self._sessions.todos(self._agent_id)]

    def add_todo(self, description: str) -> int:
        """Adds a pending todo, and returns its number, from 1."""
        return self._sessions.add_todo(self._agent_id, description)["number"]

    def set_todo_status(self, number: int, status: str = TODO_COMPLETED) -> NumberedTodo:
        """Changes the status of one todo, and returns the todo."""
        return self._sessions.set_todo_status(self._agent_id, number, status)

    def _usage(self) -> TokenUsage:
        return with_budget_of_memory(self._sessions, self._sessions.usage(self._agent_id))


def with_budget_of_memory(sessions: Sessions, usage: TokenUsage) -> TokenUsage:
    """Returns ``usage`` with the budget of the memory. Your program must enforce this budget for its agent."""
    record = at.read(sessions, records.as_applied, usage["agent_id"])
    most = max_tokens_of_memory(record, sessions.config.budgets)
    return {**usage, "max_tokens": most, "limit_reached": usage["tokens"] >= most}
