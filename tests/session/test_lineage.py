"""The sessions above a session: only ``parent_id`` in a record names a parent."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.session.lineage import ancestors_of, with_parent
from tests.records import record_with, unchanged
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record


def session(agent_id: str, **changed: Any) -> Record:
    return {**record_with(), "agent_id": agent_id, **changed}  # type: ignore[typeddict-item]  # keys of a record


def test_a_child_records_its_parent_and_nothing_else() -> None:
    root = session("a")
    child = unchanged(lambda record: with_parent(record, root), session("b"))

    assert child == {**session("b"), "parent_id": "a"}
    assert with_parent(session("c"), child, ["a"]) == {**session("c"), "parent_id": "b"}


@table(("own", "of_parent", "kept"), [(None, None, None), (3, None, 3), (None, 3, 3), (2, 3, 2), (8, 3, 3), (0, 3, 0)])
def test_the_depth_limit_is_inherited_and_never_widened(
    own: int | None, of_parent: int | None, kept: int | None
) -> None:
    parent = session("a", **({} if of_parent is None else {"max_depth": of_parent}))
    child = with_parent(session("b", **({} if own is None else {"max_depth": own})), parent)

    assert child.get("max_depth") == kept


def test_a_parent_is_never_replaced_and_never_closes_a_cycle() -> None:
    child = session("b", parent_id="a")

    assert with_parent(child, session("z")) is child
    assert with_parent(child, None) is child
    root = session("a")
    assert with_parent(root, child, ["a"]) is root
    assert with_parent(root, root) is root


@given(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([*"abcdef", "gone"]), max_size=6), st.data())
def test_e16_following_parents_ends_despite_cycles_and_missing_parents(
    parents: dict[str, str], data: st.DataObject
) -> None:
    """E16: a cycle or a missing parent ends the walk."""
    records = {one: session(one, **({"parent_id": parents[one]} if one in parents else {})) for one in "abcdef"}
    start = data.draw(st.sampled_from("abcdef"))

    found = ancestors_of(records[start], records.get)

    assert [*found][:1] == ([parents[start]] if start in parents else [])
    assert [record and record["agent_id"] for record in found.values()] == [
        one if one != "gone" else None for one in found
    ]
    for one, other in pairwise(found):
        assert parents[one] == other
