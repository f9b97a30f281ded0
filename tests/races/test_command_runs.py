"""Commands that begin at the same time: one for each session, and five below each parent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gaia_sessions import Sessions
from gaia_sessions.api import at, own_runs
from gaia_sessions.session.own_runs import EXITED, RunEnd
from gaia_sessions.session.requests import Start

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Race = Callable[..., Any]

WRAPPER: Any = {"wrapper": {"pid": 1}}


def resting(sessions: Sessions, parent_id: str | None = None) -> str:
    """A session whose command waits for an approval."""
    begun = at.write(sessions, own_runs.begin, Start(parent_id=parent_id), WRAPPER)
    agent_id = begun.record["agent_id"]
    at.write(sessions, own_runs.end, agent_id, begun.run, RunEnd(EXITED, 0, "[gaia-sessions: approval] may I?"))
    return agent_id


def test_only_one_of_many_concurrent_runs_of_an_approved_session_begins(race: Race, tmp_path: Path) -> None:
    for turn in range(2):
        sessions = Sessions(str(tmp_path / f"root-{turn}"))
        agent_id = resting(sessions)
        sessions.approve(agent_id, "yes")

        told = race([["runs", sessions.root, agent_id]] * 6).results()

        assert sorted(told) == ["agent_at_work"] * 5 + ["begun"]
        record = sessions.store.read(agent_id)
        assert ([run.get("end") for run in record["runs"]], record["phase"]) == (["stopped", None], "executing")


def test_only_one_of_many_concurrent_runs_of_a_new_session_begins(race: Race, tmp_path: Path) -> None:
    sessions = Sessions(str(tmp_path / "root"))
    agent_id = sessions.create()
    told = race([["runs", sessions.root, agent_id]] * 6).results()
    assert sorted(told) == ["agent_at_work"] * 5 + ["begun"]


def test_l19_only_five_of_eight_concurrent_runs_below_one_parent_begin(race: Race, tmp_path: Path) -> None:
    sessions = Sessions(str(tmp_path / "root"))
    parent_id = sessions.create()
    children = [resting(sessions, parent_id) for _ in range(4)]

    told = race(
        [
            *(["runs", sessions.root, agent_id] for agent_id in children),
            *[["runs_below", sessions.root, parent_id]] * 4,
        ]
    ).results()

    assert sorted(told) == ["begun"] * 5 + ["too_many_children"] * 3
    at_work = [line["agent_id"] for line in sessions.children(parent_id) if line.get("state") == "working"]
    assert len(at_work) == 5
    at.write(sessions, own_runs.end, at_work[0], sessions.store.read(at_work[0])["runs"][-1], RunEnd(EXITED, 0))
    assert race([["runs_below", sessions.root, parent_id]]).results() == ["begun"]
