"""The sessions as the next writer will leave them: with the events applied that wait in the inbox.

Owns the preview of that, without which a reader would miss what waits: the start of an agent may wait until its stop,
and after a crash of the host nothing follows.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionsError, StoreFailure
from gaia_sessions.session.record import has_newer_schema, is_child
from gaia_sessions.store import read_ancestors
from gaia_sessions.store.journal import numbered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.inbox_keys import WaitingEvent
    from gaia_sessions.store.overlay import Overlay
    from gaia_sessions.store.port import IsWanted, Messages, Reader, RecordOrError, Store, StoreReader


class Preview:
    """Reads ``store`` with the events applied that wait when the first session is read.

    A hook passes ``is_late``: if many events wait, only those that concern the sessions read are applied, until the
    time of the hook is up.
    """

    __slots__ = ("_all_applied", "_config", "_is_late", "_now", "_store", "_waiting")

    def __init__(
        self,
        store: Store,
        now: datetime,
        config: Config,
        is_late: Callable[[], bool] | None = None,
    ) -> None:
        self._store = store
        self._now = now
        self._config = config
        self._is_late = is_late
        self._waiting: list[WaitingEvent] | None = None
        self._all_applied: StoreReader | None = None

    def read(self, agent_id: str) -> Record:
        """Reads one session, as ``Store.read`` does."""
        if self._applies_everything():
            return self._sessions().read(agent_id)
        record = self._store.read(agent_id)
        inbox = self._events_concerning([record])
        return self._with_events_applied(inbox).read(agent_id) if inbox else record

    def ancestors(self, record: Record) -> dict[str, Record | None]:
        """The sessions above one, as ``Store.ancestors`` has them."""
        return read_ancestors(self, record)

    def ids(self) -> list[str]:
        """The ids of all sessions, as ``Store.ids`` has them."""
        return (self._sessions() if self._applies_everything() else self._store).ids()

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, RecordOrError]]:
        """Reads many sessions, as ``Store.scan`` does; those that an event changes come last."""
        if self._applies_everything():
            yield from self._sessions().scan(
                active_only=active_only, agent_name=agent_name, host_session_id=host_session_id
            )
            return
        yield from self._with_concerned_last(
            self._store.scan(active_only=active_only, agent_name=agent_name, host_session_id=host_session_id)
        )

    def children(self, parent_ids: Collection[str], *, open_only: bool = False) -> list[Record]:
        """Reads the sessions below others, as ``Store.children`` does.

        If not all events are applied, a session that only an event puts below its parent is left out.
        """
        if self._applies_everything():
            return self._sessions().children(parent_ids, open_only=open_only)
        children = [(record["agent_id"], record) for record in self._store.children(parent_ids, open_only=open_only)]
        readable = [
            record for _, record in self._with_concerned_last(children) if not isinstance(record, SessionsError)
        ]
        return [record for record in readable if is_child(record, parent_ids, open_only=open_only)]

    def messages(self, agent_id: str, *, is_wanted: IsWanted | None = None) -> Messages:
        """Reads a transcript, as ``Store.messages`` does: no event changes one."""
        return self._reader_of_transcripts().messages(agent_id, is_wanted=is_wanted)

    def messages_backwards(self, agent_id: str) -> Messages:
        """Reads a transcript, as ``Store.messages_backwards`` does."""
        return self._reader_of_transcripts().messages_backwards(agent_id)

    def figures(self) -> Iterator[dict[str, Json] | None]:
        """What is kept of removed sessions, as ``Store.figures`` has it: no event removes one."""
        return self._store.figures()

    def output_path(self, agent_id: str, number: int) -> str:
        """Where the output of a run is, as ``Store.output_path`` has it."""
        return self._store.output_path(agent_id, number)

    def output(self, agent_id: str, number: int) -> bytes:
        """Reads the output of a run, as ``Store.output`` does: no event changes one."""
        return self._reader_of_transcripts().output(agent_id, number)

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        """Reads a journal, as ``Store.entries`` does, with what the waiting events add to it.

        Those on disk have a ``seq``, their number; what waits has none, since others may be written before it.
        """
        if not self._applies_everything():
            return numbered(self._store.entries(agent_id, journal))
        on_disk = self._store.entries(agent_id, journal) if self._store.has(agent_id) else ()
        number = sum(isinstance(entry, dict) for entry in on_disk)
        return numbered(self._sessions().entries(agent_id, journal), number)

    def _reader_of_transcripts(self) -> Reader:
        """The session itself may be one that only an event makes."""
        return self._sessions() if self._applies_everything() else self._store

    def marks(self, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        """Reads the marks of sessions, as ``Store.marks`` does: no event of a host sets one."""
        return self._store.marks(agent_ids)

    def _with_concerned_last(
        self, sessions: Iterable[tuple[str, RecordOrError]]
    ) -> Iterator[tuple[str, RecordOrError]]:
        """``sessions`` with the events applied that concern them; those that an event may change come last."""
        from gaia_sessions.store import inbox_keys

        waiting_keys = inbox_keys.all_keys(self._waiting or ())
        concerned_records: list[Record] = []
        for agent_id, record in sessions:
            if isinstance(record, SessionsError) or not inbox_keys.may_change(record, waiting_keys):
                yield agent_id, record
            else:
                concerned_records.append(record)
        if concerned_records:
            overlay = self._with_events_applied(self._events_concerning(concerned_records))
            yield from (
                (record["agent_id"], overlay.changed_record(record["agent_id"]) or record)
                for record in concerned_records
            )

    def _applies_everything(self) -> bool:
        """Whether all waiting events are applied. The inbox is read before any record, because an event that another
        process applies meanwhile changes nothing the second time.
        """
        if self._waiting is None:
            try:
                self._waiting = self._store.waiting()
            except StoreFailure:
                self._waiting = []
        if self._is_late is None or not self._waiting:
            return True
        from gaia_sessions.ingest.deferred import TRY_ALL_LIMIT

        return len(self._waiting) <= TRY_ALL_LIMIT

    def applied(self) -> Overlay:
        """All sessions with all waiting events applied, as a store for a dry run, whose writes stay in memory."""
        from gaia_sessions.store.overlay import Overlay

        self._applies_everything()
        return Overlay(self._sessions(), [])

    def _sessions(self) -> StoreReader:
        if self._all_applied is None:
            self._all_applied = self._with_events_applied(self._waiting) if self._waiting else self._store
        return self._all_applied

    def _events_concerning(self, records: Iterable[Record]) -> list[WaitingEvent]:
        from gaia_sessions.store import inbox_keys

        readable = (record for record in records if not has_newer_schema(record))
        keys = {key for record in readable for key in inbox_keys.keys_of_record(record)}
        return inbox_keys.matching_events(self._waiting or (), keys)

    def _with_events_applied(self, inbox: list[WaitingEvent]) -> Overlay:
        from gaia_sessions.ingest.deferred import apply_deferred
        from gaia_sessions.store.overlay import Overlay

        sessions = Overlay(self._store, inbox)
        should_stop = self._is_late or (lambda: False)
        apply_deferred(sessions, self._now, self._config, should_stop)
        return sessions
