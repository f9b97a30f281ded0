"""Trees of sessions: each listed session is there once and below its parent, also with circles and missing parents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.api.families import subtree, tree
from gaia_sessions.api.listing import listed
from gaia_sessions.api.sums import sums_of, total_of
from gaia_sessions.session.clock import format_time, timedelta
from tests.memory_store import MemoryStore
from tests.places import writing
from tests.records import START, record_with

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gaia_sessions.api.listing import Wanted

IDS = list("abcdef")
PARENTS = st.dictionaries(st.sampled_from(IDS), st.sampled_from([*IDS, "gone", "gone-2", "../etc"]), max_size=6)
ANY: Wanted = {}
OPEN: Wanted = {"active_only": True}
FEW: Wanted = {"limit": 3}


def put(store: MemoryStore, agent_id: str, age: int = 0, **changed: Any) -> None:
    moment = format_time(START - timedelta(minutes=age))
    record: Any = {**record_with(), "agent_id": agent_id, "last_updated": moment, "created_at": moment, **changed}
    store.create(record)


def below(parent_id: str) -> dict[str, Any]:
    return {"parent_id": parent_id}


def shown(store: MemoryStore, limit: int | None = None, **wanted: Any) -> list[str]:
    """A line for each session, indented by its level, with the notes of the tree in brackets."""
    lines = []
    for level, line in tree(writing(store, START), **wanted, limit=limit):
        said = [line["status"]] if "problem" in line else filter(None, [line.get("parent_status")])
        notes = [*said, *([] if line.get("selected", True) else ["not selected"])]
        lines.append("  " * level + line["agent_id"] + (f" ({', '.join(notes)})" if notes else ""))
    return lines


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_children_are_below_their_parents_and_trees_keep_the_order_of_the_list(store: MemoryStore) -> None:
    put(store, "alone", age=2)
    put(store, "flow", age=5)
    put(store, "old", age=4, **below("flow"))
    put(store, "new", age=3, **below("flow"))
    put(store, "newest", age=1, **below("old"))

    assert shown(store) == ["flow", "  old", "    newest", "  new", "alone"]


def test_an_excluded_parent_is_shown_above_its_children_and_marked(store: MemoryStore) -> None:
    put(store, "top", phase="completed")
    put(store, "flow", phase="failed", **below("top"))
    put(store, "agent-1", age=1, **below("flow"))
    put(store, "agent-2", age=2, **below("flow"))
    put(store, "agent-3", age=3, phase="completed", **below("flow"))

    assert shown(store, active_only=True) == [
        "top (not selected)",
        "  flow (excluded, not selected)",
        "    agent-1 (excluded)",
        "    agent-2 (excluded)",
    ]
    assert shown(store, active_only=True, limit=1)[2:] == ["    agent-1 (excluded)"]
    assert shown(store, limit=0) == []


def test_sessions_with_the_same_missing_parent_stay_together(store: MemoryStore) -> None:
    put(store, "agent-1", age=1, **below("flow"))
    put(store, "agent-2", age=2, **below("flow"))
    put(store, "agent-3", age=3, **below("other"))

    assert shown(store) == [
        "flow (gone, not selected)",
        "  agent-1 (gone)",
        "  agent-2 (gone)",
        "other (gone, not selected)",
        "  agent-3 (gone)",
    ]


def test_an_impossible_parent_id_counts_as_a_parent_that_is_gone(store: MemoryStore) -> None:
    put(store, "agent-1", **below("../other"))
    assert shown(store) == ["../other (gone, not selected)", "  agent-1 (gone)"]


def test_the_first_listed_session_of_a_circle_is_above_the_others(store: MemoryStore) -> None:
    put(store, "self", age=1, **below("self"))
    put(store, "a", age=4, **below("b"))
    put(store, "b", age=3, **below("c"))
    put(store, "c", age=2, **below("a"))
    put(store, "leaf", age=0, **below("a"))

    assert shown(store) == ["c (circle)", "  b", "    a", "      leaf", "self (circle)"]
    assert shown(store, agent_name="nobody") == []


def test_a_circle_of_excluded_sessions_causes_no_endless_loop(store: MemoryStore) -> None:
    put(store, "a", phase="failed", **below("b"))
    put(store, "b", phase="failed", **below("a"))
    put(store, "leaf", **below("a"))

    assert shown(store, active_only=True) == [
        "a (circle, not selected)",
        "  leaf (excluded)",
        "  b (excluded, not selected)",
    ]


def test_a_chain_of_parents_may_be_longer_than_the_recursion_limit(store: MemoryStore) -> None:
    ids = [f"s-{number}" for number in range(1200)]  # deeper than the recursion limit of Python
    for number in reversed(range(1, len(ids))):  # from below: a create reads all sessions above
        put(store, ids[number], **below(ids[number - 1]))
    put(store, ids[0])

    levels = [level for level, _ in tree(writing(store, START))]
    assert levels == list(range(len(ids)))
    only_last = tree(writing(store, START), since=START, limit=1)
    assert len(only_last) == 1 + int(only_last[-1][1]["agent_id"].removeprefix("s-"))


def assert_each_is_below_its_parent(tree: Sequence[tuple[int, Any]], parents: Mapping[str, str]) -> None:
    above: list[str] = []
    for level, line in tree:
        agent_id = line["agent_id"]
        assert level <= len(above)
        above[level:] = [agent_id]
        if level:
            assert above[level - 1] == parents[agent_id]
        elif agent_id in parents:
            assert line["parent_status"] == "circle"


@given(PARENTS, st.sets(st.sampled_from(IDS)))
def test_every_session_is_in_the_tree_once_and_below_its_parent(parents: dict[str, str], final: set[str]) -> None:
    store = MemoryStore()
    for age, agent_id in enumerate(IDS):
        above = below(parents[agent_id]) if agent_id in parents else {}
        put(store, agent_id, age, phase="completed" if agent_id in final else "executing", **above)

    at = writing(store, START)
    for wanted in ANY, OPEN:
        found = tree(at, **wanted)
        assert_each_is_below_its_parent(found, parents)
        selected = sorted(line["agent_id"] for _, line in found if line.get("selected", True))
        assert selected == sorted(line["agent_id"] for line in listed(at, **wanted)[0])
        assert len({line["agent_id"] for _, line in found}) == len(found)


TOKENS = st.dictionaries(st.sampled_from(IDS), st.integers(0, 1 << 63), max_size=6)


@given(PARENTS, st.sets(st.sampled_from(IDS)), TOKENS, TOKENS)
def test_tree_sums_equal_the_list_sums_and_include_all_sessions_below(
    parents: dict[str, str], final: set[str], charged: dict[str, int], budgets: dict[str, int]
) -> None:
    store = MemoryStore()
    for age, agent_id in enumerate(IDS):
        counted = {"charged_tokens": min(charged[agent_id], (1 << 63) - 1)} if agent_id in charged else {}
        limited = {"max_tokens": min(budgets[agent_id] + 1, (1 << 63) - 1)} if agent_id in budgets else {}
        above = below(parents[agent_id]) if agent_id in parents else {}
        phase = "completed" if agent_id in final else "executing"
        put(store, agent_id, age, phase=phase, **above, **counted, **limited)

    at = writing(store, START)
    for wanted in ANY, OPEN, FEW:
        lines, found = listed(at, **wanted)[0], tree(at, **wanted)
        assert total_of(line["sums"] for level, line in found if level == 0) == total_of(map(sums_of, lines))
        for number, (level, line) in enumerate(found):
            rest = [other for other, _ in found[number + 1 :]]
            end = next((index for index, other in enumerate(rest) if other <= level), len(rest))
            below_it = [other for _, other in found[number : number + 1 + end]]
            assert line["sums"] == total_of(map(sums_of, below_it))
            assert line["sums"]["sessions"] == sum(other.get("selected", True) for other in below_it)
    for agent_id in IDS:
        [first] = [line for _, line in subtree(at, agent_id) if line["agent_id"] == agent_id]
        total = total_of(sums_of(line) for _, line in subtree(at, agent_id))
        assert first["sums"] == total
