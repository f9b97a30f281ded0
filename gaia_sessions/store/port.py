"""The contract of a store, method by method. One contract suite (tests/contract) holds each store to it.

Only type checkers import this module: to import ``typing`` would cost a hook more than its work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Self, TypeVar

    from gaia_sessions.errors import SessionsError, StoreFailure
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Cancellation, Mark
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import HostProcess, Moving, Record
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.session.transcript import Message, NewMessage
    from gaia_sessions.session.updates import Change

    from .directory import Directory
    from .inbox_keys import WaitingEvent

    Entry: TypeAlias = dict[str, Json]
    """One entry of a journal, as data."""
    StoreRule = Callable[[Record], Record | Change]
    """A pure function that returns the new record, with or without new entries for the journal of events."""
    MarkRule = Callable[[Mark | None], Mark]
    """A pure function that returns the new mark of a session for its present mark."""
    RecordOrError: TypeAlias = Record | SessionsError
    Messages: TypeAlias = Iterator[Message | SessionsError]
    Result = TypeVar("Result")
    IsWanted: TypeAlias = Callable[[Message | SessionsError], bool]


class HeldLock(Protocol):
    """A lock that is held until its ``with`` block ends."""

    def __enter__(self) -> object: ...

    def __exit__(self, kind: object = None, error: object = None, trace: object = None, /) -> None:
        """Frees the lock. A second call does nothing."""

    @property
    def is_held(self) -> bool:
        """Whether the block is entered."""


class Lease(HeldLock, Protocol):
    """Shows others that this process works on a run. Enter it before the run begins, leave it after its end.

    Enter it again if the beginning of the run was not written, and is repeated.
    """

    def holder(self) -> HostProcess:
        """Returns the description of this process for a record; by this description, others see if it works.

        You can call it before the block or in the block.
        """

    @property
    def is_over(self) -> bool:
        """Whether others may count the run as lost, so that the work must end. On files this is never so."""

    @property
    def silent_until(self) -> datetime | None:
        """Until when the work may go on if the server, which does not answer, stays silent; else None."""

    @property
    def patience(self) -> float:
        """How many seconds to try to write the end of the run."""


class OpenSession(Protocol):
    """A session under its lock: no other write happens until the ``with`` block ends.

    A rule alone needs only ``Store.change``.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, error: object, trace: object, /) -> None: ...

    @property
    def record(self) -> Record:
        """The record, as read under the lock; after ``commit``, as stored.

        Raises ``SessionNotFound``, ``CorruptSession``, ``NewerSchema``.
        """

    def cancellation(self) -> Cancellation | None:
        """Returns why the session is cancelled, or None; after ``commit``, the answer that ``commit`` used.

        Call it only while the session is open. Raises ``StoreFailure`` if a mark cannot be read.
        """

    @property
    def added(self) -> Sequence[Message]:
        """The messages that the last ``commit`` added, as stored."""

    def commit(
        self,
        # The store raises the revision by one, so an entry's ``revision`` is one more than the record had.
        # Entries go to ``events.jsonl`` right after the record. If the session is cancelled, by its own mark or by one
        # above it, the store writes what ``with_cancellation`` makes of the change. What is stored is what
        # ``retention`` leaves of the record: texts about runs are shortened if it does not fit.
        change: Record | Change,
        *,
        # If the record grows, this many bytes must stay free. If they do not, ``TooLarge`` is raised; no text is cut.
        reserved: int = 0,
        # A known cancellation of this session. With it, the store does not look for marks.
        proved: Cancellation | None = None,
        # They are stored together with the record. Their numbers follow the last number that ever existed; their
        # turn follows the turns that the record before had completed, unless a message has its own ``turn``. A higher
        # ``transcripts_archived`` begins a new transcript with them, and the old one stays. The store sets
        # ``last_seq`` (what is committed) and ``transcript_bytes`` (which only informs). Messages after the committed
        # ones are moved aside with the warning ``MessagesKeptAside``. The cost does not grow with the
        # transcript. Limits (``TooLarge``): 1 MiB a message, 16 MiB with an app's event, 64 MiB at once.
        messages: Sequence[NewMessage] = (),
        # They replace the documents of their scopes. The caller holds ``lock_key(document_lock_key(scope))`` of each.
        # A refusal changes none. A kill may leave the session changed and some documents not, never the reverse.
        documents: Mapping[Scope, Document] | None = None,
    ) -> Record:
        """Stores what a rule made of ``record``, durably and in one step, and returns the stored record.

        A change that is the same object as ``record``, without messages and documents, writes nothing (no entries
        either). Raises ``TooLarge``, ``InvalidInput``, ``StoreFailure`` (also while a mark cannot be read),
        ``DurabilityUnknown``.
        """

    def set_moving(self, moving: Moving | None) -> None:
        """Fences the session, or with None takes the fence away, durably. Nothing else of the record changes."""


class Output(Protocol):
    """What the command of a run writes: the first and the last MiB are stored."""

    def write(self, data: bytes) -> None:
        """Adds ``data`` and raises nothing. If there is no room, or the session is gone, less is stored."""

    def handed_over(self) -> Sequence[int] | None:
        """Makes the output durable, for a process that continues with a pickled copy; this object writes no more.

        Returns the descriptors that the process must inherit under the same numbers; None if nobody could find the
        output. Raises nothing.
        """

    def close(self) -> None:
        """Makes the output durable. Raises nothing. A second call does nothing."""


class ReaderAbove(Protocol):
    """What must be read to know the sessions above a session.

    Each method may raise ``StoreFailure``, and ``InvalidId`` for an impossible ``agent_id``.
    """

    def read(self, agent_id: str) -> Record:
        """Returns the record as the last acknowledged write, or a later one, left it. Takes no lock, creates nothing.

        Raises ``SessionNotFound``, ``CorruptSession``.
        """

    def marks(self, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        """Returns the cancellation marks of ``agent_ids``, in their order; an ID without a mark or session is left out.

        An invalid mark counts as the widest mark. Raises ``StoreFailure`` unless it is certain for each ID whether it
        has a mark. Takes no lock.
        """


class Reader(ReaderAbove, Protocol):
    """What reads records by their IDs. The errors are those of ``ReaderAbove``."""

    def ancestors(self, record: Record) -> dict[str, Record | None]:
        """Returns the IDs of all sessions above ``record``, the parent first, each once, each with its record.

        A session that is gone or cannot be read is the last one, with None. Raises ``StoreFailure`` for more than 100.
        """

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, RecordOrError]]:
        """Yields each session once, in no order, with its record or with the error of reading it. Takes no lock.

        The filters only limit the cost: other sessions may be among the results. The caller may write between two
        steps; a record may be read ahead, so the caller reads it again under the lock before it decides.
        """

    def children(self, parent_ids: Collection[str], *, open_only: bool = False) -> list[Record]:
        """Returns the records of all sessions whose parent is one of ``parent_ids``, in no order. Takes no lock.

        A corrupt session is left out; ``open_only`` leaves out final ones. Raises ``StoreFailure`` if the system
        refuses to read a session that may be a child.
        """

    def messages(self, agent_id: str, *, is_wanted: IsWanted | None = None) -> Messages:
        """Yields the committed messages in order, or only the newest ones, up to the first that is not wanted.

        An unreadable message is an ``InvalidInput`` in its place. What was committed at the first step comes whole, and
        few messages are in memory. Takes no lock; raises like ``read`` when it is called.
        """

    def messages_backwards(self, agent_id: str) -> Messages:
        """Yields what ``messages`` yields, but the newest first. The cost grows with what is taken."""

    def messages_from_turn(self, agent_id: str, turn: int) -> Messages:
        """Yields what ``messages`` yields, from the first readable message of ``turn`` or of a later turn.

        The cost grows with what is taken.
        """

    def figures(self) -> Iterator[dict[str, Json] | None]:
        """Yields the figures of removed sessions: the object of each line, or None for an invalid line.

        Anybody may have written a line. If the session exists, its line does not count. Of several lines of one session
        (ID and ``created_at``), the highest ``revision`` counts, then the last line. Raises ``StoreFailure``.
        """

    def output_path(self, agent_id: str, number: int) -> str | None:
        """Returns the absolute path for the output of run ``number``, even before it exists; None if it is no file."""

    def output(self, record: Record, number: int) -> bytes:
        """Returns what is stored of the output of run ``number``; the last second of a live run may be missing.

        Of more than 2 MiB: the first MiB, a line with the number of omitted bytes, the last MiB (more while the run
        goes on, less after a crash). Raises ``SessionNotFound`` if another session (by ``created_at``) has the ID.
        """


class StoreReader(Reader, Protocol):
    """All that can be read of a store."""

    def has(self, agent_id: str) -> bool:
        """Returns whether ``read`` would find a record or a corrupt one. The record's size does not matter."""

    def ids(self) -> list[str]:
        """Returns the IDs that have a record or a corrupt one, in no order. Reads no record."""

    def find(self, alias: Alias) -> Record | None:
        """Returns the newest record that has exactly this ``alias``, by ``created_at`` and then by ID; or None.

        An agent that is woken after its end begins a new session, and its next events belong there.
        """

    def having(self, alias: Alias) -> list[Record]:
        """Returns every record that has exactly this ``alias``, in no order."""

    def open_of_app(self, app: str, user: str | None = None) -> Iterator[Record]:
        """Yields the record of every session of the app, or of its ``user``, that is not final, in no order.

        A session that cannot be read is left out. Takes no lock.
        """

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        """Yields the entries of a journal in order, with an ``InvalidInput`` in the place of each unreadable one.

        Of more than 100 unreadable entries, one error at the end counts the rest. An unfinished last entry is left out.
        Takes no lock; raises ``SessionNotFound`` when it is called.
        """

    def waiting(self) -> list[WaitingEvent]:
        """Returns the names of the events in the inbox, the oldest first, each with the keys of the agents it concerns.

        Reads no event, so an event may be gone later. An event without keys may concern any agent.
        """

    def deferred(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
        """Yields the events of the inbox with their names, the oldest first; or those of ``names``, in that order.

        An event that is gone is left out.
        """

    def document(self, scope: Scope) -> Document | None:
        """Returns the state that the sessions of ``scope`` share, or None. Takes no lock.

        Raises ``StoreFailure`` if the document cannot be read.
        """


class ImportSource(StoreReader, Protocol):
    """The sessions in a folder that a user has named. The folder may belong to anybody."""

    def copy(self, agent_id: str, target: Directory | None, *, durable: bool) -> None:
        """Copies all files of a session except its record into ``target``; with None it only checks that it could.

        Raises ``CorruptSession`` for a link or another file that is not the session's own. Raises ``StoreFailure`` if
        the system refuses, or if the session is written in the meantime.
        """


class Store(StoreReader, Protocol):
    """Records by ID. Acknowledged means durable; a reader never waits; no write is lost.

    If the system refuses a write, nothing has changed. A store serves one call and one thread, until its ``with`` block
    ends; its iterators and locks stay usable after that.
    """

    durable: bool
    """Whether a write waits for the disk; False leaves that to the system, or to the server."""

    keeps_figures: bool
    """Whether removed sessions leave their figures."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, error: object, trace: object, /) -> None: ...

    def close(self) -> None:
        """Closes what is open. A later call opens it again. A second call does nothing."""

    def repeated(self, act: Callable[[], Result]) -> Result:
        """Returns what ``act`` returns. On a server, a lost connection repeats ``act`` if nothing of it is written.

        It is repeated for as long as the store waits for a lock; then ``NotWritten`` is raised.
        """

    @property
    def root(self) -> str:
        """The place that ``open_store`` got; a command that is given this place finds the same sessions."""

    def find(self, alias: Alias, *, strict: bool = False) -> Record | None:
        """Finds like a reader's ``find``; ``strict`` raises if a session that may have the alias cannot be read."""

    def create(
        self,
        record: Record,
        entry: Entry | None = None,  # the first line of ``events.jsonl``
        *,
        reserved: int = 0,  # as in ``commit``
        system_prompt: NewMessage | None = None,  # the first message of the transcript, of turn 0
        documents: Mapping[Scope, Document] | None = None,  # as in ``commit``
    ) -> None:
        """Stores a new record durably; then ``find`` finds it by its aliases. Only one of several calls for an ID
        succeeds.

        Raises ``SessionExists``, ``LockTimeout``, ``TooLarge``, ``DurabilityUnknown``; and ``StoreFailure`` while a
        mark above cannot be read.
        """

    def take_in(self, record: Record, source: ImportSource, *, reserved: int = 0) -> None:
        """Creates a session like ``create``, with all its other files from ``source``. It raises the errors of both."""

    def put(self, agent_id: str, files: Mapping[str, bytes]) -> None:
        """Creates a session with exactly these ``settled`` files, after it has read back what was written.

        Raises the errors of ``create``, and ``StoreFailure`` if something else was read back. Then there is no session.
        """

    def files(self, agent_id: str) -> dict[str, bytes]:
        """Returns all that is stored of a session, as the files that a folder has of it, by their names.

        A file that somebody else put there is returned without its bytes.
        The caller holds the session open if others may write it. Raises ``SessionNotFound``.
        """

    def documents(self) -> Iterator[Document | StoreFailure]:
        """Yields every document in no order, with an error in the place of each that cannot be read. Takes no lock."""

    def remove_document(self, scope: Scope) -> None:
        """Removes the document of ``scope`` durably. The caller holds ``lock_key(document_lock_key(scope))``."""

    def repair(self, agent_id: str) -> str | None:
        """Stores the valid record at the beginning of a damaged file, and returns the file that has all the old bytes.

        Returns None if the record can be read. Raises ``CorruptSession`` if there is no such record, and the errors of
        ``open``.
        """

    def open(self, agent_id: str, *, timeout: float | None = None) -> OpenSession:
        """Returns the session; it is locked while the ``with`` block lasts.

        ``timeout`` (seconds) replaces the store's own; 0 does not wait. Entering raises ``SessionNotFound``,
        ``LockTimeout``.
        """

    def change(self, agent_id: str, rule: StoreRule, *, timeout: float | None = None, reserved: int = 0) -> Record:
        """Commits what ``rule`` makes of the record, and returns the stored record.

        An exception of ``rule`` passes through, and nothing is written.
        """

    def open_output(self, record: Record, number: int) -> Output:
        """Begins the output of run ``number``; an earlier output with this number is removed. Takes no lock.

        The output belongs to the session of ``record``, by ``created_at``. Raises ``SessionNotFound`` like ``output``,
        and ``StoreFailure`` if the system refuses the file for another reason than a full disk.
        """

    def mark(self, agent_id: str, rule: MarkRule, *, timeout: float | None = None) -> Mark:
        """Applies ``rule`` to the cancellation mark under the session's lock, durably, and returns the mark.

        The record is not read, so a corrupt or newer session can be marked. Raises ``SessionNotFound``,
        ``LockTimeout``, ``DurabilityUnknown``; and ``StoreFailure`` if the present mark cannot be read.
        """

    def delete_each(
        self,
        agent_ids: Iterable[str],
        should_delete: Callable[[str, RecordOrError], bool],
        *,
        timeout: float | None = 0,
    ) -> Iterator[tuple[str, bool | SessionsError]]:
        """Deletes each session for which ``should_delete`` returns True. It gets what is found under the lock.

        Yields for each, in order, whether it is deleted, or the error; by default it waits for no lock. After the last
        one, all deletions are durable, or ``DurabilityUnknown`` is raised.
        """

    def add_figures(self, figures: Sequence[Mapping[str, object]]) -> None:
        """Adds the figures of sessions that are about to be removed, durably, all or none. A setting can switch it off.

        Raises ``LockTimeout``, ``StoreFailure``, ``DurabilityUnknown``.
        """

    def sync(self) -> None:
        """Makes the names of all sessions durable: a creator may have been killed before its sync."""

    def ensure_index(self) -> None:
        """Makes look-ups by alias and scans for active sessions cheap again after a reboot.

        A hook's store stops if its call has little time left, and the next call continues there.
        """

    def sweep(self, now: datetime) -> list[str]:
        """Removes deleted sessions, and what processes left that were killed over an hour before ``now``.

        Corrects the index. Returns what it removed of killed processes.
        """

    def keep_days(self) -> float | None:
        """Returns how many days ``cleanup`` keeps what a person perhaps needs; None if the settings of the call decide.

        A server has its own number: the cron job that cleans up stands in no project.
        """

    def lock_key(self, key: tuple[str, ...], timeout: float | None = None) -> HeldLock:
        """Returns a ``with`` block that one caller at a time can be in for a ``key``. Entering raises ``LockTimeout``.

        ``timeout`` (seconds) replaces the store's own; 0 does not wait.
        """

    def lease(self, sends_to: str | None = None) -> Lease:
        """Returns the lease of a new run of ours: of a send to the session ``sends_to``, or of a command.

        On files, entering the lease of a send raises ``LockTimeout`` while another send to the session is on.
        """

    def add_document(self, document: Document) -> None:
        """Stores ``document`` durably, unless its scope has one.

        Raises ``LockTimeout``, ``TooLarge``, ``StoreFailure``, ``DurabilityUnknown``.
        """

    def append(self, agent_id: str, journal: str, entries: list[Json], *, timeout: float | None = None) -> None:
        """Adds ``entries`` to the end of a session's ``journal``, durably, whole and in order.

        Raises ``SessionNotFound``, ``LockTimeout``, ``TooLarge``, ``DurabilityUnknown``.
        """

    def defer(self, event: Event, now: datetime) -> str:
        """Puts an event into the inbox, durably, and returns its name there. Raises ``DurabilityUnknown``."""

    def dismiss(self, name: str) -> None:
        """Removes an event from the inbox, if it is there."""
