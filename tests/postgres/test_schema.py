"""The tables on a server: what a role must be allowed to do with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("psycopg", exc_type=ModuleNotFoundError)
from gaia_sessions.postgres import schema, store

STATEMENT = re.compile(r"\b(INSERT INTO|UPDATE|DELETE FROM) gaia_sessions\.([a-z_]+)")
ON_CONFLICT = {("UPDATE", table) for table in ("document", "committed", "output", "setting")}
"""What only ON CONFLICT DO UPDATE needs."""

OF_THE_OWNER = {("INSERT", "migration")}


def test_the_rights_that_a_role_needs_are_those_that_the_statements_use() -> None:
    files = Path(schema.__file__).parent.glob("*.py")
    source = "".join(path.read_text(encoding="utf-8") for path in files).replace("{SCHEMA}", "gaia_sessions")
    used = {(act.split()[0], table) for act, table in STATEMENT.findall(source + "".join(store._SWEEP))}

    listed = {(right, table) for table, rights in schema.RIGHTS.items() for right in rights.split()}
    assert listed - {("SELECT", table) for table in schema.RIGHTS} == (used | ON_CONFLICT) - OF_THE_OWNER
    tables = re.findall(r"CREATE TABLE gaia_sessions\.(\w+)", "".join(schema.MIGRATIONS))
    assert {*tables, "migration"} == {table for right, table in listed if right == "SELECT"}
