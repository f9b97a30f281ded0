"""What the store on a server does beyond the contract of stores: incarnations, lost writes, text as it was written."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from gaia_sessions.errors import StoreFailure, WritesLost
from gaia_sessions.postgres.store import PostgresStore
from gaia_sessions.session.record import new_record
from gaia_sessions.session.transcript import new_message
from tests.removals import deleted
from tests.servers import empty_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.schema import Record

NOW = datetime(2026, 1, 8, 18, 5, 30, tzinfo=UTC)


@pytest.fixture
def store() -> PostgresStore:
    return PostgresStore(empty_url())


def record_of(agent_id: str = "agent-1", metadata: dict[str, Any] | None = None) -> Record:
    return new_record(agent_id, "worker", "", metadata or {}, NOW)


def execute(store: PostgresStore, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(store.root, autocommit=True) as connection:
        found = connection.execute(sql)
        return found.fetchall() if found.description else []


def in_child(work: Callable[[], bool]) -> bool:
    """Whether ``work`` returns True in a forked child."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def with_messages(store: PostgresStore, texts: list[str]) -> None:
    with store.open("agent-1") as session:
        session.commit({**session.record}, messages=[new_message("user", text, NOW) for text in texts])


def test_numbers_and_characters_are_stored_as_they_were_written(store: PostgresStore) -> None:
    metadata = {"number": 1.0, "large": 2**63 - 1, "small": 1e-7, "text": "ﬁ ÅΣς 🙂"}
    store.create(record_of(metadata=metadata))

    found = store.read("agent-1")["metadata"]

    assert found == metadata
    assert [type(value) for value in found.values()] == [float, int, float, str]


def test_a_reader_that_has_begun_reads_a_removed_session_to_its_end_and_nothing_of_a_new_one(
    store: PostgresStore,
) -> None:
    store.create(record_of(), {"first": True})
    with_messages(store, [str(number) for number in range(450)])
    messages = store.messages("agent-1")
    seen = [next(messages)]

    deleted(store, "agent-1", lambda _: True)
    store.create(record_of(), {"second": True})
    with_messages(store, ["of the second"])

    seen += messages
    assert [one["content"] for one in seen if isinstance(one, dict)] == [str(number) for number in range(450)]
    assert [*store.entries("agent-1", "events.jsonl")] == [{"second": True}]


def test_a_sweep_removes_the_rest_of_removed_sessions_after_an_hour(store: PostgresStore) -> None:
    def rest() -> list[int]:
        tables = ("message", "journal", "deleted")
        return [len(execute(store, f"TABLE gaia_sessions.{table}")) for table in tables]

    store.create(record_of(), {"first": True})
    with_messages(store, ["one"])
    deleted(store, "agent-1", lambda _: True)
    store.sweep(NOW)
    assert rest() == [1, 1, 1]

    execute(store, "UPDATE gaia_sessions.deleted SET at = at - interval '61 minutes'")
    store.sweep(NOW)

    assert rest() == [0, 0, 0]


def test_a_reader_warns_if_the_server_has_an_older_revision_than_it_had(store: PostgresStore) -> None:
    store.create(record_of())
    older = execute(store, "SELECT record, revision FROM gaia_sessions.session")[0]
    store.change("agent-1", lambda record: {**record})
    with psycopg.connect(store.root, autocommit=True) as connection:
        connection.execute("UPDATE gaia_sessions.session SET record = %s, revision = %s", older)

    with pytest.warns(WritesLost, match="session agent-1 had revision 2, and now has revision 1"):
        assert store.read("agent-1")["revision"] == 1

    assert store.read("agent-1")["revision"] == 1  # said once


def test_a_new_session_with_an_old_id_is_no_sign_of_lost_writes(store: PostgresStore) -> None:
    store.create(record_of())
    store.change("agent-1", lambda record: {**record})
    deleted(store, "agent-1", lambda _: True)
    store.create(record_of())

    assert store.read("agent-1")["revision"] == 1


def test_a_forked_child_uses_connections_of_its_own(store: PostgresStore) -> None:
    store.create(record_of())

    def child() -> bool:
        store.change("agent-1", lambda record: {**record})
        return store.read("agent-1")["revision"] == 2

    assert in_child(child)
    assert store.change("agent-1", lambda record: {**record})["revision"] == 3


def test_a_forked_child_cannot_write_under_the_lock_of_its_parent(store: PostgresStore) -> None:
    store.create(record_of())
    with store.open("agent-1") as session:
        record = session.record

        def child() -> bool:
            try:
                session.commit({**record})
            except StoreFailure as error:
                return "forked" in str(error)
            return False

        assert in_child(child)
        session.commit({**record})

    assert store.read("agent-1")["revision"] == 2
