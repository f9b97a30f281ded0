"""The token that tells a program whether its work is cancelled. Asking takes no lock."""

from __future__ import annotations

import os
import threading
import time

from gaia_sessions.errors import Cancelled, StoreFailure  # imported now: later no file descriptor may be free
from gaia_sessions.session.cancellation import check_reason, unread_cancellation
from gaia_sessions.session.clock import format_time
from gaia_sessions.store.above import Above
from gaia_sessions.store.reading import RECORD
from gaia_sessions.system import utc_now

from .cancelling import cancellation_and_above
from .sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from gaia_sessions.session.cancellation import Cancellation

    from .at import Root

_SECONDS_BETWEEN_LOOKS = 0.05

_SECONDS_BETWEEN_QUESTIONS = 1.0
"""How long an answer of a server counts: each question is several messages over a network."""

_MOST_SECONDS_WITHOUT_ANSWER = 90.0
"""How long a session counts as not cancelled while the server cannot be asked: as long as a run may go on then."""


class CancellationToken:
    """Says whether a session, or work in memory, is [cancelled](phases.md#cancellation).

    With ``agent_id``, the token belongs to this session. The token is cancelled if any process cancels the session, or
    cancels a session above with everything below. Without ``agent_id``, the token is in memory only. A cancelled token
    stays cancelled. Several threads can use one token.

    A copy is the token itself. A pickled token, for example for ``multiprocessing``, still knows its cancellation, and
    the sessions that can cancel it. It does not learn what happens later to tokens in memory. If no session can cancel
    a token, pickling it raises ``TypeError``.

    Args:
        root: as in ``Sessions``.
        parent: if this token is cancelled, the new token is cancelled too.
    """

    def __init__(
        self, agent_id: str | None = None, *, root: Root = None, parent: CancellationToken | None = None
    ) -> None:
        self.agent_id = agent_id
        session = None if agent_id is None else _Session(agent_id, Sessions(root))
        self._link: _Link = _Link(session, parent._link if parent else None)  # noqa: SLF001  # of the same class
        self._cancelled_here = threading.Event()

    @property
    def cancellation(self) -> Cancellation | None:
        """Why the token is cancelled, ``{at?, reason?, by?}``; None if it is not cancelled.

        ``by`` is the cancelled session above. If the system cannot tell whether the token is cancelled, for example
        because file descriptors are used up, the token counts as cancelled, and ``reason`` says why. Raises the errors
        of ``is_cancelled``.
        """
        return self._link.cancellation()

    @property
    def is_cancelled(self) -> bool:
        """Whether the token is cancelled now.

        Raises:
            SessionNotFound, CorruptSession: the session is gone, or the session or one above it cannot be used.
        """
        return self.cancellation is not None

    def cancel(self, reason: str | None = None) -> None:
        """Cancels the token and its child tokens, or the session with everything below it.

        The reason and the time of the first cancellation stay. When the method returns, the cancellation of a session
        is durable. Raises the errors of ``Sessions.cancel``.
        """
        check_reason(reason)
        if self._link.session:
            self._link.session.cancel(reason)
        elif self.cancellation is None:
            self._link.seen.append({"at": format_time(utc_now()), **({"reason": reason} if reason else {})})
        self._cancelled_here.set()

    def check(self) -> None:
        """Raises ``Cancelled`` if the token is cancelled. Also raises the errors of ``is_cancelled``."""
        cancellation = self.cancellation
        if cancellation is not None:
            session = self._link.nearest_session()
            raise Cancelled(session.agent_id if session else None, **cancellation)

    @property
    def root(self) -> str | None:
        """The root of the session, or of the nearest token above that has one; None without a session."""
        session = self._link.nearest_session()
        return session.root if session else None

    def child_token(self) -> CancellationToken:
        """Returns a token in memory that is cancelled with this one.

        If you cancel the child, this token is not cancelled.
        """
        return CancellationToken(parent=self)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the token is cancelled, and returns whether it is cancelled.

        Raises the errors of ``is_cancelled``.

        Args:
            timeout: the longest wait in seconds; None means no limit.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.is_cancelled:
            left = _SECONDS_BETWEEN_LOOKS if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return False
            self._cancelled_here.wait(min(left, _SECONDS_BETWEEN_LOOKS))
        return True

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_cancelled_here": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _cancelled_here=threading.Event())


class _Link:
    """One token in a chain: its session, if any, and the token above, which cancels this token too."""

    __slots__ = ("above", "seen", "session")

    def __init__(self, session: _Session | None, above: _Link | None) -> None:
        self.session = session
        self.above = above
        self.seen: list[Cancellation] = []  # several threads may add theirs at once; the first one counts

    def _up(self) -> Iterator[_Link]:
        link: _Link | None = self
        while link:
            yield link
            link = link.above

    def cancellation(self) -> Cancellation | None:
        """Returns why the token is cancelled, by itself or with a token above; None if it is not cancelled."""
        link = next((link for link in self._up() if link.is_cancelled()), None)
        if link is not None and link is not self:
            self.seen.append(link.seen[0])
        return self.seen[0] if self.seen else None

    def is_cancelled(self) -> bool:
        """Returns whether the token is cancelled by itself."""
        found = self.session.look() if self.session and not self.seen else None
        if found is not None:
            self.seen.append(found)
        return bool(self.seen)

    def nearest_session(self) -> _Session | None:
        """Returns the session of the token, or of the nearest token above that has one."""
        return next((link.session for link in self._up() if link.session), None)

    def __reduce__(self) -> tuple[object, ...]:
        seen = next((link.seen[:1] for link in self._up() if link.seen), [])
        sessions = [link.session for link in self._up() if link is self or link.session]
        if sessions == [None] and not seen:
            raise TypeError(
                "a token in memory cannot be pickled, because no other process would see its cancellation; "
                "use the token of a session, or a child token of that token"
            )
        return _linked, (sessions, seen)


def _linked(sessions: list[_Session | None], seen: list[Cancellation]) -> _Link:
    """Returns the link of a token with the first of ``sessions``; the other sessions are above."""
    first, *others = sessions
    above: _Link | None = None
    for session in reversed(others):
        above = _Link(session, above)
    link = _Link(first, above)
    link.seen += seen
    return link


class _Session:
    """One session, and the known sessions above it: a parent never changes."""

    def __init__(self, agent_id: str, sessions: Sessions) -> None:
        self.agent_id = agent_id
        self._sessions = sessions
        self._above: Sequence[str] = ()
        self._topmost: tuple[int, int, int] | None = None
        self._asked = float("-inf")  # when a server last said that the session is not cancelled
        self._counts_from = time.monotonic()  # since when no answer of a server is missing

    @property
    def root(self) -> str:
        return self._sessions.root

    def look(self) -> Cancellation | None:
        """Returns why the session is cancelled; None if it is not cancelled."""
        if self._sessions.folder is None:
            return self._look_on_server()
        above = self._above
        # The topmost session above may still get a parent, so it is read again when its record has changed.
        topmost = self._stamp_of(above[-1] if above else self.agent_id)
        are_all = topmost is not None and topmost == self._topmost
        try:
            with self._sessions.store as store:
                found, self._above = cancellation_and_above(store, self.agent_id, above, are_all=are_all)
        except (StoreFailure, OSError) as error:  # without a free descriptor no module can be imported
            return unread_cancellation(error)
        self._topmost = topmost if found is None and len(self._above) == len(above) else None
        return found

    def _look_on_server(self) -> Cancellation | None:
        """Returns what ``look`` returns; while the server cannot be asked, its last answer counts for a while."""
        now = time.monotonic()
        if now - self._asked < _SECONDS_BETWEEN_QUESTIONS:
            return None
        try:
            with self._sessions.store as store:
                found = Above(store).proved_cancellation(store.read(self.agent_id))
        except StoreFailure as error:
            is_too_long = now - self._counts_from >= _MOST_SECONDS_WITHOUT_ANSWER
            return unread_cancellation(error) if is_too_long else None
        if found is None:
            self._asked = self._counts_from = now
        return found

    def _stamp_of(self, agent_id: str) -> tuple[int, int, int] | None:
        """Returns what changes with each write of a record, because each write replaces the file; None if unknown."""
        try:
            found = os.stat(os.path.join(self.root, agent_id, RECORD))
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def cancel(self, reason: str | None) -> None:
        self._sessions.cancel(self.agent_id, reason)
