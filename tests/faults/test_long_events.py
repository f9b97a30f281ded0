"""A hook is killed at any system call while it applies an event that changes many runs: nothing is lost."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import gaia_sessions
from gaia_sessions.config import Config
from gaia_sessions.ingest import AT_ONCE, Terms
from gaia_sessions.ingest.dispatch import handle_event
from gaia_sessions.session.clock import format_time
from gaia_sessions.store.file_store import FileStore
from tests.faults.conftest import A_SAMPLE, EACH_CHANGE, HOOKS, Case, Operation, root_of, run

pytestmark = pytest.mark.usefixtures("needs_strace")

RUNS = AT_ONCE + 1
_END = {"hook_event_name": "SessionEnd", "session_id": "s-1", "reason": "other"}


def _prepare(root: str) -> None:
    store, at = FileStore(root, durable=False), datetime.now(UTC) - timedelta(minutes=1)
    base: Any = {"at": format_time(at), "host": "claude-code", "host_session_id": "s-1", "agent_name": "Explore"}
    for number in range(RUNS):
        delegation: Any = {**base, "kind": "delegate", "tool_use_id": f"t{number}", "purpose": "general"}
        start: Any = {**delegation, "kind": "start", "host_agent_id": f"a{number}"}
        for event in (delegation, start):
            handle_event(store, event, Terms(at, Config({}), 1.0))


@pytest.fixture(scope="module")
def case(folder_on_disk: Path) -> Case:
    operation = Operation(
        "end of a conversation",
        _prepare,
        lambda _project: [sys.executable, str(HOOKS / "every_event.py")],
        {},
        stdin=json.dumps(_END),
        is_hook=True,
    )
    return _Ending(operation, folder_on_disk / "case-of-a-long-event")


class _Ending(Case):
    """The case of an event of many sessions. Its state is new when all sessions have ended."""

    def outcome_of(self, project: str) -> str:
        ends = [record["runs"][-1].get("end") for record in _records(project)]
        return {RUNS: "new", 0: "old"}.get(ends.count("ended_with_host"), "partly")


def _records(project: str) -> list[Any]:
    return [json.loads(path.read_bytes()) for path in Path(root_of(project)).glob("[!.]*/state.json")]


def _waiting(project: str) -> list[Path]:
    return list(Path(root_of(project), ".inbox").glob("*.json"))


def _killed(case: Case, project: str) -> tuple[str, int, str]:
    """The state after the kill, the number of waiting events then, and the state after the next command."""
    stood, waited = case.outcome_of(project), len(_waiting(project))
    gaia_sessions.Sessions(root_of(project)).reconcile()
    assert _waiting(project) == []
    journals = [path.read_text().count('"session_end"') for path in Path(root_of(project)).glob("*/events.jsonl")]
    assert max(journals) <= 1
    return stood, waited, case.outcome_of(project)


@pytest.mark.parametrize("reach", [A_SAMPLE, pytest.param(EACH_CHANGE, marks=pytest.mark.thorough)])
def test_after_a_kill_at_any_call_the_next_command_applies_the_rest_of_the_event(case: Case, reach: str) -> None:
    points, kills = zip(*((call, _killed(case, project)) for call, project, _ in case.killed(reach)), strict=True)

    stages = [("old", 0), ("old", 1), ("partly", 1), ("new", 1), ("new", 0)]
    met = [stages.index((stood, waited)) for stood, waited, _ in kills]
    assert met == sorted(met)
    assert {2, 4} <= set(met)
    for (stood, waited, after), call in zip(kills, points, strict=True):
        assert after == ("old" if (stood, waited) == ("old", 0) else "new"), call


def test_runs_end_even_if_the_inbox_is_unusable(case: Case) -> None:
    project = case.copy()
    (Path(root_of(project)) / ".inbox").write_bytes(b"")

    ended = run(case.operation.words(project), stdin=json.dumps(_END), environment={"CLAUDE_PROJECT_DIR": project})

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert case.outcome_of(project) == "new"
