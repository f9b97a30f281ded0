"""The folders and sessions that are measured: on a disk, of an ordinary size, written by the store itself.

An ordinary session has about two kilobytes, four phase changes and some metadata.
"""

from __future__ import annotations

import os
import tempfile
from datetime import timedelta

from gaia_sessions.session import record, runs, updates
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.ids import new_agent_id
from gaia_sessions.store.file_store import FileStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

STEERING = ("GAIA_SESSIONS_", "CLAUDE_", "XDG_CONFIG_HOME", "COVERAGE_")
"""The prefixes of variables that change what hooks and commands do, or that measure them."""

AGENT = "terraform-architect"

METADATA: dict[str, Json] = {
    "task_id": "T001",
    "tags": ["infra", "network", "production"],
    "findings": [
        f"subnet 10.0.{number}.0/24 overlaps the peering range of account {number:012}" for number in range(8)
    ],
    "plan": {"add": 12, "change": 3, "destroy": 0, "file": "plans/2026-01-08-network.tfplan"},
    "next": "wait for the approval of the plan, then apply it in the order of the modules",
}

_DISK = "/var/tmp"  # noqa: S108  # the folder for big files that a reboot may keep
_IN_MEMORY = ("tmpfs", "ramfs")


def folder_on_disk() -> str:
    """Returns the usual folder for temporary files, unless it is in memory, where a sync costs nothing."""
    usual = tempfile.gettempdir()
    return _DISK if _file_system(usual) in _IN_MEMORY and os.path.isdir(_DISK) else usual


def _file_system(path: str) -> str:
    device = os.stat(path).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
            rows = [line.split() for line in mounts]
    except OSError:
        return "unknown"
    return next((row[row.index("-") + 1] for row in rows if row[2] == wanted), "unknown")


def project(folder: str) -> tuple[str, FileStore]:
    """Returns a project in ``folder``, and the store of its sessions, which does not sync."""
    root = os.path.join(folder, "project", ".claude", "session")
    os.makedirs(os.path.dirname(root))
    return os.path.join(folder, "project"), FileStore(root, durable=False)


def create_paused(store: Store, now: datetime) -> str:
    """Returns the ID of a new session that has waited for an approval since ``now``."""
    made = _paused_record(now)
    store.create(made)
    return made["agent_id"]


def create_moved(store: Store, now: datetime, moves: int) -> str:
    """Returns the ID of a new session without metadata that has changed its phase ``moves`` times."""
    made = record.new_record(new_agent_id(now, os.urandom), AGENT, "approval_workflow", {}, now)
    for number in range(moves):
        made = updates.with_phase(made, "planning" if number % 2 else "executing", now + timedelta(milliseconds=number))
    store.create(made)
    return made["agent_id"]


def create_ended(store: Store, now: datetime) -> str:
    """Returns the ID of a new session that ended at ``now``."""
    agent_id = create_paused(store, now)
    store.change(agent_id, lambda found: updates.with_phase(found, "completed", now, "applied, nothing left to do"))
    return agent_id


def create_run(store: Store, now: datetime) -> str:
    """Returns the ID of a new session that an agent of a host worked on, and that ended at ``now``."""
    made = _paused_record(now)
    agent_id = made["agent_id"]
    keys: Run = {"host": "claude-code", "host_session_id": f"of-{agent_id[:-1]}", "tool_use_id": f"of-{agent_id}"}
    made = runs.with_claimed_run(made, keys, now)
    run: Run = {**made["runs"][-1], "host_agent_id": f"agent-of-{agent_id}", "ended_at": format_time(now)}
    made = updates.with_phase({**made, "runs": [{**run, "end": "returned"}]}, "completed", now, "applied")
    store.create(made, {"event": "stop", "agent_id": agent_id})
    return agent_id


def create_delegated(store: Store, now: datetime, host_session_id: str) -> str:
    """Returns the ID of a new session that a conversation of a host has just delegated."""
    made = record.new_record(new_agent_id(now, os.urandom), AGENT, "approval_workflow", {}, now)
    made = runs.with_claimed_run(
        made, {"host_session_id": host_session_id, "tool_use_id": f"of-{host_session_id}"}, now
    )
    store.create(made)
    return made["agent_id"]


def _paused_record(now: datetime) -> Record:
    begun = now - timedelta(minutes=20)
    made = record.new_record(new_agent_id(begun, os.urandom), AGENT, "approval_workflow", METADATA, begun)
    for minutes, phase in enumerate(("investigating", "planning", "investigating", "approval"), 1):
        made = updates.with_next_revision(updates.with_phase(made, phase, begun + timedelta(minutes=minutes)))
    return updates.with_activity(made, now)
