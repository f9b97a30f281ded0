"""The reading half of the file store: records by id and by alias, journals, transcripts, and the events that wait.

Owns how a session is found: by the index where that is complete, else by a look at every session. Must never take a
lock or write anything. What a hook reads within one call it need not decode twice: a store that is made for one call
hands out the same record again while its bytes are the same. Records are never changed in place there; a program that
uses the API may do that, and gets a new one each time.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.session.ids import check_agent_id
from gaia_sessions.session.record import is_child
from gaia_sessions.session.runs import aliases_of, newest_session_with

from . import index, reading
from . import journal as journals
from . import root as roots
from .directory import translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import Record

    from .directory import Directory
    from .inbox_keys import WaitingEvent
    from .port import IsWanted, Messages, RecordOrError
    from .transcript_reader import CommittedLines

_SECONDS_TO_DEFER = 0.4
"""Seconds that a hook keeps of its call, to put its event into the inbox."""

_REBUILD_ADVICE = "run 'gaia-sessions cleanup': it rebuilds the index"


class FileReader:
    """What the port reads, from files below ``root``.

    seconds_left: of the one call for which a hook makes this; None where time does not matter.
    """

    def __init__(self, root: str, *, seconds_left: Callable[[], float] | None = None) -> None:
        self.root = root
        self.seconds_left = seconds_left
        self._cache = reading.RecordCache()
        self.load = self._cache.load if seconds_left else reading.load  # these two are handed out
        self._read = self._cache.read if seconds_left else reading.read
        self._ids_by_alias: dict[Alias, list[str]] | None = None

    def read(self, agent_id: str) -> Record:
        check_agent_id(agent_id)
        with self._open_root_for(agent_id) as root, reading.open_session(root, agent_id) as session:
            return self.load(session, agent_id)

    def _open_root(self) -> Directory | None:
        return roots.open_if_exists(self.root)

    def _open_root_for(self, agent_id: str) -> Directory:
        root = self._open_root()
        if root is None:
            raise SessionNotFound(agent_id)
        return root

    def _open_root_with(self, agent_id: str) -> Directory:
        """The root, if the session is there: nobody waits for the lock of a session that never existed."""
        root = self._open_root_for(agent_id)
        try:
            with translate_errors("open", f"{self.root}/{agent_id}"):
                if root.has(agent_id):
                    return root
            raise SessionNotFound(agent_id)
        except SessionsError:
            os.close(root.fd)
            raise

    def has(self, agent_id: str) -> bool:
        check_agent_id(agent_id)
        root = self._open_root()
        if root is None:
            return False
        with root, translate_errors("open", f"{self.root}/{agent_id}"):
            return reading.has(root, agent_id)

    def ids(self) -> list[str]:
        root = self._open_root()
        if root is None:
            return []
        with root, translate_errors("list", self.root):
            return [name for name in reading.session_names(root) if reading.has_state(root, name)]

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, RecordOrError]]:
        root = self._open_root()
        if root is None:
            return
        with root:
            with translate_errors("list", self.root):
                names = (
                    index.all_ids_under(root, index.narrowest_key(agent_name, host_session_id)) if active_only else None
                )
                is_full_scan = names is None
                if names is None:
                    names = reading.session_names(root)
            for name in self._from_anywhere(names):
                if is_full_scan and self._has_less_time_than(_SECONDS_TO_DEFER):
                    raise StoreFailure(
                        "look through", self.root, "too many sessions for one call of a hook", _REBUILD_ADVICE
                    )
                found = self._read_or_error(root, name)
                if not isinstance(found, SessionNotFound):
                    yield name, found

    def _from_anywhere(self, names: list[str]) -> list[str]:  # calls of hooks that reach no end begin elsewhere
        start = int.from_bytes(os.urandom(4)) % len(names) if names and self.seconds_left else 0
        return names[start:] + names[:start]

    def _read_or_error(self, root: Directory, agent_id: str) -> RecordOrError:
        try:
            return self._read(root, agent_id)
        except SessionsError as error:
            return error

    def children(self, parent_ids: Collection[str], *, open_only: bool = False) -> list[Record]:
        wanted = frozenset(map(check_agent_id, parent_ids))
        root = self._open_root()
        if root is None:
            return []
        with root:
            ids = index.ids_below(root, wanted, open_only=open_only)
            found: Iterable[RecordOrError] = [self._read_or_error(root, agent_id) for agent_id in ids or ()]
        if ids is None:
            found = (record for _, record in self.scan(active_only=open_only))
        readable = (record for record in map(reading.unless_refused, found) if not isinstance(record, SessionsError))
        return [record for record in readable if is_child(record, wanted, open_only=open_only)]

    def marks(self, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        root = self._open_root()
        if root is None:
            return []
        with root:
            return self.marks_in(root, agent_ids)

    def marks_in(self, root: Directory, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        """``marks``, in the open ``root``."""
        marked_ids = reading.marked_ids(root, agent_ids)
        if not marked_ids:
            return []
        from . import marks

        return marks.read_each(root, marked_ids)

    def find(self, alias: Alias) -> Record | None:
        root = self._open_root()
        if root is None:
            return None
        with root:
            indexed_ids = index.all_ids_under(root, index.alias_key(alias))
            if indexed_ids is None and self.seconds_left:
                return newest_session_with(alias, self._cache.read_existing(root, self._candidate_ids(root, alias)))
            found = newest_session_with(alias, self._cache.read_existing(root, indexed_ids)) if indexed_ids else None
        if found or indexed_ids == []:
            return found
        return newest_session_with(
            alias, (record for _, record in self.scan() if not isinstance(record, SessionsError))
        )

    def _candidate_ids(self, root: Directory, alias: Alias) -> list[str]:
        """Who may have ``alias`` while the index is not complete: one look at all sessions answers each key of a call.

        A session that gets the key after that look has an entry for it before it is written.
        """
        if self._ids_by_alias is None:
            ids: dict[Alias, list[str]] = {}
            for agent_id, record in self.scan():
                for session_alias in () if isinstance(record, SessionsError) else set(aliases_of(record)):
                    ids.setdefault(session_alias, []).append(agent_id)
            self._ids_by_alias = ids
        with translate_errors("look up", self.root):
            indexed_ids = index.ids_under(root, index.alias_key(alias))
        return list(dict.fromkeys([*indexed_ids, *self._ids_by_alias.get(alias, ())]))

    def _has_less_time_than(self, seconds: float) -> bool:
        return self.seconds_left is not None and self.seconds_left() < seconds

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        check_agent_id(agent_id)
        with self._open_root_for(agent_id) as root, reading.open_session(root, agent_id):
            return self._entries(agent_id, journal)

    def _entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        with self._open_root_for(agent_id) as root, reading.open_session(root, agent_id) as session:
            yield from journals.entries(session, journal)

    def messages(self, agent_id: str, *, is_wanted: IsWanted | None = None) -> Messages:
        self.read(agent_id)  # raises now what the first step would raise
        return self._messages(agent_id, lambda transcript: transcript.in_order(is_wanted))

    def _messages(self, agent_id: str, take: Callable[[CommittedLines], Messages]) -> Messages:
        from . import transcript_reader

        with self._open_root_for(agent_id) as root, reading.open_session(root, agent_id) as session:
            yield from transcript_reader.messages(session, lambda: self.load(session, agent_id), take)

    def messages_backwards(self, agent_id: str) -> Messages:
        self.read(agent_id)
        return self._messages(agent_id, lambda transcript: transcript.newest_first())

    def may_have_waiting(self) -> bool:
        """Whether any event may wait; False only if the inbox is surely empty, so that a call need not ask further."""
        try:
            root = self._open_root()
            if root is None:
                return False
            with root:
                return _has_inbox_files(root)
        except (OSError, SessionsError):  # ``waiting`` says what is wrong
            return True

    def waiting(self) -> list[WaitingEvent]:
        root = self._open_root()
        if root is None:
            return []
        with root, translate_errors("read", f"{self.root}/{roots.INBOX}"):
            if not _has_inbox_files(root):
                return []
            from . import inbox

            return [(name, inbox.keys_in(name)) for name in inbox.names(root)]

    def deferred(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
        from . import inbox

        root = self._open_root()
        if root is None:
            return
        with root, translate_errors("read", f"{self.root}/{roots.INBOX}"):
            yield from inbox.events(root, inbox.names(root) if names is None else names)


def _has_inbox_files(root: Directory) -> bool:
    """Whether anything is in the inbox, asked without the module that knows which of it are events."""
    try:
        with root.below(roots.INBOX) as folder:
            return bool(folder.names())
    except FileNotFoundError:
        return False
