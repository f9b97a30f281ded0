"""Contract of ``children``: the sessions below other sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import InvalidId
from tests.contract.conftest import STATES, bring_into, in_every_state, not_planned
from tests.removals import deleted

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store
    from tests.contract.conftest import New


def below(new: New, agent_id: str, parent_id: str, **changes: object) -> Record:
    return new(agent_id, parent_id=parent_id, **changes)


def moved_below(parent_id: str) -> Callable[[Record], Record]:
    return lambda record: {**record, "parent_id": parent_id}


def children(store: Store, *parent_ids: str) -> list[str]:
    return sorted(record["agent_id"] for record in store.children(parent_ids))


def test_a_session_that_started_no_other_has_no_children(store: Store, new: New) -> None:
    assert store.children(["nobody"]) == []
    store.create(new("agent-1"))
    for _ in in_every_state(store):
        assert store.children(["agent-1", "nobody"]) == []
        assert store.children([]) == []


def test_children_are_whole_records_of_open_and_final_sessions(store: Store, new: New) -> None:
    store.create(new("agent-1"))
    open_one, final = below(new, "agent-2", "agent-1"), below(new, "agent-12", "agent-1", phase="failed")
    store.create(open_one)
    store.create(final)
    store.create(below(new, "agent-3", "agent-2"))
    for _ in in_every_state(store):
        found = store.children(["agent-1"])
        assert sorted(found, key=lambda record: record["agent_id"]) == [final, open_one]


def test_the_children_of_several_sessions_are_each_returned_once(store: Store, new: New) -> None:
    for agent_id, parent_id in [("a", "agent-1"), ("b", "agent-1"), ("c", "agent-2"), ("d", "c"), ("e", "other")]:
        store.create(below(new, agent_id, parent_id))
    for _ in in_every_state(store):
        assert children(store, "agent-1", "agent-2", "c", "agent-1") == ["a", "b", "c", "d"]


def test_the_children_of_a_deleted_session_are_found(store: Store, new: New) -> None:
    store.create(new("agent-1"))
    store.create(below(new, "agent-2", "agent-1"))
    deleted(store, "agent-1", lambda _found: True)
    for _ in in_every_state(store):
        assert children(store, "agent-1") == ["agent-2"]


def test_a_deleted_child_is_not_found(store: Store, new: New) -> None:
    store.create(below(new, "agent-2", "agent-1"))
    store.create(below(new, "agent-3", "agent-1"))
    deleted(store, "agent-2", lambda _found: True)
    for _ in in_every_state(store):
        assert children(store, "agent-1") == ["agent-3"]


def test_a_session_is_found_only_below_its_latest_parent(store: Store, new: New) -> None:
    for number, state in enumerate(STATES):
        child, first, second = (f"{name}-{number}" for name in ("child", "first", "second"))
        store.create(new(child))
        store.change(child, moved_below(first))
        bring_into(store, state)
        assert children(store, first) == [child]

        store.change(child, moved_below(second))
        assert (children(store, first), children(store, second)) == ([], [child])


def test_a_session_that_ends_stays_below_its_parent(store: Store, new: New) -> None:
    store.create(below(new, "agent-2", "agent-1"))
    store.change("agent-2", lambda record: {**record, "phase": "completed"})
    for _ in in_every_state(store):
        assert children(store, "agent-1") == ["agent-2"]


def test_with_open_only_no_final_children_are_found(store: Store, new: New) -> None:
    for number in (1, 2, 3):
        store.create(below(new, f"child-{number}", "agent-1"))
    store.create(below(new, "final", "agent-1", phase="failed"))
    store.create(new("later"))
    store.change("child-2", lambda record: {**record, "phase": "completed"})
    store.change("later", lambda record: {**record, "parent_id": "agent-1"})
    deleted(store, "child-3", lambda _found: True)
    for _ in in_every_state(store):
        found = store.children(["agent-1", "nobody"], open_only=True)
        assert sorted(record["agent_id"] for record in found) == ["child-1", "later"]


def test_a_session_below_itself_is_its_own_child(store: Store, new: New) -> None:
    store.create(below(new, "agent-1", "agent-1"))
    for _ in in_every_state(store):
        assert children(store, "agent-1") == ["agent-1"]


def test_ids_that_differ_only_in_case_are_different_parents(store: Store, new: New) -> None:
    store.create(below(new, "agent-2", "Agent-1"))
    for _ in in_every_state(store):
        assert (children(store, "agent-1"), children(store, "Agent-1")) == ([], ["agent-2"])


def test_a_record_with_a_newer_schema_may_have_any_parent_id(store: Store, new: New) -> None:
    store.create(new("agent-2", schema=2, parent_id=["agent-1"]))
    store.create(new("agent-3", schema=2, parent_id="agent-1"))
    for _ in in_every_state(store):
        assert children(store, "agent-1") == ["agent-3"]


def test_children_of_an_invalid_id_are_refused(store: Store) -> None:
    with pytest.raises(InvalidId):
        store.children(["agent-1", "../agent-2"])


@not_planned
def test_changing_a_returned_child_does_not_change_the_store(store: Store, new: New) -> None:
    store.create(below(new, "agent-2", "agent-1", metadata={"a": {}}))
    store.children(["agent-1"])[0]["metadata"]["a"] = "changed"

    assert store.children(["agent-1"])[0]["metadata"] == {"a": {}}
