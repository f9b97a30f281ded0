"""Contract of deletion: delete_each, sweep."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import LockTimeout
from tests.contract.conftest import agree, check_missing, everything
from tests.removals import deleted

if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.store.port import RecordOrError, Store
    from tests.contract.conftest import New


def object_to(_found: RecordOrError) -> bool:
    return False


def test_no_method_finds_a_deleted_session(store: Store, new: New) -> None:
    store.create(new())
    store.append("agent-1", "events.jsonl", [{"number": 1}])
    store.create(new("agent-2"))

    assert deleted(store, "agent-1", agree) is True

    check_missing(store, "agent-1")
    assert everything(store) == {"agent-2": new("agent-2")}


def test_the_judge_sees_the_current_record(store: Store, new: New) -> None:
    store.create(new())
    changed = store.change("agent-1", lambda record: {**record, "purpose": "changed"})
    seen: list[RecordOrError] = []

    def see(found: RecordOrError) -> bool:
        seen.append(found)
        return False

    assert deleted(store, "agent-1", see) is False
    assert seen == [changed]


def test_a_judge_that_objects_leaves_the_session_unchanged(store: Store, new: New) -> None:
    store.create(new())
    store.append("agent-1", "events.jsonl", [{"number": 1}])

    assert deleted(store, "agent-1", object_to) is False

    assert everything(store) == {"agent-1": new()}
    assert list(store.entries("agent-1", "events.jsonl")) == [{"number": 1}]


def test_sessions_with_ids_that_differ_only_in_case_are_deleted_in_one_call(store: Store, new: New) -> None:
    for agent_id in ("A", "a", "b"):
        store.create(new(agent_id))

    assert [*store.delete_each(["A", "a"], lambda *_: True)] == [("A", True), ("a", True)]

    assert everything(store) == {"b": new("b")}


def test_a_judge_that_raises_leaves_the_session_unchanged_and_unlocked(store: Store, new: New) -> None:
    store.create(new())

    def fail(_found: RecordOrError) -> bool:
        raise LookupError("cannot decide")

    with pytest.raises(LookupError):
        deleted(store, "agent-1", fail)

    assert everything(store) == {"agent-1": new()}
    assert deleted(store, "agent-1", agree) is True


def test_a_deleted_id_can_be_created_again_without_anything_of_the_old_session(store: Store, new: New) -> None:
    store.create(new(purpose="old", metadata={"old": True}))
    store.append("agent-1", "events.jsonl", [{"old": True}])
    deleted(store, "agent-1", agree)

    store.create(new(purpose="anew"))

    assert everything(store) == {"agent-1": new(purpose="anew")}
    assert list(store.entries("agent-1", "events.jsonl")) == []
    assert dict(store.scan(active_only=True)) == {"agent-1": new(purpose="anew")}


def test_sweeping_changes_no_session(store: Store, new: New, began: datetime) -> None:
    store.create(new())
    store.create(new("final", phase="completed"))
    store.append("agent-1", "events.jsonl", [{"number": 1}])

    removed = store.sweep(began + timedelta(days=1))

    assert removed == []
    assert everything(store) == {"agent-1": new(), "final": new("final", phase="completed")}
    assert list(store.entries("agent-1", "events.jsonl")) == [{"number": 1}]


def test_delete_each_reports_the_outcome_for_every_session(store: Store, new: New) -> None:
    for agent_id in ("agent-1", "agent-2", "agent-3"):
        store.create(new(agent_id))
    seen: list[tuple[str, RecordOrError]] = []

    def see(agent_id: str, found: RecordOrError) -> bool:
        seen.append((agent_id, found))
        if agent_id == "agent-3":
            raise LockTimeout("a child", 0, None)
        return agent_id == "agent-1"

    told = [*store.delete_each(["agent-2", "missing", "agent-3", "agent-1"], see)]

    assert [(agent_id, type(outcome).__name__) for agent_id, outcome in told] == [
        ("agent-2", "bool"),
        ("missing", "SessionNotFound"),
        ("agent-3", "LockTimeout"),
        ("agent-1", "bool"),
    ]
    assert [told[0][1], told[3][1]] == [False, True]
    assert seen == [(agent_id, new(agent_id)) for agent_id in ("agent-2", "agent-3", "agent-1")]
    assert everything(store) == {"agent-2": new("agent-2"), "agent-3": new("agent-3")}


def test_a_store_that_was_never_written_to_can_be_swept(store: Store, began: datetime) -> None:
    assert store.sweep(began) == []
