"""Contract of ``ancestors``: the sessions above a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import StoreFailure
from gaia_sessions.store import MOST_ABOVE
from tests.removals import deleted

if TYPE_CHECKING:
    from gaia_sessions.store.port import Store
    from tests.contract.conftest import New


def above(store: Store, agent_id: str) -> list[tuple[str, object]]:
    return [*store.ancestors(store.read(agent_id)).items()]


def test_ancestors_are_whole_records_from_the_parent_upwards(store: Store, new: New) -> None:
    root, middle = new("root"), new("middle", parent_id="root", phase="completed")
    for record in (root, middle, new("one", parent_id="middle"), new("beside", parent_id="root")):
        store.create(record)

    assert above(store, "one") == [("middle", middle), ("root", root)]
    assert above(store, "root") == []


def test_a_deleted_ancestor_is_the_last_one(store: Store, new: New) -> None:
    for record in (new("root"), new("middle", parent_id="root"), new("one", parent_id="middle")):
        store.create(record)
    deleted(store, "middle", lambda _: True)

    assert above(store, "one") == [("middle", None)]


def test_ancestors_in_a_circle_are_listed_once(store: Store, new: New) -> None:
    first, second = new("first", parent_id="second"), new("second", parent_id="first")
    for record in (first, second, new("itself", parent_id="itself")):
        store.create(record)

    assert above(store, "first") == [("second", second), ("first", first)]
    assert [agent_id for agent_id, _ in above(store, "itself")] == ["itself"]


def test_an_impossible_parent_id_gives_no_ancestors(store: Store, new: New) -> None:
    assert store.ancestors(new("one", parent_id="../x")) == {}
    assert store.ancestors(new("one", schema=2, parent_id=["x"])) == {}


def test_more_ancestors_than_the_limit_are_refused(store: Store, new: New) -> None:
    for number in range(MOST_ABOVE):
        store.create(new(f"s{number}", **({"parent_id": f"s{number - 1}"} if number else {})))
    last = new("last", parent_id=f"s{MOST_ABOVE - 1}")
    assert len(store.ancestors(last)) == MOST_ABOVE

    store.change("s0", lambda record: {**record, "parent_id": "one-more"})
    with pytest.raises(StoreFailure, match=f"there are more than {MOST_ABOVE}"):
        store.ancestors(last)
