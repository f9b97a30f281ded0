"""Loops over untrusted input cost in proportion to its size, counted in instructions."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.growth import CASES, TIMES
from tests.test_instructions import CALLGRIND

MOST = 1.5 * TIMES
"""The most by which the cost of a call may grow if its input grows by TIMES. A square would double it."""


@pytest.mark.slow  # quick tests check the results of these loops
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind to count instructions")
def test_the_cost_of_each_case_grows_in_proportion_to_its_size() -> None:
    done = subprocess.run(
        [*CALLGRIND, sys.executable, "-m", "tests.growth"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    counts = {pid: int(count) for pid, count in re.findall(r"==(\d+)== Collected : (\d+)", done.stderr)}
    costs: dict[str, list[int]] = {}
    for name, _, nothing, call in map(str.split, done.stdout.splitlines()):
        costs.setdefault(name, []).append(counts[call] - counts[nothing])

    assert [*costs] == [case.__name__ for case in CASES]
    assert {name: more / few for name, (few, more) in costs.items() if more > MOST * few} == {}
