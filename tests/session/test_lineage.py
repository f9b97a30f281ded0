"""Who is above a session: stated once for all, and found without end or guess where it is not."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.session.lineage import ancestors_of, with_parent
from gaia_sessions.session.record import stated_ancestors
from tests.records import record_with, unchanged

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record


def session(agent_id: str, **changed: Any) -> Record:
    return {**record_with(), "agent_id": agent_id, **changed}  # type: ignore[typeddict-item]  # keys of a record


def above(record: Record) -> dict[str, Any]:
    keys = ("parent_id", "root_id", "depth", "ancestors", "max_depth")
    return {key: value for key, value in record.items() if key in keys}


def test_a_child_states_all_that_is_above_it() -> None:
    root = session("a")
    child = unchanged(lambda record: with_parent(record, root), session("b"))
    grandchild = with_parent(session("c"), child)

    assert above(child) == {"parent_id": "a", "root_id": "a", "depth": 1, "ancestors": ["a"]}
    assert above(grandchild) == {"parent_id": "b", "root_id": "a", "depth": 2, "ancestors": ["b", "a"]}


def test_below_a_parent_that_does_not_state_its_ancestors_nobody_states_them() -> None:
    earlier = session("b", parent_id="a", root_id="a", depth=1)

    assert above(with_parent(session("c"), earlier)) == {"parent_id": "b", "root_id": "a", "depth": 2}


@pytest.mark.parametrize(
    ("own", "of_parent", "kept"), [(None, None, None), (3, None, 3), (None, 3, 3), (2, 3, 2), (8, 3, 3), (0, 3, 0)]
)
def test_the_limit_of_depth_is_inherited_and_never_widened(
    own: int | None, of_parent: int | None, kept: int | None
) -> None:
    parent = session("a", **({} if of_parent is None else {"max_depth": of_parent}))
    child = with_parent(session("b", **({} if own is None else {"max_depth": own})), parent)

    assert child.get("max_depth") == kept


def test_a_parent_is_never_replaced_and_no_circle_is_closed() -> None:
    child = session("b", parent_id="a", root_id="a", depth=1, ancestors=["a"])

    assert with_parent(child, session("z")) is child
    assert with_parent(child, None) is child
    root = session("a")
    assert with_parent(root, child) is root
    assert with_parent(root, root) is root


def test_what_is_stated_holds_only_with_the_parent_it_was_stated_for() -> None:
    assert stated_ancestors(session("a")) == []
    assert stated_ancestors(session("b", parent_id="a")) is None
    assert stated_ancestors(session("b", parent_id="a", ancestors=["a", "r"])) == ["a", "r"]
    assert stated_ancestors(session("b", parent_id="z", ancestors=["a", "r"])) is None
    assert stated_ancestors(session("b", parent_id="a", ancestors=[])) is None


@given(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([*"abcdef", "gone"]), max_size=6), st.data())
def test_e16_parents_are_followed_to_an_end_whatever_they_are(parents: dict[str, str], data: st.DataObject) -> None:
    """E16: a circle of parents, or one that is missing, is no endless walk."""
    records = {one: session(one, **({"parent_id": parents[one]} if one in parents else {})) for one in "abcdef"}
    start = data.draw(st.sampled_from("abcdef"))

    found = ancestors_of(records[start], records.get)

    assert len(found) == len(set(found))
    assert found[:1] == ([parents[start]] if start in parents else [])
    for one, other in pairwise(found):
        assert parents[one] == other


def test_stated_ancestors_are_not_read_again() -> None:
    def read(agent_id: str) -> Record | None:
        raise AssertionError(agent_id)

    assert ancestors_of(session("c", parent_id="b", ancestors=["b", "a"]), read) == ["b", "a"]
