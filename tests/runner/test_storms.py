"""Trees of hostile processes: none survives, and the exit code of the command is right. Each seed is one tree."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

from gaia_sessions.runner.contain import why_impossible
from tests.runner.conftest import CHECKOUT, PATIENCE, TAG, becomes, carriers, linux, seeds
from tests.runner.hostile import OWN_ENDS, own_end

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runner.conftest import Wrapper

    Wrap = Callable[..., Wrapper]

pytestmark = linux

HOSTILE = str(Path(__file__).parent / "hostile.py")
SECONDS = 10

# Kills the tree of a seed while it grows, or after the command has ended.
KILLS = """
import random
from tests.runner.conftest import TAG, carriers
seed, waits = sys.argv[1], json.loads(sys.argv[2])
nothing = os.open("/dev/null", os.O_RDWR)
child = begin(sys.executable, "-I", "-S", sys.argv[3], seed, stdin=nothing, stdout=nothing, stderr=nothing)
if waits:
    ended(child)
time.sleep(random.Random(seed).choice([0.03, 0.06, 0.1, 0.2, 0.3]))
begun = time.monotonic()
survivors = process_tree.kill_all(child, 10)
took = time.monotonic() - begun
left = [pid for pid in carriers(os.environ[TAG]) if pid != os.getpid()]
try:
    os.waitpid(-1, 0)
    children = "some"
except ChildProcessError:
    children = "none"
print(json.dumps([survivors, left, children, child.exit_code, took]))
"""


def weather(wrap: Wrap, seed: int) -> float:
    """How many seconds the tree of ``seed`` took to end."""
    end = own_end(seed)
    wrapper = wrap(KILLS, str(seed), json.dumps(end is not None), HOSTILE)
    survivors, left, children, exit_code, took = json.loads(wrapper.result())
    expected = 137 if end is None else OWN_ENDS[end]
    assert (survivors, left, children, exit_code) == ([], [], "none", expected), f"seed {seed}"
    return float(took)


@pytest.mark.parametrize("seeds", seeds(2, 12, 50))
def test_no_process_of_a_hostile_tree_survives(wrap: Wrap, seeds: range) -> None:
    for seed in seeds:
        assert weather(wrap, seed) < SECONDS


LIMITS = ("--timeout", "0.5", "--grace", "0.5")
NO_LIMITS = ("--timeout", "60", "--grace", "1")
"""For a command that ends by itself: its start may take more than a second on a busy machine."""


def run(root: str, tag: str, *words: str) -> subprocess.Popen[str]:
    """Starts ``gaia-sessions run``; its processes have ``tag`` in their environment."""
    environment = {**os.environ, TAG: tag, "PYTHONPATH": str(CHECKOUT), "GAIA_SESSIONS_ROOT": root}
    return subprocess.Popen(
        [sys.executable, "-m", "gaia_sessions", "run", "--json", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def weather_with_the_command(root: str, seed: int) -> None:
    tag, end = uuid.uuid4().hex, own_end(seed)
    contain = ["--contain"] if seed % 3 == 0 and why_impossible() is None else []
    command = [sys.executable, "-I", "-S", HOSTILE, str(seed)] if seed % 7 else ["./no-such-command"]
    limits = LIMITS if end is None else NO_LIMITS

    with FileLock(
        Path(tempfile.gettempdir(), "gaia-sessions-storm.lock")
    ):  # two trees at once would be too much for the machine
        running = run(root, tag, *limits, *contain, "--", *command)
        out, _ = running.communicate(timeout=PATIENCE)

    left, report = carriers(tag), json.loads(out)
    told = (running.returncode, report["status"])
    for pid in left:  # a process that stopped itself would never end
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    if not seed % 7:
        assert (told, report["exit_code"]) == ((11, "error"), None), f"seed {seed}"
    elif end is None:
        assert told == (124, "timeout"), f"seed {seed}"
        assert report["exit_code"] in (128 + signal.SIGTERM, 128 + signal.SIGKILL), f"seed {seed}"
    else:
        status = (0, "success") if end == "exit 0" else (11, "error")
        assert (told, report["exit_code"]) == (status, OWN_ENDS[end]), f"seed {seed}"
    assert left == [], f"seed {seed}"


@pytest.mark.parametrize("seeds", seeds(2, 12, 206))
def test_the_run_command_reports_the_right_end_and_leaves_no_process(root: str, seeds: range) -> None:
    for seed in seeds:
        weather_with_the_command(root, seed)


@pytest.mark.skipif(why_impossible() is not None, reason="needs a machine on which a command can be contained")
@pytest.mark.parametrize("seeds", seeds(0, 6, 50))
def test_no_contained_process_survives_a_kill_of_the_run_command(root: str, seeds: range) -> None:
    for seed in seeds:
        kill_with_the_command(root, seed)


def kill_with_the_command(root: str, seed: int) -> None:
    tag = uuid.uuid4().hex
    running = run(root, tag, "--contain", "--", sys.executable, "-I", "-S", HOSTILE, str(seed))
    time.sleep(random.Random(seed).random())  # before the start, or until the whole tree is there

    running.kill()
    running.communicate()

    assert becomes(lambda: carriers(tag) == [], 10), f"seed {seed}"
