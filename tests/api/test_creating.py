"""The costs of creating and updating sessions: opened files and bytes of the record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.api import updating
from gaia_sessions.api.creating import store_new
from gaia_sessions.errors import RevisionChanged
from gaia_sessions.session import requests
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.phases import RESUMABLE
from gaia_sessions.session.record import new_record
from gaia_sessions.store.file_store import FileStore
from tests.memory_store import MemoryStore
from tests.places import writing

if TYPE_CHECKING:
    from datetime import datetime

COUNTS_OPENED_FILES = """
import json, sys
import gaia_sessions
opened = []
def begin(number):
    opened.clear()
    gaia_sessions.create_session(parent_id="parent", root=sys.argv[1])
    return sum(event == "open" for event in opened), sum(event.startswith("os.") for event in opened)
begin(0)
sys.addaudithook(lambda event, _: opened.append(event))
print(json.dumps([begin(number) for number in (1, 2)]))
"""


def test_creating_a_child_costs_the_same_after_ten_as_after_a_thousand_siblings(tmp_path: Path, now: datetime) -> None:
    counted = []
    for count in (10, 1000):
        store = FileStore(str(tmp_path / f"root-{count}"), durable=False)
        store.create(new_record("parent", "Explore", "-", {}, now))
        for number in range(count):
            child = new_record(f"child-{number}", "Explore", "-", {}, now)
            store.create({**child, "parent_id": "parent", "phase": "completed"})
        command = [sys.executable, "-c", COUNTS_OPENED_FILES, store.root]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        counted.append(json.loads(result.stdout))

    assert counted[0] == counted[1]


@pytest.mark.parametrize("moves", [400, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_the_record_has_a_bounded_size_after_any_number_of_updates(root: str, now: datetime, moves: int) -> None:
    store = FileStore(root, durable=False)
    store_new(store, now, os.urandom, requests.NewSession("busy", "general", None, "agent-123"))
    path, sizes = Path(root, "agent-123", "state.json"), []
    for number in range(1, moves + 1):
        updating.update(writing(store, now + timedelta(seconds=number)), "agent-123", RESUMABLE[number % 3])
        sizes.append(path.stat().st_size)
    kept = store.read("agent-123")
    assert (len(kept["history"]), kept["history_dropped"], kept["revision"]) == (200, moves - 200, moves + 1)
    assert kept["history"][-1]["timestamp"] == kept["last_updated"] == format_time(now + timedelta(seconds=moves))
    # After 200 updates only the digits of counters and the lengths of phase names change the size.
    assert max(sizes) <= sizes[200] + 100 < 32_000


def test_an_update_checks_the_revision_before_anything_else(now: datetime) -> None:
    store = MemoryStore()
    store_new(store, now, os.urandom, requests.NewSession("busy", "general", None, "agent-123"))
    updating.update(writing(store, now), "agent-123", "completed")
    with pytest.raises(RevisionChanged):
        updating.update(writing(store, now), "agent-123", "planning", if_revision=7)
