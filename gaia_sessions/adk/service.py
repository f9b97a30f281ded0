"""ADK's session service on our store: the one module that loads google-adk.

ADK's classes give the form, and its errors are raised. Work on files is done in threads, so that no other conversation
waits for a disk. What a program has seen of a session stands in a text that ADK keeps in a session object.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import parse_qs, unquote, urlsplit
from weakref import WeakValueDictionary

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse

from gaia_sessions import errors
from gaia_sessions.api import app_sessions
from gaia_sessions.api.sessions import Sessions
from gaia_sessions.jsonio import strict
from gaia_sessions.session.app_sessions import Seen, app_id_of, event_time
from gaia_sessions.session.record import is_open
from gaia_sessions.session.shared_keys import NEVER_STORED, Delta, first_delta
from gaia_sessions.system import utc_now

from .app_events import app_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Concatenate, ParamSpec, TypeVar

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.store.port import Store

    Arguments = ParamSpec("Arguments")
    Result = TypeVar("Result")

DEFAULT_ROOT = os.path.join(".adk", "gaia-sessions")
"""Where sessions are if nobody says otherwise, from the working directory on."""

_SCHEME = "gaia"
_FORM = "write gaia:///absolute/path, with ?none_clears=true if a None is to clear a key"


class GaiaSessionService(BaseSessionService):
    """Keeps the sessions, events and states of ADK in our store, where every acknowledged one is durable.

    ``root`` is the directory of the sessions, or ``uri`` names it: ``gaia:///absolute/path``. By default it is
    ``.adk/gaia-sessions``. With ``none_clears`` a None in a state delta clears the key; else None is a value, as with
    ADK's own services. Other options, which ADK gives to every service, are ignored.

    Whoever appends to a session object that another process, task or command has overtaken gets ``StaleSessionError``,
    before anything of the event is stored: load it with ``get_session``, and repeat. So it is with one that was read
    from JSON, since ADK leaves that text out there. What a state cannot hold (a value that is not JSON, a key of more
    than 256 characters) is a ``ValueError`` that names the key. Every method may raise those of
    ``gaia_sessions.errors`` that tell of the disk, of locks and of damaged files.
    """

    def __init__(
        self,
        *,
        root: str | None = None,
        uri: str | None = None,
        none_clears: bool = False,
        **_: object,
    ) -> None:
        if root is not None and uri is not None:
            raise ValueError(f"give a root or a uri, not both; as a uri {_FORM}")
        if uri is not None:
            root, clears = _read_uri(uri)
            none_clears = none_clears or clears
        sessions = Sessions(DEFAULT_ROOT if root is None else root)
        self.root = sessions.root
        self.none_clears = none_clears
        self._types = sessions.config.state_keys
        self._limits = sessions.config.limits
        self._sessions = sessions
        self._locks: WeakValueDictionary[tuple[object, ...], asyncio.Lock] = WeakValueDictionary()

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """As ADK says. A session that has ended or was cancelled keeps its id: ``AlreadyExistsError``."""
        return await self._call(self._create, app_name, user_id, state or {}, (session_id or "").strip())

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """As ADK says, also of one that has ended; ``num_recent_events`` of those that ``after_timestamp`` leaves."""
        return await self._call(self._get, app_name, user_id, session_id.strip(), config or GetSessionConfig())

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """As ADK says, the oldest update first; without sessions that have ended, and those that cannot be read."""
        return await self._call(self._list, app_name, user_id)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """As ADK says. There need be no such session. What it shared with others stays."""
        who = app_name, user_id, session_id.strip()
        await self._call(app_sessions.remove, utc_now(), self._limits, *who)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """As ADK says."""
        document = await self._call(lambda store: store.document((app_name, user_id)))
        return dict(document["state"]) if document else {}

    async def append_event(self, session: Session, event: Event) -> Event:
        """As ADK says: ``temp:`` and ``secret:`` keys reach the session object and nothing else.

        Raises ``StaleSessionError``, and ``SessionNotFoundError`` for a session that was deleted or has ended.
        """
        if event.partial:
            return event
        key = (asyncio.get_running_loop(), session.app_name, session.user_id, session.id)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            self._apply_temp_state(session, event)
            event = self._trim_temp_delta_state(event)
            seen = Seen.from_text(session._storage_update_marker or "")  # noqa: SLF001  # as ADK's own services do
            work = asyncio.ensure_future(self._call(self._append, session, event, seen))
            cancelled: asyncio.CancelledError | None = None
            while not work.done():  # what a thread has begun ends, however often it is cancelled: nobody comes between
                try:
                    await asyncio.wait([work])
                except asyncio.CancelledError as error:
                    cancelled = error
            if cancelled is not None and work.exception() is not None:
                raise cancelled
            noted = self._note(session, event, *work.result())
            if cancelled is not None:
                raise cancelled
            return noted

    def _note(self, session: Session, event: Event, text: str, at: float) -> Event:
        session._storage_update_marker = text  # noqa: SLF001  # see above
        session.last_update_time = at
        return self._commit_event_to_session(session, event)

    async def _call(
        self, do: Callable[Concatenate[Store, Arguments], Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """What ``do`` returns in a thread, for a store that is open for this one call."""

        def call() -> Result:
            with self._sessions.store as store:
                return do(store, *arguments, **named)

        return await asyncio.to_thread(call)

    def _create(self, store: Store, app: str, user: str, state: dict[str, Any], app_id: str) -> Session:
        with _as_value_errors():
            kept = {key: value for key, value in state.items() if not key.startswith(NEVER_STORED)}
            delta = first_delta(self._delta(kept).set, self._types)
            try:
                record = app_sessions.create(store, utc_now(), os.urandom, app, user, app_id or None, delta)
            except errors.SessionExists:
                raise AlreadyExistsError(f"Session with id {app_id} already exists.") from None
            return _session(store, record)

    def _get(self, store: Store, app: str, user: str, app_id: str, config: GetSessionConfig) -> Session | None:
        since, last = config.after_timestamp, config.num_recent_events
        while (record := app_sessions.find(store, app, user, app_id)) is not None:
            with suppress(errors.SessionNotFound):  # somebody has just removed it, or begun it anew
                messages = app_sessions.messages_of(store, record, last if since is None else None)
                break
        if record is None:
            return None
        found = [Event.model_validate_json(message["event"]) for message in messages]
        wanted = [event for event in found if since is None or event.timestamp >= since]
        session = _session(store, record)
        session.events = wanted if last is None else wanted[max(len(wanted) - last, 0) :]
        return session

    def _list(self, store: Store, app: str, user: str | None) -> ListSessionsResponse:
        known: dict[Scope, Document | None] = {}
        with suppress(errors.StoreFailure):  # after a reboot; else one user's sessions cost as much as all
            store.ensure_index()
        found = [_session(store, record, known) for record in app_sessions.going_on(store, app, user)]
        return ListSessionsResponse(sessions=sorted(found, key=lambda one: (one.last_update_time, one.user_id, one.id)))

    def _append(self, store: Store, session: Session, event: Event, seen: Seen | None) -> tuple[str, float]:
        with _as_value_errors():
            record = app_sessions.find(store, session.app_name, session.user_id, session.id)
            if record is None or not is_open(record):
                _not_found(session)
            if seen is None:
                raise StaleSessionError(f"Session {session.id} was not loaded from here: load it with get_session.")
            delta = self._delta(event.actions.state_delta)
            found = app_event(_written(event, delta))
            try:
                seen = app_sessions.append(store, utc_now(), record, seen, found, delta, self._types)
            except errors.StateChanged as error:
                raise StaleSessionError(
                    f"Session {session.id} was modified in storage: {error}. Load it again with get_session."
                ) from None
            except (errors.SessionFinal, errors.Cancelled, errors.SessionNotFound):
                _not_found(session)
            return seen.text(), found.at

    def _delta(self, state: dict[str, Any]) -> Delta:
        """The delta that ADK writes as ``state``. Raises ``InvalidInput`` that names a key whose value is not JSON."""
        values = {key: _as_json(key, value) for key, value in state.items()}
        cleared = [key for key, value in values.items() if value is None] if self.none_clears else []
        return Delta({key: value for key, value in values.items() if key not in cleared}, cleared)

    def _apply_temp_state(self, session: Session, event: Event) -> None:
        kept = {key: value for key, value in event.actions.state_delta.items() if key.startswith(NEVER_STORED)}
        session.state.update(kept)

    def _trim_temp_delta_state(self, event: Event) -> Event:
        delta = event.actions.state_delta
        event.actions.state_delta = {key: value for key, value in delta.items() if not key.startswith(NEVER_STORED)}
        return event

    def _update_session_state(self, session: Session, event: Event) -> None:
        super()._update_session_state(session, event)
        for key, value in (event.actions.state_delta if self.none_clears else {}).items():
            if value is None:
                session.state.pop(key, None)


def _session(store: Store, record: Record, known: dict[Scope, Document | None] | None = None) -> Session:
    state, seen = app_sessions.values_of(store, record, known)
    if known is not None:
        state = deepcopy(state)  # nobody changes what several sessions share by changing one
    session = Session(
        id=app_id_of(record),
        app_name=record["app"],
        user_id=record["user"],
        state=state,
        last_update_time=event_time(record),
    )
    session._storage_update_marker = seen.text()  # noqa: SLF001  # see above
    return session


def register() -> None:
    """Lets ADK make a ``GaiaSessionService`` for every URI ``gaia:///absolute/path``; a second call changes nothing."""
    from google.adk.cli.service_registry import get_service_registry

    def make(uri: str, **options: object) -> GaiaSessionService:
        return GaiaSessionService(uri=uri, **options)  # type: ignore[arg-type]  # what ADK gives to every service

    get_service_registry().register_session_service(_SCHEME, make)


def _read_uri(uri: str) -> tuple[str, bool]:
    """The root that ``uri`` names, and whether None clears keys there. Raises ``ValueError``."""
    parsed = urlsplit(uri)
    options = parse_qs(parsed.query, keep_blank_values=True)
    path = unquote(parsed.path)
    if parsed.scheme != _SCHEME or parsed.netloc or parsed.fragment or not path.strip("/") or path[0] != "/":
        raise ValueError(f"{uri!r} names no directory: {_FORM}")
    if options not in ({}, {"none_clears": ["true"]}):
        raise ValueError(f"{uri!r} has an option that is not known: {_FORM}")
    return path, bool(options)


def _as_json(key: str, value: object) -> strict.Json:
    """``value`` as JSON, as ADK writes it. Raises ``InvalidInput`` that names ``key``.

    ADK alone would put a text, or null for what is no number, in the place of what cannot be JSON.
    """
    try:
        json.dumps(value)
    except TypeError:  # a model of ADK or a time, of which ADK knows how to write it
        try:
            value = Session(id="", app_name="", user_id="", state={key: value}).model_dump(mode="json")["state"][key]
        except ValueError as error:
            raise errors.InvalidInput(f"cannot be stored: {error}", key) from None
    except (ValueError, RecursionError) as error:
        raise errors.InvalidInput(f"cannot be stored: {error}", key) from None
    return strict.normalize_value(value, key)


@contextmanager
def _as_value_errors() -> Iterator[None]:
    """What cannot be stored is a ``ValueError``, as callers of ADK's services expect."""
    try:
        yield
    except errors.InvalidInput as error:
        raise ValueError(str(error)) from error


def _written(event: Event, delta: Delta) -> str:
    """The event as ADK writes it, with ``delta``: the state has just the same. Raises ``ValueError``."""
    changed = {**dict.fromkeys(delta.unset), **delta.set}
    actions = event.actions.model_copy(update={"state_delta": changed})
    text = event.model_copy(update={"actions": actions}).model_dump_json(exclude_none=True)
    Event.model_validate_json(text)  # what ADK could not read again would make the session unreadable
    return text


def _not_found(session: Session) -> NoReturn:
    raise SessionNotFoundError(f"Session {session.id} not found.")
