"""What every store promises of the sessions above one: ancestors."""

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


def test_they_are_the_whole_records_from_the_parent_up(store: Store, new: New) -> None:
    root, middle = new("root"), new("middle", parent_id="root", phase="completed")
    for record in (root, middle, new("one", parent_id="middle"), new("beside", parent_id="root")):
        store.create(record)

    assert above(store, "one") == [("middle", middle), ("root", root)]
    assert above(store, "root") == []


def test_one_that_is_gone_is_the_last(store: Store, new: New) -> None:
    for record in (new("root"), new("middle", parent_id="root"), new("one", parent_id="middle")):
        store.create(record)
    deleted(store, "middle", lambda _: True)

    assert above(store, "one") == [("middle", None)]


def test_in_a_circle_none_stands_twice(store: Store, new: New) -> None:
    first, second = new("first", parent_id="second"), new("second", parent_id="first")
    for record in (first, second, new("itself", parent_id="itself")):
        store.create(record)

    assert above(store, "first") == [("second", second), ("first", first)]
    assert [agent_id for agent_id, _ in above(store, "itself")] == ["itself"]


def test_nothing_is_above_by_what_no_session_can_be_called(store: Store, new: New) -> None:
    assert store.ancestors(new("one", parent_id="../x")) == {}
    assert store.ancestors(new("one", schema=2, parent_id=["x"])) == {}


def test_more_than_are_read_for_a_write_are_refused(store: Store, new: New) -> None:
    for number in range(MOST_ABOVE):
        store.create(new(f"s{number}", **({"parent_id": f"s{number - 1}"} if number else {})))
    last = new("last", parent_id=f"s{MOST_ABOVE - 1}")
    assert len(store.ancestors(last)) == MOST_ABOVE

    store.change("s0", lambda record: {**record, "parent_id": "one-more"})
    with pytest.raises(StoreFailure, match=f"there are more than {MOST_ABOVE}"):
        store.ancestors(last)
