"""What an overlay does beside keeping the promises of the port: nothing below it changes, and nothing below is lost."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import CorruptSession, SessionNotFound
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import new_record
from gaia_sessions.session.runs import delegation_alias
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.overlay import Overlay
from tests.contract.conftest import finished
from tests.records import id_found

if TYPE_CHECKING:
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import RecordOrError

BEGAN = datetime(2026, 1, 8, 18, 5, 30, 123456, tzinfo=UTC)
EVENT: Event = {"kind": "finalize", "at": format_time(BEGAN), "agent_id": "one", "outcome": "completed"}
ALIAS = delegation_alias("host", "tool")


def new(agent_id: str) -> Record:
    runs = [{"run": 1, "host_session_id": "host", "tool_use_id": "tool"}]
    return {**new_record(agent_id, "Explore", "look around", {}, BEGAN), "runs": runs}  # type: ignore[typeddict-item]


def without_runs(record: Record) -> Record:
    return {**record, "runs": []}


@pytest.fixture
def below(tmp_path: Path) -> FileStore:
    """A store with the sessions ``one`` and ``two``, an entry of a journal, and an event that waits."""
    store = FileStore(f"{tmp_path}/root")
    store.create(new("one"), {"number": 1})
    store.create(new("two"))
    store.defer(EVENT, BEGAN)
    return store


@pytest.fixture
def overlay(below: FileStore) -> Overlay:
    return Overlay(below, below.waiting())


def contents(store: FileStore) -> dict[str, bytes]:
    root = Path(store.root)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_nothing_that_is_done_above_changes_a_file_below(below: FileStore, overlay: Overlay) -> None:
    before = contents(below)

    overlay.create(new("three"), {"number": 1})
    overlay.change("one", finished)
    overlay.append("one", "events.jsonl", [{"number": 2}])
    overlay.delete("two", lambda _found: True)
    overlay.defer(EVENT, BEGAN)
    overlay.dismiss(overlay.waiting()[0][0])
    with overlay.lock_key(("key",), 0):
        overlay.ensure_index()
    overlay.sweep(BEGAN)

    assert contents(below) == before


def test_what_is_above_comes_after_what_is_below(overlay: Overlay) -> None:
    later: Event = {**EVENT, "agent_id": "two"}

    overlay.append("one", "events.jsonl", [{"number": 2}])
    overlay.defer(later, BEGAN)

    assert list(overlay.entries("one", "events.jsonl")) == [{"number": 1}, {"number": 2}]
    assert [event for _, event in overlay.deferred()] == [EVENT, later]
    names = [name for name, _ in overlay.waiting()]
    assert list(overlay.deferred(reversed(names))) == [(names[1], later), (names[0], EVENT)]


def test_only_the_events_that_were_given_wait(below: FileStore) -> None:
    assert (Overlay(below, []).waiting(), list(Overlay(below, []).deferred())) == ([], [])


def test_a_key_that_a_session_lost_above_leads_to_the_one_that_has_it_below(overlay: Overlay) -> None:
    assert id_found(overlay, ALIAS) == "two"

    overlay.change("two", without_runs)
    assert id_found(overlay, ALIAS) == "one"

    overlay.delete("one", lambda _found: True)
    assert id_found(overlay, ALIAS) is None


def test_a_session_that_is_changed_during_a_scan_is_yielded_once_as_it_is_by_then(overlay: Overlay) -> None:
    scan = overlay.scan()
    first, record = next(scan)
    [other] = {"one", "two"} - {first}

    changed = [overlay.change(agent_id, finished) for agent_id in (first, other)]

    assert list(scan) == [(other, changed[1])]
    assert record == new(first)


def test_a_record_that_is_kept_of_the_store_below_is_not_tied_to_one_that_was_handed_out(overlay: Overlay) -> None:
    for _ in range(2):
        for agent_id, found in overlay.scan(active_only=True, host_session_id="host"):
            assert found == new(agent_id)
            assert isinstance(found, dict)
            found["runs"][0].clear()  # type: ignore[attr-defined]
        overlay.read("one")["metadata"]["scribbled"] = True

    assert [overlay.read("one"), overlay.read("two")] == [new("one"), new("two")]


def test_a_corrupt_session_below_has_a_journal_and_can_be_deleted(below: FileStore, overlay: Overlay) -> None:
    Path(below.root, "one", "state.json").write_text("no record", encoding="utf-8")
    judged: list[RecordOrError] = []

    def judge(found: RecordOrError) -> bool:
        judged.append(found)
        return True

    overlay.append("one", "events.jsonl", [{"number": 2}])
    assert list(overlay.entries("one", "events.jsonl")) == [{"number": 1}, {"number": 2}]
    with pytest.raises(CorruptSession):
        overlay.change("one", finished)
    assert overlay.delete("one", judge)

    assert [type(found) for found in judged] == [CorruptSession]
    assert dict(overlay.scan()) == {"two": new("two")}
    with pytest.raises(SessionNotFound):
        overlay.read("one")
