"""How a cost is measured so that a busy machine does not distort it.

There are two ways: the instructions of a whole process, which repeat to a thousandth, and the median ratio of two acts
that are timed in turn (A B, B A, ...).
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import time
from statistics import median
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Act = Callable[[], object]
    Pair = Callable[[int], tuple[Act, Act]]
    """Prepares the round with this number: the measured act, and the act to compare it with."""

BARE = (sys.executable, "-c", "pass")

_ROUNDS = 15


class Spent(NamedTuple):
    """Seconds of wall time and of processor time, or two ratios of them."""

    wall: float
    cpu: float


def compare(rounds: int, pair: Pair) -> Spent:
    """Returns how many times as long the first act takes as the second: medians over ``rounds``."""
    ratios = [_ratios(number, *pair(number)) for number in range(rounds)]
    return Spent(median(ratio.wall for ratio in ratios), median(ratio.cpu for ratio in ratios))


def _ratios(number: int, measured: Act, baseline: Act) -> Spent:
    if number % 2:
        second, first = time_spent(baseline), time_spent(measured)
    else:
        first, second = time_spent(measured), time_spent(baseline)
    return Spent(first.wall / second.wall, first.cpu / second.cpu)


def time_spent(act: Act) -> Spent:
    """Returns the time that ``act`` takes."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Spent(wall, cpu)


class Start(NamedTuple):
    """A program to start in ``folder``; ``feed`` prepares one call and returns its standard input."""

    what: str
    command: tuple[str, ...]
    folder: str
    feed: Callable[[], bytes]
    check: Callable[[bytes], None]
    """Takes the output, and raises if the program did not do what is measured."""


def times_bare(start: Start) -> tuple[float, str]:
    """Returns the cost of ``start`` as a multiple of ``python -c pass``, and its unit: instructions, else seconds."""
    _run(start)  # now everything is compiled
    if shutil.which("valgrind"):
        bare = Start("bare", BARE, start.folder, bytes, lambda _: None)
        return _instructions(start) / _instructions(bare), "instructions"
    return median(_wall(start) / _wall(start._replace(command=BARE)) for _ in range(_ROUNDS)), "seconds, no valgrind"


def _run(start: Start, prefix: tuple[str, ...] = ()) -> None:
    payload = start.feed()
    result = subprocess.run(
        (*prefix, *start.command),
        input=payload,
        cwd=start.folder,
        env=_environment(),
        stdout=subprocess.PIPE,
        check=True,
    )
    start.check(result.stdout)


def _wall(start: Start) -> float:
    payload = start.feed()
    began = time.perf_counter()
    subprocess.run(
        start.command, input=payload, cwd=start.folder, env=_environment(), stdout=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - began


def _instructions(start: Start) -> int:
    log = os.path.join(start.folder, "callgrind.log")
    count = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={log}")
    _run(start, count)
    with open(log, encoding="utf-8") as file:
        return next(int(line.split()[-1]) for line in file if "Collected" in line)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONHASHSEED": "0"}
