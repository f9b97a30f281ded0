"""Beginning a session: what it costs, counted in files that are opened."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from gaia_sessions.session.record import new_record
from gaia_sessions.store.file_store import FileStore

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

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


def test_a_child_begins_at_the_same_cost_after_ten_ended_ones_as_after_a_thousand(
    tmp_path: Path, now: datetime
) -> None:
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
