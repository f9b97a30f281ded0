"""Applies what hosts report to the records. ``dispatch`` sends each event to its module, ``join`` finds its session and
run, and ``deferred`` tries waiting events again. Here are their results.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.ids import RandomBytes
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store

    Handler = Callable[[Store, Event, "Terms"], "EventResult"]
    """Applies the events of one kind."""

NOT_JOINED = "not_joined"
"""No session has the key of the event yet: the event may be early."""

BUSY = "busy"
"""Another process held a lock, or the store could not be written."""

WAITS_FOR_APPROVAL = "waits_for_approval"
"""An end without a stated outcome left a session in ``approval`` unchanged."""

NO_KEY = "no_key"
"""The event has no key that leads to a run."""

KEYS_DISAGREE = "keys_disagree"
"""The keys of the event lead to runs of different agents or delegations, so nothing changed."""

KNOWN = "known"
"""The record has already what the event reports."""

AT_ONCE = 8
"""An event that changes more runs, or has more events, can take long: it is first put into the inbox."""

MAX_MENTIONED = 5
"""How many of the sessions that a delegation names are stored with its run, and shown beside its report."""

EARLY = "early"
"""One of several events waits for its session, or for a key."""

APPLIED = "applied"
"""Each of several events was applied."""

REFUSED = "refused"
"""The delegation must be denied. Nothing was begun for it."""

DEFERRED = "deferred"
"""The event waits in the inbox."""


class EventResult:
    """What was done with an event (``word``), and the session afterwards (``record``)."""

    __slots__ = ("agent_id", "is_cancelled", "reason", "record", "refused", "resumed", "word")

    def __init__(
        self,
        word: str,
        agent_id: str | None = None,
        record: Record | None = None,
        *,
        resumed: Record | None = None,
        reason: str | None = None,
        refused: str | None = None,
        is_cancelled: bool | None = None,
    ) -> None:
        self.word = word
        self.agent_id = record["agent_id"] if record else agent_id
        self.record = record
        # The session that the delegation resumes or continues, as it was; or that of a woken agent without its answer.
        self.resumed = resumed
        # Why ``resumed`` itself could not be resumed.
        self.reason = reason
        # Why a requested resume was refused.
        self.refused = refused
        # Whether the session was cancelled when ``record`` was written; None if nobody looked.
        self.is_cancelled = is_cancelled


class Terms:
    """What a handler gets beside the store and the event."""

    __slots__ = ("config", "hold", "is_waiting", "may_refuse", "now", "should_stop", "timeout")

    def __init__(
        self,
        now: datetime,
        config: Config,
        timeout: float,
        should_stop: Callable[[], bool] = lambda: False,
        *,
        is_waiting: bool = False,
        may_refuse: bool = False,
    ) -> None:
        # The time of the event.
        self.now = now
        # Its limits load the policy, which few handlers need.
        self.config = config
        # The longest wait for a lock, in seconds.
        self.timeout = timeout
        # Whether the time of the call is over.
        self.should_stop = should_stop
        # Puts the event into the inbox until it is applied. Long handlers call this before their first write.
        self.hold: Callable[[], None] = lambda: None
        # Whether the event is already in the inbox.
        self.is_waiting = is_waiting
        # Whether a delegation may be refused: its host waits for the reply and obeys it.
        self.may_refuse = may_refuse


def id_bytes(event: Event) -> RandomBytes:
    """Returns the random part of the ID of a session that ``event`` begins: equal for equal events, so foreseeable."""
    from gaia_sessions.session.ids import bytes_made_of  # few events begin a session

    # Only keys that the event has from the beginning: its host may note other keys later.
    keys = ("at", "host_session_id", "host_agent_id" if "host_agent_id" in event else "tool_use_id", "kind")
    return bytes_made_of(" ".join(str(event.get(key)) for key in keys))
