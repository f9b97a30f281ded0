"""Lost, silent, forbidden and interrupted connections to a server: only our errors, no leak, nothing half written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from gaia_sessions import Sessions, SubAgentSession
from gaia_sessions.errors import NotWritten, OutcomeUnknown, SessionsError, StoreFailure
from gaia_sessions.postgres import connections, lease, setup, transaction
from gaia_sessions.postgres.store import PostgresStore
from gaia_sessions.session.record import new_record
from gaia_sessions.session.updates import Change
from tests.faults.proxy import AFTER, BEFORE, SILENT_AFTER, SILENT_BEFORE, Proxy, is_commit
from tests.servers import empty_url, shared_server
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gaia_sessions.session.schema import Record

NOW = datetime(2026, 1, 8, 18, 5, 30, tzinfo=UTC)
FORK = """
import os, sys
from gaia_sessions.postgres import connections
from gaia_sessions.postgres.store import PostgresStore
connections._SECONDS_IDLE = 3600
store = PostgresStore(sys.argv[1])
ask = lambda: store._rows("SELECT pg_backend_pid()")
of_parent = ask()
assert ask() == of_parent
child = os.fork()
if child == 0:
    os._exit(ask() == of_parent)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.fixture(autouse=True)
def _url() -> None:
    empty_url()
    PostgresStore(shared_server().url).create(new_record("one", "worker", "", {}, NOW))


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    proxy = Proxy(shared_server().folder)
    yield proxy
    proxy.close()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client waits only a moment for every answer."""
    monkeypatch.setattr(connections, "_SECONDS_FOR_ANSWER", 0.3)
    monkeypatch.setitem(connections._STARTUP, "connect_timeout", "2")  # the shortest that there is
    monkeypatch.setattr(transaction, "_SECONDS_TO_SETTLE", 0.3)
    monkeypatch.setattr(setup, "_SECONDS", 0.3)


def free_of(url: str) -> int:
    """How many more connections this process may take at once."""
    return connections.server_of(url)._free._value


def longer(record: Record) -> Change:
    return Change({**record, "purpose": record["purpose"] + "+"}, [{"one": "more"}])


def standing() -> tuple[str, int]:
    store = PostgresStore(shared_server().url)
    return store.read("one")["purpose"], len(list(store.entries("one", "events.jsonl")))


def _read_all(store: PostgresStore) -> list[object]:
    return [*store.scan(), *store.messages("one"), *store.figures(), store.ids(), store.waiting()]


def _hold_lease(store: PostgresStore) -> None:
    with store.lease("one"):
        pass


def _keep_output(store: PostgresStore) -> None:
    output = store.open_output(store.read("one"), 1)
    output.write(b"said")
    output.close()


USES: dict[str, Callable[[PostgresStore], object]] = {
    "make the tables": lambda store: setup.init(store.root),
    "read": lambda store: store.read("one"),
    "read all": _read_all,
    "change": lambda store: store.change("one", longer),
    "create": lambda store: store.create(new_record("two", "worker", "", {}, NOW)),
    "lock a key": lambda store: store.lock_key(("k",)).__enter__(),
    "hold a lease": _hold_lease,
    "keep output": _keep_output,
    "sweep": lambda store: store.sweep(NOW),
}


@pytest.mark.parametrize("name", USES)
def test_connections_that_died_while_nobody_used_them_are_replaced(proxy: Proxy, name: str) -> None:
    store = PostgresStore(proxy.url)
    store.read("one")
    proxy.cut_all()
    USES[name](store)
    store._transaction = None
    proxy.cut_all()


@pytest.mark.parametrize("name", USES)
def test_a_role_without_rights_gets_only_our_errors(name: str) -> None:
    server = shared_server()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS stranger")
        connection.execute("CREATE ROLE stranger LOGIN")
    url = server.url.replace("postgres@", "stranger@")
    said, hint = "permission denied", "to see the rights that this role lacks, type: "
    if name == "make the tables":
        said, hint = "belongs to the role postgres, and this is stranger", "connect as postgres"
    with pytest.raises(StoreFailure, match=said) as refused:
        USES[name](PostgresStore(url))
    assert refused.value.hint.startswith(hint)
    assert free_of(url) == connections._MOST_CONNECTIONS


@table("right", ["INSERT", "UPDATE"])
def test_a_role_that_may_only_read_reads_and_is_refused_otherwise(right: str) -> None:
    server = shared_server()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP OWNED BY reader" if _has_role(connection, "reader") else "CREATE ROLE reader LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA gaia_sessions TO reader")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA gaia_sessions TO reader")
        if right == "UPDATE":  # so that only the journal refuses
            connection.execute("GRANT UPDATE ON gaia_sessions.session TO reader")
    store = PostgresStore(server.url.replace("postgres@", "reader@"))
    assert store.read("one")["purpose"] == ""
    with pytest.raises(StoreFailure, match="permission denied"):
        store.change("one", longer)
    assert standing() == ("", 0)


def _has_role(connection: psycopg.Connection[Any], name: str) -> bool:
    return connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is not None


def test_a_read_only_server_has_certainly_not_written() -> None:
    url = shared_server().url + "&options=-c%20default_transaction_read_only%3Don"
    store = PostgresStore(url, lock_timeout=0.1)
    with pytest.raises(NotWritten, match="read-only transaction"):
        store.change("one", longer)
    with pytest.raises(NotWritten, match="read-only transaction"):
        store.add_figures([{"n": 1}])
    assert (standing(), free_of(url)) == (("", 0), connections._MOST_CONNECTIONS)


FATAL = "connection to server failed: FATAL:  "


@table(
    "said",
    [
        f"{FATAL}the database system is starting up",
        f"{FATAL}terminating connection due to administrator command",
        f"{FATAL}sorry, too many clients already",
        f"{FATAL}remaining connection slots are reserved for roles with the SUPERUSER attribute",
        f"{FATAL}session is read-only",
        f"{FATAL}pgbouncer is shutting down",
        f"{FATAL}no more connections allowed (max_client_conn)",
        f"{FATAL}server login has been failing, try again later (server_login_retry)",
        f"{FATAL}pgbouncer cannot connect to server",
        "connection to server failed: Connection refused",
    ],
)
def test_a_server_that_refuses_for_a_moment_is_asked_again(said: str) -> None:
    assert connections._may_pass(psycopg.OperationalError(said))


@table(
    "said",
    [
        f'{FATAL}role "nobody" does not exist',
        f'{FATAL}password authentication failed for user "nobody"',
        "connection to server failed: fe_sendauth: no password supplied",
        'connection to server failed: server certificate for "db" does not match host name "other"',
        "connection to server failed: server does not support SSL, but SSL was required",
        'connection to server failed: could not load private key file "own.key": key values mismatch',
        'connection to server failed: authentication method requirement "md5" failed: server requested SASL',
    ],
)
def test_a_server_that_always_refuses_is_not_asked_again(said: str) -> None:
    assert not connections._may_pass(psycopg.OperationalError(said))


def test_stricter_isolation_of_the_server_changes_nothing() -> None:
    url = shared_server().url + "&options=-c%20default_transaction_isolation%3Dserializable"
    sessions = Sessions(url)
    sessions.create("worker", agent_id="counting", app="kb", user="u1")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: sessions.change_state("counting", add={"n": 1, "app:n": 1}), range(40)))
    assert sessions.state("counting")["state"] == {"n": 40, "app:n": 40}


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    "name", ["change", *(pytest.param(name, marks=pytest.mark.slow) for name in USES if name != "change")]
)
def test_a_stopped_pooler_holds_nobody_for_ever(proxy: Proxy, name: str) -> None:
    store = PostgresStore(proxy.url, lock_timeout=0.3)
    store.read("one")
    proxy.stop()
    try:
        USES[name](store)
    except SessionsError:
        pass
    else:
        assert name == "keep output"  # its thread stores later what it could not store
    proxy.go_on()
    assert free_of(proxy.url) == connections._MOST_CONNECTIONS
    assert PostgresStore(proxy.url).change("one", longer)["purpose"] == "+"


@pytest.mark.usefixtures("hasty")
@table("moment", [SILENT_BEFORE, SILENT_AFTER])
def test_a_commit_that_is_never_answered_is_settled_on_another_connection(proxy: Proxy, moment: str) -> None:
    store, before = PostgresStore(proxy.url, lock_timeout=0.3), standing()
    proxy.cut(moment)
    if moment == SILENT_AFTER:
        store.change("one", longer)
    else:  # the connection that was given up still has the lock on the server
        with pytest.raises(SessionsError) as refused:
            store.change("one", longer)
        assert not isinstance(refused.value, OutcomeUnknown)
    proxy.cut_all()
    assert proxy.cuts == {moment: 1}
    assert standing() == (("+", 1) if moment == SILENT_AFTER else before)
    assert free_of(proxy.url) == connections._MOST_CONNECTIONS
    PostgresStore(shared_server().url).change("one", lambda record: {**record, "purpose": ""})


@pytest.mark.usefixtures("hasty")
def test_a_commit_that_nobody_can_be_asked_about_has_an_unknown_outcome(proxy: Proxy) -> None:
    store = PostgresStore(proxy.url, lock_timeout=0.3)

    def stop(message: bytes) -> bool:
        if is_commit(message):
            proxy.stop()
        return is_commit(message)

    proxy.cut(SILENT_AFTER, wanted=stop)
    with pytest.raises(OutcomeUnknown):
        store.change("one", longer)
    proxy.go_on()
    assert standing() == ("+", 1)
    assert free_of(proxy.url) == connections._MOST_CONNECTIONS


def test_an_interrupted_block_writes_nothing_of_it() -> None:
    url = shared_server().url
    store = PostgresStore(url)

    def commit_and_stop() -> None:
        with store.open("one") as session:
            session.commit(longer(session.record))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commit_and_stop()
    assert (standing(), free_of(url)) == (("", 0), connections._MOST_CONNECTIONS)


@contextmanager
def _interrupted() -> Iterator[None]:
    """Ctrl-C, some time after the block has begun to wait for a lock."""
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with pytest.raises(KeyboardInterrupt):
        yield
    signal.signal(signal.SIGALRM, old)


@table("locked", ["session", "committed"])
def test_an_interruption_is_no_other_error_and_leaks_no_connection(locked: str) -> None:
    url = shared_server().url
    store = PostgresStore(url)
    with psycopg.connect(url) as other:
        other.execute(f"LOCK TABLE gaia_sessions.{locked} IN SHARE MODE".encode())
        with _interrupted():
            store.change("one", longer)
    assert (standing(), free_of(url)) == (("", 0), connections._MOST_CONNECTIONS)


def test_a_refused_commit_is_no_sign_that_the_server_lost_writes(proxy: Proxy) -> None:
    store = PostgresStore(proxy.url)
    proxy.cut(BEFORE)
    with pytest.raises(NotWritten), store.open("one") as session:
        session.commit(longer(session.record))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert store.read("one")["revision"] == 1
    assert warned == []


def test_output_whose_commit_is_cut_is_stored_whole(proxy: Proxy) -> None:
    store = PostgresStore(proxy.url)
    record = store.read("one")
    output = store.open_output(record, 1)
    proxy.cut(AFTER)
    output.write(b"first ")
    output._is_stored()
    assert proxy.cuts == {AFTER: 1}
    output.write(b"second")
    output.close()
    assert store.output(record, 1) == b"first second"


def test_more_senders_than_connections_can_begin_at_once() -> None:
    url = shared_server().url
    many = 2 * connections._MOST_CONNECTIONS
    together = threading.Barrier(many)
    talks = [SubAgentSession(lambda _: "yes", agent_id=None, root=url) for _ in range(many)]

    def send(talk: SubAgentSession[Any]) -> str:
        together.wait()
        return str(talk.send("hello")["text"])

    with ThreadPoolExecutor(many) as pool:
        assert [*pool.map(send, talks)] == ["yes"] * many
    assert free_of(url) == connections._MOST_CONNECTIONS


def lasting() -> list[bool]:
    """For each lease, whether it is valid for more than a minute."""
    sql = "SELECT until > clock_timestamp() + interval '1 minute' FROM gaia_sessions.lease"
    with psycopg.connect(shared_server().url) as connection:
        return [is_lasting for (is_lasting,) in connection.execute(sql)]


def test_a_lease_that_was_over_ends_when_it_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_RENEWALS", 1200)
    with PostgresStore(shared_server().url).lease("one") as held:
        held._renewed = float("-inf")  # it could not be renewed for long
        assert held.is_over
        time.sleep(0.5)  # until nothing renews it any more
        assert lasting() == [True]
    assert lasting() == [False]


def test_a_send_whose_beginning_was_cut_begins_again_with_a_lease_that_ends_with_it(proxy: Proxy) -> None:
    during: list[list[bool]] = []

    def answer(_: object) -> str:
        during.append(lasting())
        return "yes"

    talk = SubAgentSession(answer, agent_id="one", root=proxy.url)
    proxy.cut(BEFORE)
    assert (talk.send("hello")["turn"], during, lasting()) == (1, [[True]], [False])
    assert [one.name for one in threading.enumerate() if "lease" in one.name] == []
    assert talk.send("hello")["turn"] == 2


def test_a_forked_child_uses_no_connection_of_its_parent() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, shared_server().url],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ},
    )
    assert (done.returncode, done.stderr) == (0, "")
