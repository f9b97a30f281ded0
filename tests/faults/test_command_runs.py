"""The wrapper of a command is killed at any system call: no acknowledged run is lost, and reports are correct."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import Sessions
from gaia_sessions.api import at, own_runs, records
from gaia_sessions.session.requests import Start
from tests.faults.conftest import EACH_CHANGE, OPERATIONS, SPOKEN, Operation, command, root_of, run

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.faults.conftest import Case

pytestmark = [pytest.mark.usefixtures("needs_strace"), pytest.mark.slow]

CRASHED = "gaia-sessions run crashed or was closed while the agent was at work"


def _holds(_agent_id: str, data: bytes | None) -> bool:
    return data is not None


RUN = Operation(
    "run a command",
    OPERATIONS["begin a run in a new session"].prepare,
    lambda project: command("run-command", root_of(project), "agent-new"),
    {f"agent-new/{name}": _holds for name in ("state.json", "events.jsonl", "transcript.jsonl")},
)


def test_a_wrapper_killed_at_any_call_leaves_no_run_that_looks_alive(
    case_of: Callable[[Operation], Case],
) -> None:
    case, stood = case_of(RUN), []
    for call, project, told in case.killed(EACH_CHANGE):
        sessions = Sessions(root_of(project))
        stood.append(_stands(sessions))
        assert stood[-1] != "never begun" or "BEGUN" not in told, call
        assert {name: data for name, data in case.documents(project).items() if "agent-new" not in name} == case.before
        if stood[-1] == "crashed":
            _is_judged_and_continued(sessions)
        elif stood[-1] == "never begun":
            assert (
                at.write(sessions, own_runs.begin, Start(new_id="agent-new"), {"wrapper": {"pid": 1}}).run["run"] == 1
            )
        assert sessions.reconcile()["abandoned"] == []

    order = ["never begun", "crashed", "ended"]
    assert stood == sorted(stood, key=order.index)
    assert set(stood) == {*order}


CHANGING = ("mkdirat", "fchmod", "renameat", "fsync", "fdatasync", "unlinkat", "flock")
"""The calls that make or complete files. The number of other calls differs from run to run."""


def test_gaia_sessions_run_killed_at_any_call_leaves_no_run_that_looks_alive(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "gaia_sessions", "run", "--json", "--", "printf", SPOKEN]

    def ended(number: int, *faults: str) -> tuple[str, subprocess.CompletedProcess[str]]:
        root = str(tmp_path / f"root-{number}")
        traced = ["strace", "-y", "-e", f"trace={','.join(CHANGING)}", "-e", "signal=none", *faults]
        trace = f"{root}.trace"
        done = run(words, environment={"GAIA_SESSIONS_ROOT": root}, trace=[*traced, "-o", trace])
        return root, done

    root, undisturbed = ended(0)
    assert (undisturbed.returncode, undisturbed.stderr) == (0, "")
    calls = re.findall(r"^(\w+)\(", Path(f"{root}.trace").read_text(), re.MULTILINE)
    stood = []
    for number, name in enumerate(calls, 1):
        when = calls[:number].count(name)
        root, killed = ended(number, "-e", f"inject={name}:signal=SIGKILL:when={when}")
        assert (killed.returncode, killed.stdout) == (-9, ""), (name, when)
        sessions = Sessions(root)
        (agent_id,) = list(at.read(sessions, records.ids)) or [""]
        stood.append(_stands(sessions, agent_id))
        if stood[-1] == "crashed":
            _is_judged_and_continued(sessions, agent_id)

    order = ["never begun", "crashed", "ended"]
    assert stood == sorted(stood, key=order.index)
    assert set(stood) == {*order}


def _stands(sessions: Sessions, agent_id: str = "agent-new") -> str:
    if not agent_id or not sessions.store.has(agent_id):
        return "never begun"
    report, messages = sessions.report(agent_id), list(sessions.messages(agent_id))
    if report["status"] == "success":
        assert (report["result"], report["state"], len(messages)) == (SPOKEN, "completed", 1)
        return "ended"
    assert (report["status"], report["error"], report["state"], messages) == ("error", CRASHED, "crashed", [])
    return "crashed"


def _is_judged_and_continued(sessions: Sessions, agent_id: str = "agent-new") -> None:
    assert [one["verdict"] for one in sessions.reconcile()["verdicts"]] == ["lost"]
    record = sessions.store.read(agent_id)
    assert (record["phase"], record["runs"][0]["end"]) == ("abandoned", "lost")
    begun = at.write(sessions, own_runs.begin, Start(continues=agent_id), {"wrapper": {"pid": 1}})
    assert begun.earlier == record
