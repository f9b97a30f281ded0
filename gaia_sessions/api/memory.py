"""The memory of an agent that a program runs itself: messages, todos, and the tokens that count against its budget.

Owns the names of the users' document on it. All of it is in the record and in the transcript.
"""

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
    """The messages and todos of one session, and the tokens that count against its budget; no other session has them.

    Each write is one commit, and is on disk when its method returns. The methods raise ``SessionFinal`` once the work
    has ended, and what ``Sessions.update`` raises.
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
        """Adds a message of ``system``, ``user``, ``assistant`` or ``tool``, and charges its ``tokens``.

        Without ``tokens`` they are estimated as one for every 4 bytes. Nothing is refused because the budget is used
        up. Raises what ``Sessions.add_message`` raises.
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
        """The messages, the oldest first, or the ``last`` ones, which cost no more if there are many others.

        The first is the system prompt, if there is one; after ``compact`` its summary is next, a message of the system
        too. Of the ``last`` ones a result is left out whose call is not among them. One that cannot be read is left
        out as well; ``Sessions.messages`` reports it.
        """
        return [*self._sessions.remembered(self._agent_id, last)]

    @property
    def compaction_due(self) -> bool:
        """Whether 90 % of the budget is used."""
        return is_due(self.token_count, self.max_tokens)

    def compact(self) -> bool:
        """Puts one summary in place of the older messages, and counts its tokens in place of what those were charged.

        The newest fifth stays, with whole pairs of a call and its result. A summary has at most 41 lines, the first
        ones and the latest; a second one carries those of the first. Nothing is compacted unless you ask, and the
        transcript keeps all messages. False, and nothing changes, if there are fewer than 5, or if the summary would be
        longer than what it replaces.
        """
        return self._sessions.compact(self._agent_id)

    @property
    def token_count(self) -> int:
        """How many tokens count against the budget, in all processes."""
        return self._usage()["tokens"]

    @property
    def max_tokens(self) -> int:
        """The budget: what the session was given, or that of the settings."""
        record = at.read(self._sessions, records.as_applied, self._agent_id)
        return max_tokens_of_memory(record, self._sessions.config.budgets)

    @property
    def limit_reached(self) -> bool:
        """Whether as many tokens are used as there are, or more."""
        return self._usage()["limit_reached"]

    def sync_token_count(self, total: int) -> TokenUsage:
        """States that ``total`` tokens were used so far, in place of what was counted; later charges add to it."""
        return with_budget_of_memory(self._sessions, self._sessions.set_token_total(self._agent_id, total))

    def clear(self) -> None:
        """Forgets all messages but the system prompt, and all todos, and counts from 0 tokens again.

        Skills stay loaded. The messages are kept on disk: it is ``Sessions.reset`` with ``forget``.
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
        """Changes where one todo stands, and returns it."""
        return self._sessions.set_todo_status(self._agent_id, number, status)

    def _usage(self) -> TokenUsage:
        return with_budget_of_memory(self._sessions, self._sessions.usage(self._agent_id))


def with_budget_of_memory(sessions: Sessions, usage: TokenUsage) -> TokenUsage:
    """``usage`` with the budget of the memory, to which only the program can hold the agent that it runs."""
    record = at.read(sessions, records.as_applied, usage["agent_id"])
    most = max_tokens_of_memory(record, sessions.config.budgets)
    return {**usage, "max_tokens": most, "limit_reached": usage["tokens"] >= most}
