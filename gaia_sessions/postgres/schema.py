"""The tables of the store, as numbered migrations: each runs once, under a lock.

Everything of a session hangs on its ``incarnation``, a number that no other session ever has, so a new session with an
old ID has nothing of the old one.
"""

from __future__ import annotations

from shlex import quote

from gaia_sessions.config import Config
from gaia_sessions.errors import StoreFailure

from .connections import execute, no_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .connections import Connection

SCHEMA = "gaia_sessions"

_FIRST = """
CREATE TABLE gaia_sessions.session (
    incarnation bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    revision bigint NOT NULL,
    record text NOT NULL,
    mark text,
    parent_id text COLLATE "C"
) WITH (fillfactor = 70);
CREATE TABLE gaia_sessions.deleted (
    incarnation bigint PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE gaia_sessions.session_key (
    key bytea NOT NULL,
    incarnation bigint NOT NULL,
    PRIMARY KEY (key, incarnation)
);
CREATE INDEX session_key_incarnation ON gaia_sessions.session_key (incarnation);
CREATE TABLE gaia_sessions.journal (
    incarnation bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    line text NOT NULL,
    PRIMARY KEY (incarnation, name, number)
);
CREATE TABLE gaia_sessions.message (
    incarnation bigint NOT NULL,
    generation bigint NOT NULL,
    seq bigint NOT NULL,
    line text NOT NULL,
    PRIMARY KEY (incarnation, generation, seq)
);
CREATE TABLE gaia_sessions.output (
    incarnation bigint NOT NULL,
    run bigint NOT NULL,
    start bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (incarnation, run, start)
);
CREATE TABLE gaia_sessions.document (key bytea PRIMARY KEY, document text NOT NULL);
CREATE TABLE gaia_sessions.inbox (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    keys text NOT NULL,
    event text NOT NULL
);
CREATE TABLE gaia_sessions.figures (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    line text NOT NULL
);
CREATE TABLE gaia_sessions.committed (
    id uuid PRIMARY KEY,
    is_void boolean NOT NULL DEFAULT false,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE gaia_sessions.lease (
    id text COLLATE "C" PRIMARY KEY,
    until timestamptz NOT NULL,
    written_at timestamptz
) WITH (fillfactor = 50);
CREATE FUNCTION gaia_sessions.lapse () RETURNS interval LANGUAGE sql IMMUTABLE AS $$ SELECT interval '120 seconds' $$;
CREATE FUNCTION gaia_sessions.is_valid (until timestamptz) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(until > clock_timestamp(), false)
        OR (until IS DISTINCT FROM '-infinity'
            AND pg_postmaster_start_time() > clock_timestamp() - gaia_sessions.lapse())
$$;
CREATE TABLE gaia_sessions.setting (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE gaia_sessions.timeline (
    timeline text PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""

MIGRATIONS = (_FIRST,)
"""Migration N brings a database from version N - 1 to version N."""

VERSION = len(MIGRATIONS)

READ_KEEP_DAYS = (
    f"SELECT coalesce((SELECT value FROM {SCHEMA}.setting WHERE name = 'keep_days'), '{Config.keep_days}')::float8"
)
"""Reads for how many days ``cleanup`` keeps what a person perhaps needs."""

IS_GONE = "at < clock_timestamp() - interval '1 hour'"
"""Whether a row of ``deleted`` is of a session that nobody can be reading any more."""

NOTE_CLEANUP = (
    f"INSERT INTO {SCHEMA}.setting (name, value) VALUES ('last_cleanup', extract(epoch FROM clock_timestamp())::text) "
    "ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value"
)
"""Notes that ``cleanup`` runs now."""

NOTE_TIMELINE = f"""
DO $$ BEGIN
    INSERT INTO {SCHEMA}.timeline (timeline)
    SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) ON CONFLICT DO NOTHING;
EXCEPTION WHEN OTHERS THEN NULL;
END $$
"""
"""Notes the timeline of the server if it is new: a server gets a new one when a standby takes over.

Some engines do not have these functions, or let no ordinary role call them; then nothing is noted.
"""

RIGHTS = {
    "session": "SELECT INSERT UPDATE DELETE",
    "deleted": "SELECT INSERT DELETE",
    "session_key": "SELECT INSERT DELETE",
    "journal": "SELECT INSERT DELETE",
    "message": "SELECT INSERT DELETE",
    "output": "SELECT INSERT UPDATE DELETE",
    "document": "SELECT INSERT UPDATE DELETE",
    "inbox": "SELECT INSERT DELETE",
    "figures": "SELECT INSERT",
    "committed": "SELECT INSERT UPDATE DELETE",
    "lease": "SELECT INSERT UPDATE DELETE",
    "setting": "SELECT INSERT UPDATE",
    "timeline": "SELECT INSERT",
    "migration": "SELECT",
}
"""What a role must be allowed to do with each table, besides USAGE of the schema and EXECUTE of its functions."""

_LOCK = 7281906
"""The key of the advisory lock under which one process at a time migrates."""

_BEGIN = f"BEGIN; SELECT pg_advisory_xact_lock({_LOCK})"
_STATE = f"""
SELECT current_setting('server_encoding'), (SELECT rolname FROM pg_roles WHERE oid = nspowner), current_user
FROM (SELECT 1) one LEFT JOIN pg_namespace ON nspname = '{SCHEMA}'
"""
_MAKE_FIRST_TABLE = f"""
CREATE TABLE IF NOT EXISTS {SCHEMA}.migration (
    version integer PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""


def version_of(connection: Connection) -> int:
    """Returns the version of the tables; 0 if there are none."""
    [[table]] = execute(connection, f"SELECT to_regclass('{SCHEMA}.migration')")
    if table is None:
        return 0
    [[version]] = execute(connection, f"SELECT coalesce(max(version), 0) FROM {SCHEMA}.migration")
    return int(version)


def migrate(connection: Connection, url: str) -> list[int]:
    """Brings the tables to this version in one transaction; returns the versions that it has made."""
    execute(connection, _BEGIN)
    [[encoding, owner, user]] = execute(connection, _STATE)
    check_encoding(encoding, url)
    if owner not in (None, user):  # its owner could make this role run other statements
        reason = f"the schema {SCHEMA} belongs to the role {owner}, and this is {user}"
        raise StoreFailure("make the tables", url, reason, f"connect as {owner}")
    if owner is None:
        execute(connection, f"CREATE SCHEMA {SCHEMA}")
    execute(connection, _MAKE_FIRST_TABLE)
    found = version_of(connection)
    check_version(found, url, is_migrating=True)
    made = [*range(found + 1, VERSION + 1)]
    for version in made:
        execute(connection, MIGRATIONS[version - 1])
        execute(connection, f"INSERT INTO {SCHEMA}.migration (version) VALUES ({version})")
    execute(connection, "COMMIT")
    return made


def check_encoding(found: str, url: str) -> None:
    """Raises ``StoreFailure`` if the database cannot store every text."""
    if found != "UTF8":
        hint = "make a database with the encoding UTF8: createdb --encoding UTF8 --template template0 NAME"
        raise StoreFailure("use the database", url, f"its encoding is {found}", hint)


def check_version(found: int, url: str, *, is_migrating: bool = False) -> None:
    """Raises ``StoreFailure`` if this version of the program cannot use tables of the version ``found``."""
    if found > VERSION:
        reason = f"its tables have version {found}, and this gaia-sessions knows only version {VERSION}"
        raise StoreFailure("use the tables", url, reason, "install a later version of gaia-sessions")
    if is_migrating or found == VERSION:
        return
    check_exists(found, url)
    reason = f"its tables have version {found}, and this gaia-sessions needs version {VERSION}"
    raise StoreFailure("use the tables", url, reason, f"type: gaia-sessions --root {quote(url)} store migrate")


def check_exists(found: int, url: str) -> None:
    """Raises ``StoreFailure`` if there are no tables."""
    if found == 0:
        raise no_tables("use the tables", url)
