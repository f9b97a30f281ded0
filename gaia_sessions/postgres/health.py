"""What an operator must know of a server and its tables. It is read, and no session is changed."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TypedDict

from gaia_sessions.jsonio.strict import load_object
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.index_keys import ACTIVE_KEY
from gaia_sessions.session.record import SCHEMA_WHILE_MOVING, moving_of
from gaia_sessions.system import utc_now

from . import schema
from .connections import Refused, execute, server_of, with_values
from .reader import digest_of
from .schema import IS_GONE, NOTE_TIMELINE, READ_KEEP_DAYS, RIGHTS, SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .connections import Connection, Server


class Table(TypedDict):
    """The size of a table with its indexes; ``rows`` and ``dead_rows`` are estimates of the server."""

    table: str
    rows: int
    dead_rows: int
    bytes: int


class Timeline(TypedDict):
    """A timeline of the server, and when it was first seen."""

    timeline: int
    seen_at: str


class Contents(TypedDict):
    """What there is in tables of this version."""

    schema: int
    sessions: int
    open_sessions: int
    oldest: str | None  # when the session began that was stored first
    removed_sessions: int  # whose rows the next cleanup removes
    last_cleanup: str | None
    keep_days: float
    moving: list[str]  # sessions whose move to or from another root has not ended
    bytes: int
    tables: list[Table]
    timelines: list[Timeline]


class Info(Contents):
    """What there is on the server."""

    host: str
    port: int
    database: str
    user: str
    postgresql: str


class Facts(TypedDict):
    """What can be wrong with a server; names of roles and databases are quoted as in SQL."""

    postgresql: str
    version_number: int
    encoding: str
    database: str
    role: str
    is_superuser: bool
    is_owner: bool  # of the schema
    missing_rights: list[str]  # as "SELECT session", "EXECUTE lapse"
    is_standby: bool
    is_read_only: bool
    fsync: bool
    full_page_writes: bool
    autovacuum: bool
    connections: int
    most_connections: int  # for ordinary roles
    now: str  # the clock of the server
    ahead: float  # by how many seconds the clock of the server is ahead of ours
    imprecision: float  # by how many seconds ``ahead`` can be wrong
    way: str  # SOCKET, LOOPBACK, PLAIN, UNVERIFIED or VERIFIED
    schema: int | None  # the version of the tables; None: it cannot be read
    contents: Contents | None  # None if the tables cannot be read
    pooler: str | None  # TRANSACTION, SESSION or STATEMENT; None: there is none


SOCKET, LOOPBACK, PLAIN, UNVERIFIED, VERIFIED = "socket", "loopback", "plain", "unverified", "verified"
TRANSACTION, SESSION, STATEMENT = "transaction", "session", "statement"

_SECONDS = 10.0
_WANTED = ", ".join(f"('{table}', '{right}')" for table, rights in RIGHTS.items() for right in rights.split())
_MISSING = f"""
SELECT 'USAGE {SCHEMA}' FROM space WHERE NOT has_schema_privilege(oid, 'USAGE')
UNION ALL SELECT privilege || ' ' || relname
    FROM (VALUES {_WANTED}) wanted (name, privilege)
    JOIN pg_class ON relname = name JOIN space ON relnamespace = space.oid
    WHERE NOT has_table_privilege(pg_class.oid, privilege)
UNION ALL SELECT 'EXECUTE ' || proname FROM pg_proc JOIN space ON pronamespace = space.oid
    WHERE NOT has_function_privilege(pg_proc.oid, 'EXECUTE')
"""
_SERVER = f"""
WITH space AS (SELECT oid, nspowner FROM pg_namespace WHERE nspname = '{SCHEMA}')
SELECT to_json(facts) FROM (SELECT
    current_setting('server_version') AS postgresql,
    current_setting('server_version_num')::integer AS version_number,
    current_setting('server_encoding') AS encoding,
    quote_ident(current_database()) AS database,
    quote_ident(current_user) AS role,
    rolsuper AS is_superuser,
    EXISTS (SELECT FROM space WHERE pg_has_role(nspowner, 'USAGE')) AS is_owner,
    ARRAY({_MISSING}) AS missing_rights,
    pg_is_in_recovery() AS is_standby,
    current_setting('transaction_read_only') = 'on' AS is_read_only,
    current_setting('fsync') = 'on' AS fsync,
    current_setting('full_page_writes') = 'on' AS full_page_writes,
    current_setting('autovacuum') = 'on' AS autovacuum,
    (SELECT sum(numbackends) FROM pg_stat_database) AS connections,
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
        - coalesce(current_setting('reserved_connections', true)::integer, 0) AS most_connections,
    pg_backend_pid() AS process,
    extract(epoch FROM clock_timestamp())::float8 AS clock
    FROM pg_roles WHERE rolname = current_user) facts
"""
_NAMES = "SELECT current_database(), current_user, current_setting('server_version')"
_CONTENTS = f"""
SELECT to_json(facts) FROM (SELECT
    (SELECT count(*) FROM {SCHEMA}.session) AS sessions,
    (SELECT count(*) FROM {SCHEMA}.session_key WHERE key = %s) AS open_sessions,
    (SELECT min(substring(record FROM '"created_at": *"([^"]*)"')) FROM {SCHEMA}.session) AS oldest,
    (SELECT count(*) FROM {SCHEMA}.deleted WHERE {IS_GONE}) AS removed_sessions,
    (SELECT value::float8 FROM {SCHEMA}.setting WHERE name = 'last_cleanup') AS last_cleanup,
    ({READ_KEEP_DAYS}) AS keep_days) facts
"""
_MOVING = f"""
SELECT id, record FROM {SCHEMA}.session JOIN {SCHEMA}.session_key USING (incarnation)
WHERE key = %s AND position('"schema": {SCHEMA_WHILE_MOVING},' IN record) > 0 ORDER BY id
"""
_TABLES = f"""
SELECT relname, n_live_tup, n_dead_tup, pg_total_relation_size(relid) FROM pg_stat_user_tables
WHERE schemaname = '{SCHEMA}' ORDER BY 4 DESC, 1
"""
_MAY_WRITE = f"""
SELECT current_setting('transaction_read_only') = 'off' AND has_table_privilege('{SCHEMA}.timeline', 'INSERT')
"""
_TIMELINES = f"SELECT timeline, extract(epoch FROM at)::float8 FROM {SCHEMA}.timeline ORDER BY at"
_NEEDED_TO_LOOK = f"USAGE {SCHEMA}", "SELECT migration"


def info(url: str) -> Info:
    """Returns what is on the server; notes its timeline, unless the server or the role may only read."""

    def look(connection: Connection) -> Info:
        schema.check_version(schema.version_of(connection), url)
        [[may_write]] = execute(connection, _MAY_WRITE)
        if may_write:
            execute(connection, NOTE_TIMELINE)
        [[database, user, version]] = execute(connection, _NAMES)
        return {
            "host": connection.info.host,
            "port": connection.info.port,
            "database": database,
            "user": user,
            "postgresql": version,
            **_contents(connection),
        }

    return server_of(url).asked("look", _SECONDS, look)


def examine(url: str, seconds: float) -> Facts:
    """Returns what can be wrong with a server that answers within ``seconds``, and writes nothing."""
    server = server_of(url)
    server.seconds_at_first = seconds
    return server.asked("look", seconds, lambda connection: _facts(server, connection))


def _facts(server: Server, connection: Connection) -> Facts:
    before = utc_now().timestamp()
    [[found]] = execute(connection, _SERVER)
    after = utc_now().timestamp()
    clock = found.pop("clock")
    is_pooled = found.pop("process") != connection.info.backend_pid  # a pooler invents one
    version = _version(connection, found["missing_rights"])
    can_read = version == schema.VERSION and not any("SELECT" in right for right in found["missing_rights"])
    return {  # type: ignore[typeddict-item]  # the names in the statement are those of the type
        **found,
        "now": _time(clock),
        "ahead": clock - (before + after) / 2,
        "imprecision": (after - before) / 2,
        "way": _way(connection),
        "schema": version,
        "contents": _contents(connection) if can_read else None,
        "pooler": _mode(server, connection) if is_pooled else None,
    }


def _version(connection: Connection, missing: list[str]) -> int | None:
    return None if any(right in _NEEDED_TO_LOOK for right in missing) else schema.version_of(connection)


def _contents(connection: Connection) -> Contents:
    [[found]] = execute(connection, with_values(connection, _CONTENTS, [digest_of(ACTIVE_KEY)]))
    tables, timelines = execute(connection, _TABLES), execute(connection, _TIMELINES)
    moving = execute(connection, with_values(connection, _MOVING, [digest_of(ACTIVE_KEY)]))
    return {  # type: ignore[typeddict-item]  # as above
        "schema": schema.VERSION,
        **found,
        "oldest": _as_time(found["oldest"]),
        "moving": [agent_id for agent_id, record in moving if moving_of(load_object(record.encode()))],
        "last_cleanup": None if found["last_cleanup"] is None else _time(found["last_cleanup"]),
        "bytes": sum(size for *_, size in tables),
        "tables": [
            {"table": name, "rows": rows, "dead_rows": dead, "bytes": size} for name, rows, dead, size in tables
        ],
        "timelines": [{"timeline": int(timeline, 16), "seen_at": _time(at)} for timeline, at in timelines],
    }


def _as_time(text: object) -> str | None:
    """Returns the time in a record; None if there is none, or nobody can read it."""
    with suppress(ValueError):
        return format_time(parse_time(text))
    return None


def _time(epoch: float) -> str:
    return format_time(datetime.fromtimestamp(epoch, UTC))


def _way(connection: Connection) -> str:
    """Returns how the connection comes to the server, or to the pooler before it."""
    info = connection.info
    if connection.pgconn.ssl_in_use:
        modes = [one.val for one in connection.pgconn.info if one.keyword == b"sslmode"]  # in effect
        return VERIFIED if modes in ([b"verify-ca"], [b"verify-full"]) else UNVERIFIED
    if not info.hostaddr:
        return SOCKET
    return LOOPBACK if ip_address(info.hostaddr.partition("%")[0]).is_loopback else PLAIN


def _mode(server: Server, connection: Connection) -> str:
    """Returns for how long the pooler gives a connection of the server to a client.

    If another client gets the same one, or this one gets another, then it is for a transaction.
    """
    try:
        first = _begin(connection)
        execute(connection, "ROLLBACK")
    except Refused:
        return STATEMENT
    with server.connection(time.monotonic() + _SECONDS) as other:
        try:
            is_shared = _begin(other) == first or _begin(connection) != first
        except Refused:  # it waits for the connection that the first one keeps
            return SESSION
        finally:
            for one in (other, connection):
                with suppress(Refused):
                    execute(one, "ROLLBACK")
    return TRANSACTION if is_shared else SESSION


def _begin(connection: Connection) -> int:
    [[process]] = execute(connection, "BEGIN; SELECT pg_backend_pid()")
    return int(process)
