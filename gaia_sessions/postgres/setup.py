"""What an operator does with the tables: makes them, brings them to this version, and looks at them."""

from __future__ import annotations

from datetime import UTC, datetime

from gaia_sessions.errors import BadArgument
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.index_keys import ACTIVE_KEY

from . import schema
from .connections import execute, server_of, with_values
from .reader import digest_of
from .schema import NOTE_TIMELINE, READ_KEEP_DAYS, SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from .connections import Connection

    class Changed(TypedDict):
        """What was done: the versions of the tables that were made, and the version now."""

        made: list[int]
        schema: int
        keep_days: float

    class Table(TypedDict):
        """The size of a table with its indexes; ``rows`` is the estimate of the server."""

        table: str
        rows: int
        bytes: int

    class Timeline(TypedDict):
        """A timeline of the server, and when it was first seen."""

        timeline: int
        seen_at: str

    class Info(TypedDict):
        """What there is on the server."""

        host: str
        port: int
        database: str
        user: str
        postgresql: str
        schema: int
        sessions: int
        open_sessions: int
        keep_days: float
        bytes: int
        tables: list[Table]
        timelines: list[Timeline]


_SECONDS = 10.0
_MOST_DAYS = 999_999_999
_SET_KEEP_DAYS = (
    f"INSERT INTO {SCHEMA}.setting (name, value) VALUES ('keep_days', %s) "
    "ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value"
)
_COUNTS = f"""
SELECT current_database(), current_user, current_setting('server_version'),
    (SELECT count(*) FROM {SCHEMA}.session), (SELECT count(*) FROM {SCHEMA}.session_key WHERE key = %s)
"""
_TABLES = f"""
SELECT relname, n_live_tup, pg_total_relation_size(relid) FROM pg_stat_user_tables
WHERE schemaname = '{SCHEMA}' ORDER BY 3 DESC, 1
"""
_TIMELINES = f"SELECT timeline, extract(epoch FROM at)::float8 FROM {SCHEMA}.timeline ORDER BY at"


def init(url: str, keep_days: float | None = None) -> Changed:
    """Makes the tables, or brings them to this version; sets for how many days ``cleanup`` keeps sessions."""
    if keep_days is not None and not 0 <= keep_days <= _MOST_DAYS:
        raise BadArgument("keep_days", keep_days, f"a number from 0 to {_MOST_DAYS}")

    def make(connection: Connection) -> Changed:
        made = schema.migrate(connection, url)
        if keep_days is not None:
            execute(connection, with_values(connection, _SET_KEEP_DAYS, [repr(float(keep_days))]))
        return _changed(connection, made)

    return server_of(url).asked("make the tables", _SECONDS, make)


def migrate(url: str) -> Changed:
    """Brings tables that exist to this version."""

    def change(connection: Connection) -> Changed:
        schema.check_exists(schema.version_of(connection), url)
        return _changed(connection, schema.migrate(connection, url))

    return server_of(url).asked("change the tables", _SECONDS, change)


def info(url: str) -> Info:
    """Returns what is on the server; notes its timeline, unless the server is read-only."""

    def look(connection: Connection) -> Info:
        schema.check_version(schema.version_of(connection), url)
        [[is_read_only]] = execute(connection, "SELECT current_setting('transaction_read_only') = 'on'")
        if not is_read_only:
            execute(connection, NOTE_TIMELINE)
        return _info(connection)

    return server_of(url).asked("look", _SECONDS, look)


def _changed(connection: Connection, made: list[int]) -> Changed:
    execute(connection, NOTE_TIMELINE)
    [[days]] = execute(connection, READ_KEEP_DAYS)
    return {"made": made, "schema": schema.VERSION, "keep_days": days}


def _info(connection: Connection) -> Info:
    values = [digest_of(ACTIVE_KEY)]
    [[database, user, version, sessions, active]] = execute(connection, with_values(connection, _COUNTS, values))
    [[days]], tables = execute(connection, READ_KEEP_DAYS), execute(connection, _TABLES)
    return {
        "host": connection.info.host,
        "port": connection.info.port,
        "database": database,
        "user": user,
        "postgresql": version,
        "schema": schema.VERSION,
        "sessions": sessions,
        "open_sessions": active,
        "keep_days": days,
        "bytes": sum(size for _, _, size in tables),
        "tables": [{"table": name, "rows": rows, "bytes": size} for name, rows, size in tables],
        "timelines": [
            {"timeline": int(timeline, 16), "seen_at": format_time(datetime.fromtimestamp(at, UTC))}
            for timeline, at in execute(connection, _TIMELINES)
        ],
    }
