"""What the roles of docs/many-machines.md may not do, and that they keep their rights when the tables change.

That a worker can do everything else is tested where commands and the store are: there, the role is a worker.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import psycopg
import pytest

from gaia_sessions import Sessions
from gaia_sessions.postgres import schema, setup
from tests.cli.forks import forked
from tests.cli.test_on_server import CALLS, TURN, put_sessions
from tests.copies import contents, make_project
from tests.roles import OWNER, READER, WORKER, empty_url_of, make_roles, url_of
from tests.servers import Server, check_installed
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Gaia

READS = (
    *("list", "show", "report", "pending", "tree", "usage", "wait", "resume", "get", "should-resume", "stats"),
    *("context", "tool", "guard", "cancelled", "events", "reconcile", "repair", "store"),
)
"""Commands that need no right to write; ``reconcile`` finds nothing to do."""

WRITES = [
    *("approve asks", "cancel below", "create", "update asks --phase planning", "finalize asks completed"),
    *("turn asks -", "state set asks key value", "todo add asks tests", "ensure --agent a", "reset asks"),
    *("rm work", "run -- true", "send asks hello -- cat", "cleanup --hours 0"),
]
FORBIDDEN_TO_WORKERS = [
    "CREATE TABLE gaia_sessions.more (id int)",
    "CREATE TABLE public.more (id int)",
    "CREATE SCHEMA more",
    "CREATE TEMPORARY TABLE more (id int)",
    "ALTER TABLE gaia_sessions.session ADD more int",
    "DROP TABLE gaia_sessions.session",
    "TRUNCATE gaia_sessions.session",
    "CREATE OR REPLACE FUNCTION gaia_sessions.lapse () RETURNS interval LANGUAGE sql AS $$ SELECT interval '1s' $$",
    "CREATE TRIGGER more BEFORE INSERT ON gaia_sessions.session EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "INSERT INTO gaia_sessions.migration (version) VALUES (99)",
    "DELETE FROM gaia_sessions.migration",
    "DELETE FROM gaia_sessions.setting",
    "DELETE FROM gaia_sessions.figures",
    "DELETE FROM gaia_sessions.timeline",
]
ONE_MORE = "CREATE TABLE gaia_sessions.more (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, line text)"


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes some sessions, and makes the URL of the reader the default root; returns it."""
    url = empty_url_of(READER)
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", url.replace(READER, WORKER))
    put_sessions()
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", url)
    return url


def stored(url: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT id, record, mark FROM gaia_sessions.session ORDER BY id").fetchall()


def is_forbidden(url: str, statement: str) -> bool:
    with psycopg.connect(url, autocommit=True) as connection:
        try:
            connection.execute(statement.encode())
        except psycopg.errors.InsufficientPrivilege:
            return True
    return False


def test_a_worker_moves_a_project_to_the_server_and_back(tmp_path: Path) -> None:
    root, url = str(tmp_path / "session"), empty_url_of(WORKER)
    make_project(root)
    before = contents(root)
    assert Sessions(root).copy_to(url)["failed"] == []
    assert Sessions(url).copy_to(root)["failed"] == []
    assert contents(root) == before


@table("name", READS)
def test_a_reader_can_use_every_command_that_only_reads(gaia: Gaia, reader: str, name: str) -> None:
    before = stored(reader)
    for code, line in CALLS[name]:
        assert (line, gaia(*shlex.split(line)).code) == (line, code)
    assert stored(reader) == before


@table("line", WRITES)
def test_a_reader_is_told_that_it_may_not_write(reader: str, line: str) -> None:
    before = stored(reader)
    code, said, errors = forked(*shlex.split(line), stdin=TURN if line.startswith("turn") else b"").all
    hint = f"Hint: to see the rights that this role lacks, type: gaia-sessions --root {shlex.quote(reader)} doctor"
    if line.startswith("rm"):
        hint = "Hint: fix the reported problem and try again"
    error, last = errors.splitlines()[-2:]
    assert (code, said, last, "permission denied for table" in error) == (8, "", hint, True), errors
    assert stored(reader) == before


@table("statement", FORBIDDEN_TO_WORKERS)
def test_workers_and_readers_can_change_neither_the_tables_nor_their_history(statement: str) -> None:
    url = empty_url_of(WORKER)
    assert is_forbidden(url, statement)
    assert is_forbidden(url.replace(WORKER, READER), statement)


@table("name", ["init", "migrate"])
def test_only_the_owner_can_migrate(gaia: Gaia, name: str) -> None:
    url = empty_url_of(WORKER)
    said = f"{url}: cannot make the tables: the schema gaia_sessions belongs to the role {OWNER}, and this is {WORKER}"
    assert gaia("--root", url, "store", name).refusal == (8, said, f"connect as {OWNER}")
    assert gaia("--root", url.replace(WORKER, OWNER), "store", name).code == 0


def test_a_worker_has_exactly_the_rights_that_doctor_looks_for() -> None:
    sql = "SELECT has_table_privilege(%s, 'gaia_sessions.' || %s, %s)"
    with psycopg.connect(empty_url_of(OWNER)) as connection:
        for right in ("SELECT", "INSERT", "UPDATE", "DELETE"):
            for name, needed in schema.RIGHTS.items():
                has = [*connection.execute(sql, (WORKER, name, right)), *connection.execute(sql, (READER, name, right))]
                assert (name, right, has) == (name, right, [(right in needed.split(),), (right == "SELECT",)])


def test_roles_keep_their_rights_when_a_migration_adds_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    check_installed()
    server = Server()
    make_roles(server)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ONE_MORE))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)

    made = setup.migrate(url_of(server, OWNER))["made"]

    assert made == [schema.VERSION]
    for statement in (
        "INSERT INTO gaia_sessions.more (line) VALUES ('one')",
        "UPDATE gaia_sessions.more SET line = 'two'",
        "DELETE FROM gaia_sessions.more",
    ):
        assert not is_forbidden(url_of(server, WORKER), statement)
        assert is_forbidden(url_of(server, READER), statement)
    assert not is_forbidden(url_of(server, READER), "SELECT * FROM gaia_sessions.more")
    server.remove()
