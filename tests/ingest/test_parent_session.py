"""An agent is below the agent that started it, in any order of events and with many waiting events."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.config import Config
from gaia_sessions.ingest import Terms
from gaia_sessions.ingest.deferred import TRY_ALL_LIMIT, apply_deferred
from gaia_sessions.ingest.dispatch import handle_event
from gaia_sessions.session.clock import format_time
from gaia_sessions.store.file_store import FileStore
from tests.ingest.conftest import own_folder
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

    from gaia_sessions.session.host_events import Event

BEGAN = datetime(2026, 1, 8, 18, 0, tzinfo=UTC)
OTHERS = 30
assert OTHERS > TRY_ALL_LIMIT

PARENT = {"host_agent_id": "a", "tool_use_id": "ta", "agent_name": "Explore"}
CHILD = {"host_agent_id": "b", "tool_use_id": "tb", "agent_name": "Explore"}
SAID = {"has_message": True, "last_message": "Done."}
DELEGATED = {"kind": "delegate", "tool_use_id": "tb", "agent_name": "Explore", "purpose": "child"}

# In the order in which the events happen.
LIFE: dict[str, dict[str, Any]] = {
    "delegation": {"kind": "delegate", "tool_use_id": "ta", "agent_name": "Explore", "purpose": "parent"},
    "its start": {"kind": "start", **PARENT},
    "its delegation": {**DELEGATED, "parent_host_agent_id": "a"},
    "the start of the child": {"kind": "start", **CHILD},
    "the stop of the child": {"kind": "stop", **CHILD, **SAID},
    "its stop": {"kind": "stop", **PARENT, **SAID},
}
TIMES = {name: BEGAN + timedelta(seconds=second) for second, name in enumerate(LIFE)}


class Project:
    """The sessions of a project whose inbox has more events than one call tries."""

    def __init__(self, folder: Path) -> None:
        self.store = FileStore(str(folder), durable=False, lock_timeout=0)
        for number in range(OTHERS):
            keys = {"host_agent_id": f"other{number}", "tool_use_id": f"t{number}"}
            self.store.defer(self.event(BEGAN, {"kind": "stop", **keys}), BEGAN - timedelta(minutes=1))

    @staticmethod
    def event(at: datetime, fields: dict[str, Any]) -> Event:
        return {"at": format_time(at), "host": "claude-code", "host_session_id": "h", **fields}  # type: ignore[typeddict-item]

    def hear(self, name: str, *, held: bool = False) -> None:
        """Applies an event as a hook does; ``held``: another process holds the locks that the event needs."""
        event, now = self.event(TIMES[name], LIFE[name]), TIMES[name]
        with ExitStack() as locks:
            if held:
                other = FileStore(self.store.root, lock_timeout=0)
                locks.enter_context(other.lock_key(("delegation", "h", "tb")))
                for agent_id in other.ids():
                    locks.enter_context(other.open(agent_id))
            apply_deferred(self.store, now, Config({}), waiting=self.store.waiting(), new_events=[event])
            assert (handle_event(self.store, event, Terms(now, Config({}), 0)).word == "deferred") >= held

    def above(self) -> dict[str, Any]:
        """The purpose of each session, with the purpose of the session above it."""
        records = [self.store.read(agent_id) for agent_id in self.store.ids()]
        purposes = {record["agent_id"]: record["purpose"] for record in records}
        assert sorted(purposes.values()) == ["child", "parent"]
        return {record["purpose"]: purposes.get(record.get("parent_id", "")) for record in records}

    def others(self) -> int:
        return len(self.store.waiting())


ORDERS = [("delegation", *order) for order in itertools.permutations([name for name in LIFE if name != "delegation"])]


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_child_is_below_its_parent_in_every_order_of_their_reports(tmp_path: Path, step: int) -> None:
    for number, order in enumerate(ORDERS[::step]):
        project = Project(tmp_path / str(number))

        for name in order:
            project.hear(name)

        assert (order, project.above(), project.others()) == (order, {"parent": None, "child": "parent"}, OTHERS)


@table("held", ["its start", "its delegation"])
@own_folder
def test_an_event_that_found_the_lock_held_is_applied_before_the_start_of_the_child(tmp_path: Path, held: str) -> None:
    project = Project(tmp_path)
    for name in ("delegation", "its start", "its delegation"):
        project.hear(name, held=name == held)
    assert project.others() == (OTHERS if held == "its start" else OTHERS + 1)

    project.hear("the start of the child")

    assert (project.above(), project.others()) == ({"parent": None, "child": "parent"}, OTHERS)
