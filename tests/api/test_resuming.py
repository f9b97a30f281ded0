"""Which sessions ``resume`` names, after replays of real clients and for random sessions.

The rule: ``resume`` names every stopped session that ``list`` calls resumable.
"""

from __future__ import annotations

import json
import os
import random
import shlex
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.api.at import read
from gaia_sessions.api.listing import Filter, list_sessions
from gaia_sessions.api.resuming import resumption, resumptions
from gaia_sessions.api.sessions import Sessions
from gaia_sessions.cli.render.resumptions import answer_lines, resumption_lines
from gaia_sessions.hosts import HOSTS
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.phases import PHASES
from gaia_sessions.session.record import encode
from gaia_sessions.session.schema import ENDS, INTERRUPTIONS
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from gaia_sessions.system.processes import describe
from tests.hook.test_hosts_replay import CAPTURES as OTHERS
from tests.hook.test_hosts_replay import fresh
from tests.hook.test_lives import CAPTURES, lives
from tests.places import writing
from tests.records import LIMITS, record_with
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["fresh", "lives"]  # fixtures

NEWEST = [capture for capture in CAPTURES if capture.parent == CAPTURES[-1].parent]
OLDER = [capture for capture in CAPTURES if capture not in NEWEST]

STOPPED = {
    "tui-esc": ["interrupted"],
    "tui-esc-in-tool": ["interrupted"],
    "interrupt-live": ["interrupted"],
    "overloaded-529": ["overloaded"],
    "connection-lost": ["connection_lost"],
    "tui-stop-all": ["stopped_by_user"],
    "tui-panel-stop": ["stopped_by_user"],
    "sub-error-400": ["failed"],
    "max-turns": ["returned"],
    "single": [],
    "background-stopped": [],
}


@table("capture", [capture for capture in CAPTURES if capture.stem in STOPPED])
@table("times", [1, 2])
def test_resume_gives_the_command_for_each_agent_that_a_real_client_stopped(
    capture: Path, times: int, lives: Any
) -> None:
    life = lives()
    lines = [line for line in life.lines(capture) for _ in range(times)]
    life.live(lines)
    for record in life.records():
        agent = record["runs"][-1].get("host_agent_id")
        conversation = life.folder / "home" / ".claude" / "projects" / "-project" / lines[0].session
        (conversation / "subagents").mkdir(parents=True, exist_ok=True)
        (conversation / "subagents" / f"agent-{agent}.jsonl").touch()
        conversation.with_suffix(".jsonl").touch()

    found, _ = read(Sessions(str(life.root)), resumptions)

    assert [one["why"] for one in found] == STOPPED[capture.stem]
    agents = {record["agent_id"]: record["runs"][-1].get("host_agent_id") for record in life.records()}
    for one in found:
        words = shlex.split(str(one["command"]))
        assert (one["means"], words[:2]) == ("message", ["claude", "--resume"])
        assert agents[one["agent_id"]] in words[-1]
        assert words[2] == lines[0].session


NOT_ITS_OWN_WORD = {"error", "crashed", "interrupted", "cut short", "approved", "denied"}
"""The states of sessions that did not pause themselves, or that were answered."""
AT_REST = {"paused", "waiting", "new", "open"}
"""The states of sessions that paused themselves or wait for their program."""

NOBODY = 2**22 + 1  # larger than every pid
HERE = {**(describe(os.getpid()) or {}), "pid": os.getpid()}
GONE = {**HERE, "pid": NOBODY}


def the_rule_holds(root: Path, now: datetime) -> set[str]:
    """Checks that ``resume`` names what ``list`` calls resumable; returns the states that it named."""
    store = FileStore(str(root), durable=False)
    listed: Any = {line["agent_id"]: line for line in list_sessions(store, Filter(), now, LIMITS)}
    records: dict[str, Any] = {agent_id: store.read(agent_id) for agent_id in listed}
    found, left_out = resumptions(writing(store, now))

    named = {one["agent_id"] for one in found}
    resumable = {agent_id for agent_id, line in listed.items() if line["resume"]["should_resume"]}
    missing = {agent_id for agent_id in resumable - named if listed[agent_id]["state"] not in AT_REST}
    assert {agent_id for agent_id in missing if not stands_behind(records, agent_id, named)} == set()
    stopped = {agent_id for agent_id, line in listed.items() if line["state"] in NOT_ITS_OWN_WORD}
    assert sum(left_out.values()) == len(stopped - resumable - named)

    for one in found:
        line = listed[one["agent_id"]]
        assert (one["state"], one.get("state_since")) == (line["state"], line.get("state_since"))
        assert (one["until"] is None) == ("paused_until" in one)
        assert one["agent_id"] in resumable or line["resume"]["reason"] == "waiting_for_limit"
        ways = [one["command"], "paused_until" in one, one.get("problem"), one["means"] == "resume_line"]
        assert any(ways)
        [_, how, *rest] = resumption_lines([one], {}, now)
        assert how.startswith(f"  {one['state']}")
        assert rest, "how to resume, or why not"
    a_name_gets_the_same_answer(store, now, listed, {one["agent_id"]: one for one in found})
    return {one["state"] for one in found}


def a_name_gets_the_same_answer(store: FileStore, now: datetime, listed: Any, found: Any) -> None:
    """Checks that ``resume ID`` gives the same answer as the policy and as ``resume`` for all."""
    for agent_id, line in listed.items():
        one = resumption(writing(store, now), agent_id)
        assert ("means" in one) == one["should_resume"] == line["resume"]["should_resume"]
        assert (one["state"], one["agent_id"]) == (line["state"], agent_id)
        assert [*answer_lines([one], now)]
        if agent_id in found and one["should_resume"]:
            assert one == found[agent_id]


def stands_behind(records: dict[str, Any], agent_id: str, named: set[str]) -> bool:
    """Whether a named session stands for the workflow of this session."""

    def run_ids(agent_id: str) -> set[str]:
        return {run["workflow"]["run_id"] for run in records[agent_id].get("runs", ()) if "workflow" in run}

    own = run_ids(agent_id)
    return bool(own) and any(own & run_ids(other) or records[agent_id].get("parent_id") == other for other in named)


def kill_hosts(root: Path) -> None:
    """Makes the records look as after ``kill -9`` of every client."""
    for file in root.glob("[!.]*/state.json"):
        record = json.loads(file.read_bytes())
        runs = [{**run, "host_process": GONE} for run in record.get("runs", ())]
        file.write_text(json.dumps({**record, "runs": runs}), encoding="utf-8")


def over_the_hours(root: Path) -> None:
    if not root.exists():
        return
    for _ in range(2):
        for minutes in (0, 20, 40, 150):
            the_rule_holds(root, utc_now() + timedelta(minutes=minutes))
        kill_hosts(root)


@pytest.mark.parametrize(
    "captures", [NEWEST[0::2], NEWEST[1::2], pytest.param(OLDER, marks=pytest.mark.slow)], ids=["even", "odd", "older"]
)
def test_resume_names_stopped_resumable_sessions_of_a_claude_code_replay(captures: list[Path], lives: Any) -> None:
    for capture in captures:
        life = lives()
        life.live(life.lines(capture))

        over_the_hours(life.root)


@table("capture", [capture for _, capture in OTHERS])
def test_resume_names_stopped_resumable_sessions_of_a_replay_of_another_host(capture: Path, fresh: Any) -> None:
    life = fresh()
    life.play(life.told(capture))

    over_the_hours(life.root)


def random_run(number: int, rolled: random.Random, now: datetime) -> Any:
    moment = format_time(now - timedelta(minutes=rolled.randrange(45)))
    run: Any = {"run": number, "host": rolled.choice(HOSTS), "host_session_id": rolled.choice("ab")}
    run |= rolled.choice([{}, {"host_process": HERE}, {"host_process": GONE}])
    run |= rolled.choice([{}, {"claimed_at": moment}, {"claimed_at": moment, "host_agent_id": "a1"}])
    run |= rolled.choice([{}, {"started_at": moment}, {"started_at": moment}])
    run |= rolled.choice([{}, {"transcript_path": "/nowhere/c/subagents/agent-a1.jsonl"}])
    run |= rolled.choice([{}, {}, {"workflow": {"run_id": rolled.choice("xyz")}}])
    if "workflow" in run and rolled.random() < 0.7:
        run["workflow"] = {**run["workflow"], "key": "k"}
    if rolled.random() < 0.8:
        run |= {"ended_at": moment, "end": rolled.choice(ENDS)}
    if run.get("end") == "killed" and rolled.random() < 0.8:
        run["interruption"] = rolled.choice(INTERRUPTIONS)
    return run


def random_record(number: int, rolled: random.Random, now: datetime) -> Any:
    changed: Any = {
        "phase": rolled.choice(PHASES),
        "resume_ready": rolled.random() < 0.9,
        "error_count": rolled.choice([0, 0, 1, 2, 3]),
        "last_updated": format_time(now - timedelta(minutes=rolled.choice([-9, 0, 1, 5, 20, 29, 31, 90]))),
    }
    if rolled.random() < 0.2:
        changed["paused_until"] = format_time(now + timedelta(minutes=rolled.choice([-40, -5, 5, 90])))
    if rolled.random() < 0.2:
        changed[rolled.choice(["denial", "approval"])] = {"message": "no", "timestamp": format_time(now)}
    if rolled.random() < 0.5:
        changed["parent_id"] = f"agent-{rolled.randrange(1000)}"
    runs = [random_run(place + 1, rolled, now) for place in range(rolled.choice([0, 1, 1, 1, 2, 3]))]
    return {**record_with(*runs, **changed), "agent_id": f"agent-{number}"}


def test_resume_names_stopped_resumable_sessions_of_a_thousand_random_ones(tmp_path: Path) -> None:
    now, rolled = datetime.now(UTC), random.Random(25)  # a fixed seed
    for number in range(1000):
        record = random_record(number, rolled, now)
        folder = tmp_path / record["agent_id"]
        folder.mkdir()
        (folder / "state.json").write_bytes(encode(record))

    assert the_rule_holds(tmp_path, now) == {*NOT_ITS_OWN_WORD, "limited"}
