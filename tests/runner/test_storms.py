"""Storms: of a tree of hostile processes none is left, and the command's exit code is right. Each seed is one tree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.runner.conftest import linux
from tests.runner.hostile import OWN_ENDS, own_end

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runner.conftest import Wrapper

    Wrap = Callable[..., Wrapper]

pytestmark = linux

HOSTILE = str(Path(__file__).parent / "hostile.py")
SECONDS = 10

# Kills the tree of a seed in the midst of it, or when the command has ended by itself.
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
survivors = tree.kill_all(child, 10)
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


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_left_of_a_hostile_tree(wrap: Wrap, seed: int) -> None:
    assert weather(wrap, seed) < SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 210))
def test_nothing_is_left_of_many_hostile_trees(wrap: Wrap, seed: int) -> None:
    assert weather(wrap, seed) < SECONDS
