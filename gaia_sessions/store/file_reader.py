"""The reading half of the file store: no lock, no writes. Without a complete index, a call looks at every session once.

A hook's store may hand out the same record twice, so nobody changes a record in place there. A program that uses the
API gets a new record each time.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.session import index_keys
from gaia_sessions.session.ids import check_agent_id
from gaia_sessions.session.record import is_child, is_open, is_open_of_app
from gaia_sessions.session.runs import newest_of, with_alias

from . import index, read_ancestors, reading
from . import journal as journals
from . import root as roots
from .directory import translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import Self

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.index_keys import IndexKey
    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document, Scope

    from .directory import Directory, KeptDirectory
    from .inbox_keys import WaitingEvent
    from .port import IsWanted, Messages, RecordOrError
    from .transcript_reader import CommittedLines

_SECONDS_TO_DEFER = 0.4
"""Seconds that a hook reserves at the end of its call, to put its event into the inbox."""

_LARGEST = 1 << 30
"""The most bytes of a file that is copied: it is in memory, and a server takes no more."""

_REBUILD_ADVICE = "to rebuild the index, type: gaia-sessions cleanup"


class FileReader:
    """Implements the reading part of the port with files below ``root``, which stays open until ``close``.

    It is for one call and one thread: if two threads list one open folder, they take names from each other.
    """

    def __init__(self, root: str, *, seconds_left: Callable[[], float] | None = None) -> None:
        self.root = root
        self.seconds_left = seconds_left  # of a hook's call; None if time does not matter
        cache = reading.RecordCache() if seconds_left else None
        self.load = cache.load if cache else reading.load
        self._read = cache.read if cache else reading.read
        self._folder: KeptDirectory | None = None
        self._has_complete_index = False
        self._ids_by_key: dict[IndexKey, list[str]] | None = None
        self._refused_ids: list[str] = []
        self.open_ids: set[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the root; a later call opens it again."""
        folder, self._folder = self._folder, None
        self._has_complete_index, self._ids_by_key, self._refused_ids = False, None, []
        if folder is not None:
            folder.close()

    @property
    def folder(self) -> Directory:
        """The root, or ``Nowhere`` while the root does not exist."""
        if self._folder is None:
            folder = self._open_folder()
            if not folder.is_there:
                return folder
            self._folder = folder
        return self._folder

    def _open_folder(self) -> KeptDirectory:
        return roots.open_root(self.root)

    def _opened_below(self, open_it: Callable[[], Directory]) -> Directory:
        """Returns what ``open_it`` opens below the root; a root that was closed before is closed again."""
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
        """Returns whether the index is complete."""
        # Within a call a complete index stays complete, so it is asked only once.
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
        # Without an index, a hook streams a full scan: it uses the sessions that it reaches in its time.
        is_of_conversation = host_session_id is not None and self.seconds_left is None
        is_full_scan = not active_only or not (is_of_conversation or self._has_index())
        if is_full_scan:
            with translate_errors("list", self.root):
                names = reading.session_names(self.folder)
        else:
            names = [*self._ids_with(index_keys.narrowest_key(agent_name, host_session_id)), *self._refused_ids]
        open_ids = set[str]()
        for name in self._from_anywhere(names):
            if is_full_scan and self._has_less_time_than(_SECONDS_TO_DEFER):
                raise StoreFailure(
                    "read all sessions", self.root, "there are too many for one call of a hook", _REBUILD_ADVICE
                )
            record = self._read_or_error(name)
            if not isinstance(record, SessionNotFound):
                if not isinstance(record, SessionsError) and is_open(record):
                    open_ids.add(name)
                yield name, record
        if is_full_scan:
            self.open_ids = open_ids

    def _from_anywhere(self, names: list[str]) -> list[str]:
        """Returns ``names``; for a hook, from a random place, so that hooks that run out of time together reach all."""
        start = int.from_bytes(os.urandom(4)) % len(names) if names and self.seconds_left else 0
        return names[start:] + names[:start]

    def _read_or_error(self, agent_id: str) -> RecordOrError:
        try:
            return self._read(self.folder, agent_id)
        except SessionsError as error:
            return error

    def children(self, parent_ids: Collection[str], *, open_only: bool = False) -> list[Record]:
        wanted = frozenset(map(check_agent_id, parent_ids))
        key_of = index_keys.open_child_key if open_only else index_keys.parent_key
        ids = dict.fromkeys(agent_id for parent_id in wanted for agent_id in self._ids_with(key_of(parent_id)))
        return [
            record
            for record in self._existing([*ids, *self._refused_ids])
            if is_child(record, wanted, open_only=open_only)
        ]

    def _ids_with(self, key: IndexKey) -> list[str]:
        """Returns the IDs that have ``key``, and perhaps some that had ``key`` before."""
        if self._ids_by_key is None and self._has_index():
            ids = index.ids_under(self.folder, key)
            if ids is not None:
                return ids
        return self._ids_by_look(key)

    def _ids_by_look(self, key: IndexKey) -> list[str]:
        """Returns what ``_ids_with`` returns, without an index: one look at all sessions serves every key of a call."""
        if self._ids_by_key is None:
            ids: dict[IndexKey, list[str]] = {}
            refused = []
            for agent_id, record in self.scan():
                if isinstance(record, StoreFailure):
                    refused.append(agent_id)
                for one in [index_keys.ACTIVE_KEY] if isinstance(record, SessionsError) else index_keys.keys_of(record):
                    ids.setdefault(one, []).append(agent_id)
            self._ids_by_key, self._refused_ids = ids, refused
        # A session that gets the key after that look has its index entry before it is written.
        return [*dict.fromkeys([*(index.ids_under(self.folder, key) or ()), *self._ids_by_key.get(key, ())])]

    def _existing(self, agent_ids: Iterable[str], *, strict: bool = False) -> Iterator[Record]:
        return reading.read_existing(self._read, self.folder, agent_ids, strict=strict)

    def marks(self, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        root = self.folder
        marked_ids = reading.marked_ids(root, agent_ids)
        if not marked_ids:
            return []
        from . import marks

        return marks.read_each(root, marked_ids)

    def find(self, alias: Alias, *, strict: bool = False) -> Record | None:
        return newest_of(self.having(alias, strict=strict))

    def having(self, alias: Alias, *, strict: bool = False) -> list[Record]:
        key = index_keys.alias_key(alias)
        ids = self._ids_with(key)
        records = with_alias(alias, self._existing(ids, strict=strict)) if ids else []
        if records or not ids or self._ids_by_key is not None:
            return records
        return with_alias(alias, self._existing(self._ids_by_look(key), strict=strict))

    def open_of_app(self, app: str, user: str | None = None) -> Iterator[Record]:
        records: Iterable[RecordOrError] = (
            (record for _, record in self.scan(active_only=True))
            if user is None
            else self._existing(self._ids_with(index_keys.app_user_key(app, user)))
        )
        for record in records:
            if not isinstance(record, SessionsError) and is_open_of_app(record, app, user):
                yield record

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
        self.read(agent_id)  # raises now, not at the first step
        return self._messages(agent_id, lambda transcript: transcript.in_order(is_wanted))

    def _messages(self, agent_id: str, take: Callable[[CommittedLines], Messages]) -> Messages:
        from . import transcript_reader

        with self._open_session(agent_id) as session:
            yield from transcript_reader.messages(session, lambda: self.load(session, agent_id), take)

    def messages_backwards(self, agent_id: str) -> Messages:
        self.read(agent_id)
        return self._messages(agent_id, lambda transcript: transcript.newest_first())

    def messages_from_turn(self, agent_id: str, turn: int) -> Messages:
        self.read(agent_id)
        return self._messages(agent_id, lambda transcript: transcript.from_turn(turn))

    def output_path(self, agent_id: str, number: int) -> str:
        return os.path.join(os.path.abspath(self.root), check_agent_id(agent_id), reading.output_name(number))

    def output(self, record: Record, number: int) -> bytes:
        from . import output_file

        with output_file.open_session(self.folder, record, self.load) as session:
            return output_file.read(session, number)

    def files(self, agent_id: str) -> dict[str, bytes]:
        with self._open_session(agent_id) as session, translate_errors("read", session.path):
            names = [name for name in session.names() if not reading.unfinished([name])]
            return {name: session.read(name, _LARGEST) if reading.is_file_name(name) else b"" for name in names}

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

    def documents(self) -> Iterator[Document | StoreFailure]:
        from . import documents

        return documents.each(self.folder)
