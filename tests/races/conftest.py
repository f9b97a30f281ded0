"""Starts the processes of a race, lets them go at one moment, and gathers what each was told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Running = list[subprocess.Popen[str]]
    Start = Callable[[Sequence[Sequence[object]]], "Race"]

WORKER = Path(__file__).with_name("worker.py")


class Race:
    """Processes that wait for the start; ``results`` lets them go and returns what each printed, in their order."""

    def __init__(self, roles: Sequence[Sequence[object]]) -> None:
        gate, self.opener = os.pipe()
        self.processes: Running = [
            subprocess.Popen(
                [sys.executable, WORKER, *map(str, role)],
                stdin=gate,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for role in roles
        ]
        os.close(gate)

    def start(self) -> None:
        for process in self.processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()[1]
        self._open()

    def results(self, count: int | None = None) -> list[Any]:
        """What the first ``count`` of them printed; none of them failed."""
        told = []
        for process in self.processes[:count]:
            out, errors = process.communicate()
            assert (process.returncode, errors) == (0, "")
            told.append(json.loads(out))
        return told

    def end(self) -> None:
        self._open()
        for process in self.processes:
            process.kill()
            process.communicate()

    def _open(self) -> None:
        if self.opener >= 0:
            os.close(self.opener)
            self.opener = -1


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
