"""Imports the sessions of ADK's own ``SqliteSessionService``: apps, users, states and events.

Each event is committed with the keys of the session that it changed, many events at a time. So an import that was
killed goes on where it stopped, and one that is repeated later brings what came since and nothing else. Nothing in the
file is changed, and google-adk is not needed.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypedDict
from urllib.parse import quote

from gaia_sessions import errors
from gaia_sessions.errors import SessionsError, StoreFailure
from gaia_sessions.jsonio import strict
from gaia_sessions.session.app_sessions import Seen, check_names, with_app_event
from gaia_sessions.session.clock import UTC, datetime, format_time, parse_time
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.shared_state import APP, USER, Delta, check_document, new_state, with_keys
from gaia_sessions.session.transcript import generation_of, number_messages
from gaia_sessions.session.updates import check_open
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from gaia_sessions.usecases import app_sessions
from gaia_sessions.usecases.claiming import refuse_if_cancelled
from gaia_sessions.usecases.state import take_document

from .events import app_event, state_delta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import TypeAlias

    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.app_sessions import AppEvent
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_state import Document

    _Change: TypeAlias = tuple[AppEvent, Delta]


class NotImported(TypedDict):
    """What was not imported, in words. reason: the code of the error that says why; detail: its message."""

    what: str
    reason: str
    detail: str


class ImportedFromAdk(TypedDict):
    """The report of an import from ADK.

    file: its path. imported: the ids of the sessions that are new, or got events; events: how many in all.
    already_there: those that had everything. shared, shared_here: the app, or the app and its user, of each state that
    was imported, and of each that stayed as it is here.
    """

    dry_run: bool
    file: str
    root: str
    imported: list[str]
    events: int
    already_there: list[str]
    shared: list[list[str]]
    shared_here: list[list[str]]
    failed: list[NotImported]


class _Row(NamedTuple):
    app: str
    user: str
    id: str
    state: str
    created: float


_NO_DATABASE = "name a file of ADK's SqliteSessionService: .adk/session.db, in the folder of the agent"
_IS_OF_ANOTHER = "SELECT 1 FROM sqlite_master WHERE name = 'adk_internal_metadata'"
_SESSIONS = "SELECT app_name, user_id, id, state, create_time FROM sessions ORDER BY rowid"
_SHARED = ("SELECT state, app_name FROM app_states", "SELECT state, app_name, user_id FROM user_states")
_EVENTS = "SELECT event_data FROM events WHERE app_name = ? AND user_id = ? AND session_id = ? ORDER BY rowid"
_MOST_STATE = strict.DOCUMENT_LIMIT - 2 * RESERVED_BYTES
"""How many bytes of state are imported: what a record has besides must fit too."""
_AT_ONCE = 16 << 20
"""After how many bytes of events a commit is made: one more event, of at most 16 MiB, still fits."""


def import_file(sessions: Sessions, path: str, *, dry_run: bool = False) -> ImportedFromAdk:
    """Imports all sessions of the file ``path``. Raises ``StoreFailure`` if it is none that ADK keeps sessions in."""
    report: ImportedFromAdk = {
        "dry_run": dry_run,
        "file": os.path.abspath(path),
        "root": sessions.root,
        "imported": [],
        "events": 0,
        "already_there": [],
        "shared": [],
        "shared_here": [],
        "failed": [],
    }
    store = FileStore.from_config(sessions.root, sessions.config)
    if not os.path.isfile(report["file"]):
        raise StoreFailure("read", report["file"], "there is no such file", _NO_DATABASE)
    try:
        with closing(sqlite3.connect(f"file:{quote(report['file'])}?mode=ro", uri=True)) as database:
            database.text_factory = lambda data: data.decode("utf-8", "surrogateescape")  # refused with its row
            if database.execute(_IS_OF_ANOTHER).fetchone():
                raise StoreFailure("read", report["file"], "it is a file of DatabaseSessionService", _NO_DATABASE)
            importing = _Import(store, sessions.config.state_keys, database, report)
            for query in _SHARED:
                for state, *scope in database.execute(query):
                    importing.take_shared(scope, state)
            for row in database.execute(_SESSIONS):
                importing.take_session(_Row(*row))
    except sqlite3.Error as error:
        raise StoreFailure("read", report["file"], str(error), _NO_DATABASE) from error
    return report


class _Import:
    """One import, with its report."""

    def __init__(
        self, store: FileStore, types: Mapping[str, str], database: sqlite3.Connection, report: ImportedFromAdk
    ) -> None:
        self._store = store
        self._types = types
        self._database = database
        self._report = report

    def take_shared(self, scope: list[str], state: str) -> None:
        """Imports what an app, or one of its users, shares, unless there is such state here."""
        self._or_fail(f"the state of {' '.join(map(str, scope))}", partial(self._take_shared, scope, state))

    def _take_shared(self, scope: list[str], state: str) -> None:
        if not all(isinstance(value, str) for value in (*scope, state)):
            raise errors.InvalidInput("is none that ADK writes", "its row")
        document: Document = {"scope": scope, "revision": 1, "state": _object(state)}
        if not document["state"]:
            return
        check_document(document)  # type: ignore[arg-type]  # a document is JSON
        here = self._store.document((*scope,)) if self._report["dry_run"] else take_document(self._store, document)
        if here is None or here["state"] != document["state"]:
            self._report["shared" if here is None else "shared_here"].append(scope)

    def take_session(self, row: _Row) -> None:
        """Imports one session, as far as it is not here; once more if somebody changed it meanwhile."""

        def take() -> None:
            try:
                self._take_session(row)
            except (errors.StateChanged, errors.SessionExists):
                self._take_session(row)

        self._or_fail(f"{row.id} of {row.app} {row.user}", take)

    def _take_session(self, row: _Row) -> None:
        created = _checked(row)
        here = app_sessions.find(self._store, row.app, row.user, row.id)
        texts = [text for (text,) in self._database.execute(_EVENTS, (row.app, row.user, row.id))]
        old = [] if here is None else self._old_texts(here, created)
        if here is not None and old[: len(texts)] == texts:
            self._report["already_there"].append(here["agent_id"])
            return
        if old != texts[: len(old)]:
            raise errors.InvalidInput("it went on here and there: what came since cannot be put together")
        events = [*map(app_event, texts[len(old) :])]
        deltas = [new_state(_own(state_delta(event)), self._types) for event in events]
        state = new_state(_object(row.state), self._types).set
        for event in events:
            number_messages([event.in_turn(1)], 1, 1)  # raises for one that is too long
        if here is not None:
            check_open(here)
            refuse_if_cancelled(self._store, here)
        changed = {key for delta in deltas for key in delta.set}
        first = Delta({key: value for key, value in state.items() if key not in changed})
        _check_sizes(here.get("session_state", {}) if here else first.set, deltas)
        if not self._report["dry_run"]:
            if here is None:
                here = app_sessions.create(self._store, created, os.urandom, row.app, row.user, row.id, first)
            self._add(here, [*zip(events, deltas, strict=True)])
        self._report["imported"].append(row.id if here is None else here["agent_id"])
        self._report["events"] += len(events)

    def _old_texts(self, here: Record, created: datetime) -> list[str]:
        if here["created_at"] != format_time(created):
            raise errors.InvalidInput("another session has its ID here")
        if generation_of(here):
            raise errors.InvalidInput("its transcript was begun anew here")
        return [message["event"] for message in app_sessions.messages_of(self._store, here)]

    def _add(self, record: Record, changes: list[_Change]) -> None:
        for group in _in_commits(changes):
            turns, messages = record.get("turns", 0), []
            for event, _ in group:
                messages.append(event.in_turn(turns))
                turns += event.begins_turn
            rule = _rule(group, Seen.of(record, ()))
            record, _ = self._store.add_messages(record["agent_id"], messages, rule, reserved=RESERVED_BYTES)

    def _or_fail(self, what: str, take: Callable[[], None]) -> None:
        try:
            take()
        except SessionsError as error:
            self._report["failed"].append({"what": what, "reason": error.code, "detail": str(error)})


def _checked(row: _Row) -> datetime:
    """When the session of ``row`` was created. Raises ``InvalidInput`` for a row that cannot become a session."""
    if not all(isinstance(value, str) for value in row[:4]):
        raise errors.InvalidInput("is none that ADK writes", "its row")
    check_names(row.app, row.user, row.id)
    try:
        return datetime.fromtimestamp(row.created, UTC)
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise errors.InvalidInput(f"is no time: {error}", "create_time") from None


def _check_sizes(state: dict[str, Json], deltas: Iterable[Delta]) -> None:
    """Raises ``TooLarge`` if the ``state`` would be at one of the ``deltas``."""
    sizes: dict[str, int] = {}
    for values in chain([state], (delta.set for delta in deltas)):
        sizes |= {key: len(strict.dumps({key: value})) for key, value in values.items()}
        if sum(sizes.values()) > _MOST_STATE:
            raise errors.TooLarge("its state", sum(sizes.values()), _MOST_STATE)


def _in_commits(changes: list[_Change]) -> Iterator[list[_Change]]:
    group: list[_Change] = []
    size = 0
    for event, delta in changes:
        group.append((event, delta))
        size += len(event.message["event"].encode())
        if size >= _AT_ONCE:
            yield group
            group, size = [], 0
    if group:
        yield group


def _rule(group: list[_Change], seen: Seen) -> Callable[[Record], Record]:
    """Adds ``group`` to a session that nobody has changed since it was ``seen``: else it raises ``StateChanged``."""

    def rule(record: Record) -> Record:
        seen.check(record)
        now = utc_now()
        for event, delta in group:
            record = with_app_event(record, event, now, min(now, parse_time(event.message["timestamp"])))
            record = with_keys(record, delta, {}) if delta.set else record  # their types were looked at before
        return record

    return rule


def _own(delta: dict[str, Json]) -> dict[str, Json]:
    """What of a delta is the session's own: what it shares is a state of its own in the file."""
    return {key: value for key, value in delta.items() if not key.startswith((APP, USER))}


def _object(text: str) -> dict[str, Json]:
    return strict.load_object(text.encode())
