"""What the store on a server does beyond the contract of stores: incarnations, lost writes, text as it was written."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from gaia_sessions.errors import InvalidInput, LockTimeout, StoreFailure, WritesLost
from gaia_sessions.postgres.store import PostgresStore
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import new_record
from gaia_sessions.session.transcript import new_message
from gaia_sessions.system import leases
from tests.removals import deleted
from tests.servers import empty_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.postgres.lease import Lease
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


def with_open_run(store: PostgresStore, lease: Lease) -> Record:
    run: Any = {"run": 1, "started_at": format_time(NOW), "wrapper": lease.holder()}
    store.create({**record_of(), "phase": "planning", "runs": [run]})
    return store.read("agent-1")


def with_end(end: str) -> Callable[[Record], Record]:
    def rule(record: Record) -> Record:
        ended: Any = {**record["runs"][0], "end": end, "ended_at": format_time(NOW), "detail": "over"}
        return {**record, "runs": [ended]}

    return rule


def test_the_lease_of_a_run_that_others_called_lost_is_never_valid_again(store: PostgresStore) -> None:
    with store.lease() as lease:
        with_open_run(store, lease)
        store.change("agent-1", with_end("lost"))

        with_open: Any = {**store.read("agent-1"), "agent_id": "agent-2"}
        with_open["runs"] = [
            {key: value for key, value in with_open["runs"][0].items() if key not in ("end", "ended_at")}
        ]
        store.create(with_open)
        stored = store.read("agent-2")["runs"][0]["wrapper"]["lease"]
        assert leases.is_valid(stored) is False  # although the server has just started
        assert lease._is_renewed() is False
        assert lease.is_over


def test_who_has_read_a_run_before_its_end_still_finds_its_lease_valid(store: PostgresStore) -> None:
    with store.lease() as lease:
        with_open_run(store, lease)
        store.change("agent-1", with_end("stopped"))

    [[is_valid, lasts]] = execute(
        store, "SELECT until > clock_timestamp(), until > clock_timestamp() + interval '20 s' FROM gaia_sessions.lease"
    )
    assert (is_valid, lasts) == (True, False)


def test_a_second_open_of_one_session_in_a_store_is_refused(store: PostgresStore) -> None:
    store.create(record_of())
    with store.open("agent-1") as session:
        with pytest.raises(LockTimeout), store.open("agent-1", timeout=0):
            raise AssertionError("two have it")
        session.commit({**session.record})
    assert store.read("agent-1")["revision"] == 2


def test_an_entry_that_cannot_be_read_is_an_error_in_its_place(store: PostgresStore) -> None:
    store.create(record_of(), {"n": 1})
    execute(
        store,
        "INSERT INTO gaia_sessions.journal (incarnation, name, line) "
        "SELECT incarnation, 'events.jsonl', '{\"torn' FROM gaia_sessions.session",
    )
    store.append("agent-1", "events.jsonl", [{"n": 2}])

    first, second, third = store.entries("agent-1", "events.jsonl")

    assert (first, third) == ({"n": 1}, {"n": 2})
    assert isinstance(second, InvalidInput)


def test_a_writer_warns_too_if_the_server_has_an_older_revision_than_it_had(store: PostgresStore) -> None:
    store.create(record_of())
    older = execute(store, "SELECT record, revision FROM gaia_sessions.session")[0]
    store.change("agent-1", lambda record: {**record})
    with psycopg.connect(store.root, autocommit=True) as connection:
        connection.execute("UPDATE gaia_sessions.session SET record = %s, revision = %s", older)

    with pytest.warns(WritesLost):
        store.change("agent-1", lambda record: {**record})


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
