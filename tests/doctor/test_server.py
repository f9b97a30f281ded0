"""``doctor`` with the URL of a server as the root: the server and the files of the hooks are checked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from tests.commands import gaia
from tests.servers import empty_url, shared_server, tables_of
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
    *(f"server_{name}" for name in ("rights", "connections", "cleanup", "growth", "vacuum")),
]
SYNC = "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();"
AS_TESTS_ARE = {"server_durable": ("problem", SYNC), "server_rights": ("warning", None)}
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


def test_a_folder_that_hooks_cannot_use_is_a_problem_beside_the_server(project: Path) -> None:
    url = empty_url()
    (project / ".claude" / "session").rename(project / "kept")
    (project / ".claude" / "session").write_text("mine", encoding="utf-8")

    found = report(url)["checks"]

    problems = [check for check in found if check["state"] == "problem"]
    assert [check["name"] for check in problems] == ["server_durable", "root"]
    assert problems[1]["found"].startswith(f"{project}/.claude/session: not a folder")


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
