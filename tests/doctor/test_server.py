"""``doctor`` with the URL of a server as the root: the server and the files of the hooks are checked."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.doctor import server
from tests.commands import gaia
from tests.servers import Pooler, Server, empty_url, shared_pooler, shared_server, tables_of
from tests.table import table

if TYPE_CHECKING:
    from tests.commands import Ended

UNREACHABLE = "postgresql://postgres@/postgres?host=/nowhere"
ROWS = "SELECT xmin::text, t.* FROM gaia_sessions.{} t"
WITHOUT_DRIVER = "import sys; sys.modules['psycopg'] = None; from gaia_sessions.cli.start import main; main()"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the hooks and one session in files, where commands start."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".claude").mkdir()
    assert gaia("hooks", "install").code == 0
    gaia_sessions.create_session(agent_id="agent-of-a-hook")
    return tmp_path


def doctor(url: str, *words: str, by_option: bool = False) -> Ended:
    with pytest.MonkeyPatch.context() as patch:
        if not by_option:
            patch.setenv("GAIA_SESSIONS_ROOT", url)
        return gaia("doctor", *words, *(["--root", url] if by_option else []))


def report(url: str, *words: str, by_option: bool = False) -> Any:
    ended = doctor(url, "--json", *words, by_option=by_option)
    assert ended.err == b""
    found = json.loads(ended.out)
    assert ended.code == (1 if found["problems"] else 0)
    assert found["problems"] == len([check for check in found["checks"] if check["state"] == "problem"])
    return found


def finding(name: str, state: str, found: str, fix: str | None = None) -> dict[str, object]:
    return {"name": name, "state": state, "found": found, "fix": fix, "fixable": False}


def of_server(url: str) -> dict[str, Any]:
    """The findings on the server, by name."""
    return {check["name"]: check for check in report(url)["checks"] if check["name"].startswith("server")}


def wrong(url: str) -> dict[str, tuple[str, str | None]]:
    """What is wrong on the server: the state and the fix of each such check. Servers of tests do not sync."""
    found = of_server(url).values()
    return {one["name"]: (one["state"], one["fix"]) for one in found if one["state"] != "ok"}


def database(name: str, *statements: str) -> str:
    """The URL of a new database after these statements."""
    url = empty_url()
    import psycopg

    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {name}")
    own = f"postgresql://postgres@/{name}?host={shared_server().folder}"
    with closing(psycopg.connect(own, autocommit=True)) as connection:
        for statement in statements:
            connection.execute(statement)
    return own


def rows(url: str) -> dict[str, Any]:
    """Every row of the server with the transaction that wrote it."""
    import psycopg

    with closing(psycopg.connect(url)) as connection:
        tables = [*tables_of(connection), "migration"]
        return {name: connection.execute(ROWS.format(name)).fetchall() for name in tables}


NAMES = [
    "server",
    *(f"server_{name}" for name in ("tables", "encoding", "version", "writable", "durable", "clock", "pooler", "tls")),
    *(f"server_{name}" for name in ("rights", "connections", "cleanup", "moving", "growth", "vacuum")),
]
SYNC = "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();"
WORKER = "CREATE ROLE worker LOGIN;"
AS_TESTS_ARE = {"server_durable": ("problem", SYNC), "server_rights": ("warning", WORKER)}
"""What is wrong on each server of tests: it does not sync, and the role is a superuser."""


@pytest.mark.parametrize("by_option", [False, True])
def test_with_a_url_doctor_checks_the_server_and_the_files_of_the_hooks(project: Path, *, by_option: bool) -> None:
    url = empty_url()
    on_files = json.loads(gaia("doctor", "--json").out)

    found = report(url, by_option=by_option)

    first, others = found["checks"][: len(NAMES)], found["checks"][len(NAMES) :]
    assert [check["name"] for check in first] == NAMES
    assert first[0] == finding("server", "ok", "it can be reached")
    assert (found["root"], found["server"]) == (f"{project}/.claude/session", url)
    assert found["problems"] == on_files["problems"] + 1
    assert wrong(url) == AS_TESTS_ARE
    assert [(check["name"], check["state"]) for check in others] == [
        (check["name"], check["state"]) for check in on_files["checks"]
    ]
    assert f"{project}/.claude/session: 1 session" in [check["found"] for check in others]


def test_problems_come_first_and_both_parts_are_named_last(project: Path) -> None:
    url = empty_url()

    shown = doctor(url).lines

    assert shown[0].startswith(
        "problem: fsync of the server is off, so a crash of its machine can destroy all sessions"
    )
    assert shown[1] == f"    {SYNC}"
    of_files = f"checks of the files of the hooks in {project}/.claude/session are fine: gaia-sessions doctor --verbose"
    assert shown[-2] == f"{len(NAMES) - 2} checks of the server {url} are fine"
    assert of_files in shown[-1]


def test_a_database_without_tables_is_a_problem_with_the_command_that_makes_them() -> None:
    url = database("without_tables")

    found = of_server(url)

    told = "the server cannot be used: the database has no tables of gaia-sessions"
    fix = f"gaia-sessions --root '{url}' store init"
    assert found["server_tables"] == finding("server_tables", "problem", told, fix)
    report(url, "--fix")
    assert of_server(url)["server_tables"] == found["server_tables"], "--fix made no tables"
    assert f"    {fix}" in doctor(url).lines


def test_tables_of_a_later_version_are_a_problem() -> None:
    url = database(
        "of_a_later_version",
        "CREATE SCHEMA gaia_sessions",
        "CREATE TABLE gaia_sessions.migration (version integer)",
        "INSERT INTO gaia_sessions.migration VALUES (99)",
    )

    found = of_server(url)["server_tables"]

    assert (found["state"], found["fix"]) == ("problem", None)
    assert found["found"].startswith("the server cannot be used: its tables have version 99, ")
    assert found["found"].endswith(" (install a later version of gaia-sessions)")


def test_tables_of_an_earlier_version_are_a_problem_with_the_command_that_migrates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = empty_url()
    from gaia_sessions.postgres import schema

    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    found = of_server(url)

    assert found["server_tables"]["fix"] == f"gaia-sessions --root '{url}' store migrate"
    assert found["server_growth"]["state"] == "not_checked"


def test_a_server_that_cannot_be_reached_is_a_problem_and_hides_no_check_of_files(project: Path) -> None:
    pytest.importorskip("psycopg")
    (project / ".claude" / "session").chmod(0o755)

    first, *others = report(UNREACHABLE)["checks"]

    assert (first["name"], first["state"], first["fix"]) == ("server", "problem", None)
    assert first["found"].startswith(f"the server {UNREACHABLE} cannot be used: ")
    assert "No such file or directory" in first["found"]
    assert [check["name"] for check in others if check["state"] == "problem"] == ["modes"]


def test_without_the_driver_the_fix_installs_it(project: Path) -> None:
    environment = {**os.environ, "GAIA_SESSIONS_ROOT": UNREACHABLE}
    command = [sys.executable, "-c", WITHOUT_DRIVER, "doctor", "--json"]
    ended = subprocess.run(command, env=environment, capture_output=True, check=False, cwd=project)

    first = json.loads(ended.stdout)["checks"][0]

    told = f"the server {UNREACHABLE} cannot be used: the driver psycopg is not installed"
    assert first == finding("server", "problem", told, "pip install 'gaia-sessions[postgres]'")


def test_fix_repairs_files_and_changes_nothing_on_the_server(project: Path) -> None:
    url = empty_url()
    import psycopg

    gaia_sessions.create_session(agent_id="agent-of-a-command", root=url)
    with closing(psycopg.connect(url, autocommit=True)) as connection:  # what a sweep would remove or apply
        connection.execute("INSERT INTO gaia_sessions.deleted VALUES (99, now() - interval '1 day')")
        connection.execute("INSERT INTO gaia_sessions.inbox (keys, event) VALUES ('', '{}')")
        connection.execute("INSERT INTO gaia_sessions.lease VALUES ('old', now() - interval '9 days')")
    state = project / ".claude" / "session" / "agent-of-a-hook" / "state.json"
    state.chmod(0o644)
    before = rows(url)

    found = report(url, "--fix")

    assert found["fixed"] == [{"name": "modes", "done": "1 made private"}]
    assert state.stat().st_mode & 0o777 == 0o600
    assert rows(url) == before


def test_a_database_that_only_reads_is_a_problem_and_its_fix_lets_it_write() -> None:
    url = database("that_reads", "ALTER DATABASE that_reads SET default_transaction_read_only = on")
    fix = (
        "SET default_transaction_read_only = off; "
        "ALTER ROLE postgres IN DATABASE that_reads SET default_transaction_read_only = off;"
    )

    assert wrong(url)["server_writable"] == ("problem", fix)
    run_in_psql(url, fix)
    assert "server_writable" not in wrong(f"{url}&application_name=later")


def test_a_role_without_rights_gets_them_by_the_fix_and_they_are_enough() -> None:
    url = empty_url()
    gaia_sessions.create_session(agent_id="of-another", root=url)
    run_in_psql(url, 'DROP ROLE IF EXISTS "a worker"; CREATE ROLE "a worker" LOGIN')
    own = url.replace("postgres@", "a%20worker@")

    found = of_server(own)
    assert found["server_rights"]["found"].startswith('the role "a worker" lacks rights: USAGE gaia_sessions, ')
    assert {name for name in found if found[name]["state"] == "not_checked"} == {
        "server_tables",
        "server_cleanup",
        "server_moving",
        "server_growth",
    }
    try:
        run_in_psql(url, found["server_rights"]["fix"])
        run_every_act(own)
        later = of_server(own)["server_rights"]
        run_in_psql(url, 'REVOKE UPDATE ON gaia_sessions.lease FROM "a worker"')
        fix = wrong(own)["server_rights"]
    finally:
        run_in_psql(url, 'DROP OWNED BY "a worker"; DROP ROLE "a worker"')

    assert later == finding("server_rights", "ok", 'the role "a worker" has the rights that it needs')
    assert fix == ("problem", 'GRANT UPDATE ON gaia_sessions.lease TO "a worker";')


def run_in_psql(url: str, statements: str) -> None:
    """Runs statements as psql does: each is a transaction."""
    import psycopg

    with closing(psycopg.connect(url, autocommit=True)) as connection:
        for statement in filter(None, map(str.strip, statements.split(";"))):
            connection.execute(statement)


def run_every_act(url: str) -> None:
    """Runs commands that use every table in every way that commands do."""
    for words in (
        ["store", "info"],
        ["create", "--id", "one", "--app", "shop", "--user", "ann"],
        ["update", "one", "--phase", "planning"],
        ["state", "set", "one", "user:colour", "blue"],
        ["finalize", "one", "completed"],
        ["run", "--id", "two", "--", "echo", "done"],
        ["report", "two", "--output"],
        ["cancel", "of-another"],
        ["rm", "two", "--force"],
        ["cleanup", "--hours", "0"],
        ["stats"],
        ["list"],
    ):
        ended = gaia("--root", url, *words)
        assert ended.code == 0, (words, ended)


@pytest.mark.parametrize(
    ("mode", "fix"), [("transaction", None), ("session", None), ("statement", "pool_mode = transaction")]
)
def test_the_mode_of_a_pooler_is_found(mode: str, fix: str | None) -> None:
    empty_url()
    if shutil.which("pgbouncer") is None:
        pytest.skip("pgbouncer is not installed")
    pooler = shared_pooler() if mode == "transaction" else Pooler(shared_server(), mode)

    found = of_server(pooler.url)["server_pooler"]

    if mode != "transaction":
        pooler.stop()
    assert (f" {mode} mode" in found["found"], found["fix"]) == (fix is None, fix)


@pytest.mark.parametrize("how", ["stopped", "hanging"])
def test_a_server_that_is_stopped_or_hangs_is_a_problem(how: str) -> None:
    empty_url()
    silent = Server()
    if how == "stopped":
        silent.stop()
    else:
        silent.hang()

    first, *others = of_server(silent.url).values()

    silent.remove()
    assert (first["name"], first["state"], others) == ("server", "problem", [])
    assert first["found"].endswith(" (check that the server runs and can be reached, then try again)")


def test_a_standby_is_a_problem_and_fsync_is_fine_if_it_is_on() -> None:
    empty_url()
    standby = Server(fsync=True)
    from gaia_sessions.postgres.setup import init

    init(standby.url)
    standby.stop()
    Path(standby.folder, "data", "standby.signal").touch()
    standby.start()

    found = wrong(standby.url)

    standby.remove()
    shown = "SELECT sender_host, sender_port FROM pg_stat_wal_receiver;"
    assert found == {"server_writable": ("problem", shown), "server_rights": ("warning", WORKER)}


def test_a_server_that_cannot_tell_its_timeline_fails_neither_in_cleanup_nor_in_store_info() -> None:
    url = empty_url()
    run_in_psql(url, "DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN; GRANT pg_read_all_data TO plain")
    run_in_psql(url, "GRANT pg_write_all_data TO plain; REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC")
    own = url.replace("postgres@", "plain@")
    try:
        cleaned, told = gaia("--root", own, "cleanup"), gaia("--root", own, "store", "info", "--json")
    finally:
        run_in_psql(url, "GRANT EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) TO PUBLIC; DROP OWNED BY plain")
        run_in_psql(url, "DROP ROLE plain")

    assert (cleaned.code, told.code) == (0, 0)
    info = json.loads(told.out)
    assert (info["timelines"], info["last_cleanup"] is None) == ([], False)


def test_a_folder_that_hooks_cannot_use_is_a_problem_beside_the_server(project: Path) -> None:
    url = empty_url()
    (project / ".claude" / "session").rename(project / "kept")
    (project / ".claude" / "session").write_text("mine", encoding="utf-8")

    found = report(url)["checks"]

    problems = [check for check in found if check["state"] == "problem"]
    assert [check["name"] for check in problems] == ["server_durable", "root"]
    assert problems[1]["found"].startswith(f"{project}/.claude/session: not a folder")


URL = "postgresql://agents@db.example.com/agents"
NOW = "2026-01-08T18:05:30.000000Z"
CONTENTS = {
    "schema": 1,
    "sessions": 3,
    "open_sessions": 2,
    "oldest": "2026-01-01T00:00:00.000000Z",
    "moving": [],
    "removed_sessions": 0,
    "last_cleanup": "2026-01-08T17:17:00.000000Z",
    "keep_days": 7.0,
    "bytes": 3 << 20,
    "tables": [{"table": "session", "rows": 3, "dead_rows": 9000, "bytes": 2 << 20}],
    "timelines": [],
}
FACTS = {
    "postgresql": "15.1",
    "version_number": 150001,
    "encoding": "UTF8",
    "database": "agents",
    "role": "agents",
    "is_superuser": False,
    "is_owner": False,
    "missing_rights": [],
    "is_standby": False,
    "is_read_only": False,
    "fsync": True,
    "full_page_writes": True,
    "autovacuum": True,
    "connections": 3,
    "most_connections": 100,
    "now": NOW,
    "ahead": 0.1,
    "imprecision": 0.1,
    "way": "verified",
    "pooler": None,
    "schema": 1,
    "contents": CONTENTS,
}
"""Facts of a server on which all is well."""


def judged(url: str = URL, **changes: Any) -> dict[str, dict[str, Any]]:
    pytest.importorskip("psycopg")
    facts: Any = {**FACTS, **changes}
    return {found["name"]: {**found} for found in server.judge(url, {"PATH": "/nowhere"}, facts)}


def test_what_is_fine_is_one_short_line_each() -> None:
    assert [(found["state"], found["fix"], found["found"]) for found in judged().values()] == [
        ("ok", None, text)
        for text in (
            "it can be reached",
            "version 1, which this program needs",
            "UTF8",
            "PostgreSQL 15.1",
            "the server accepts writes",
            "the server syncs; each write asks for that itself, whatever synchronous_commit says",
            f"{NOW}, as on this machine",
            "no pooler is before the server",
            "encrypted, and the certificate of the server is verified",
            "the role agents has the rights that it needs",
            "3 of 100 connections of the server are in use",
            "the last cleanup was at 2026-01-08T17:17:00.000000Z",
            "no session is between two roots",
            "3 sessions, 2 open, 3.0 MiB, the oldest from 2026-01-01; session 2.0 MiB with 3 rows",
            "autovacuum removes dead rows",
        )
    ]


DEAD = {**CONTENTS, "tables": [{"table": "lease", "rows": 5, "dead_rows": 20_000, "bytes": 2 << 20}]}
RELOAD = "SELECT pg_reload_conf();"
GRANTS = (
    "GRANT SELECT, INSERT ON gaia_sessions.inbox, gaia_sessions.lease TO agents; "
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA gaia_sessions TO agents;"
)
CRON = f"17 * * * *  {sys.executable} -P -m gaia_sessions --root {URL} cleanup --hours 24 --quiet"


@table(
    ("name", "changes", "state", "words", "fix"),
    [
        ("encoding", {"encoding": "LATIN1"}, "problem", "cannot be used: its encoding is LATIN1 (make", None),
        ("version", {"postgresql": "14.2", "version_number": 140002}, "problem", "PostgreSQL 14.2 is too old", None),
        ("durable", {"fsync": False}, "problem", "fsync of", f"ALTER SYSTEM SET fsync = on; {RELOAD}"),
        (
            "durable",
            {"fsync": False, "full_page_writes": False},
            "problem",
            "fsync and full_page_writes of the server are off",
            f"ALTER SYSTEM SET fsync = on; ALTER SYSTEM SET full_page_writes = on; {RELOAD}",
        ),
        ("clock", {"ahead": 2.2}, "warning", "is 2 seconds ahead of the clock", "timedatectl set-ntp true"),
        ("clock", {"ahead": -300.4}, "problem", "is 300 seconds behind the clock", "timedatectl set-ntp true"),
        ("clock", {"ahead": 2.2, "imprecision": 0.5}, "ok", "as on this machine", None),
        ("pooler", {"pooler": "statement"}, "problem", "allows no transactions", "pool_mode = transaction"),
        ("pooler", {"pooler": "session"}, "ok", "each client keeps a connection", None),
        ("tls", {"way": "socket"}, "ok", "a socket on this machine needs no TLS", None),
        (
            "tls",
            {"way": "plain"},
            "warning",
            "is not encrypted",
            f"export GAIA_SESSIONS_ROOT='{URL}?sslmode=verify-full'",
        ),
        (
            "tls",
            {"way": "unverified"},
            "warning",
            "is not verified",
            f"export GAIA_SESSIONS_ROOT='{URL}?sslmode=verify-full'",
        ),
        ("rights", {"is_superuser": True}, "warning", "is a superuser, and fewer", WORKER),
        ("rights", {"schema": 0}, "not_checked", "because there are no tables", None),
        ("rights", {"is_owner": True}, "ok", "owns the tables; fewer rights are enough", None),
        (
            "rights",
            {"missing_rights": ["SELECT inbox", "INSERT inbox", "SELECT lease", "INSERT lease", "EXECUTE lapse"]},
            "problem",
            "the role agents lacks rights: SELECT inbox, INSERT inbox, SELECT lease and 2 more",
            GRANTS,
        ),
        (
            "connections",
            {"connections": 80},
            "warning",
            "80 of 100 connections of the server are in use",
            "ALTER SYSTEM SET max_connections = 200;",
        ),
        (
            "cleanup",
            {"contents": {**CONTENTS, "last_cleanup": None}},
            "warning",
            "no cleanup has run yet",
            f"(crontab -l; echo '{CRON}') | crontab -",
        ),
        (
            "cleanup",
            {"contents": {**CONTENTS, "last_cleanup": "2026-01-05T00:00:00.000000Z"}},
            "warning",
            "the last cleanup was at 2026-01-05",
            f"(crontab -l; echo '{CRON}') | crontab -",
        ),
        ("cleanup", {"contents": {**CONTENTS, "last_cleanup": None, "oldest": NOW}}, "ok", "is old enough", None),
        ("cleanup", {"contents": {**CONTENTS, "last_cleanup": None, "oldest": None}}, "ok", "is old enough", None),
        ("cleanup", {"contents": None}, "not_checked", "cannot be read", None),
        ("moving", {"contents": None}, "not_checked", "cannot be read", None),
        (
            "moving",
            {"contents": {**CONTENTS, "moving": ["a", "b"]}},
            "problem",
            "2 sessions cannot be changed until you type again the `store copy` that was interrupted: a, b",
            None,
        ),
        ("growth", {"contents": None}, "not_checked", "cannot be read", None),
        ("growth", {"contents": {**CONTENTS, "removed_sessions": 4}}, "ok", "4 removed sessions with rows", None),
        ("tables", {"schema": None}, "not_checked", "this role has no right", None),
        (
            "vacuum",
            {"autovacuum": False},
            "problem",
            "autovacuum of the server is off",
            f"ALTER SYSTEM SET autovacuum = on; {RELOAD}",
        ),
        (
            "vacuum",
            {"contents": DEAD},
            "warning",
            "dead rows than live ones: lease",
            "VACUUM gaia_sessions.lease;",
        ),
        ("vacuum", {"contents": None}, "ok", "autovacuum removes dead rows", None),
    ],
)
def test_each_fact_that_is_wrong_is_one_finding_with_its_fix(
    name: str, changes: dict[str, Any], state: str, words: str, fix: str | None
) -> None:
    before, after = judged(), judged(**changes)

    found = after.pop(f"server_{name}")

    assert (found["state"], words in found["found"], found["fix"]) == (state, True, fix), found
    others = {other for other, one in after.items() if one != before[other] and one["state"] in ("problem", "warning")}
    assert others <= {"server_tables"}, "only one finding is about it"


@table(
    ("url", "query"),
    [
        ("postgresql://db/a?sslmode=require", "?sslmode=verify-full"),
        ("postgresql://db/a?host=one,two&port=1,2", "?host=one,two&port=1,2&sslmode=verify-full"),
        ("postgresql:///?service=agents", "?service=agents&sslmode=verify-full"),
    ],
)
def test_the_fix_that_asks_for_tls_keeps_the_rest_of_the_url(url: str, query: str) -> None:
    fix = judged(url, way="plain")["server_tls"]["fix"]

    assert fix == f"export GAIA_SESSIONS_ROOT='{url.partition('?')[0]}{query}'"


def test_the_line_for_cron_survives_the_shell_and_has_no_bare_percent_sign() -> None:
    url = "postgresql://a%20b@/agents?host=/it's"
    fix = judged(url, contents={**CONTENTS, "last_cleanup": None})["server_cleanup"]["fix"]

    command = fix.replace("crontab -l", ":").replace("crontab -", "cat")
    line = subprocess.run(["sh", "-c", command], capture_output=True, check=True, text=True).stdout.rstrip("\n")

    assert shlex.split(line.replace("\\%", "%"))[-6:] == ["--root", url, "cleanup", "--hours", "24", "--quiet"]
    assert "a\\%20b" in line


@table("by_option", [False, True])
@table(
    ("url", "told"),
    [
        ("postgresql://user:s3cret@db/agents", "has a password"),
        ("postgres://db/agents?password=s3cret", "has a password"),
        ("https://s3cret@db/agents", "is a URL, but not of PostgreSQL"),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_url_that_is_refused_is_a_finding_without_its_text(url: str, told: str, *, by_option: bool) -> None:
    ended = doctor(url, by_option=by_option)

    assert ended.code == (2 if by_option else 1)
    origin = "--root" if by_option else "GAIA_SESSIONS_ROOT"
    assert f"{origin}: {told}".encode() in ended.out + ended.err
    assert b"s3cret" not in ended.out + ended.err
    assert (b"unset GAIA_SESSIONS_ROOT" in ended.out) != by_option
