"""Cleanup beside other processes: it deletes a session once and for good, and loses no update."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.api.creating import store_new
from gaia_sessions.session.record import is_open
from gaia_sessions.session.requests import NewSession
from gaia_sessions.store.file_store import FileStore
from tests.figures import counted, left, standing_figures, unread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Start = Callable[[Sequence[Sequence[object]]], Any]


@pytest.mark.parametrize("many", [50, pytest.param(500, marks=pytest.mark.slow)])
def test_two_concurrent_cleanups_delete_each_old_session_once(root: str, race: Start, many: int) -> None:
    store = FileStore(root, durable=False)
    now = datetime.now(UTC)
    for number in range(many + 10):
        old = timedelta(days=2 if number < many else 0)
        store_new(store, now - old, os.urandom, NewSession("racer", "-", agent_id=f"agent-{number:03}"))

    told = race([("cleans_once", root, 24)] * 2).results()

    assert sorted(told[0] + told[1]) == [f"agent-{number:03}" for number in range(many)]
    still_there = {line["agent_id"] for line in gaia_sessions.list_sessions(root=root)}
    assert still_there == {f"agent-{number:03}" for number in range(many, many + 10)}
    assert list(Path(root, ".trash").iterdir()) == []


@pytest.mark.parametrize("many", [50, pytest.param(500, marks=pytest.mark.slow)])
def test_concurrent_cleanups_and_removals_by_id_count_each_session_once(root: str, race: Start, many: int) -> None:
    store, now = FileStore(root, durable=False), datetime.now(UTC)
    for number in range(many + 10):
        old = timedelta(days=2 if number < many else 0)
        store_new(store, now - old, os.urandom, NewSession("racer", "-", agent_id=f"agent-{number:03}"))
    before, counts = standing_figures(store), counted(store)
    named = [f"agent-{number:03}" for number in range(0, many, many // 10)]

    cleaned, again, *by_name = race(
        [*[("cleans_once", root, 24)] * 2, *(("names_for_removal", root, one, "force") for one in named)]
    ).results()

    removed = [*cleaned, *again, *(one for one in by_name if one != "not_found")]
    assert sorted(removed) == [f"agent-{number:03}" for number in range(many)]
    assert counted(store) == {key: "left" if key[0] in removed else "there" for key in counts}
    assert unread(store) == 0
    assert left(store) == {key: figures for key, figures in before.items() if key[0] in removed}


@pytest.mark.parametrize(
    ("seconds", "many"),
    [(1, 2), pytest.param(4, 8, marks=pytest.mark.slow), pytest.param(60, 8, marks=pytest.mark.thorough)],
)
def test_cleanup_beside_writers_and_creators_loses_no_update_and_revives_no_session(
    root: str, race: Start, seconds: int, many: int
) -> None:
    # Creators make sessions that look two hours old. An update makes a session young: cleanup must not delete it.
    # For every ID, the number of creations minus the number of deletions is 1 if the session exists at the end, else 0.
    gaia_sessions.create_session("bystander", agent_id="bystander", root=root)
    writers = [("writes_beside_cleanup", root, f"w{number}", seconds) for number in range(many)]
    creators = [("brings_back", root, f"c{number}", seconds) for number in range(many // 2)]
    others = [("cleans", root, seconds), ("watches", root, seconds)]

    told = race([*writers, *creators, *others]).results()

    wrote, created, (cleaned, watched) = told[:many], told[many:-2], told[-2:]
    records = dict(FileStore(root).scan())
    lives = Counter(agent_id for creator in created for agent_id, _ in creator["created"])
    lives.update(["bystander"])
    deaths = Counter(cleaned["removed"])
    assert {agent_id: lives[agent_id] - deaths[agent_id] for agent_id in lives | deaths} == {
        agent_id: int(agent_id in records) for agent_id in lives | deaths
    }
    assert records.keys() <= lives.keys()

    for agent_id, key, born in [written for writer in wrote for written in writer["written"]]:
        assert _metadata(records, agent_id)[key] is True
        assert _metadata(records, agent_id)["born"] == born
    for agent_id, born in [final for writer in wrote for final in writer["final"]]:
        assert _metadata(records, agent_id)["born"] == born
        assert records[agent_id]["phase"] == "completed"  # type: ignore[index]  # a record: see above

    assert (watched["wrong"], cleaned["odd"]) == ([], [])
    assert min(len(deaths), cleaned["rounds"], watched["looked"], sum(len(writer["written"]) for writer in wrote)) > 0

    active = {line["agent_id"] for line in gaia_sessions.list_sessions(active_only=True, root=root)}
    assert active == {agent_id for agent_id, found in records.items() if isinstance(found, dict) and is_open(found)}

    report = gaia_sessions.cleanup_sessions(1000, root=root)
    assert (report["removed"], report["corrupt"]) == ([], [])
    assert list(Path(root, ".trash").iterdir()) == list(Path(root, ".stage").iterdir()) == []


def _metadata(records: dict[str, Any], agent_id: str) -> dict[str, object]:
    record = records[agent_id]
    assert isinstance(record, dict)
    metadata: dict[str, object] = record["metadata"]
    return metadata
