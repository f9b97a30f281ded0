"""Removal of named sessions beside other processes: each session is whole or gone, and each answer is true."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.session.record import new_record
from gaia_sessions.session.runs import with_claimed_run
from gaia_sessions.store.file_store import FileStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Start = Callable[..., Any]

TURNS = 3


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[str]:
    """A root for each turn, with a bystander. After the turn, no session may be partial."""

    def each() -> Iterator[str]:
        for turn in range(TURNS):
            root = str(tmp_path / f"root-{turn}")
            gaia_sessions.create_session(agent_id="bystander", root=root)
            yield root
            lines = list(gaia_sessions.list_sessions(root=root))
            folders = {name for name in os.listdir(root) if not name.startswith(".")}
            assert {line["agent_id"] for line in lines} == folders >= {"bystander"}
            assert [line for line in lines if "problem" in line] == []
            assert [*Path(root).glob(".trash/*"), *Path(root).glob(".stage/*")] == []

    return each()


def test_one_of_two_concurrent_removals_removes_the_session_and_the_other_finds_none(
    race: Start, roots: Iterator[str]
) -> None:
    for root in roots:
        gaia_sessions.create_session(agent_id="a", root=root)
        told = race([["names_for_removal", root, "a", "force"]] * 2).results()
        assert sorted(told) == ["a", "not_found"]


def test_an_update_during_a_removal_does_not_bring_the_session_back(race: Start, roots: Iterator[str]) -> None:
    for root in roots:
        gaia_sessions.create_session(agent_id="a", root=root)
        told = race([["names_for_removal", root, "a", "force"], *[["updates_until_gone", root, "a"]] * 2]).results()
        assert (told[0], FileStore(root).has("a")) == ("a", False)


def test_a_removal_beside_a_finalization_removes_only_an_ended_session(race: Start, roots: Iterator[str]) -> None:
    for root in roots:
        gaia_sessions.create_session(agent_id="a", root=root)
        told = race([["names_for_removal", root, "a"], ["finalizes", root, "a", "me", "completed"]]).results()
        assert told in (["a", "completed"], ["not_removable", "completed"])
        record = gaia_sessions.get_session("a", root=root)
        assert (record and record["phase"]) == (None if told[0] == "a" else "completed")


def test_a_removal_beside_new_children_leaves_no_open_child_below_a_removed_session(
    race: Start, roots: Iterator[str]
) -> None:
    for root in roots:
        gaia_sessions.create_session(agent_id="a", root=root)
        gaia_sessions.finalize_session("a", "completed", root=root)
        removed, *begun = race([["names_for_removal", root, "a"], *[["creates_below", root, "a"]] * 2]).results()
        created = sorted(one for one in begun if one != "gone")
        assert sorted(record["agent_id"] for record in FileStore(root).children(["a"])) == created
        assert (removed, FileStore(root).has("a")) == (("not_removable", True) if created else ("a", False))


def test_an_agent_that_starts_during_the_removal_of_its_session_leaves_no_partial_session(
    race: Start, roots: Iterator[str]
) -> None:
    for root in roots:
        now, keys = datetime.now(UTC), {"host": "claude-code", "host_session_id": "s1", "tool_use_id": "toolu_1"}
        claimed = with_claimed_run(new_record("a", "racer", "-", {}, now), keys, now)  # type: ignore[arg-type]
        FileStore(root).create(claimed)
        removed, started = race(
            [["names_for_removal", root, "a", "force"], ["starts_by_hook", root, "toolu_1"]]
        ).results()
        assert (removed, FileStore(root).has("a")) == ("a", False)
        there = [agent_id for agent_id, _ in FileStore(root).scan() if agent_id != "bystander"]
        assert there == [started] * (started not in (None, "a"))
