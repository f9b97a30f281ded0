"""Many processes change parents and children at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gaia_sessions
from gaia_sessions.store.above import Above
from gaia_sessions.store.file_store import FileStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Start = Callable[..., Any]


def test_a_cancellation_and_a_finalization_at_once_leave_one_outcome(race: Start, tmp_path: Path) -> None:
    for turn in range(6):
        root = str(tmp_path / f"root-{turn}")
        agent_id = gaia_sessions.create_session(root=root)

        told, cancelled = race(
            [["finalizes", root, agent_id, "me", "completed"], ["cancels", root, agent_id]]
        ).results()

        record = gaia_sessions.get_session(agent_id, root=root)
        assert record is not None
        assert cancelled == {"below": True, "new": True}
        assert (told, record["phase"]) in [("completed", "completed"), ("cancelled", "abandoned")]
        assert gaia_sessions.explain_resume(agent_id, root=root)["reason"] == "cancelled"


def test_the_first_of_many_concurrent_cancellations_holds_and_all_return_its_reason(
    race: Start, tmp_path: Path
) -> None:
    # E6: the first reason and time hold.
    root = str(tmp_path / "root")
    agent_id = gaia_sessions.create_session(root=root)

    told = race([["cancels_for", root, agent_id, str(number)] for number in range(6)]).results()

    assert len({(one["at"], one["reason"]) for one in told}) == 1
    assert sorted(one["new"] for one in told) == [False] * 5 + [True]


def test_l19_only_five_of_eight_processes_that_create_a_child_at_once_succeed(race: Start, tmp_path: Path) -> None:
    root = str(tmp_path / "root")
    parent_id = gaia_sessions.create_session(root=root)

    told = race([["creates_below", root, parent_id]] * 8).results()

    created = sorted(one for one in told if one != "too many")
    assert (len(created), told.count("too many")) == (5, 3)
    assert sorted(line["agent_id"] for line in gaia_sessions.Sessions(root).children(parent_id)) == created


def test_sessions_that_begin_below_a_cancelled_session_during_its_removal_are_cancelled(
    race: Start, tmp_path: Path
) -> None:
    for turn in range(5):
        root = str(tmp_path / f"root-{turn}")
        parent_id = gaia_sessions.create_session(root=root)
        gaia_sessions.Sessions(root).cancel(parent_id, "enough")

        told = race(
            [
                ["removes", root, parent_id, "4"],
                *(["begins_below", root, parent_id, how] for how in ("asked", "host", "host")),
            ]
        ).results()

        store = FileStore(root)
        below = store.children([parent_id])
        assert (told[0], store.has(parent_id)) == (True, False)
        assert 4 <= len(below) <= sum(told[1:])
        found = [Above(store).cancellation(record) for record in below]
        assert [(one["reason"], one["by"]) for one in found if one] == [("enough", parent_id)] * len(below)
