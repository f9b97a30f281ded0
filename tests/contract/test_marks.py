"""Contract of the marks that cancel sessions."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.api.cancelling import cancellation_and_above, mark_cancelled
from gaia_sessions.errors import InvalidInput, SessionNotFound, StoreFailure
from gaia_sessions.session.transcript import new_message
from gaia_sessions.session.updates import Change
from gaia_sessions.store.above import Above
from tests.contract.conftest import STORES
from tests.removals import deleted
from tests.table import table
from tests.transcripts import add_messages, begin_anew

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store
    from tests.contract.conftest import New

AT = "2026-01-08T19:00:00.000000Z"
MARK: Mark = {"at": AT, "below": True, "reason": "no longer needed"}
ALONE: Mark = {"at": AT, "below": False}
STARTED: dict[str, Any] = {"run": 1, "started_at": AT}


def planned(record: Record) -> Record:
    return {**record, "phase": "planning", "metadata": {"kept": True}}


def below(parent_id: str) -> dict[str, Any]:
    return {"parent_id": parent_id}


def test_a_new_session_has_no_mark_and_marks_accepts_any_id(store: Store, new: New) -> None:
    assert store.marks(["agent-1", "nobody", "../etc", ""]) == []
    store.create(new())
    assert store.marks(["agent-1", "nobody", "../etc", ""]) == []


def test_marks_are_returned_in_the_requested_order(store: Store, new: New) -> None:
    for agent_id in ("agent-1", "agent-2", "agent-12"):
        store.create(new(agent_id))
    assert store.mark("agent-12", lambda _: ALONE) == ALONE
    assert store.mark("agent-1", lambda _: MARK) == MARK

    assert store.marks(["agent-1", "agent-2", "agent-12"]) == [("agent-1", MARK), ("agent-12", ALONE)]
    assert store.marks(["agent-12", "agent-1"]) == [("agent-12", ALONE), ("agent-1", MARK)]


def test_the_rule_of_a_mark_receives_the_existing_mark(store: Store, new: New) -> None:
    store.create(new())
    given: list[Mark | None] = []

    def rule(mark: Mark | None) -> Mark:
        given.append(mark)
        return ALONE if mark is None else {**mark, "below": True}

    assert [store.mark("agent-1", rule), store.mark("agent-1", rule)] == [ALONE, {**ALONE, "below": True}]
    assert given == [None, ALONE]
    assert store.mark("agent-1", lambda mark: mark or MARK) == {**ALONE, "below": True}


def test_a_session_that_does_not_exist_cannot_be_marked(store: Store) -> None:
    with pytest.raises(SessionNotFound):
        store.mark("agent-1", lambda _: MARK)
    assert store.marks(["agent-1"]) == []


def test_a_mark_does_not_change_the_record_and_is_deleted_with_its_session(store: Store, new: New) -> None:
    store.create(new())
    store.mark("agent-1", lambda _: MARK)
    assert store.read("agent-1") == new()
    deleted(store, "agent-1", lambda _: True)
    assert store.marks(["agent-1"]) == []
    store.create(new())
    assert store.marks(["agent-1"]) == []


def test_the_next_write_to_a_marked_session_is_applied_and_abandons_it(store: Store, new: New) -> None:
    store.create(new())
    store.mark("agent-1", lambda _: ALONE)

    written = store.change("agent-1", lambda record: Change(planned(record), [{"phase": "planning"}]))

    assert (written["phase"], written["metadata"], written["revision"]) == ("abandoned", {"kept": True}, 2)
    assert (store.read("agent-1"), written["finalized_at"]) == (written, AT)
    assert list(store.entries("agent-1", "events.jsonl")) == [{"phase": "abandoned"}]


def test_a_rule_that_changes_nothing_writes_nothing_to_a_marked_session(store: Store, new: New) -> None:
    store.create(new())
    store.mark("agent-1", lambda _: MARK)
    assert store.change("agent-1", lambda record: record) == new()


def test_a_mark_cancels_the_sessions_below_only_if_it_says_so(store: Store, new: New) -> None:
    store.create(new())
    store.create(new("agent-2", **below("agent-1")))
    store.create(new("agent-12", **below("agent-2")))

    for mark, phase in ((ALONE, "planning"), (MARK, "abandoned")):
        store.mark("agent-1", lambda _: mark)  # noqa: B023  # called at once

        assert store.change("agent-12", planned)["phase"] == phase


def test_a_mark_cancels_sessions_below_a_child_that_got_its_parent_later(store: Store, new: New) -> None:
    for agent_id, above in [("agent-1", {}), ("agent-2", {}), ("agent-12", below("agent-2"))]:
        store.create(new(agent_id, **above))
    store.change("agent-2", lambda record: {**record, "parent_id": "agent-1"})
    store.mark("agent-1", lambda _: MARK)

    assert store.change("agent-12", planned)["phase"] == "abandoned"


def test_a_marked_session_with_a_run_stays_open_until_the_run_ends(store: Store, new: New) -> None:
    store.create(new(runs=[STARTED]))
    store.mark("agent-1", lambda _: MARK)
    assert store.change("agent-1", planned)["phase"] == "planning"
    ended: Any = {**STARTED, "ended_at": AT, "end": "stopped"}
    assert store.change("agent-1", lambda record: {**record, "runs": [ended]})["phase"] == "abandoned"


def test_a_circle_of_parents_stops_no_write_and_a_mark_in_it_counts(store: Store, new: New) -> None:
    """Case E16."""
    store.create(new("agent-1", **below("agent-2")))
    store.create(new("agent-2", **below("agent-1")))
    assert store.change("agent-1", planned)["phase"] == "planning"
    store.mark("agent-2", lambda _: MARK)
    assert store.change("agent-1", planned)["phase"] == "abandoned"


def test_a_write_below_more_than_a_hundred_sessions_is_refused_until_the_chain_is_shorter(
    store: Store, new: New
) -> None:
    for number in reversed(range(102)):  # children first: a new session reads all sessions above it
        store.create(new(f"agent-{number}", **(below(f"agent-{number - 1}") if number else {})))
    assert store.change("agent-100", planned)["phase"] == "planning"
    with pytest.raises(StoreFailure, match="agent-101: cannot read all sessions above it: there are more") as raised:
        store.change("agent-101", planned)
    on_server = "to break the chain, type: gaia-sessions rm agent-1"
    assert raised.value.hint.startswith((on_server, "remove parent_id from agent-1/state.json: "))

    def without_parent(record: Any) -> Any:
        return {key: record[key] for key in record if key != "parent_id"}

    store.change("agent-1", without_parent)
    assert store.change("agent-101", planned)["phase"] == "planning"


def a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere.json"))
    path.symlink_to("elsewhere.json")


def a_link_to_nothing(path: Path) -> None:
    path.unlink()
    path.symlink_to("nothing")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def behind_a_link(path: Path) -> None:
    real = path.parent.with_name(".elsewhere")
    path.parent.rename(real)
    path.parent.symlink_to(real)


def in_a_circle_of_links(path: Path) -> None:
    path.parent.rename(path.parent.with_name(".elsewhere"))
    path.parent.symlink_to(path.parent.name)


IN_FILES = ["files", "files, read through a plan"]
UNREADABLE = [a_link, a_link_to_nothing, a_folder, a_pipe]


@pytest.fixture(params=IN_FILES)
def store_in(request: pytest.FixtureRequest) -> Callable[[Path], Store]:
    return STORES[request.param]


@table(
    ("marked_id", "damage"),
    [(agent_id, damage) for agent_id in ("agent-1", "agent-2") for damage in UNREADABLE]
    + [("agent-1", behind_a_link), ("agent-1", in_a_circle_of_links)],
)
def test_an_unreadable_mark_cancels_the_session_for_readers_and_stops_every_write(
    store_in: Callable[[Path], Store], new: New, tmp_path: Path, marked_id: str, damage: Callable[[Path], None]
) -> None:
    """agent-2 is below agent-1. A mark that cannot be read may cancel the sessions below too."""
    folder = tmp_path / f"{marked_id}-{damage.__name__}"
    store = store_in(folder)
    store.create(new())
    store.create(new("agent-2", **below("agent-1")))
    mark_path = folder / "root" / marked_id / "cancelled.json"
    mark_path.write_text('{"at": "2026-01-08T19:00:00Z", "below": false}')
    damage(mark_path)
    before = store.read("agent-2")

    with pytest.raises(StoreFailure, match=f"/{marked_id}/cancelled.json: cannot read"):
        store.marks(["agent-2", "agent-1"])
    for cancellation in (Above(store).cancellation(before), cancellation_and_above(store, "agent-2")[0]):
        assert cancellation is not None
        assert f"/{marked_id}/cancelled.json: cannot read: " in cancellation["reason"]
        assert cancellation.keys() == {"reason"}

    hello = [new_message("user", "hello", datetime.now(UTC))]
    writes: list[Callable[[], object]] = [
        lambda: store.change("agent-2", planned),
        lambda: add_messages(store, "agent-2", hello, planned),
        lambda: begin_anew(store, "agent-2", planned),
        lambda: store.create(new("agent-12", **below("agent-2"))),
    ]
    if marked_id == "agent-2":
        writes.append(lambda: store.mark("agent-2", lambda mark: mark or MARK))
    for write in writes:
        with pytest.raises(StoreFailure, match=f"/{marked_id}/cancelled.json: cannot read"):
            write()
    assert store.read("agent-2") == before
    assert list(store.messages("agent-2")) == []
    assert not store.has("agent-12")


@pytest.mark.parametrize("store", IN_FILES, indirect=True)
def test_a_parent_that_is_missing_a_file_or_a_link_has_no_mark(store: Store, new: New, tmp_path: Path) -> None:
    for agent_id in ("agent-a-file", "agent-a-link", "agent-unknown"):
        store.create(new(f"below-{agent_id}", **below(agent_id)))
    (tmp_path / "root" / "agent-a-file").write_text("{}")
    (tmp_path / "root" / "agent-a-link").symlink_to(tmp_path)

    for agent_id in ("agent-a-file", "agent-a-link", "agent-unknown"):
        assert store.change(f"below-{agent_id}", planned)["phase"] == "planning"


def test_an_invalid_reason_is_refused_before_any_session_is_marked(store: Store, new: New) -> None:
    reasons: list[Any] = [5, b"x", "half of a pair \ud800", "NUL \0", "x" * (1 << 20)]
    store.create(new())
    store.create(new("agent-2"))
    store.mark("agent-2", lambda _: MARK)
    for reason in reasons:
        for agent_id, below_too in (("agent-1", False), ("agent-2", True)):
            with pytest.raises(InvalidInput):
                mark_cancelled(store, datetime.now(UTC), agent_id, reason, below=below_too)
    assert store.marks(["agent-1", "agent-2"]) == [("agent-2", MARK)]
