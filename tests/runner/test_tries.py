"""The tries to write the end of a run."""

from __future__ import annotations

import threading

import pytest

from gaia_sessions.errors import LockTimeout, StoreFailure
from gaia_sessions.runner.signals import Signals
from gaia_sessions.runner.tries import written
from gaia_sessions.store.key_lock import Presence

URL = "postgresql://db.example.com/agents"


class Short(Presence):
    patience = 1.0


def test_a_server_that_hangs_is_named_also_if_an_earlier_try_met_a_lock() -> None:
    tried: list[None] = []
    is_over = threading.Event()

    def write() -> None:
        tried.append(None)
        if len(tried) == 1:
            raise LockTimeout("agent-1", 1.0, None)
        is_over.wait()

    with Signals() as signals, pytest.raises(StoreFailure) as failed:
        written(write, Short(), signals, lambda *_: None, URL)
    is_over.set()
    assert (len(tried), failed.value.path, failed.value.reason) == (2, URL, "the server did not answer")


@pytest.mark.parametrize("server", [None, URL])
def test_a_write_that_stays_refused_raises_its_own_error(server: str | None) -> None:
    def write() -> None:
        raise LockTimeout("agent-1", 1.0, None)

    with Signals() as signals, pytest.raises(LockTimeout):
        written(write, Short(), signals, lambda *_: None, server)


@pytest.mark.parametrize("server", [None, URL])
def test_a_write_that_a_later_try_can_do_returns_its_result(server: str | None) -> None:
    tried: list[None] = []

    def write() -> int:
        tried.append(None)
        if len(tried) == 1:
            raise StoreFailure("write", "agent-1", "it failed")
        return len(tried)

    with Signals() as signals:
        assert written(write, Short(), signals, lambda *_: None, server) == 2
