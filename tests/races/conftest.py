"""Starts the processes of a race at one moment, and collects their results."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.forks import PATIENCE, forks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Start = Callable[[Sequence[Sequence[object]]], "Race"]

WORKER = str(Path(__file__).with_name("worker.py"))


class Race:
    """Processes that wait for a common start. ``results`` returns what each process printed, in their order."""

    def __init__(self, roles: Sequence[Sequence[object]]) -> None:
        gate, self._opener = socket.socketpair()
        self._opener.settimeout(PATIENCE)
        self._running: dict[int, tuple[int, int]] = {}
        self._told: list[Any] = []
        for role in roles:
            streams = os.memfd_create("out"), os.memfd_create("err")
            self._running[forks().start([sys.executable, WORKER, *map(str, role)], [gate.fileno(), *streams])] = streams
        gate.close()

    def start(self) -> None:
        """Lets all processes go when all of them are ready."""
        ready = 0
        while ready < len(self._running):
            arrived = len(self._opener.recv(len(self._running) - ready))
            assert arrived, "a process failed before the start"
            ready += arrived
        self._opener.close()

    def results(self, count: int | None = None) -> list[Any]:
        """What the first ``count`` processes printed. No process may fail."""
        while self._running and len(self._told) != count:
            code, out, errors = self._ended()
            assert (code, errors) == (0, b"")
            self._told.append(json.loads(out))
        return self._told[:count]

    def end(self) -> None:
        self._opener.close()
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)
        while self._running:
            self._ended()

    def _ended(self) -> tuple[int, bytes, bytes]:
        """Waits for the next process, and returns its exit code and its output."""
        pid, streams = next(iter(self._running.items()))
        code = forks().wait(pid)
        del self._running[pid]
        written = [os.pread(stream, os.fstat(stream).st_size, 0) for stream in streams]
        for stream in streams:
            os.close(stream)
        return (code, *written)  # type: ignore[return-value]  # one for each stream


@pytest.fixture
def race() -> Iterator[Start]:
    """Starts one process per role: the name of a function in ``worker.py`` and its arguments."""
    races: list[Race] = []

    def start(roles: Sequence[Sequence[object]]) -> Race:
        races.append(Race(roles))
        races[-1].start()
        return races[-1]

    yield start
    for one in races:
        one.end()
