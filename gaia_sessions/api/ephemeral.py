"""``EphemeralSession``: the session of one agent that a program runs itself, with a memory of its own.

Owns the names of the users' document on it. All of it is in the record and in the files beside it, so that any process
can open it, charge it or cancel it; an object here only knows the id, and when it was made.
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

_LENGTH_THAT_FITS = 200
"""How many characters of an error every record has room for, whatever they are: writes leave some free for the end."""


class EphemeralSession:
    """The session of an agent that this program runs, created here; ``open`` has one that exists.

    ``max_tokens`` is its budget: None takes that of the settings, 64,000 for a sub-agent and 200,000 without a
    ``parent``. ``parent`` is the session that it is created below, or its id: if that is cancelled, so is this one.
    ``agent_id`` is its id, ``started_at`` the time of its creation, ``memory`` [its memory](#its-memory) and
    ``cancellation_token`` [its token](#cancellation-tokens). Raises what ``Sessions.create`` raises.

    As a context manager it ends the work that is not final yet: as ``completed``; as ``failed`` with the exception that
    leaves the block; as ``abandoned`` if that is no failure (``KeyboardInterrupt``, ``SystemExit``, a task that is
    cancelled). ``Cancelled`` ends nothing: the next write to a cancelled session, ``reconcile`` or ``cleanup`` makes it
    ``abandoned``. No exception is held back.

    Nobody notices that a process is killed (SIGTERM raises nothing in Python either): its work stays open, until
    another process goes on with it by ``open``, or ends it by ``Sessions.finalize`` or ``Sessions.cancel``.
    Its phase is ``initializing`` to the end, unless ``Sessions.update`` changes it.

    It can be pickled and copied, and so can its memory and its token: unpickling opens the session, as ``open`` does.
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
        self._attach(sessions, sessions.create(agent_name, purpose, parent_id=parent_id, max_tokens=max_tokens))

    @classmethod
    def open(cls, agent_id: str, *, root: str | None = None) -> Self:
        """The session ``agent_id``, whoever created it.

        Raises ``SessionNotFound``, ``CorruptSession``, ``InvalidId``.
        """
        sessions = Sessions(root)
        records.read(sessions, agent_id)
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
        self._read_times()

    def _read_times(self) -> None:
        record = records.read(self._sessions, self.agent_id)
        self.started_at: datetime = parse_time(record["created_at"])
        self._elapsed_before = float(elapsed_seconds(record, utc_now()))
        self._attached_at = time.monotonic()

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._read_times()  # the monotonic clock is that of another process, perhaps of another day

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
        return self._sessions.add_skill(self.agent_id, name, tokens)["added"]

    def skill_token_count(self) -> int:
        """The tokens of all skills that were loaded."""
        return skill_tokens_of(self._record())

    def charge(self, tokens: int) -> TokenUsage:
        """Counts ``tokens`` more against the budget, and returns what was used by then."""
        return with_budget_of_memory(self._sessions, self._sessions.charge(self.agent_id, tokens))

    def elapsed_secs(self) -> int:
        """The whole seconds since the session was created, up to its end.

        While the work goes on, no change of the clock affects them within one process.
        """
        record = self._record()
        if is_final(record["phase"]):
            return elapsed_seconds(record, utc_now())
        return int(self._elapsed_before + time.monotonic() - self._attached_at)

    def finalize(self, outcome: str, summary: str | None = None, *, error: str | None = None) -> Record:
        """Ends the work, as ``Sessions.finalize`` does."""
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
        except (SessionsError, OSError) as failure:  # without a free descriptor not even a module can be imported
            if raised is None:
                raise
            raised.add_note(f"session {self.agent_id!r} was not ended as {outcome}: {failure}")

    def _end(self, outcome: str, error: str | None) -> None:
        """Finalizes with ``error``, or with the beginning of it where there is no room for all of it."""
        try:
            self.finalize(outcome, error=error)
        except TooLarge:
            if error is None:
                raise
            self.finalize(outcome, error=error[:_LENGTH_THAT_FITS])

    def report(self) -> Report:
        """How the work stands or ended, as ``Sessions.report`` says it."""
        return self._sessions.report(self.agent_id)

    def _record(self) -> Record:
        return at.read(self._sessions, records.as_applied, self.agent_id)

    def __repr__(self) -> str:
        return f"EphemeralSession.open({self.agent_id!r}, root={self.root!r})"
