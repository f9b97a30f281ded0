"""ADK's session service on our store: the one module that loads google-adk.

Threads do the work, so that no other conversation waits for a disk or a server. What a program has seen of a session is
in a text that ADK stores in a session object.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote, urlsplit
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
from gaia_sessions.system.server_url import SCHEMES, checked

from .app_events import app_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Concatenate, ParamSpec, TypeVar

    from gaia_sessions.api.at import Root
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.store.port import Store

    Arguments = ParamSpec("Arguments")
    Result = TypeVar("Result")

DEFAULT_ROOT = os.path.join(".adk", "gaia-sessions")
"""The default folder of the sessions, below the working directory."""

_SCHEME, _ON_SERVER = "gaia", "gaia+postgresql"
_CLEARS = "none_clears"
_FORM = (
    f"write {_SCHEME}:///absolute/path or {_ON_SERVER}://HOST/DATABASE, and add ?{_CLEARS}=true if None clears a key"
)


class GaiaSessionService(BaseSessionService):
    """Stores the sessions, events and states of ADK durably in our store.

    If another process, task or command has changed the session since the session object was loaded, ``append_event``
    raises ``StaleSessionError`` and stores nothing: load the session again with ``get_session``, and repeat. The same
    happens with a session object that was read from JSON.

    A value that is not JSON, or a key of more than 256 characters, is a ``ValueError`` that names the key. Every method
    may raise errors of ``gaia_sessions.errors`` about the disk, the server, locks and damaged files.

    Args:
        root: The folder of the sessions, or a database: ``postgresql://HOST/DATABASE``. The default is
            ``.adk/gaia-sessions``.
        uri: The same as ``gaia:///absolute/path`` or ``gaia+postgresql://HOST/DATABASE``, instead of ``root``.
        none_clears: Whether None in a state delta clears the key. By default None is a value, as in ADK's services.
        _: Other options, which ADK gives to every service, are ignored.
    """

    def __init__(
        self,
        *,
        root: Root = None,
        uri: str | None = None,
        none_clears: bool = False,
        **_: object,
    ) -> None:
        if root is not None and uri is not None:
            raise ValueError(f"give root or uri, not both; for uri, {_FORM}")
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
        """Creates a session. If its ID had one before, also an ended one, raises ``AlreadyExistsError``."""
        return await self._call(self._create, app_name, user_id, state or {}, (session_id or "").strip())

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Returns a session, also an ended one, with ``num_recent_events`` of those after ``after_timestamp``."""
        return await self._call(self._get, app_name, user_id, session_id.strip(), config or GetSessionConfig())

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Returns the open sessions that can be read, the oldest update first."""
        return await self._call(self._list, app_name, user_id)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Deletes a session, if it exists. State that it shares stays."""
        who = app_name, user_id, session_id.strip()
        await self._call(app_sessions.remove, utc_now(), self._limits, *who)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Returns the state of a user."""
        document = await self._call(lambda store: store.document((app_name, user_id)))
        return dict(document["state"]) if document else {}

    async def append_event(self, session: Session, event: Event) -> Event:
        """Stores an event. ``temp:`` and ``secret:`` keys change only the session object.

        Raises:
            StaleSessionError: the session has changed since it was loaded.
            SessionNotFoundError: the session was deleted or has ended.
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
            while not work.done():  # a thread ends what it began, even if this is cancelled
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
        """Returns what ``do`` returns in a thread, with a store that is open for this one call."""

        def call() -> Result:
            with self._sessions.store as store:
                return store.repeated(lambda: do(store, *arguments, **named))

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
            with suppress(errors.SessionNotFound):  # it was removed or begun again just now
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
        with suppress(errors.StoreFailure):  # without an index, one user's sessions cost as much as all
            store.ensure_index()
        found = [_session(store, record, known) for record in app_sessions.going_on(store, app, user)]
        return ListSessionsResponse(sessions=sorted(found, key=lambda one: (one.last_update_time, one.user_id, one.id)))

    def _append(self, store: Store, session: Session, event: Event, seen: Seen | None) -> tuple[str, float]:
        with _as_value_errors():
            record = app_sessions.find(store, session.app_name, session.user_id, session.id)
            if record is None or not is_open(record):
                _not_found(session)
            if seen is None:
                raise StaleSessionError(f"Session {session.id} was not loaded here: load it with get_session.")
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
        """Returns the delta that ADK writes as ``state``."""
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
        state = deepcopy(state)  # a change of one session must not change the others
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
    """Lets ADK make a ``GaiaSessionService`` for every URI with one of its two schemes. May be called again."""
    from google.adk.cli.service_registry import get_service_registry

    def make(uri: str, **options: object) -> GaiaSessionService:
        return GaiaSessionService(uri=uri, **options)  # type: ignore[arg-type]  # what ADK gives to every service

    for scheme in (_SCHEME, _ON_SERVER):
        get_service_registry().register_session_service(scheme, make)


def _read_uri(uri: str) -> tuple[str, bool]:
    """Returns the root that ``uri`` names, and whether None clears keys there."""
    # No message shows the URI, which may have a password.
    parsed = urlsplit(uri)
    options = parsed.query.split("&") if parsed.query else []
    kept = [option for option in options if option.partition("=")[0] != _CLEARS]
    clears = [option for option in options if option not in kept]
    is_on_server = parsed.scheme.removeprefix(f"{_SCHEME}+") in SCHEMES
    if clears not in ([], [f"{_CLEARS}=true"]) or (kept and not is_on_server):
        raise ValueError(f"the URI has an unknown option: {_FORM}")
    if is_on_server and not parsed.fragment:
        return _url(parsed.netloc + parsed.path, kept), bool(clears)
    path = unquote(parsed.path)
    if parsed.scheme != _SCHEME or parsed.netloc or parsed.fragment or not path.strip("/") or path[0] != "/":
        raise ValueError(f"the URI names no folder and no database: {_FORM}")
    return path, bool(clears)


def _url(place: str, options: list[str]) -> str:
    """Returns the URL of a database at ``place``, with ``options`` of the driver."""
    try:
        return checked("uri", "?".join([f"{SCHEMES[0]}://{place}", *filter(None, ["&".join(options)])]))
    except errors.BadSetting as error:
        raise ValueError(f"{error}: {error.hint}") from None


def _as_json(key: str, value: object) -> strict.Json:
    """Returns ``value`` as JSON, as ADK writes it."""
    # ADK alone would write a text instead of what cannot be JSON, and null instead of what is no number.
    try:
        json.dumps(value)
    except TypeError:  # a model of ADK or a time, which ADK can write
        try:
            value = Session(id="", app_name="", user_id="", state={key: value}).model_dump(mode="json")["state"][key]
        except ValueError as error:
            raise errors.InvalidInput(f"cannot be stored: {error}", key) from None
    except (ValueError, RecursionError) as error:
        raise errors.InvalidInput(f"cannot be stored: {error}", key) from None
    return strict.normalize_value(value, key)


@contextmanager
def _as_value_errors() -> Iterator[None]:
    """Turns ``InvalidInput`` into ``ValueError``, as callers of ADK's services expect."""
    try:
        yield
    except errors.InvalidInput as error:
        raise ValueError(str(error)) from error


def _written(event: Event, delta: Delta) -> str:
    """Returns the event as ADK writes it, with ``delta``, so that it equals the state."""
    changed = {**dict.fromkeys(delta.unset), **delta.set}
    actions = event.actions.model_copy(update={"state_delta": changed})
    text = event.model_copy(update={"actions": actions}).model_dump_json(exclude_none=True)
    Event.model_validate_json(text)  # if ADK cannot read it again, the session would be unreadable
    return text


def _not_found(session: Session) -> NoReturn:
    raise SessionNotFoundError(f"Session {session.id} not found.")
