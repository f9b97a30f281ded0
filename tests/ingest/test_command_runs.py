"""Events of hosts never change the run of a command, even if their keys match the run."""

from __future__ import annotations

import os
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from gaia_sessions.config import Config
from gaia_sessions.ingest import Terms
from gaia_sessions.ingest.dispatch import handle_event
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.host_events import DELEGATE, FINALIZE, KINDS, SESSION_START, SEVERAL
from gaia_sessions.session.record import new_record
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from gaia_sessions.system.processes import describe
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.host_events import Event

NOW = utc_now()
NUMBERS = count()
KEYS: Any = {"host": "claude-code", "host_session_id": "h1", "host_agent_id": "a1", "tool_use_id": "t1"}
OF_HOSTS = [kind for kind in KINDS if kind not in (DELEGATE, FINALIZE, SEVERAL, SESSION_START)]
BESIDES: dict[str, Any] = {
    "agent_name": "Explore",
    "purpose": "-",
    "marker_id": "agent-1",
    "briefed_id": "agent-1",
    "marker_phase": "approval",
    "last_message": "done",
    "has_message": True,
    "tool_name": "Edit",
    "call": "c1",
    "error": "boom",
    "usage": {"total_tokens": 7},
}
OF_EACH: list[dict[str, Any]] = [
    {},
    {"running": []},
    {"running": ["a1"]},
    {"outcome": "completed"},
    {"outcome": "failed"},
    {"interrupted": True, "interruption": "stopped_by_user"},
    {"workflow": {"run_id": "wf_1", "key": "k1"}, "outcome": "abandoned"},
]


@table("kind", OF_HOSTS)
@table("besides", OF_EACH)
@table("keys", [KEYS, {**KEYS, "host_agent_id": "a2", "tool_use_id": "t2"}])
def test_no_event_of_a_host_changes_the_run_of_a_command(
    root: str, kind: str, besides: dict[str, Any], keys: dict[str, Any]
) -> None:
    store = FileStore(f"{root}-{next(NUMBERS)}", durable=False)
    wrapper, at = describe(os.getpid()), format_time(NOW)
    run: Any = {"run": 1, **KEYS, "wrapper": wrapper, "started_at": at, "workflow": {"run_id": "wf_1", "key": "k1"}}
    store.create({**new_record("agent-1", "Explore", "-", {}, NOW), "phase": "executing", "runs": [run]})
    before = store.read("agent-1")
    moment = NOW + timedelta(minutes=1)
    event: Event = {"kind": kind, "at": format_time(moment), **BESIDES, **keys, **besides}  # type: ignore[typeddict-item]

    handle_event(store, event, Terms(parse_time(event["at"]), Config({}), 1.0))

    assert store.read("agent-1") == before
