"""What costs more the more anybody has written costs so in proportion to it, counted in instructions."""

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
"""By how much more a call may cost for so many times as much; twice would be the square of something small."""


@pytest.mark.slow  # the quick run has what each of these loops finds
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind to count instructions")
def test_what_is_looked_through_costs_in_proportion_to_how_much_there_is() -> None:
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
