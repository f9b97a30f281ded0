"""Checks of a server as the root: pure functions of the facts that are read once. Nothing is written there."""

from __future__ import annotations

from datetime import timedelta
from shlex import quote

from gaia_sessions.api.at import needing_driver
from gaia_sessions.errors import SessionsError, StoreFailure, plural
from gaia_sessions.session.clock import FUTURE_TOLERANCE, parse_time
from gaia_sessions.system.project_root import ROOT_VARIABLE

from .findings import first_few, moving_text, not_checked, ok, own_command, problem, warning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gaia_sessions.postgres.health import Contents, Facts

    from .findings import Finding

_SECONDS_TO_ANSWER = 2.0
_COMMAND = "type: "
"""The beginning of a hint that is a command."""

_OLDEST_VERSION = 15
_SECONDS_THAT_COUNT = 2.0
_DAYS_WITHOUT_CLEANUP = timedelta(days=2)
_FULL = 0.8
"""The share of the connections in use from which on few are left."""

_MANY_DEAD_ROWS = 10_000
_AS_ADMINISTRATOR = "as a superuser, type in psql:"


class Asked:
    """What each check gets: the URL, the environment of the command, and the facts."""

    def __init__(self, url: str, environ: Mapping[str, str], facts: Facts) -> None:
        self.url = url
        self.environ = environ
        self.facts = facts


def server(url: str, environ: Mapping[str, str]) -> list[Finding]:
    """Returns the findings on the server at ``url``; if it cannot be reached, only why."""
    try:
        with needing_driver(url):
            from gaia_sessions.postgres import health
        facts = health.examine(url, _SECONDS_TO_ANSWER)
    except Exception as error:  # noqa: BLE001  # it must hide no check of the files
        return [_failure("server", f"the server {url} cannot be used", error, url)]
    return judge(url, environ, facts)


def judge(url: str, environ: Mapping[str, str], facts: Facts) -> list[Finding]:
    """Returns what the facts mean, in the order of ``CHECKS``."""
    asked = Asked(url, environ, facts)
    return [ok("server", "it can be reached"), *(check(asked) for check in CHECKS)]


def _failure(name: str, what: str, error: Exception, url: str) -> Finding:
    """Returns the problem that ``error`` is; a hint that is a command is its fix."""
    hint = error.hint if isinstance(error, SessionsError) else ""
    fix = hint.removeprefix(_COMMAND) if hint.startswith(_COMMAND) else None
    advice = "" if fix or not hint else f" ({hint})"
    return problem(name, f"{what}: {_reason(error, url)}{advice}", fix)


def _reason(error: Exception, url: str) -> str:
    """Returns what ``error`` says, without the ``url``."""
    if isinstance(error, StoreFailure) and error.path == url:
        return error.reason
    return str(error) if isinstance(error, SessionsError) else f"{type(error).__name__}: {error}"


def _tables(asked: Asked) -> Finding:
    from gaia_sessions.postgres import schema

    name, version = "server_tables", asked.facts["schema"]
    if version is None:
        return not_checked(name, "the tables on the server, because this role has no right to read their version")
    try:
        schema.check_version(version, asked.url)
    except StoreFailure as error:
        return _failure(name, "the server cannot be used", error, asked.url)
    return ok(name, f"version {version}, which this program needs")


def _encoding(asked: Asked) -> Finding:
    from gaia_sessions.postgres import schema

    try:
        schema.check_encoding(asked.facts["encoding"], asked.url)
    except StoreFailure as error:
        return _failure("server_encoding", "the database cannot be used", error, asked.url)
    return ok("server_encoding", "UTF8")


def _version(asked: Asked) -> Finding:
    version = f"PostgreSQL {asked.facts['postgresql']}"
    if asked.facts["version_number"] // 10_000 >= _OLDEST_VERSION:
        return ok("server_version", version)
    return problem("server_version", f"{version} is too old; upgrade the server to {_OLDEST_VERSION} or later", None)


def _writable(asked: Asked) -> Finding:
    name, facts = "server_writable", asked.facts
    if facts["is_standby"]:
        text = (
            "the server is a standby, which only reads; name its primary in the URL. In psql, this shows the primary:"
        )
        return problem(name, text, "SELECT sender_host, sender_port FROM pg_stat_wal_receiver;")
    if facts["is_read_only"]:
        text = "transactions on the server only read; if its disk is not full, type in psql:"
        change = (
            "SET default_transaction_read_only = off;"  # a role may do this for itself, and it beats other settings
        )
        return problem(name, text, f"{change} ALTER ROLE {facts['role']} IN DATABASE {facts['database']} {change}")
    return ok(name, "the server accepts writes")


def _durable(asked: Asked) -> Finding:
    name, facts = "server_durable", asked.facts
    off = [setting for setting in ("fsync", "full_page_writes") if not facts[setting]]
    if off:
        text = f"{' and '.join(off)} of the server {'is' if len(off) == 1 else 'are'} off"
        changes = "".join(f"ALTER SYSTEM SET {setting} = on; " for setting in off)
        text += f", so a crash of its machine can destroy all sessions; {_AS_ADMINISTRATOR}"
        return problem(name, text, f"{changes}SELECT pg_reload_conf();")
    return ok(name, "the server syncs; each write asks for that itself, whatever synchronous_commit says")


def _clock(asked: Asked) -> Finding:
    ahead = asked.facts["ahead"]
    seconds = abs(ahead)
    if seconds - asked.facts["imprecision"] < _SECONDS_THAT_COUNT:
        return ok("server_clock", f"{asked.facts['now']}, as on this machine")
    side = "ahead of" if ahead > 0 else "behind"
    text = f"the clock of the server is {plural(round(seconds), 'second')} {side} the clock of this machine"
    effect = "so idle_minutes, cleanup and lists are wrong by that; synchronize both clocks, as root:"
    state = problem if seconds >= FUTURE_TOLERANCE.total_seconds() else warning
    return state("server_clock", f"{text}, {effect}", "timedatectl set-ntp true")


_POOLERS = {
    None: "no pooler is before the server",
    "transaction": "the pooler before the server is in transaction mode",
    "session": "the pooler before the server is in session mode: it works, but each client keeps a connection",
}


def _pooler(asked: Asked) -> Finding:
    mode = asked.facts["pooler"]
    if mode in _POOLERS:
        return ok("server_pooler", _POOLERS[mode])
    text = "the pooler before the server allows no transactions; write this into its configuration (pgbouncer.ini):"
    return problem("server_pooler", text, "pool_mode = transaction")


_WAYS = {
    "socket": "a socket on this machine needs no TLS",
    "loopback": "the connection does not leave this machine, so it needs no TLS",
    "verified": "encrypted, and the certificate of the server is verified",
}
_OPEN_WAYS = {
    "plain": "the connection to the server is not encrypted, so others in the network can read and change sessions",
    "unverified": "the certificate of the server is not verified, so another machine can pose as the server",
}


def _tls(asked: Asked) -> Finding:
    way = asked.facts["way"]
    if way in _WAYS:
        return ok("server_tls", _WAYS[way])
    fix = f"export {ROOT_VARIABLE}={quote(_with_tls(asked.url))}"
    return warning("server_tls", f"{_OPEN_WAYS[way]}; ask for TLS:", fix)


def _with_tls(url: str) -> str:
    before, _, query = url.partition("?")
    others = [part for part in query.split("&") if part and not part.startswith("sslmode=")]
    return f"{before}?{'&'.join([*others, 'sslmode=verify-full'])}"


def _rights(asked: Asked) -> Finding:
    name, facts = "server_rights", asked.facts
    missing = facts["missing_rights"]
    if facts["schema"] == 0:
        return not_checked(name, "the rights of the role, because there are no tables")
    if missing:
        text = f"the role {facts['role']} lacks rights: {first_few(missing)}; as the owner of the tables, type in psql:"
        return problem(name, text, _grants(facts["role"], missing))
    if facts["is_superuser"]:
        text = f"the role {facts['role']} is a superuser, and fewer rights are enough; make another role and name it in"
        return warning(name, f"{text} the URL, then doctor says what to grant; in psql:", "CREATE ROLE worker LOGIN;")
    if facts["is_owner"]:
        return ok(name, f"the role {facts['role']} owns the tables; fewer rights are enough")
    return ok(name, f"the role {facts['role']} has the rights that it needs")


def _grants(role: str, missing: list[str]) -> str:
    """Returns the statements that give what is missing, one for the tables that lack the same."""
    rights_of: dict[str, list[str]] = {}
    statements = []
    for right, name in (one.split(" ", 1) for one in missing):
        if right == "USAGE":
            statements.append(f"GRANT USAGE ON SCHEMA {name} TO {role};")
        elif right == "EXECUTE":
            rights_of["ALL FUNCTIONS IN SCHEMA gaia_sessions"] = [right]
        else:
            rights_of.setdefault(f"gaia_sessions.{name}", []).append(right)
    objects_of: dict[str, list[str]] = {}
    for thing, rights in rights_of.items():
        objects_of.setdefault(", ".join(rights), []).append(thing)
    statements += [f"GRANT {rights} ON {', '.join(things)} TO {role};" for rights, things in objects_of.items()]
    return " ".join(statements)


def _connections(asked: Asked) -> Finding:
    used, most = asked.facts["connections"], asked.facts["most_connections"]
    text = f"{used} of {most} connections of the server are in use"
    if used < most * _FULL:
        return ok("server_connections", text)
    advice = "put a pooler before the server, or as a superuser type in psql, and start the server again:"
    return warning("server_connections", f"{text}; {advice}", f"ALTER SYSTEM SET max_connections = {most * 2};")


def _cleanup(asked: Asked) -> Finding:
    name, contents = "server_cleanup", asked.facts["contents"]
    if contents is None:
        return not_checked(name, "the sessions on the server, because their tables cannot be read")
    last, oldest = contents["last_cleanup"], contents["oldest"]
    latest = parse_time(asked.facts["now"]) - _DAYS_WITHOUT_CLEANUP
    if last is not None and parse_time(last) >= latest:
        return ok(name, f"the last cleanup was at {last}")
    if oldest is None or parse_time(oldest) >= latest:
        return ok(name, "no session is old enough to be removed")
    when = "no cleanup has run yet" if last is None else f"the last cleanup was at {last}"
    text = f"{when}, and only cleanup removes old rows from the server; let cron run it, on one machine:"
    return warning(name, text, _cron(asked))


def _cron(asked: Asked) -> str:
    """Returns the command that adds a line to the crontab, in which a ``%`` would end the command."""
    words = "--root", asked.url, "cleanup", "--hours", "24", "--quiet"
    line = "17 * * * *  " + own_command(asked.environ, *words, in_full=True).replace("%", "\\%")
    return f"(crontab -l; echo {quote(line)}) | crontab -"


def _moving(asked: Asked) -> Finding:
    name, contents = "server_moving", asked.facts["contents"]
    if contents is None:
        return not_checked(name, "the sessions on the server, because their tables cannot be read")
    if not contents["moving"]:
        return ok(name, "no session is between two roots")
    return problem(name, moving_text(contents["moving"]), None)


def _growth(asked: Asked) -> Finding:
    contents = asked.facts["contents"]
    if contents is None:
        return not_checked("server_growth", "the sessions on the server, because their tables cannot be read")
    text = f"{plural(contents['sessions'], 'session')}, {contents['open_sessions']} open, {_size(contents['bytes'])}"
    if contents["oldest"]:
        text += f", the oldest from {contents['oldest'][:10]}"
    if contents["removed_sessions"]:
        text += f", {plural(contents['removed_sessions'], 'removed session')} with rows until the next cleanup"
    tables = first_few(
        f"{table['table']} {_size(table['bytes'])} with {plural(table['rows'], 'row')}" for table in contents["tables"]
    )
    return ok("server_growth", f"{text}; {tables}")


def _size(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"


def _vacuum(asked: Asked) -> Finding:
    name, contents = "server_vacuum", asked.facts["contents"]
    if not asked.facts["autovacuum"]:
        text = f"autovacuum of the server is off, so its tables grow without end; {_AS_ADMINISTRATOR}"
        return problem(name, text, "ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf();")
    dead = _with_dead_rows(contents) if contents else []
    if dead:
        text = f"tables have more dead rows than live ones: {first_few(dead)}; as their owner, type in psql:"
        return warning(name, text, " ".join(f"VACUUM gaia_sessions.{table};" for table in dead))
    return ok(name, "autovacuum removes dead rows")


def _with_dead_rows(contents: Contents) -> list[str]:
    return [table["table"] for table in contents["tables"] if table["dead_rows"] >= max(_MANY_DEAD_ROWS, table["rows"])]


CHECKS: list[Callable[[Asked], Finding]] = [
    _tables,
    _encoding,
    _version,
    _writable,
    _durable,
    _clock,
    _pooler,
    _tls,
    _rights,
    _connections,
    _cleanup,
    _moving,
    _growth,
    _vacuum,
]
