"""``EphemeralSession``: the session of an agent that your program runs itself.

The record and the files beside it hold everything; the object only has the ID and its start time.
"""

from __future__ import annotations

import time

from gaia_sessions.errors import Cancelled, SessionFinal, SessionsError, TooLarge
from gaia_sessions.session.budget import elapsed_seconds, skill_tokens_of
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.phases import ABANDONED, COMPLETED, FAILED, is_final
from gaia_sessions.system import utc_now

from . import at, records
from .cancellation_token import CancellationToken
from .memory import Memory, with_budget_of_memory
from .send import error_text
from .sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from types import TracebackType
    from typing import Self

    from gaia_sessions.session.budget import TokenUsage
    from gaia_sessions.session.report import Report
    from gaia_sessions.session.schema import Record

    from .at import Root

_LENGTH_THAT_FITS = 200
"""How many characters of an error fit into every record: writes leave some room for the end."""


class EphemeralSession:
    """Creates a session for an agent that your program runs; ``open`` opens an existing session.

    The constructor raises the errors of ``Sessions.create``. The attributes are ``agent_id``, ``started_at``,
    ``memory`` ([the memory](#its-memory)) and ``cancellation_token`` ([the token](#cancellation-tokens)).

    At the end of a ``with`` block, an open session ends as:

    - ``completed``, if there was no exception;
    - ``failed``, with the exception, if it is an ``Exception``;
    - ``abandoned``, if it is another exception (``KeyboardInterrupt``, ``SystemExit``, or the task is cancelled).

    After ``Cancelled``, the session becomes ``abandoned`` only at the next write to the session, or at the next
    ``reconcile`` or ``cleanup``.
    Every exception is passed on.

    If your process is killed, also by SIGTERM, the session stays open. Another process can ``open`` and use the
    session, or end the session by ``Sessions.finalize`` or ``Sessions.cancel``. The phase stays ``initializing`` unless
    you change it with ``Sessions.update``.

    You can copy and pickle the session, its memory and its token. Unpickling opens the session.

    Args:
        max_tokens: the budget. None takes the default of the settings: 64,000 below a ``parent``, otherwise 200,000.
        parent: the session above, or its ID. If the parent is cancelled, this session is cancelled too.
    """

    def __init__(
        self,
        max_tokens: int | None,
        parent: str | EphemeralSession | None = None,
        *,
        agent_name: str = "unknown",
        purpose: str = "general",
        root: Root = None,
    ) -> None:
        parent_id = parent.agent_id if isinstance(parent, EphemeralSession) else parent
        sessions = Sessions(root or (parent.root if isinstance(parent, EphemeralSession) else None))
        self._attach(sessions, sessions.create(agent_name, purpose, parent_id=parent_id, max_tokens=max_tokens))

    @classmethod
    def open(cls, agent_id: str, *, root: Root = None) -> Self:
        """Opens the session ``agent_id``, which any process may have created.

        Raises:
            InvalidId, SessionNotFound, CorruptSession: as in ``Sessions``.
        """
        sessions = Sessions(root)
        records.read(sessions, agent_id)
        session = cls.__new__(cls)
        session._attach(sessions, agent_id)  # noqa: SLF001  # made here, and creates no session
        return session

    @classmethod
    def with_parent_token(
        cls,
        max_tokens: int | None,
        parent_token: CancellationToken,
        *,
        agent_name: str = "unknown",
        purpose: str = "general",
        root: Root = None,
    ) -> Self:
        """Creates a session that is cancelled when ``parent_token`` is.

        If the token belongs to a session, that session is the parent. A token in memory cancels only the
        ``cancellation_token`` in this process; other processes do not see it.
        """
        root = root or parent_token.root
        session = cls(max_tokens, parent_token.agent_id, agent_name=agent_name, purpose=purpose, root=root)
        if parent_token.agent_id is None:
            session.cancellation_token = CancellationToken(session.agent_id, root=session.root, parent=parent_token)
        return session

    @classmethod
    def with_default_limits(cls, *, agent_name: str = "unknown", purpose: str = "general", root: Root = None) -> Self:
        """Creates a session without a parent, with the budget of the settings, by default 200,000 tokens."""
        return cls(None, agent_name=agent_name, purpose=purpose, root=root)

    def _attach(self, sessions: Sessions, agent_id: str) -> None:
        self._sessions = sessions
        self.agent_id = agent_id
        self.memory = Memory(sessions, agent_id)
        self.cancellation_token = CancellationToken(agent_id, root=sessions.root)
        self._read_times()

    def _read_times(self) -> None:
        record = records.read(self._sessions, self.agent_id)
        self.started_at: datetime = parse_time(record["created_at"])
        self._elapsed_before = float(elapsed_seconds(record, utc_now()))
        self._attached_at = time.monotonic()

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._read_times()  # the monotonic clock differs in another process

    @property
    def root(self) -> str:
        """The root of the session."""
        return self._sessions.root

    @property
    def loaded_skills(self) -> frozenset[str]:
        """The names of the skills that were loaded into this session, without the parent's."""
        return frozenset(self._record().get("skills", {}))

    def is_skill_loaded(self, name: str) -> bool:
        """Returns whether the skill ``name`` was loaded into this session, in any process."""
        return name in self.loaded_skills

    def register_loaded_skill(self, name: str, tokens: int) -> bool:
        """Counts a loaded skill against the budget.

        Returns:
            False if the skill was loaded before; then nothing changes.
        """
        return self._sessions.add_skill(self.agent_id, name, tokens)["added"]

    def skill_token_count(self) -> int:
        """Returns the tokens of all loaded skills."""
        return skill_tokens_of(self._record())

    def charge(self, tokens: int) -> TokenUsage:
        """Counts ``tokens`` more, as ``Sessions.charge`` does."""
        return with_budget_of_memory(self._sessions, self._sessions.charge(self.agent_id, tokens))

    def elapsed_secs(self) -> int:
        """Returns the whole seconds from the creation to now, or to the end."""
        record = self._record()
        if is_final(record["phase"]):
            return elapsed_seconds(record, utc_now())
        return int(self._elapsed_before + time.monotonic() - self._attached_at)

    def finalize(self, outcome: str, summary: str | None = None, *, error: str | None = None) -> Record:
        """Ends the session, as ``Sessions.finalize`` does."""
        return self._sessions.finalize(self.agent_id, outcome, summary, error=error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, raised: BaseException | None, __: TracebackType | None) -> None:
        if isinstance(raised, Cancelled):
            return
        outcome = FAILED if isinstance(raised, Exception) else COMPLETED if raised is None else ABANDONED
        try:
            self._end(outcome, error_text(raised) if isinstance(raised, Exception) else None)
        except (SessionFinal, Cancelled):
            pass
        except (SessionsError, OSError) as failure:  # without a free descriptor no module can be imported
            if raised is None:
                raise
            raised.add_note(f"session {self.agent_id!r} could not be ended as {outcome}: {failure}")

    def _end(self, outcome: str, error: str | None) -> None:
        """Ends the session with ``error``; if the record has too little room, with the beginning of ``error``."""
        try:
            self.finalize(outcome, error=error)
        except TooLarge:
            if error is None:
                raise
            self.finalize(outcome, error=error[:_LENGTH_THAT_FITS])

    def report(self) -> Report:
        """Reports on the session, as ``Sessions.report`` does."""
        return self._sessions.report(self.agent_id)

    def _record(self) -> Record:
        return at.read(self._sessions, records.as_applied, self.agent_id)

    def __repr__(self) -> str:
        return f"EphemeralSession.open({self.agent_id!r}, root={self.root!r})"
