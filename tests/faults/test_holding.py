"""The hook that holds a stop back is killed at any call: at most one reminder is lost, and no end is recorded."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from tests.hook.conftest import Host
from tests.hook.test_holding import ON, of_run, told_at, with_todos, wrote

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("needs_strace")

WRITES = ("openat", "write", "fsync", "rename", "flock")


def killed_at(host: Host, call: str, number: int) -> bool:
    """Whether the hook of the stop was killed at this call. A killed hook may not have printed an answer."""
    trace = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}")
    ended = host.start("every_event", host.ending(), ON, *trace, "-e", f"inject={call}:signal=SIGKILL:when={number}")
    assert (ended.code, ended.out) == (-9, b"") or ended.out.startswith(b'{"decision":')
    return ended.code == -9


@pytest.mark.parametrize("call", [pytest.param(call, marks=pytest.mark.slow) for call in WRITES[:1]] + [*WRITES[1:]])
def test_a_kill_of_the_hook_at_any_call_costs_at_most_one_reminder(tmp_path: Path, call: str) -> None:
    host = Host(tmp_path)
    agent_id, counts = with_todos(host), []
    for number in count(1):
        before = len(of_run(host, agent_id).get("held", []))
        wrote(host, "Done.")
        if not killed_at(host, call, number):
            break
        run = of_run(host, agent_id)
        assert run.keys().isdisjoint({"end", "ended_at"})
        counts.append(len(run.get("held", [])) - before)
        host.edit(agent_id, runs=[{key: value for key, value in run.items() if key != "held"}])
    assert counts == sorted(counts)
    assert set(counts) <= {0, 1}


@pytest.mark.parametrize("is_told_again", [True, False])
def test_a_hook_killed_before_its_reply_holds_the_stop_again_or_leaves_a_resumable_session(
    tmp_path: Path, *, is_told_again: bool
) -> None:
    host = Host(tmp_path)
    agent_id = with_todos(host)
    wrote(host, "Done.")
    kills = (killed_at(host, "write", number) and "held" in of_run(host, agent_id) for number in count(1))
    assert any(kills)
    assert len(of_run(host, agent_id)["held"]) == 1

    if is_told_again:
        assert "reminder 1 of" in str(told_at(host, host.ending()))
        assert len(of_run(host, agent_id)["held"]) == 1
        return
    told = host.hear(host.returning())["additionalContext"]  # without an answer, the client lets the agent stop
    record = host.records()[agent_id]
    assert (record["phase"], record["runs"][0]["end"], record["resume_ready"]) == ("investigating", "returned", True)
    assert f"[gaia-sessions: resume {agent_id}]" in told
    assert "The sub-agent stopped with open todos: 2 of 2, after 1 reminder." in told
