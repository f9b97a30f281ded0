"""Connections to a server: which URLs are refused, and when a connection is closed."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest

from gaia_sessions.errors import BadSetting, StoreFailure
from gaia_sessions.postgres.connections import server_of
from gaia_sessions.postgres.store import PostgresStore
from tests.servers import PROGRAMS, Server, empty_url
from tests.table import table

pytestmark = pytest.mark.skipif(not PROGRAMS, reason="PostgreSQL is not installed")


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


def test_a_connection_that_nobody_uses_is_closed_after_a_moment() -> None:
    store = PostgresStore(empty_url())
    store.ids()

    end = time.monotonic() + 60
    while server_of(store.root)._idle:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_hint_for_a_host_that_is_not_found_is_about_the_host() -> None:
    with pytest.raises(StoreFailure, match="failed to resolve host") as failed:
        server_of("postgresql://nowhere.invalid/agents").take(time.monotonic())
    assert failed.value.hint == "check the name of the host in the URL, and whether this machine can look up names"
