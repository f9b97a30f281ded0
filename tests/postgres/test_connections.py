"""Connections to a server: what is refused, what is verified, and that no secret is shown."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import psycopg
import pytest

from gaia_sessions.errors import BadSetting, StoreFailure
from gaia_sessions.postgres.connections import server_of
from gaia_sessions.postgres.setup import init
from gaia_sessions.postgres.store import PostgresStore
from tests.servers import PROGRAMS, Server
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not PROGRAMS, reason="PostgreSQL is not installed")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that demands a password and TLS over TCP, with a certificate for the name localhost."""
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    server = Server("password_encryption = scram-sha-256", port=port)
    data = f"{server.folder}/data"
    request = ["openssl", "req", "-new", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    request += [
        "-addext",
        "subjectAltName=DNS:localhost",
        "-out",
        f"{data}/server.crt",
        "-keyout",
        f"{data}/server.key",
    ]
    subprocess.run(request, check=True, capture_output=True)
    server.own(f"{data}/server.crt", f"{data}/server.key")
    with open(f"{data}/pg_hba.conf", "w", encoding="utf-8") as file:
        file.write("local all all trust\nhostssl all all all scram-sha-256\n")
    with open(f"{data}/postgresql.conf", "a", encoding="utf-8") as file:
        file.write("ssl = on\n")
    server.stop()
    server.start()
    server.execute("ALTER ROLE postgres PASSWORD 's3cret'")
    init(server.url)
    yield server
    server.remove()


def url_of(server: Server, options: str = "") -> str:
    return f"postgresql://postgres@localhost:{server.port}/postgres?{options}"


def test_a_password_of_the_environment_opens_a_verified_connection(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    store = PostgresStore(url_of(server, f"sslmode=require&sslrootcert={server.folder}/data/server.crt"))

    assert store.ids() == []


@table(
    "options, password, says",
    [
        ("sslmode=require", "s3cret", "certificate verify failed"),
        ("sslmode=verify-full", "s3cret", "certificate verify failed"),
        ("sslmode=disable", "s3cret", "no pg_hba.conf entry"),
        ("sslmode=prefer", "wrong", "password authentication failed"),
        ("sslmode=prefer", None, "no password supplied"),
        ("sslmode=prefer&dbname=none", "s3cret", 'database "none" does not exist'),
    ],
)
def test_a_connection_that_is_refused_for_good_is_a_clear_error_without_a_secret(
    server: Server, options: str, password: str | None, says: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if password is None:
            patch.delenv("PGPASSWORD", raising=False)
        else:
            patch.setenv("PGPASSWORD", password)
        store = PostgresStore(url_of(server, options), lock_timeout=60)  # a lasting refusal is not tried again
        with pytest.raises(StoreFailure) as refused:
            store.ids()

    assert says in str(refused.value)
    assert "s3cret" not in str(refused.value) + refused.value.hint


@table("url", ["postgresql://localhost/%zz", "postgresql://localhost/agents?colour=red"])
def test_a_url_that_the_driver_refuses_is_a_bad_setting(url: str) -> None:
    with pytest.raises(BadSetting, match=r"root \(or GAIA_SESSIONS_ROOT\): is no valid URL"):
        PostgresStore(url).ids()


def test_a_connection_on_which_the_first_answer_comes_too_late_is_closed() -> None:
    slow = Server()
    asked = server_of(slow.url)
    asked.seconds_at_first = 1
    slow.hang()
    with pytest.raises(StoreFailure, match=r"no answer within 1 second\b"):
        asked.take(time.monotonic())
    slow.go_on()

    for thread in threading.enumerate():
        if thread.name == "gaia-sessions first answer":
            thread.join()
    sql = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'gaia-sessions'"
    with psycopg.connect(slow.url, autocommit=True) as connection:
        end = time.monotonic() + 60
        while connection.execute(sql).fetchall():
            assert time.monotonic() < end
            time.sleep(0.05)
    slow.remove()


def test_a_connection_that_nobody_uses_is_closed_after_a_moment(server: Server) -> None:
    store = PostgresStore(server.url)
    store.ids()

    end = time.monotonic() + 60
    while server_of(server.url)._idle:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_hint_for_a_host_that_is_not_found_is_about_the_host() -> None:
    with pytest.raises(StoreFailure, match="failed to resolve host") as failed:
        server_of("postgresql://nowhere.invalid/agents").take(time.monotonic())
    assert failed.value.hint == "check the name of the host in the URL, and whether this machine can look up names"
