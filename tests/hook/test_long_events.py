"""The end of a conversation or a workflow with 1,500 agents at work, in the real program.

How many runs one call changes in its three seconds depends on the disk. No run may be lost.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.config import Config
from gaia_sessions.ingest import Terms
from gaia_sessions.ingest.dispatch import handle_event
from gaia_sessions.session.clock import format_time
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from tests.hook.conftest import SCRIPTS

if TYPE_CHECKING:
    from tests.hook.conftest import Host

AGENTS = 1500
MANY = 200
KINDS = ("conversation", "killed workflow", "completed workflow")


def at_work(host: Host, kind: str, agents: int) -> dict[str, Any]:
    """Puts so many agents to work; returns the payload that ends them."""
    store, at = FileStore(str(host.root), durable=False), utc_now() - timedelta(minutes=1)
    base = {"at": format_time(at), "host": "claude-code", "host_session_id": host.SESSION}

    def tell(**event: Any) -> None:
        handle_event(store, {**base, **event}, Terms(at, Config({}), 1.0))  # type: ignore[typeddict-item]  # callers give kinds

    if kind == "conversation":
        for number in range(agents):
            keys = {"tool_use_id": f"toolu_{number}", "agent_name": "Explore"}
            tell(kind="delegate", purpose="Count quokkas", **keys)
            tell(kind="start", host_agent_id=f"a{number:04}", **keys)
        return host.event_payload("SessionEnd", reason="other")
    workflow = {"run_id": "wf_1"}
    tell(kind="delegate", tool_use_id="toolu_1", agent_name="workflow", purpose="general")
    launch = {"launch": True, "background": True, "host_agent_id": "w1", "tool_use_id": "toolu_1"}
    tell(kind="start", agent_name="workflow", workflow=workflow, **launch)
    for number in range(agents):
        keys = {"host_agent_id": f"a{number:04}", "agent_name": "sub", "purpose": f"agent {number}"}
        tell(kind="start", **keys, workflow={**workflow, "key": f"k{number}"})
    if kind == "completed workflow":
        write_workflow_file(host, agents)
    return host.notifying("killed" if kind == "killed workflow" else "completed", "w1")


def write_workflow_file(host: Host, agents: int) -> None:
    progress = [
        {"type": "workflow_agent", "state": "done", "agentId": f"a{n:04}", "label": f"agent {n}", "preview": "x" * 400}
        for n in range(agents)
    ]
    file = host.transcript.with_suffix("") / "workflows" / "wf_1.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"runId": "wf_1", "taskId": "w1", "workflowProgress": progress}), encoding="utf-8")


def open_runs(host: Host) -> int:
    return sum("ended_at" not in record["runs"][-1] for record in host.records().values())


def check_everything_ended(host: Host, kind: str, agents: int) -> None:
    records = host.records().values()
    ends = {"conversation": "ended_with_host", "killed workflow": "killed", "completed workflow": "stopped"}
    assert [record["runs"][-1].get("end") for record in records] == [ends[kind]] * (agents + (kind != "conversation"))
    assert host.deferred() == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_call_ends_in_time_and_the_next_call_changes_more_runs(host: Host, kind: str) -> None:
    payload = at_work(host, kind, AGENTS)

    assert host.start("every_event", payload).code == 0

    left = [open_runs(host)]
    assert left[0] < AGENTS
    assert (left[0] == 0) or host.deferred()
    ran = host.start("every_event", host.event_payload("SessionStart", source="resume"))
    assert (ran.code, ran.err) == (0, b"")
    assert not ran.out or "gaia-sessions: resume" in str(ran.answer) or left[0]
    left.append(open_runs(host))
    assert (left[1] < left[0]) or left == [0, 0]
    listed = list(gaia_sessions.list_sessions(root=str(host.root)))
    assert len(listed) == AGENTS + (kind != "conversation")
    gaia_sessions.Sessions(str(host.root)).reconcile()
    check_everything_ended(host, kind, AGENTS)


@pytest.mark.slow
def test_readers_see_the_final_state_before_all_runs_are_changed(host: Host) -> None:
    payload = at_work(host, "conversation", AGENTS)
    kill_half_way(host, payload)
    some = next(agent_id for agent_id, record in host.records().items() if "ended_at" not in record["runs"][-1])

    answer = host.start("pre_delegate", {"agent_id": some}).answer
    listed = list(gaia_sessions.list_sessions(root=str(host.root)))

    assert open_runs(host) > 0
    assert answer["should_resume"] is True
    assert {line["resume"]["reason"] for line in listed if "resume" in line} == {"session_resumable"}
    assert len(listed) == AGENTS


@pytest.mark.parametrize(
    ("kind", "agents"),
    [
        *((kind, MANY) for kind in KINDS),
        pytest.param(KINDS[0], AGENTS, marks=pytest.mark.slow),
        *(pytest.param(kind, AGENTS, marks=pytest.mark.thorough) for kind in KINDS[1:]),
    ],
)
def test_a_call_that_its_host_kills_half_way_loses_nothing(host: Host, kind: str, agents: int) -> None:
    payload = at_work(host, kind, agents)

    kill_half_way(host, payload)
    assert len(host.deferred()) > 0
    assert open_runs(host) > 0

    gaia_sessions.Sessions(str(host.root)).reconcile()
    check_everything_ended(host, kind, agents)


def kill_half_way(host: Host, payload: dict[str, Any]) -> None:
    """Starts the hook, and kills it when it has changed its first run."""
    before = inodes_of_records(host)
    command = [sys.executable, str(SCRIPTS / "every_event.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=host.project, env=host.environment()) as hook:
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(payload).encode())
        hook.stdin.close()
        while inodes_of_records(host) == before:
            assert hook.poll() is None
        hook.send_signal(signal.SIGKILL)
        assert hook.wait() == -signal.SIGKILL


def inodes_of_records(host: Host) -> dict[str, int]:
    """Returns the inode of each record. Each write gives a record another inode."""
    return {str(path): path.stat().st_ino for path in host.root.glob("[!.]*/state.json")}
