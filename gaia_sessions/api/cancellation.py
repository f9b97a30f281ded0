"""A token by which a program asks whether its work is cancelled, and cancels it.

Owns how a token of a session and tokens in memory are linked, and how often one that waits looks. Once a token has been
seen cancelled it stays so. Must never take a lock to look.
"""

from __future__ import annotations

import threading
import time

from gaia_sessions import errors
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import stated_ancestors
from gaia_sessions.system import utc_now

from .sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.cancellation import Cancellation

_SECONDS_BETWEEN_LOOKS = 0.05


class CancellationToken:
    """Whether a session, or a piece of work in memory, is cancelled.

    With ``agent_id`` it is the session's: whoever cancels that session, or with everything below it one above it, in
    any process, cancels the token; each look costs a look at one file for the session and for each one above it.
    Without ``agent_id`` it is in memory only. ``root`` is as in the functions of this package. Safe to use from several
    threads.
    """

    def __init__(self, agent_id: str | None = None, *, root: str | None = None) -> None:
        self.agent_id = agent_id
        self._session = None if agent_id is None else _Session(agent_id, Sessions(root))
        self._parent: CancellationToken | None = None
        self._found: Cancellation | None = None
        self._cancelled_here = threading.Event()

    @property
    def cancellation(self) -> Cancellation | None:
        """Why it is cancelled: ``{at?, reason?, by?}``; None if it is not. Raises what ``is_cancelled`` raises."""
        if self._found is None:
            self._found = self._look()
        return self._found

    def _look(self) -> Cancellation | None:
        if self._parent is not None:
            return self._parent.cancellation
        return self._session.look() if self._session else None

    @property
    def is_cancelled(self) -> bool:
        """Whether it is cancelled now. Raises ``SessionNotFound``, ``CorruptSession``, ``StoreFailure``."""
        return self.cancellation is not None

    def cancel(self, reason: str | None = None) -> None:
        """Cancels it, and with it its child tokens; that of a session, the session with everything below it.

        The first reason and time stay. Returns when the cancellation is durable; raises ``SessionNotFound``,
        ``LockTimeout``, ``StoreFailure``, ``DurabilityUnknown``.
        """
        if self._session:
            self._session.cancel(reason)
        elif self.cancellation is None:
            self._found = {"at": format_time(utc_now()), **({"reason": reason} if reason else {})}
        self._cancelled_here.set()

    def check(self) -> None:
        """Raises ``Cancelled`` if it is cancelled, and what ``is_cancelled`` raises."""
        cancellation = self.cancellation
        if cancellation is not None:
            raise errors.Cancelled(self._session_id(), **cancellation)

    def _session_id(self) -> str | None:
        return self.agent_id if self._parent is None else self._parent._session_id()  # noqa: SLF001  # of the same class

    def child_token(self) -> CancellationToken:
        """A token in memory that is cancelled with this one; cancelling it leaves this one alone."""
        child = CancellationToken()
        child._parent = self  # of the same class
        return child

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it is cancelled within ``timeout`` seconds, None for ever. Raises what ``is_cancelled`` does."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.is_cancelled:
            left = _SECONDS_BETWEEN_LOOKS if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return False
            self._cancelled_here.wait(min(left, _SECONDS_BETWEEN_LOOKS))
        return True


class _Session:
    """One session, and what is above it once that is known: a parent never changes."""

    def __init__(self, agent_id: str, sessions: Sessions) -> None:
        self._agent_id = agent_id
        self._sessions = sessions
        self._ancestors: list[str] = []

    def look(self) -> Cancellation | None:
        """Why it is cancelled. A session without a parent may still get one, so it is read each time."""
        found = self._sessions.cancellation(self._agent_id, self._ancestors)
        if found is None and not self._ancestors:
            self._ancestors = stated_ancestors(self._sessions.read(self._agent_id)) or []
        return found

    def cancel(self, reason: str | None) -> None:
        self._sessions.cancel(self._agent_id, reason)
