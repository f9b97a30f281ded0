"""What hosts report, applied to the records: delegations, starts, ends, turns, the use of tools.

``dispatch`` sends each kind of event to its module; ``join`` finds the session and the run it belongs to; ``deferred``
tries again what had to wait. Owns what each of them returns: what was done with an event, for the log and for the reply
to the host.
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
    """What applies the events of one kind."""

NOT_JOINED = "not_joined"
"""The event has a key that no session has yet: it may have come too early."""

BUSY = "busy"
"""A lock was held by another process, or the store could not be written."""

WAITS_FOR_APPROVAL = "waits_for_approval"
"""An end without a stated outcome left a session in ``approval`` as it was."""

NO_KEY = "no_key"
"""The event has no key by which its run could be found."""

KEYS_DISAGREE = "keys_disagree"
"""The keys of the event lead to runs of different agents or delegations, so nothing was changed."""

KNOWN = "known"
"""The record says already what the event reports."""

AT_ONCE = 8
"""What changes more runs, or has more events, may take long: it is in the inbox before the first of them."""

MAX_MENTIONED = 5
"""How many of the sessions that a delegation names are stored with its run, and told of beside its report."""

EARLY = "early"
"""One of several events waits for its session, or for a key."""

APPLIED = "applied"
"""Each of several events was applied."""

REFUSED = "refused"
"""The delegation is to be denied, and nothing was begun for it."""

DEFERRED = "deferred"
"""The event waits in the inbox."""


class EventResult:
    """``word`` says what was done; ``record`` is the session afterwards.

    resumed: the session whose work this delegation continues, as it was before; or in which an agent was woken that has
    to be told what was answered. reason: why that session could not be
    resumed itself. refused: why a requested resume was refused. is_cancelled: whether the session was cancelled when
    ``record`` was written; None if nobody had to know.
    """

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
        self.resumed = resumed
        self.reason = reason
        self.refused = refused
        self.is_cancelled = is_cancelled


class Terms:
    """What a handler is given beside the store and the event.

    now: the time that the event counts for. config: its limits load the policy, which few handlers need. timeout: how
    many seconds a lock is waited for at most. should_stop: whether the time of the call is over; without it, an event
    is applied to its last run. hold: keeps the event that is handled in the inbox until it is applied; for one that may
    take long, called before anything is written. is_waiting: whether the event is in the inbox already. may_refuse:
    whether a delegation may be refused, since its host waits for the reply and obeys.
    """

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
        self.now = now
        self.config = config
        self.timeout = timeout
        self.should_stop = should_stop
        self.hold: Callable[[], None] = lambda: None
        self.is_waiting = is_waiting
        self.may_refuse = may_refuse


def id_bytes(event: Event) -> RandomBytes:
    """What the id of a session that ``event`` begins is made of: whoever foresees it sees the id that it will have.

    What its host notes later of the event is not in it.
    """
    from gaia_sessions.session.ids import bytes_made_of  # few events begin a session

    keys = ("at", "host_session_id", "host_agent_id" if "host_agent_id" in event else "tool_use_id", "kind")
    return bytes_made_of(" ".join(str(event.get(key)) for key in keys))
