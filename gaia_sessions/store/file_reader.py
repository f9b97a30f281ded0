"""The reading half of the file store: records by id and by alias, journals, transcripts, and the events that wait.

Owns how a session is found: by the index where that is complete, else by a look at every session. Must never take a
lock or write anything. What a hook reads within one call it need not decode twice: a store that is made for one call
hands out the same record again while its bytes are the same. Records are never changed in place there; a program that
uses the API may do that, and gets a new one each time.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.session import index_keys
from gaia_sessions.session.ids import check_agent_id
from gaia_sessions.session.record import is_child, is_open, is_open_of_app
from gaia_sessions.session.runs import aliases_of, newest_of, with_alias

from . import index, read_ancestors, reading
from . import journal as journals
from . import root as roots
from .directory import translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from datetime import datetime
    from typing import Self

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document, Scope

    from .directory import Directory, KeptDirectory
    from .inbox_keys import WaitingEvent
    from .port import IsWanted, Messages, RecordOrError
    from .transcript_reader import CommittedLines

_SECONDS_TO_DEFER = 0.4
"""Seconds that a hook keeps of its call, to put its event into the inbox."""

_REBUILD_ADVICE = "run 'gaia-sessions cleanup': it rebuilds the index"


class FileReader:
    """What the port reads, from files below ``root``, which is open from the first look until ``close``.

    It is for one call and one thread: two that list one open folder at once take names from each other.
    seconds_left: of the call of a hook; None where time does not matter.
    """

    def __init__(self, root: str, *, seconds_left: Callable[[], float] | None = None) -> None:
        self.root = root
        self.seconds_left = seconds_left
        cache = reading.RecordCache() if seconds_left else None
        self.load = cache.load if cache else reading.load  # these two are handed out
        self._read = cache.read if cache else reading.read
        self._ids_by_alias: dict[Alias, list[str]] | None = None
        self._folder: KeptDirectory | None = None
        self._has_complete_index = False
        self.open_ids: set[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the root at the end of the call; what is asked for after it opens it again."""
        folder, self._folder = self._folder, None
        self._has_complete_index = False
        if folder is not None:
            folder.close()

    @property
    def folder(self) -> Directory:
        """The root; while it does not exist, a directory in which nothing is."""
        if self._folder is None:
            folder = self._open_folder()
            if not folder.is_there:
                return folder
            self._folder = folder
        return self._folder

    def _open_folder(self) -> KeptDirectory:
        return roots.open_root(self.root)

    def _opened_below(self, open_it: Callable[[], Directory]) -> Directory:
        """What ``open_it`` opens below the root and a caller may need after the call: then the root is closed again."""
        is_over = self._folder is None
        try:
            return open_it()
        finally:
            if is_over:
                self.close()

    def _open_session(self, agent_id: str) -> Directory:
        return self._opened_below(lambda: reading.open_session(self.folder, agent_id))

    def read(self, agent_id: str) -> Record:
        check_agent_id(agent_id)
        with reading.open_session(self.folder, agent_id) as session:
            return self.load(session, agent_id)

    def _has_index(self) -> bool:
        """Whether the index is complete; in one call one that is stays so."""
        self._has_complete_index = self._has_complete_index or index.is_complete(self.folder)
        return self._has_complete_index

    def ancestors(self, record: Record) -> dict[str, Record | None]:
        return read_ancestors(self, record)

    def has(self, agent_id: str) -> bool:
        check_agent_id(agent_id)
        root = self.folder
        with translate_errors("open", f"{self.root}/{agent_id}"):
            return reading.has(root, agent_id)

    def ids(self) -> list[str]:
        root = self.folder
        with translate_errors("list", self.root):
            return [name for name in reading.session_names(root) if reading.has_record(root, name)]

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, RecordOrError]]:
        root = self.folder
        with translate_errors("list", self.root):
            names = (
                index.ids_under(root, index_keys.narrowest_key(agent_name, host_session_id))
                if active_only and self._has_index()
                else None
            )
            is_full_scan = names is None
            if names is None:
                names = [*reading.session_names(root)]
        for name in self._from_anywhere(names):
            if is_full_scan and self._has_less_time_than(_SECONDS_TO_DEFER):
                raise StoreFailure(
                    "look through", self.root, "too many sessions for one call of a hook", _REBUILD_ADVICE
                )
            record = self._read_or_error(name)
            if not isinstance(record, SessionNotFound):
                yield name, record

    def heads(self, since: datetime | None) -> Iterator[tuple[str, RecordOrError]]:
        from gaia_sessions.session.record_head import head_of  # no hook looks at heads

        root = self.folder
        with translate_errors("list", self.root):
            names = reading.session_names(root)
        open_ids = set[str]()
        for agent_id, is_folder in names.items():
            data = reading.glimpse(root, agent_id) if is_folder else b""
            found = head_of(data, agent_id, since) or self._read_or_error(agent_id)
            if not isinstance(found, SessionNotFound):
                if not isinstance(found, SessionsError) and is_open(found):
                    open_ids.add(agent_id)
                yield agent_id, found
        self.open_ids = open_ids

    def _from_anywhere(self, names: list[str]) -> list[str]:  # calls of hooks that reach no end begin elsewhere
        start = int.from_bytes(os.urandom(4)) % len(names) if names and self.seconds_left else 0
        return names[start:] + names[:start]

    def _read_or_error(self, agent_id: str) -> RecordOrError:
        try:
            return self._read(self.folder, agent_id)
        except SessionsError as error:
            return error

    def children(self, parent_ids: Collection[str], *, open_only: bool = False) -> list[Record]:
        wanted = frozenset(map(check_agent_id, parent_ids))
        ids = self._ids_below(wanted, open_only=open_only)
        records: Iterable[RecordOrError] = map(self._read_or_error, ids or ())
        if ids is None:
            records = (record for _, record in self.scan(active_only=open_only))
        readable = (record for record in map(reading.unless_refused, records) if not isinstance(record, SessionsError))
        return [record for record in readable if is_child(record, wanted, open_only=open_only)]

    def _ids_below(self, parent_ids: Iterable[str], *, open_only: bool) -> set[str] | None:
        """The ids of all that have one of these parents, ``open_only`` not final, and maybe some that had it.

        None if that is not known.
        """
        ids: set[str] = set()
        for parent_id in parent_ids:
            key = index_keys.open_child_key(parent_id) if open_only else index_keys.parent_key(parent_id)
            indexed_ids = index.ids_under(self.folder, key) if self._has_index() else None
            if indexed_ids is None:
                return None
            ids.update(indexed_ids)
        return ids

    def marks(self, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        root = self.folder
        marked_ids = reading.marked_ids(root, agent_ids)
        if not marked_ids:
            return []
        from . import marks

        return marks.read_each(root, marked_ids)

    def find(self, alias: Alias, *, strict: bool = False) -> Record | None:
        """As the port says it; ``strict`` raises if the index names a session that is there and cannot be read."""
        return newest_of(self.having(alias, strict=strict))

    def having(self, alias: Alias, *, strict: bool = False) -> list[Record]:
        root = self.folder
        indexed_ids = index.ids_under(root, index_keys.alias_key(alias)) if self._has_index() else None
        ids = self._candidate_ids(alias) if indexed_ids is None and self.seconds_left else indexed_ids
        existing = reading.read_existing(self._read, root, ids or (), strict=strict)
        records = with_alias(alias, existing) if ids else []
        if records or ids == [] or ids is not indexed_ids:
            return records
        return with_alias(alias, (record for _, record in self.scan() if not isinstance(record, SessionsError)))

    def open_of_app(self, app: str, user: str | None = None) -> Iterator[Record]:
        root = self.folder
        if user is not None and self._has_index():
            ids = index.ids_under(root, index_keys.app_user_key(app, user))
            if ids is not None:
                records = reading.read_existing(self._read, root, ids)
                yield from (record for record in records if is_open_of_app(record, app, user))
                return
        for _, record in self.scan(active_only=True):
            if not isinstance(record, SessionsError) and is_open_of_app(record, app, user):
                yield record

    def _candidate_ids(self, alias: Alias) -> list[str]:
        """Who may have ``alias`` while the index is not complete: one look at all sessions answers each key of a call.

        A session that gets the key after that look has an entry for it before it is written.
        """
        if self._ids_by_alias is None:
            ids: dict[Alias, list[str]] = {}
            for agent_id, record in self.scan():
                for session_alias in () if isinstance(record, SessionsError) else set(aliases_of(record)):
                    ids.setdefault(session_alias, []).append(agent_id)
            self._ids_by_alias = ids
        indexed_ids = index.ids_under(self.folder, index_keys.alias_key(alias))
        return list(dict.fromkeys([*(indexed_ids or ()), *self._ids_by_alias.get(alias, ())]))

    def _has_less_time_than(self, seconds: float) -> bool:
        return self.seconds_left is not None and self.seconds_left() < seconds

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        check_agent_id(agent_id)
        with reading.open_session(self.folder, agent_id):
            return self._entries(agent_id, journal)

    def _entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        with self._open_session(agent_id) as session:
            yield from journals.entries(session, journal)

    def messages(self, agent_id: str, *, is_wanted: IsWanted | None = None) -> Messages:
        self.read(agent_id)  # raises now what the first step would raise
        return self._messages(agent_id, lambda transcript: transcript.in_order(is_wanted))

    def _messages(self, agent_id: str, take: Callable[[CommittedLines], Messages]) -> Messages:
        from . import transcript_reader

        with self._open_session(agent_id) as session:
            yield from transcript_reader.messages(session, lambda: self.load(session, agent_id), take)

    def messages_backwards(self, agent_id: str) -> Messages:
        self.read(agent_id)
        return self._messages(agent_id, lambda transcript: transcript.newest_first())

    def output_path(self, agent_id: str, number: int) -> str:
        return os.path.join(os.path.abspath(self.root), check_agent_id(agent_id), reading.output_name(number))

    def output(self, record: Record, number: int) -> bytes:
        from . import output_file

        with output_file.open_session(self.folder, record, self.load) as session:
            return output_file.read(session, number)

    def figures(self) -> Iterator[dict[str, Json] | None]:
        from . import figures_file

        yield from figures_file.values(self.folder)

    def waiting(self) -> list[WaitingEvent]:
        root = self.folder
        with translate_errors("read", f"{self.root}/{roots.INBOX}"):
            names = root.names_below(roots.INBOX)
            if not names:
                return []
            from . import inbox

            return inbox.with_keys(names)

    def deferred(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
        root = self.folder
        with translate_errors("read", f"{self.root}/{roots.INBOX}"):
            present = root.names_below(roots.INBOX) if names is None else names
            if not present:
                return
            from . import inbox

            yield from inbox.events(root, inbox.in_order(present) if names is None else names)

    def document(self, scope: Scope) -> Document | None:
        from . import documents

        return documents.read(self.folder, scope)
