"""What an operator does with the tables: makes them, and brings them to this version."""

from __future__ import annotations

from gaia_sessions.errors import BadArgument

from . import schema
from .connections import execute, server_of, with_values
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


_SECONDS = 10.0
_MOST_DAYS = 999_999_999
_SET_KEEP_DAYS = (
    f"INSERT INTO {SCHEMA}.setting (name, value) VALUES ('keep_days', %s) "
    "ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value"
)


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


def _changed(connection: Connection, made: list[int]) -> Changed:
    execute(connection, NOTE_TIMELINE)
    [[days]] = execute(connection, READ_KEEP_DAYS)
    return {"made": made, "schema": schema.VERSION, "keep_days": days}
