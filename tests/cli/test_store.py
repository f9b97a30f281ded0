"""``store``: the tables of a server are made, brought to this version and shown; and what only a server has."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from gaia_sessions.postgres import schema
from gaia_sessions.postgres.setup import init
from gaia_sessions.postgres.store import PostgresStore
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.record import new_record
from tests.servers import Server, empty_url
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Gaia

THREE = [["init"], ["migrate"], ["info"]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes a database with empty tables the default root; returns its URL."""
    url = empty_url()
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", url)
    return url


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Makes a database without tables the default root; returns its URL."""
    url, name = empty_url(), f"bare_{uuid4().hex}"
    execute(url, f"CREATE DATABASE {name}")
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", url.replace("/postgres?", f"/{name}?"))
    yield url.replace("/postgres?", f"/{name}?")
    execute(url, f"DROP DATABASE {name} WITH (FORCE)")


def execute(url: str, sql: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql)


def put_asking(url: str, agent_id: str, *, idle: timedelta) -> None:
    """Stores a session that asked for an approval and was idle since then."""
    record = new_record(agent_id, "asker", "test", {}, datetime.now(UTC) - idle)
    PostgresStore(url).create({**record, "phase": "approval"})


@table("words", [*THREE, ["init", "--keep-days", "3"], ["info", "--json"]])
def test_on_a_folder_each_command_refuses_and_says_what_to_add(gaia: Gaia, root: str, words: list[str]) -> None:
    ended = gaia("store", *words)

    said = f"store is only for a server, and {root} is a folder"
    assert (ended.code, said in ended.err.decode(), "--root postgresql://HOST/DATABASE" in ended.err.decode()) == (
        2,
        True,
        True,
    )
    assert not Path(root).exists()


def test_a_database_without_tables_is_refused_with_the_command_that_makes_them(gaia: Gaia, bare: str) -> None:
    hint = f"type: gaia-sessions --root '{bare}' store init"
    for words in (["list"], ["create"], ["store", "info"], ["store", "migrate"], ["cleanup"]):
        assert gaia(*words).refusal == (
            8,
            f"{bare}: cannot use the tables: the database has no tables of gaia-sessions",
            hint,
        )


def test_init_makes_the_tables_and_a_second_init_succeeds_and_changes_nothing(gaia: Gaia, bare: str) -> None:
    kept = "cleanup keeps open sessions with turns or an open question for 7 days"
    assert gaia("store", "init").answer == [f"made the tables of version {schema.VERSION} in {bare}", kept]
    assert gaia("create", "--id", "a").answer == ["a"]

    assert gaia("store", "init").answer == [f"{bare} has the tables of version {schema.VERSION} already", kept]
    assert gaia("store", "init", "--json").json == {"made": [], "schema": schema.VERSION, "keep_days": 7.0}
    assert gaia("store", "migrate", "--json").json["made"] == []
    assert gaia("list", "-q").answer == ["a"]


def test_migrate_brings_earlier_tables_to_this_version_and_later_tables_are_refused(
    gaia: Gaia, bare: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gaia("store", "init")
    this = schema.VERSION
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE gaia_sessions.more (one integer)"))
        patch.setattr(schema, "VERSION", this + 1)
        # Another URL of the same database: a process checks the version once for each URL.
        patch.setenv("GAIA_SESSIONS_ROOT", later := f"{bare}&application_name=later")
        code, said, hint = gaia("list").refusal
        assert (code, hint) == (8, f"type: gaia-sessions --root '{later}' store migrate")
        assert f"its tables have version {this}, and this gaia-sessions needs version {this + 1}" in said

        [done, _] = gaia("store", "migrate").answer
        assert done == f"brought the tables in {later} from version {this} to version {this + 1}"
        assert gaia("store", "info", "--json").json["schema"] == this + 1
        assert gaia("list").code == 0

    monkeypatch.setenv("GAIA_SESSIONS_ROOT", f"{bare}&application_name=earlier")
    for words in (["list"], *(["store", *one] for one in THREE)):
        code, said, hint = gaia(*words).refusal
        assert (code, hint) == (8, "install a later version of gaia-sessions")
        assert f"its tables have version {this + 1}, and this gaia-sessions knows only version {this}" in said


def test_info_shows_server_database_versions_sessions_size_and_timeline(gaia: Gaia, server: str) -> None:
    for agent_id in ("a", "b", "c"):
        gaia("create", "--id", agent_id)
    gaia("finalize", "b", "completed")

    info = gaia("store", "info", "--json").json

    assert info["tables"] == sorted(info["tables"], key=lambda one: (-one["bytes"], one["table"]))
    assert info["bytes"] == sum(one["bytes"] for one in info["tables"]) > 0
    folder = server.partition("?host=")[2].partition("&")[0]
    facts = {name: info[name] for name in ("host", "port", "database", "user", "schema", "keep_days")}
    assert facts == {
        "host": folder,
        "port": 5432,
        "database": "postgres",
        "user": "postgres",
        "schema": schema.VERSION,
        "keep_days": 7.0,
    }
    assert (info["sessions"], info["open_sessions"], [one["timeline"] for one in info["timelines"]]) == (3, 2, [1])
    shown = gaia("store", "info").answer
    assert shown[0] == f"server      {folder}, port 5432"
    assert "sessions    3, open: 2" in shown
    assert re.fullmatch("timeline    1, first seen 20.*", shown[-1])


@pytest.mark.slow
def test_info_shows_that_the_timeline_of_the_server_has_changed(gaia: Gaia, monkeypatch: pytest.MonkeyPatch) -> None:
    empty_url()  # skips the test without PostgreSQL
    server = Server()
    init(server.url)
    server.stop()
    Path(server.folder, "data", "standby.signal").touch()
    server.start()
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", f"{server.url}&application_name=later")  # without the old connections

    standby = gaia("store", "info", "--json").json  # a standby is read-only
    assert [one["timeline"] for one in standby["timelines"]] == [1]
    server._own("pg_ctl", "-D", f"{server.folder}/data", "-w", "promote")

    *_, first, second, warning = gaia("store", "info").answer
    server.remove()
    assert (first[:12], second[:26]) == ("timeline    ", "            changed to 2, ")
    assert warning.strip() == (
        "a standby took over, or a backup was restored: sessions written before that may be lost"
    )


def test_cleanup_notes_timeline_and_time_and_info_shows_them_and_the_oldest_session(gaia: Gaia, server: str) -> None:
    put_asking(server, "old", idle=timedelta(days=2))
    put_asking(server, "new", idle=timedelta(0))
    assert gaia("cleanup", "--dry-run").code == 0
    assert rows(server, "SELECT timeline FROM gaia_sessions.timeline") == []
    before = datetime.now(UTC)
    assert gaia("store", "info", "--json").json["last_cleanup"] is None
    assert "cleanup     never" in gaia("store", "info").answer
    assert gaia("cleanup").code == 0
    assert rows(server, "SELECT timeline FROM gaia_sessions.timeline") == [("00000001",)]
    info = gaia("store", "info", "--json").json
    assert before <= parse_time(info["last_cleanup"]) <= datetime.now(UTC)
    assert info["oldest"] == gaia("get", "old", "--json").json["created_at"]
    assert [line[:18] for line in gaia("store", "info").answer[5:7]] == ["oldest      began ", "cleanup     last a"]


def rows(url: str, sql: str) -> list[tuple[object, ...]]:
    import psycopg

    with psycopg.connect(url) as connection:
        return connection.execute(sql).fetchall()


def test_keep_days_of_the_server_decides_what_cleanup_keeps_and_a_project_does_not(
    gaia: Gaia, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_asking(server, "asked", idle=timedelta(days=2))
    monkeypatch.setenv("GAIA_SESSIONS_KEEP_DAYS", "0")
    for words in (["--dry-run"], []):
        report = gaia("cleanup", "--json", *words).json
        assert (report["removed"], report["keep_days"]) == ([], 7.0)
        assert report["kept"] == [{"agent_id": "asked", "reason": "keep_days"}]

    monkeypatch.setenv("GAIA_SESSIONS_KEEP_DAYS", "9")
    assert gaia("store", "init", "--keep-days", "36h").answer[-1].endswith(" for 1 day 12 hours")
    assert gaia("store", "init").answer[-1].endswith(" for 1 day 12 hours")
    report = gaia("cleanup", "--json").json
    assert (report["removed"], report["keep_days"]) == (["asked"], 1.5)


@table("days", ["1e12", "nan", "inf", "-1", "soon"])
def test_keep_days_must_be_a_length_of_time(gaia: Gaia, server: str, days: str) -> None:
    code, _, _ = gaia("store", "init", "--keep-days", days).refusal
    assert (code, rows(server, "SELECT 1 FROM gaia_sessions.setting")) == (2, [])
