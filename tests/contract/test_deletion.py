"""What every store promises of removing: delete, purge_trash, sweep."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.contract.conftest import agree, check_missing, everything

if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.store.port import RecordOrError, Store
    from tests.contract.conftest import New


def object_to(_found: RecordOrError) -> bool:
    return False


def test_a_deleted_session_is_gone_for_every_method(store: Store, new: New) -> None:
    store.create(new())
    store.append("agent-1", "events.jsonl", [{"number": 1}])
    store.create(new("agent-2"))

    assert store.delete("agent-1", agree) is True

    check_missing(store, "agent-1")
    assert everything(store) == {"agent-2": new("agent-2")}


def test_the_judge_sees_the_record_as_it_stands(store: Store, new: New) -> None:
    store.create(new())
    changed = store.change("agent-1", lambda record: {**record, "purpose": "changed"})
    seen: list[RecordOrError] = []

    def see(found: RecordOrError) -> bool:
        seen.append(found)
        return False

    assert store.delete("agent-1", see) is False
    assert seen == [changed]


def test_a_judge_who_objects_keeps_the_session_as_it_is(store: Store, new: New) -> None:
    store.create(new())
    store.append("agent-1", "events.jsonl", [{"number": 1}])

    assert store.delete("agent-1", object_to) is False

    store.purge_trash()
    assert everything(store) == {"agent-1": new()}
    assert list(store.entries("agent-1", "events.jsonl")) == [{"number": 1}]


def test_a_judge_who_fails_keeps_the_session_and_frees_it(store: Store, new: New) -> None:
    store.create(new())

    def fail(_found: RecordOrError) -> bool:
        raise LookupError("cannot decide")

    with pytest.raises(LookupError):
        store.delete("agent-1", fail)

    assert everything(store) == {"agent-1": new()}
    assert store.delete("agent-1", agree) is True


def test_a_deleted_id_can_be_created_anew_and_nothing_of_the_old_returns(store: Store, new: New) -> None:
    store.create(new(purpose="old", metadata={"old": True}))
    store.append("agent-1", "events.jsonl", [{"old": True}])
    store.delete("agent-1", agree)

    store.create(new(purpose="anew"))
    store.purge_trash()

    assert everything(store) == {"agent-1": new(purpose="anew")}
    assert list(store.entries("agent-1", "events.jsonl")) == []
    assert dict(store.scan(active_only=True)) == {"agent-1": new(purpose="anew")}


def test_purging_and_sweeping_change_no_session(store: Store, new: New, began: datetime) -> None:
    store.create(new())
    store.create(new("final", phase="completed"))
    store.append("agent-1", "events.jsonl", [{"number": 1}])

    store.purge_trash()
    removed = store.sweep(began + timedelta(days=1), ["agent-1"])

    assert removed == []
    assert everything(store) == {"agent-1": new(), "final": new("final", phase="completed")}
    assert list(store.entries("agent-1", "events.jsonl")) == [{"number": 1}]


def test_settling_twice_is_settling_once(store: Store, new: New) -> None:
    store.create(new())
    store.delete("agent-1", agree)

    store.purge_trash()
    store.purge_trash()

    assert everything(store) == {}


def test_a_store_never_written_to_can_be_purged_and_swept(store: Store, began: datetime) -> None:
    store.purge_trash()

    assert store.sweep(began, []) == []
