"""What every store promises, method by method; one contract suite holds each store to it.

Owns no code. Only type checkers import this module: ``typing`` would cost a hook more than its work. Must never be
imported at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Self

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Cancellation, Mark
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import HostProcess, Record
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.session.transcript import Message, NewMessage
    from gaia_sessions.session.updates import Change

    from .directory import Directory
    from .inbox_keys import WaitingEvent

    Entry: TypeAlias = dict[str, Json]
    """One entry of a journal, as data."""
    StoreRule = Callable[[Record], Record | Change]
    """A pure function: the new record, alone or with the entries that the journal of events gets with it."""
    MarkRule = Callable[[Mark | None], Mark]
    """A pure function: the mark that a session is to have, made of the one that it has."""
    RecordOrError: TypeAlias = Record | SessionsError
    Messages: TypeAlias = Iterator[Message | SessionsError]
    IsWanted: TypeAlias = Callable[[Message | SessionsError], bool]


class HeldLock(Protocol):
    """A lock, held for as long as the ``with`` block lasts."""

    def __enter__(self) -> object: ...

    def __exit__(self, kind: object = None, error: object = None, trace: object = None, /) -> None:
        """Frees it; a second time does nothing."""

    @property
    def is_held(self) -> bool:
        """Whether the block is entered."""

    def holder(self) -> HostProcess:
        """What a record names this process by while it holds the lock: by that others can tell when it does not.

        Asked for before the block is entered, or in it.
        """


class OpenSession(Protocol):
    """A session under its lock, for as long as the ``with`` block lasts: no other write comes between.

    Who has something to decide or to tell besides the new record does it here; a rule alone needs no more than
    ``Store.change``.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, error: object, trace: object, /) -> None: ...

    @property
    def record(self) -> Record:
        """The record as it is: read under the lock, and after ``commit`` what was stored.

        Raises ``SessionNotFound``, ``CorruptSession``, ``NewerSchema``.
        """

    def cancellation(self) -> Cancellation | None:
        """Why the session is cancelled, None if it is not; after a ``commit``, as that found it.

        Asked for before the end of the block. Raises ``StoreFailure`` if it cannot be read.
        """

    @property
    def added(self) -> Sequence[Message]:
        """The messages that the last ``commit`` added, as they are stored."""

    def commit(
        self,
        change: Record | Change,
        *,
        reserved: int = 0,
        proved: Cancellation | None = None,
        messages: Sequence[NewMessage] = (),
        documents: Mapping[Scope, Document] | None = None,
    ) -> Record:
        """Stores what a rule has made of ``record``, durably and in one step, and returns it as it is stored.

        The store raises the revision by one, so the ``revision`` of an entry is that of the record before plus one.
        The very record that was read, with or without entries, but without messages and documents, writes nothing.
        What is stored is what ``retention`` leaves of the new record: if it does not fit, texts about runs are
        shortened. With ``reserved`` nothing is shortened: a record that grows must leave so many bytes free, or the
        change is refused as ``TooLarge``. Entries are added to ``events.jsonl`` right after the record.
        If the session is cancelled, by its own mark or one above it, what is stored is what ``with_cancellation`` of
        the domain makes of the result; what changes nothing still writes nothing.
        While its ``marks`` cannot be read, each write is refused with ``StoreFailure``. With ``proved``, a cancellation
        of this very session, they are not looked for.

        ``messages`` come to the end of the transcript: both they and the record hold, or neither. They are numbered on
        from the last one that ever was, and of the turn that follows those the record before had completed, unless one
        has a ``turn`` of its own. A record of a higher ``transcripts_archived`` begins a new transcript with them; the
        old one is kept. What is committed of a transcript is known by that number and ``last_seq``, which the store
        sets; it sets ``transcript_bytes`` too, which only informs. Messages that are found behind the committed ones
        are kept aside, with the warning ``MessagesKeptAside``. The cost does not follow the length of the transcript.
        A message over 1 MiB, or over 16 MiB with an event of an app, is ``TooLarge``, and so are over 64 MiB at once.

        ``documents`` take the place of what their scopes had; the caller holds ``lock_key(document_lock_key(scope))``
        of each. What is refused changes none. Whoever is killed may have changed the session and not all of them, never
        one of them without the session.
        Raises ``TooLarge``, ``InvalidInput`` for a message, ``StoreFailure``, ``DurabilityUnknown``.
        """


class Output(Protocol):
    """What the command of a run writes: the first MiB of it is kept, and the last."""

    def write(self, data: bytes) -> None:
        """Adds ``data``. Raises nothing: where there is no room, or no session any more, less is kept."""

    def handed_over(self) -> Sequence[int]:
        """Makes durable what is kept, for a process that goes on with a pickled copy; here nothing is written any more.

        Returns the descriptors that it has to inherit, with their numbers; none if nobody would find what it writes,
        since the session was removed, or is in the memory of this process. Raises nothing.
        """

    def close(self) -> None:
        """Makes durable what is kept. Raises nothing; a second time does nothing."""


class ReaderAbove(Protocol):
    """What must be read to know what is above a session.

    Every method may raise ``StoreFailure`` when the system refuses.
    Every method that takes an ``agent_id`` raises ``InvalidId`` for an impossible one.
    """

    def read(self, agent_id: str) -> Record:
        """The record as the last acknowledged write, or a later one, left it. Takes no lock, creates nothing.

        Raises ``SessionNotFound``, and ``CorruptSession`` if what stands there is no record.
        """

    def marks(self, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        """The cancellation marks of those of ``agent_ids`` that have one, in their order.

        An id without a session, or that no session can have, has none. What stands there and is no mark is the widest
        there is. Where there is none, the cost is one look for each id. Takes no lock. Raises ``StoreFailure`` unless
        it is certain of each whether it has a mark: whoever only looks takes that for the widest mark
        (``Above.cancellation``), and whoever writes passes it on.
        """


class Reader(ReaderAbove, Protocol):
    """Records by id, for reading; what may be raised is as above."""

    def ancestors(self, record: Record) -> dict[str, Record | None]:
        """The ids of all sessions above ``record``, the parent first, each with its record; none twice.

        One that is gone, or cannot be read, is the last, with None. Raises ``StoreFailure`` for more than 100. Takes no
        lock.
        """

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, RecordOrError]]:
        """Every session with its record, or with the error its reading raised, in no order, each once.

        ``active_only`` permits leaving out final sessions, ``agent_name`` and ``host_session_id`` then also those of
        another name and of another conversation. This promises that the cost follows the number of sessions that are
        left, not that none of the others is among them. A session that is created or deleted meanwhile may be in or
        out. Records may be read ahead, as many as fit into a few MiB. Between two steps nothing is held that anybody
        waits for, however long the caller takes: it may write, also the session that it was just given, and it reads
        again under the lock what it decides on. Takes no lock, creates nothing.
        """

    def children(self, parent_ids: Collection[str], *, open_only: bool = False) -> list[Record]:
        """The record of every session whose parent is one of ``parent_ids``, in no order; ``open_only``: not final.

        Whether there is a session with one of these ids does not matter. A corrupt one is left out: nobody knows its
        parent. Raises ``StoreFailure`` if the system refuses to read one that may be among them. The cost follows the
        number of sessions that are asked for, so a whole subtree costs a call for each level of it. Takes no lock,
        creates nothing.
        """

    def messages(self, agent_id: str, *, is_wanted: IsWanted | None = None) -> Messages:
        """The committed messages of the transcript in order: all, or the newest ones for which ``is_wanted`` says yes.

        It is asked about each, the newest first, and the first no ends the search; so the cost follows the number of
        messages that are wanted, and few are in memory at a time. There is an ``InvalidInput`` in the place of each
        unreadable one. What was committed when the first was asked for comes whole, whatever happens to the transcript
        meanwhile. Takes no lock. Raises like ``read`` when it is called, not when the first message is asked for.
        """

    def messages_backwards(self, agent_id: str) -> Messages:
        """What ``messages`` has, the newest first. The cost follows what is taken."""

    def messages_from_turn(self, agent_id: str, turn: int) -> Messages:
        """What ``messages`` has from the first message of ``turn`` on, or of a later one, that can be read.

        The cost follows what is taken, however many messages there are.
        """

    def figures(self) -> Iterator[dict[str, Json] | None]:
        """What is kept of sessions that were removed: the object of each line, None in the place of one that has none.

        Anybody may have written them. A session that is there beats its line: its removal did not take place. Of
        several lines of one session, by its id and ``created_at``, that with the highest ``revision`` counts, of equal
        ones the last. Takes no lock. Raises ``StoreFailure``.
        """

    def output_path(self, agent_id: str, number: int) -> str | None:
        """The absolute path of the output of the run with this ``number``, there or not; None if it is in no file."""

    def output(self, record: Record, number: int) -> bytes:
        """What is kept of the output of the run with this ``number``; empty if there is none.

        A second after it was written it is there. Of more than 2 MiB it is the first MiB, a line of its own that says
        how many bytes are left out, and the last MiB; while the run goes on more of the end may be there, and after a
        crash less. What was written for another session with the same id, by ``created_at``, is never among it. Raises
        ``SessionNotFound`` if the session of ``record`` is gone, or another one has its id.
        """


class StoreReader(Reader, Protocol):
    """All that can be read of a store."""

    def has(self, agent_id: str) -> bool:
        """Whether ``read`` would find a record, or something corrupt. The cost does not depend on the record's size."""

    def ids(self) -> list[str]:
        """The ids under which a record stands, or something corrupt in its place, in no order. Reads no record."""

    def find(self, alias: Alias) -> Record | None:
        """The record that has exactly this ``alias``, by ``aliases_of``; None if none has it.

        Of several it is the newest, by ``created_at`` and then by id: an agent that is woken after its work was
        finished begins another session, and its next events belong there.
        """

    def having(self, alias: Alias) -> list[Record]:
        """Every record that has exactly this ``alias``, in no order."""

    def open_of_app(self, app: str, user: str | None = None) -> Iterator[Record]:
        """The record of every session of the app that is not final, of one ``user`` or of all, in no order.

        One that cannot be read is left out: nobody knows whose it is. The cost follows the number of the user's
        sessions, or of all that are not final. Takes no lock, creates nothing.
        """

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        """The entries of a journal in order, with an ``InvalidInput`` in the place of each unreadable one.

        Of many the first hundred have one, and the rest one at the end. An unfinished last entry is left out. Takes no
        lock. Raises ``SessionNotFound`` when it is called, not when the first entry is asked for.
        """

    def waiting(self) -> list[WaitingEvent]:
        """The names of the events in the inbox, the oldest first, each with the keys of whom it concerns.

        Reads no event, so one may be gone when it is read. An event whose keys are not known may concern anybody.
        """

    def deferred(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
        """The events of the inbox with their names, the oldest first, or those of ``names`` in the order of these.

        An event that was removed meanwhile is left out.
        """

    def document(self, scope: Scope) -> Document | None:
        """The state that the sessions of ``scope`` share, None if there is none.

        Takes no lock. Raises ``StoreFailure`` if what stands there cannot be read.
        """


class ImportSource(StoreReader, Protocol):
    """The sessions in a folder that a user has named, which may be anybody's."""

    def copy(self, agent_id: str, target: Directory | None, *, durable: bool) -> None:
        """Copies the files of a session into ``target``, all but its record; with None only sees that it could.

        Raises ``CorruptSession`` for what is no file of its own, and ``StoreFailure`` if the system refuses or the
        session is written meanwhile.
        """


class Store(StoreReader, Protocol):
    """Records by id. Acknowledged means durable; a reader never waits; no writer is ever lost.

    When the system refuses a write, nothing has changed.
    A store is opened for one call, by ``open_store``, and used by one thread. It is closed at the end of its ``with``
    block; an iterator that it gave, and a lock, are good for longer.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, error: object, trace: object, /) -> None: ...

    def close(self) -> None:
        """Gives back what is held open. What is asked for after it opens that again; a second time does nothing."""

    @property
    def root(self) -> str:
        """The place that ``open_store`` was given: by it a command finds the same sessions."""

    def find(self, alias: Alias, *, strict: bool = False) -> Record | None:
        """As above; ``strict`` raises in place of leaving out a session that may have it and cannot be read."""

    def create(
        self,
        record: Record,
        entry: Entry | None = None,
        *,
        reserved: int = 0,
        system_prompt: NewMessage | None = None,
        documents: Mapping[Scope, Document] | None = None,
    ) -> None:
        """Stores a new record durably; ``find`` finds it by its aliases. Of concurrent calls for one id one succeeds.

        ``entry``, if given, becomes the first line of ``events.jsonl``, and ``system_prompt`` the first message of the
        transcript, of turn 0. ``reserved`` and ``documents`` are as in ``commit``.

        Raises ``SessionExists``, ``LockTimeout``, ``TooLarge``, ``DurabilityUnknown``; and ``StoreFailure`` if the
        ``marks`` of the sessions above it cannot be read.
        """

    def take_in(self, record: Record, source: ImportSource, *, reserved: int = 0) -> None:
        """Creates a session as ``create`` does, with all else that ``source`` has of it; raises like ``copy`` too."""

    def repair(self, agent_id: str) -> str | None:
        """Keeps a record that cannot be read for what stands behind it, and returns where all of that is kept aside.

        None if the record can be read as it is. Raises ``CorruptSession`` if it cannot be kept, and like ``open``.
        """

    def open(self, agent_id: str, *, timeout: float | None = None) -> OpenSession:
        """The session, locked from the beginning of the block to its end.

        ``timeout`` in seconds replaces the store's own; 0 does not wait. To enter raises ``SessionNotFound`` and
        ``LockTimeout``.
        """

    def change(self, agent_id: str, rule: StoreRule, *, timeout: float | None = None, reserved: int = 0) -> Record:
        """Commits what ``rule`` makes of the record, and returns it as it is stored.

        What ``rule`` raises passes through, and nothing is written.
        """

    def open_output(self, record: Record, number: int) -> Output:
        """Begins the output of the run with this ``number``, to be closed; an earlier one under this number goes.

        It stays that of the session of ``record``, by ``created_at``: once that is gone, nobody finds what is written.
        Takes no lock. Raises ``SessionNotFound`` as ``output`` does, and ``StoreFailure`` if the system refuses the
        file for another reason than want of room.
        """

    def mark(self, agent_id: str, rule: MarkRule, *, timeout: float | None = None) -> Mark:
        """Applies ``rule`` to the cancellation mark of the session, durably, and returns the mark as it is then.

        No write of the session comes between. A rule that returns the mark it was given changes nothing. The record
        is not read, so a session that is corrupt, or of a later version, can be marked too.
        Raises ``SessionNotFound``, ``LockTimeout``, ``DurabilityUnknown``; and ``StoreFailure`` if the mark that stands
        cannot be read.
        """

    def delete_each(
        self,
        agent_ids: Iterable[str],
        should_delete: Callable[[str, RecordOrError], bool],
        *,
        timeout: float | None = 0,
    ) -> Iterator[tuple[str, bool | SessionsError]]:
        """Deletes each session if ``should_delete``, called with what is found under its lock, says so.

        Says of each, in this order, whether it is deleted, or the error that prevented it: ``SessionNotFound``,
        ``InvalidId``, ``LockTimeout``, ``StoreFailure``, or what ``should_delete`` raised. It does not wait for a lock,
        unless another ``timeout`` is given, which is as in ``open``. A writer that waited for a session finds it gone.
        After the last all are durable; raises ``DurabilityUnknown`` if that cannot be said.
        """

    def add_figures(self, figures: Sequence[Mapping[str, object]]) -> None:
        """Adds what is to be kept of sessions that are about to be removed, durably, all or nothing.

        A store that is to keep none does nothing. Raises ``LockTimeout``, ``StoreFailure``, ``DurabilityUnknown``.
        """

    def sync(self) -> None:
        """Makes durable which sessions there are: whoever made one may have been killed before it did that."""

    def ensure_index(self) -> None:
        """Makes look-ups by alias and scans for active sessions cheap again after a reboot, unless they are cheap.

        The store of a hook stops when the call has little time left, and the next call goes on from there.
        """

    def sweep(self, now: datetime) -> list[str]:
        """Removes what is left of deleted sessions, and of processes that were killed over an hour before ``now``.

        Corrects the index. Returns what killed processes left, so far as it was removed.
        """

    def lock_key(self, key: tuple[str, ...], timeout: float | None = None) -> HeldLock:
        """A block that nobody else is in with the same ``key``. Raises ``LockTimeout`` on entering.

        ``timeout`` in seconds replaces the store's own; 0 does not wait.
        """

    def add_document(self, document: Document) -> None:
        """Keeps ``document``, durably, unless its scope has one already.

        Raises ``LockTimeout``, ``TooLarge``, ``StoreFailure``, ``DurabilityUnknown``.
        """

    def append(self, agent_id: str, journal: str, entries: list[Json], *, timeout: float | None = None) -> None:
        """Adds ``entries`` to the end of a session's ``journal``, durably, whole and in order.

        Raises ``SessionNotFound``, ``LockTimeout``, ``TooLarge``, ``DurabilityUnknown``.
        """

    def defer(self, event: Event, now: datetime) -> str:
        """Puts an event that cannot be applied yet into the inbox, durably, and returns its name there.

        Raises ``DurabilityUnknown``.
        """

    def dismiss(self, name: str) -> None:
        """Removes an event from the inbox, if it is still there."""
