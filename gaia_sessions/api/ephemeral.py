"""``EphemeralSession``: the session of one agent that a program runs itself, with a memory of its own.

Owns the names of the users' document on it. All of it is in the record and in the files beside it, so that any process
can open it, charge it or cancel it; an object here only knows the id, and when it was made. Must never know a rule.
"""

from __future__ import annotations

import time

from gaia_sessions.errors import SessionsError
from gaia_sessions.session.budget import skill_tokens_of
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.requests import Ending, NewSession

from .cancellation import CancellationToken
from .sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Self

    from gaia_sessions.session.budget import TokenUsage
    from gaia_sessions.session.report import Report
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message
    from gaia_sessions.usecases.budgets import NumberedTodo


class Memory:
    """The messages and todos of one session, and the tokens that count against its budget; no other session has them.

    Each write is one commit, and is on disk when its method returns. The methods raise ``SessionFinal`` once the work
    has ended, and what ``update_state`` raises.
    """

    __slots__ = ("_agent_id", "_sessions")

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
        up. Raises what the function ``add_message`` raises.
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

        One that cannot be read is left out; ``session_messages`` reports it.
        """
        found = self._sessions.messages(self._agent_id, last)
        return [message for message in found if not isinstance(message, SessionsError)]

    @property
    def token_count(self) -> int:
        """How many tokens count against the budget, in all processes."""
        return self._usage()["tokens"]

    @property
    def max_tokens(self) -> int:
        """The budget: what the session was given, or that of the settings."""
        return self._usage()["max_tokens"]

    @property
    def limit_reached(self) -> bool:
        """Whether as many tokens are used as there are, or more."""
        return self._usage()["limit_reached"]

    def sync_token_count(self, total: int) -> TokenUsage:
        """States that ``total`` tokens were used so far, in place of what was counted; later charges add to it."""
        return self._sessions.budgets().set_total(self._agent_id, total)

    def clear(self) -> None:
        """Forgets all messages and todos, and counts from 0 tokens again; skills stay loaded.

        The messages are kept on disk, as an archived transcript.
        """
        self._sessions.forget(self._agent_id)

    @property
    def todos(self) -> list[NumberedTodo]:
        """The todos, each ``{number, description, status}``."""
        from gaia_sessions.usecases.budgets import numbered_todos

        return numbered_todos(self._sessions.read(self._agent_id))

    def add_todo(self, description: str) -> int:
        """Adds a pending todo, and returns its number, from 1."""
        return self._sessions.budgets().add_todo(self._agent_id, description)["number"]

    def set_todo_status(self, number: int, status: str = "completed") -> NumberedTodo:
        """Changes where one todo stands, and returns it."""
        return self._sessions.budgets().set_todo_status(self._agent_id, number, status)

    def _usage(self) -> TokenUsage:
        return self._sessions.usage(self._sessions.preview(self._agent_id))


class EphemeralSession:
    """The session of an agent that this program runs, created here; ``open`` has one that exists.

    ``max_tokens`` is its budget: None takes that of the settings, 64,000 for a sub-agent and 200,000 without a
    ``parent``. ``parent`` is the session that it is created below, or its id: if that is cancelled, so is this one, and
    ``cancellation_token`` says so. ``memory`` has its messages and todos. Raises what ``create_session`` raises.
    """

    def __init__(
        self,
        max_tokens: int | None,
        parent: str | EphemeralSession | None = None,
        *,
        agent_name: str = "unknown",
        purpose: str = "general",
        root: str | None = None,
    ) -> None:
        parent_id = parent.agent_id if isinstance(parent, EphemeralSession) else parent
        sessions = Sessions(root or (parent.root if isinstance(parent, EphemeralSession) else None))
        new = NewSession(agent_name, purpose, parent_id=parent_id, max_tokens=max_tokens)
        self._attach(sessions, sessions.create(new))

    @classmethod
    def open(cls, agent_id: str, *, root: str | None = None) -> Self:
        """The session ``agent_id``, whoever created it.

        Raises ``SessionNotFound``, ``CorruptSession``, ``InvalidId``.
        """
        sessions = Sessions(root)
        sessions.read(agent_id)
        session = cls.__new__(cls)
        session._attach(sessions, agent_id)  # noqa: SLF001  # made here, without creating a session
        return session

    @classmethod
    def with_parent_token(
        cls,
        max_tokens: int | None,
        parent_token: CancellationToken,
        *,
        agent_name: str = "unknown",
        purpose: str = "general",
        root: str | None = None,
    ) -> Self:
        """A new session that is cancelled when ``parent_token`` is.

        The token of a session makes that its parent. One that is in memory only is followed by
        ``cancellation_token`` in this process; no other process knows of it.
        """
        root = root or parent_token.root
        session = cls(max_tokens, parent_token.agent_id, agent_name=agent_name, purpose=purpose, root=root)
        if parent_token.agent_id is None:
            session.cancellation_token = CancellationToken(session.agent_id, root=session.root, parent=parent_token)
        return session

    @classmethod
    def with_default_limits(
        cls, *, agent_name: str = "unknown", purpose: str = "general", root: str | None = None
    ) -> Self:
        """A new session without a parent, with the budget of the settings: 200,000 tokens."""
        return cls(None, agent_name=agent_name, purpose=purpose, root=root)

    def _attach(self, sessions: Sessions, agent_id: str) -> None:
        self._sessions = sessions
        self.agent_id = agent_id
        self.memory = Memory(sessions, agent_id)
        self.cancellation_token = CancellationToken(agent_id, root=sessions.root)
        record = sessions.read(agent_id)
        self.started_at: datetime = parse_time(record["created_at"])
        self._elapsed_before = float(sessions.usage(record)["elapsed_secs"])
        self._attached_at = time.monotonic()

    @property
    def root(self) -> str:
        """The directory of the sessions."""
        return self._sessions.root

    @property
    def loaded_skills(self) -> frozenset[str]:
        """The names of the skills that were loaded into this session; those of its parent are not among them."""
        return frozenset(self._record().get("skills", {}))

    def is_skill_loaded(self, name: str) -> bool:
        """Whether the skill ``name`` was loaded into this session, in any process."""
        return name in self.loaded_skills

    def register_loaded_skill(self, name: str, tokens: int) -> bool:
        """Counts a skill that was loaded, against the budget too; False, and nothing changes, if it was before."""
        return self._sessions.budgets().add_skill(self.agent_id, name, tokens)["added"]

    def skill_token_count(self) -> int:
        """The tokens of all skills that were loaded."""
        return skill_tokens_of(self._record())

    def charge(self, tokens: int) -> TokenUsage:
        """Counts ``tokens`` more against the budget, as ``charge_tokens`` does, and returns what was used by then."""
        return self._sessions.budgets().charge(self.agent_id, tokens)

    def elapsed_secs(self) -> int:
        """The whole seconds since the session was created, up to its end.

        While the work goes on, no change of the clock affects them within one process.
        """
        record = self._record()
        if is_final(record["phase"]):
            return self._sessions.usage(record)["elapsed_secs"]
        return int(self._elapsed_before + time.monotonic() - self._attached_at)

    def finalize(self, outcome: str, summary: str | None = None, *, error: str | None = None) -> Record:
        """Ends the work, as ``finalize_session`` does."""
        return self._sessions.finalize(self.agent_id, Ending(outcome, summary, error))[0]

    def report(self) -> Report:
        """How the work stands or ended, as ``session_report`` returns it."""
        return self._sessions.report(self.agent_id)[0]

    def _record(self) -> Record:
        return self._sessions.preview(self.agent_id)

    def __repr__(self) -> str:
        return f"EphemeralSession.open({self.agent_id!r}, root={self.root!r})"
