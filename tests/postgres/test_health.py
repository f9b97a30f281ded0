"""What is read of the health of a server: how a connection comes to it, and the clocks."""

from __future__ import annotations

import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import Sessions
from gaia_sessions.postgres import health
from gaia_sessions.postgres.connections import server_of
from gaia_sessions.postgres.setup import init
from tests.servers import PROGRAMS, Server, empty_url
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not PROGRAMS, reason="PostgreSQL is not installed")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that takes connections over TCP with and without TLS."""
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    server = Server(port=port)
    data = f"{server.folder}/data"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-out", f"{data}/server.crt", "-keyout", f"{data}/server.key"]
    request = ["openssl", "req", "-new", "-x509", "-nodes", "-days", "2", *subject, *files]
    subprocess.run(request, check=True, capture_output=True)
    server.own(f"{data}/server.crt", f"{data}/server.key")
    server.execute("ALTER SYSTEM SET ssl = on")
    server.stop()
    server.start()
    init(server.url)
    yield server
    server.remove()


def test_the_sessions_that_are_being_moved_are_named() -> None:
    url = empty_url()
    with Sessions(url).store as store:
        for agent_id in "abc":
            Sessions(url).create("worker", "p", {"k": {"schema": 1000000, "b": 1}}, agent_id=agent_id)
        for agent_id in "ab":
            with store.open(agent_id) as session:
                session.set_moving({"source": "/here", "target": url, "token": "t"})
    found = health.examine(url, 2.0)["contents"]
    assert found is not None
    assert (found["moving"], found["open_sessions"]) == (["a", "b"], 3)


@table(
    ("options", "environment", "way"),
    [
        ("sslmode=require&sslrootcert={}", {}, health.VERIFIED),
        ("sslmode=verify-ca&sslrootcert={}", {}, health.VERIFIED),
        ("", {"PGSSLMODE": "verify-full", "PGSSLROOTCERT": "{}"}, health.VERIFIED),
        ("sslmode=prefer", {}, health.UNVERIFIED),
        ("", {}, health.UNVERIFIED),
        ("sslmode=disable", {}, health.LOOPBACK),
    ],
)
def test_the_way_of_a_connection_says_if_the_server_is_verified(
    server: Server, options: str, environment: dict[str, str], way: str
) -> None:
    certificate = f"{server.folder}/data/server.crt"
    url = f"postgresql://postgres@localhost:{server.port}/postgres?{options.format(certificate)}"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value.format(certificate))
        server_of(url).close_idle()
        assert health.examine(url, 10)["way"] == way


def test_a_socket_is_a_way_of_its_own_and_the_clock_of_this_machine_is_its_clock() -> None:
    facts = health.examine(empty_url(), 10)

    assert facts["way"] == health.SOCKET
    assert abs(facts["ahead"]) <= facts["imprecision"] + 0.001  # times of Python have microseconds


def test_the_statements_give_the_facts_that_the_types_name() -> None:
    facts = health.examine(empty_url(), 10)

    contents = facts["contents"]
    assert contents is not None
    assert [*facts] == [*health.Facts.__annotations__]
    assert [*contents] == [*health.Contents.__annotations__]
