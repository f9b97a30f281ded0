"""What every store promises, method by method; one contract suite holds them all to it.

Only type checkers read this at run time: importing ``typing`` would cost a hook more than its work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import Record

    from .inbox_keys import WaitingEvent

    Entry: TypeAlias = dict[str, Json]
    """One entry of a journal, as data."""
    RecordRule = Callable[[Record], Record | tuple[Record, Entry | None]]
    """A pure function: the new record, alone or with the entry that the journal of events gets with it."""
    RecordOrError: TypeAlias = Record | SessionsError


class HeldLock(Protocol):
    """A lock, held for as long as the ``with`` block lasts."""

    def __enter__(self) -> object: ...

    def __exit__(self, kind: object, error: object, trace: object, /) -> None: ...


class Reader(Protocol):
    """Records by id, for reading.

    Every method may raise ``StoreFailure`` when the system refuses.
    Every method that takes an ``agent_id`` raises ``InvalidId`` for an impossible one.
    """

    def read(self, agent_id: str) -> Record:
        """The record as the last acknowledged write, or a later one, left it. Takes no lock, creates nothing.

        Raises ``SessionNotFound``; ``CorruptSession`` for what is there and is no record.
        """

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, RecordOrError]]:
        """Every session with its record, or with the error its reading raised, in no order, one at a time.

        ``active_only`` may leave out those that are final, and then ``agent_name`` those of other names and
        ``host_session_id`` those that ``conversations_of`` does not count to this conversation, at a cost by the
        number of those left in: a promise on cost, not on what is in.
        A session that comes or goes meanwhile may be in or out. Takes no lock, creates nothing.
        """


class Store(Reader, Protocol):
    """Records by id. Acknowledged means durable; a reader never waits; no writer is ever lost.

    When the system refuses a write, what stood before stands then still.
    """

    def has(self, agent_id: str) -> bool:
        """Whether ``read`` would find something under this id, a record or what is none. Costs as much at any size."""

    def ids(self) -> list[str]:
        """The ids under which a record stands, or what is none in its place, in no order. Reads no record."""

    def create(self, record: Record, entry: Entry | None = None, *, reserved: int = 0) -> None:
        """Stores a new record durably; ``find`` finds it by its aliases. Of concurrent calls for one id one succeeds.

        ``entry``, if given, becomes the first line of ``events.jsonl``. ``reserved`` is as in ``change``.

        Raises ``SessionExists``, ``LockTimeout``, ``TooLarge``, ``DurabilityUnknown``.
        """

    def change(self, agent_id: str, rule: RecordRule, *, timeout: float | None = None, reserved: int = 0) -> Record:
        """Reads the record, applies ``rule``, stores the result durably and returns it; no other write comes between.

        The store raises the revision by one, so the ``revision`` of an entry is that of the record before plus one.
        A rule that returns the very record it was given, with or without an entry, writes nothing. What it raises
        passes through, and nothing is written.
        What is stored is what ``retention`` leaves of the new record: if it does not fit, texts about runs are
        shortened. With ``reserved`` nothing is shortened: a record that grows must leave so many bytes free, or the
        change is refused as ``TooLarge``. An entry is added to ``events.jsonl`` right after the record.
        ``timeout`` in seconds replaces the store's own; 0 does not wait.
        Raises ``SessionNotFound``, ``CorruptSession``, ``LockTimeout``, ``NewerSchema``, ``TooLarge``,
        ``DurabilityUnknown``.
        """

    def find(self, alias: Alias) -> str | None:
        """The id of the session with exactly this ``alias``, by ``aliases_of`` its record; None if there is none.

        Of several it is the newest, by ``created_at`` and then by id: an agent that is woken after its work was
        finished begins another session, and its news belongs there. By the records as they were just now.
        """

    def delete(self, agent_id: str, should_delete: Callable[[RecordOrError], bool]) -> bool:
        """Removes the session if ``judge``, given what is found with nobody between, says so; whether it did.

        Durable once ``purge_trash`` has returned. Nothing deleted revives: who waited for it finds it gone.
        Raises ``SessionNotFound``, and ``LockTimeout`` at once when somebody is at work on it.
        """

    def ensure_index(self) -> None:
        """Look-ups by alias, and scans for what is active, cost little again after a reboot; nothing if they do.

        A store of a hook stops when the call has little time left, and the next one goes on there.
        """

    def purge_trash(self) -> None:
        """The deletions so far are durable when this returns, and their remains are removed.

        Raises ``DurabilityUnknown``.
        """

    def sweep(self, now: datetime, active: Iterable[str]) -> list[str]:
        """Removes what killed processes left behind over an hour before ``now``, and corrects the marks of the index.

        ``active`` are the sessions that a scan just showed not to be final. Says what it removed.
        """

    def lock_key(self, key: tuple[str, ...], timeout: float) -> HeldLock:
        """Nobody else is in a block with this ``key`` meanwhile. Raises ``LockTimeout`` on entering."""

    def append(self, agent_id: str, journal: str, entries: list[Json], *, timeout: float | None = None) -> None:
        """Adds whole ``entries`` to the end of a session's ``journal``, durably, in order, none interleaved.

        Raises ``SessionNotFound``, ``LockTimeout``, ``TooLarge``, ``DurabilityUnknown``.
        """

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        """The entries of a journal in order, an ``InvalidInput`` in the place of each unreadable one.

        An unfinished last entry is left out. Takes no lock. Raises ``SessionNotFound`` when it is called.
        """

    def defer(self, event: Event, now: datetime) -> None:
        """Puts an event that cannot be applied yet into the inbox, durably. Raises ``DurabilityUnknown``."""

    def waiting(self) -> list[WaitingEvent]:
        """The names of the events in the inbox, the oldest first, each with the keys of whom it concerns.

        Reads no event: one may turn out not to be there. Without keys, as earlier versions kept them, it may
        concern anybody.
        """

    def deferred(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
        """The events of the inbox with their names, the oldest first, or those of ``names`` in their order.

        One that was taken out meanwhile is left out.
        """

    def dismiss(self, name: str) -> None:
        """Takes an event out of the inbox; nothing if it is gone already."""
