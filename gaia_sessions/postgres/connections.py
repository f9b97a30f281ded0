"""The door of psycopg: the connections of this process to one server, and what its errors mean.

An idle connection is closed after a moment, so a process that waits holds none.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from contextlib import contextmanager, suppress
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import errors as sql_errors
from psycopg.conninfo import conninfo_to_dict

from gaia_sessions.errors import BadSetting, StoreFailure, plural
from gaia_sessions.errors.others import NotWritten
from gaia_sessions.system.project_root import ROOT_VARIABLE
from gaia_sessions.system.server_url import SECRETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from psycopg.abc import PQGen

    from gaia_sessions.errors import SessionsError

    Row = tuple[Any, ...]

_Result = TypeVar("_Result")

LockNotAvailable = sql_errors.LockNotAvailable
Refused = psycopg.Error
"""Any error of the driver or the server."""

_SECONDS_TO_CONNECT = 5
_SECONDS_FOR_ANSWER = 20.0
"""How long an answer may take besides the wait for a lock."""

_SECONDS_IDLE = 0.1
_SECONDS_BETWEEN_TRIES = 0.1
_SECONDS_CHECKED = 60.0
_MOST_CONNECTIONS = 8
"""How many connections a process has at most; more threads wait."""

_STARTUP = {
    "client_encoding": "UTF8",
    "connect_timeout": str(_SECONDS_TO_CONNECT),
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "fallback_application_name": "gaia-sessions",
}
_LOST_CLASS = "08"
_ENDED_BY_SERVER = frozenset(["57P01", "57P02", "57P03", "57P05", "25P03", "25P04"])
"""The server ended the connection: it stops or starts, or a transaction was idle for too long."""

_FORBIDDEN = "42501"
_READ_ONLY = "25006"
_REPEATABLE = frozenset(["40001", "40P01", "55P03"])
"""Another transaction was in the way: repeated, this one succeeds."""

_MAY_PASS = (
    *("database system is", "shutting down", "terminating connection", "read-only", "too many c", "connection slots"),
    *("no more connections", "login has been failing", "cannot connect to server"),  # of pgbouncer
)
"""Words of a refused connection that the next try may get."""

_LASTING = "certificate", "SSL", "private key", "no password supplied", "authentication method", "service", "invalid"
"""Words of a refused connection that the next try will not get either."""

_ORIGIN = f"root (or {ROOT_VARIABLE})"
_TLS_MODES = "require", "verify-ca", "verify-full"
_OWN_ROOT = "~/.postgresql/root.crt"
"""The file with the certificates that libpq trusts."""

_WORDS_OF_DRIVER = "connection failed: ", "connection is bad: ", "fe_sendauth: ", "FATAL:  "
"""Words of an error that say nothing to a reader."""

_NOT_SET_UP = "42P01", "3F000"
_HINTS = {
    "53100": "free some space on the server, then try again",
}
_TRY_AGAIN = "check that the server runs and can be reached, then try again"
_SEE_LOG = "the log of the server says more"
_FREE_CONNECTIONS = (
    "try again later; if it happens often, an administrator must allow more connections, or set up a pooler"
)
_HINTS_OF_WORDS = {
    "no password supplied": "write the password in ~/.pgpass, which only you may read, or set PGPASSWORD",
    "password authentication failed": "write the right password in ~/.pgpass or the service file, or set PGPASSWORD; "
    "if it is right, ask an administrator whether the role exists and has expired",
    "authentication method": "correct require_auth in the URL or in PGREQUIREAUTH",
    "not permitted to log in": "ask an administrator to type: ALTER ROLE NAME LOGIN",
    "permission denied for database": "ask an administrator to type: GRANT CONNECT ON DATABASE NAME TO ROLE",
    "pg_hba.conf": "an administrator must allow this connection in pg_hba.conf of the server",
    "too many c": _FREE_CONNECTIONS,
    "connection slots": _FREE_CONNECTIONS,
    "no more connections": _FREE_CONNECTIONS,
    "does not match host name": "write the host in the URL as its certificate names it",
    "root certificate file": "write the file with the certificate of the issuer: sslrootcert=FILE in the URL",
    "private key": "name the files of your own certificate: sslcert=FILE and sslkey=FILE in the URL",
    "certificate": "if the server has a certificate of your own issuer, write that of the issuer to "
    "~/.postgresql/root.crt; "
    "if it has expired, its administrator must renew it",
    "SSL": "the server has no TLS: its administrator must set it up",
    "resolve host": "check the name of the host in the URL, and whether this machine can look up names",
    "service": "write the service in ~/.pg_service.conf, or correct the URL",
    "invalid": "correct the URL",
    "does not exist": "correct the URL, or make the database and the role: createdb, createuser",
}
"""What to do about a refused connection, by words of the refusal."""


class NoAnswer(psycopg.OperationalError):
    """The server, or a pooler before it, did not answer in time."""


class Connection(psycopg.Connection[Any]):
    """A connection that waits only so long for an answer: a pooler that is stopped never gives one."""

    seconds = _SECONDS_FOR_ANSWER

    def wait(self, gen: PQGen[_Result], interval: float = 0.1, timeout: float | None = None) -> _Result:
        seconds = self.seconds if timeout is None else timeout
        until = time.monotonic() + seconds
        try:
            return super().wait(gen, interval, seconds)
        except psycopg.OperationalError as error:
            if time.monotonic() >= until:
                self.close()
                raise NoAnswer("the server did not answer in time") from error
            raise


class Server:
    """The server of one URL, for all threads of this process."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._changing = threading.Lock()
        self._idle: list[tuple[Connection, float]] = []
        self._closer: threading.Timer | None = None
        self.seconds_at_first: float | None = None  # for the first answer; None: as long as for later ones
        self.has_answered = False
        self._checked = float("-inf")  # when the schema was found to be this version's
        self.revisions: dict[str, tuple[int, int]] = {}  # the incarnation and the highest known revision of a session

    @property
    def is_checked(self) -> bool:
        """Whether the schema was this version's a moment ago: another program may bring it to a later version."""
        return time.monotonic() - self._checked < _SECONDS_CHECKED

    def note_checked(self) -> None:
        self._checked = time.monotonic()

    @contextmanager
    def connection(self, until: float) -> Iterator[Connection]:
        """Yields a connection; waits for one, and for the server, until the monotonic time ``until``."""
        connection = self.take(until)
        try:
            yield connection
        except BaseException:
            self.give(connection, is_usable=False)
            raise
        self.give(connection)

    def asked(self, action: str, seconds: float, ask: Callable[[Connection], _Result]) -> _Result:
        """Returns what ``ask`` returns; asks again on another connection if the first one is lost."""
        until = time.monotonic() + seconds
        while True:
            connection = self.take(until)
            try:
                answer = ask(connection)
            except Refused as error:
                lost = is_lost(connection, error)
                self.give(connection, is_usable=False)
                if not lost or time.monotonic() >= until:
                    raise refusal(action, self.url, error) from error
                self.close_idle()
                time.sleep(_SECONDS_BETWEEN_TRIES)
            except BaseException:
                self.give(connection, is_usable=False)
                raise
            else:
                self.give(connection)
                return answer

    def take(self, until: float) -> Connection:
        if not self._free.acquire(timeout=max(0.0, until - time.monotonic())):
            raise StoreFailure("reach", self.url, f"all {_MOST_CONNECTIONS} connections are in use", "try again")
        try:
            with self._changing:
                while self._idle:
                    connection, _ = self._idle.pop()
                    if not connection.closed:
                        return connection
            if self.has_answered or self.seconds_at_first is None:
                connection = self._new(until)
            else:
                connection = self._first(self.seconds_at_first)
        except BaseException:
            self._free.release()
            raise
        self.has_answered = True
        return connection

    def _first(self, seconds: float) -> Connection:
        """Returns a connection on which the server has answered within ``seconds``, whatever it is that takes long."""
        answers: list[Connection | Exception] = []  # the first one counts

        def ask() -> None:
            try:
                connection = self._new(time.monotonic() + seconds / 2)
                execute(connection, "SELECT 1")  # a pooler accepts connections that lead to no server
            except Exception as error:  # noqa: BLE001  # the thread that waits raises it
                answers.append(error)
            else:
                answers.append(connection)
                if answers[0] is not connection:  # nobody waits for it any more
                    connection.close()

        asking = threading.Thread(target=ask, name="gaia-sessions first answer", daemon=True)
        asking.start()
        asking.join(seconds)
        late = f"no answer within {plural(round(seconds), 'second')}"
        answers.append(StoreFailure("connect", self.url, late, _TRY_AGAIN))
        answer = answers[0]
        if isinstance(answer, Connection):
            return answer
        raise refusal("connect", self.url, answer) if isinstance(answer, psycopg.Error) else answer

    def _new(self, until: float) -> Connection:
        options = _startup(self.url)
        while True:
            try:
                return Connection.connect(self.url, autocommit=True, prepare_threshold=None, **options)
            except psycopg.Error as error:
                if time.monotonic() >= until or not _may_pass(error):
                    text = _first_line(error)
                    raise StoreFailure("connect", self.url, text, _hint_for(text)) from None
            time.sleep(_SECONDS_BETWEEN_TRIES)

    def give(self, connection: Connection, *, is_usable: bool = True) -> None:
        """Takes a connection back. It stays open for a moment if it ``is_usable`` and in no transaction."""
        is_idle = not connection.closed and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        try:
            if is_usable and is_idle:
                with self._changing:
                    self._idle.append((connection, time.monotonic()))
                    if self._closer is None:
                        self._close_later(_SECONDS_IDLE)
            else:
                connection.close()
        finally:
            self._free.release()

    def _close_later(self, seconds: float) -> None:
        closer = threading.Timer(seconds, self._close_idle)
        closer.daemon = True
        with suppress(RuntimeError):  # no thread can begin, as when the interpreter ends
            closer.start()
            self._closer = closer

    def _close_idle(self) -> None:
        with self._changing:
            latest = time.monotonic() - _SECONDS_IDLE
            old = [connection for connection, since in self._idle if since <= latest]
            self._idle = [one for one in self._idle if one[1] > latest]
            self._closer = None
            if self._idle:  # the first one is idle for the longest time
                self._close_later(self._idle[0][1] - latest)
        for connection in old:
            connection.close()

    def close_idle(self) -> None:
        """Closes the connections that nobody uses: after one was lost, the others are useless too."""
        with self._changing:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def forget(self) -> list[Connection]:
        """Drops the connections of the parent of a forked process, without closing them: the parent uses them."""
        kept, self._idle = self._idle, []
        self._free, self._changing = threading.BoundedSemaphore(_MOST_CONNECTIONS), threading.Lock()
        self._closer = None
        return [connection for connection, _ in kept]


_servers: dict[str, Server] = {}
_of_parent: list[object] = []


def server_of(url: str) -> Server:
    """Returns the server of ``url``, the same object for the whole process."""
    return _servers.setdefault(url, Server(url))


def is_silent(url: str) -> bool:
    """Returns whether this process uses the server, and has not got an answer yet."""
    server = _servers.get(url)
    return server is not None and not server.has_answered


def _forget_all() -> None:
    _of_parent.extend([(server, server.forget()) for server in _servers.values()])
    _servers.clear()


def _close_all() -> None:
    for server in _servers.values():
        server.close_idle()


logging.getLogger("psycopg").addHandler(logging.NullHandler())  # else its warnings are on stderr
os.register_at_fork(after_in_child=_forget_all)
atexit.register(_close_all)


def execute(connection: Connection, sql: str, *, seconds: float = 0.0) -> list[Row]:
    """Sends ``sql``, one or more statements, as one message; returns the rows of the last statement that has rows.

    seconds: how long the statements may wait for a lock.
    """
    connection.seconds = _SECONDS_FOR_ANSWER + seconds
    cursor = psycopg.ClientCursor(connection)
    cursor.execute(sql)
    rows: list[Row] = []
    while True:
        if cursor.description is not None:
            rows = cursor.fetchall()
        if not cursor.nextset():
            return rows


def with_values(connection: Connection, sql: str, values: Sequence[object]) -> str:
    """Returns ``sql`` with its placeholders replaced by the quoted ``values``."""
    return psycopg.ClientCursor(connection).mogrify(sql, values) if values else sql


def is_lost(connection: Connection, error: BaseException) -> bool:
    """Returns whether the connection is of no more use, so that what it did not commit is not written."""
    if connection.closed or connection.broken:
        return True
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    return state is not None and (state[:2] == _LOST_CLASS or state in _ENDED_BY_SERVER or state == _READ_ONLY)


def is_refused(connection: Connection, error: psycopg.Error) -> bool:
    """Returns whether the server itself says that it did not do what was asked."""
    return not is_lost(connection, error) or (error.sqlstate == _READ_ONLY and not connection.closed)


def is_repeatable(error: psycopg.Error) -> bool:
    """Returns whether the same transaction can succeed if it is repeated."""
    return error.sqlstate in _REPEATABLE


def not_written(url: str, error: BaseException) -> NotWritten:
    return NotWritten(url, _first_line(error))


def refusal(action: str, url: str, error: psycopg.Error) -> SessionsError:
    """Returns our error for an ``error`` of the server."""
    state = error.sqlstate or ""
    if state in _NOT_SET_UP:
        return no_tables(action, url)
    reason = _first_line(error)
    if state == _FORBIDDEN:
        return StoreFailure(action, url, reason, _hint_for_rights(url, reason))
    hint = _HINTS.get(state, _SEE_LOG) if is_answer(error) else _TRY_AGAIN
    return StoreFailure(action, url, reason, hint)


def _hint_for_rights(url: str, reason: str) -> str:
    if "for database" in reason:
        return "connect as the owner of the database, or ask the owner to type: GRANT CREATE ON DATABASE NAME TO ROLE"
    return f"to see the rights that this role lacks, type: gaia-sessions --root {quote(url)} doctor"


def is_answer(error: psycopg.Error) -> bool:
    """Returns whether the server itself refused something, so that it can be reached."""
    return error.sqlstate is not None and error.sqlstate not in _ENDED_BY_SERVER


def _hint_for(text: str) -> str:
    return next((hint for words, hint in _HINTS_OF_WORDS.items() if words in text), _TRY_AGAIN)


def no_tables(action: str, url: str) -> StoreFailure:
    hint = f"type: gaia-sessions --root {quote(url)} store init"
    return StoreFailure(action, url, "the database has no tables of gaia-sessions", hint)


def _first_line(error: BaseException) -> str:
    found = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    lines = [line.strip() for line in (found or str(error)).splitlines() if line.strip()]
    text = lines[0] if lines else "it failed"
    for words in _WORDS_OF_DRIVER:
        text = text.replace(words, "")
    return text


def _may_pass(error: psycopg.Error) -> bool:
    text = str(error)
    if "FATAL" in text:
        return any(words in text for words in _MAY_PASS)
    return not any(word in text for word in _LASTING)


def _startup(url: str) -> dict[str, Any]:
    options = _options_of(url)
    asked = {name: value for name, value in _STARTUP.items() if name not in options}
    return {**asked, **_verification(_resolved(url, options))}


def _verification(asked: dict[str, str]) -> dict[str, str]:
    """Returns the options that make the client verify the server, if TLS is asked for."""
    mode = asked.get("sslmode")
    if mode not in _TLS_MODES:
        return {}
    verified = {} if mode == "verify-ca" else {"sslmode": "verify-full"}
    if "sslrootcert" in asked or os.path.exists(os.path.expanduser(_OWN_ROOT)):
        return verified
    import ssl  # to find the certificates of this system

    return {**verified, "sslrootcert": ssl.get_default_verify_paths().cafile or "system"}


def _resolved(url: str, options: dict[str, Any]) -> dict[str, str]:
    """Returns the options in effect: of the URL, the environment, and the service that one of them names."""
    found = psycopg.pq.Conninfo.get_defaults()
    if "service" in options:  # the driver reads its file when it begins to connect
        beginning = psycopg.pq.PGconn.connect_start(url.encode())
        found = beginning.info
        beginning.finish()
    return {one.keyword.decode(): one.val.decode() for one in found if one.val} | options


def _options_of(url: str) -> dict[str, Any]:
    try:
        options = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # its text may have a part of a secret
        raise BadSetting(_ORIGIN, "is no valid URL", "write postgresql://HOST/DATABASE") from None
    if SECRETS & options.keys():
        raise BadSetting(_ORIGIN, "has a password", "take the password out of the URL")
    return options
