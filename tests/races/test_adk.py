"""Several processes at one session of ADK and at the state of its app: what was acknowledged is there."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

INCREMENTS = Path(__file__).parents[2] / "scripts" / "adk_increments"

pytestmark = pytest.mark.skipif(not (find_spec("google") and find_spec("google.adk")), reason="needs google-adk")


def test_of_increments_by_four_processes_none_that_was_acknowledged_is_lost() -> None:
    words = [sys.executable, str(INCREMENTS), "gaia", "--seconds", "2", "--processes", "4"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    name, acknowledged, _, failed, *lost = ended.stdout.splitlines()[1].split()
    assert (name, failed, lost, int(acknowledged) > 0) == ("gaia", "0", ["0", "0"], True)
