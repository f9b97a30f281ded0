"""How deep a tree of sessions may be, and which children of a session take a place."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from gaia_sessions.errors import TooDeep, TooManyChildren
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.tree_limits import check_depth, check_free_place, is_at_work
from tests.records import START, record_with
from tests.table import table

NOW = START + timedelta(minutes=30)
LATELY = format_time(NOW - timedelta(minutes=9, seconds=59))
EARLIER = format_time(NOW - timedelta(minutes=10))
AHEAD = format_time(NOW + timedelta(hours=1))

CLAIMED: dict[str, Any] = {"run": 1, "claimed_at": LATELY}
LAPSED: dict[str, Any] = {"run": 1, "claimed_at": EARLIER}
LIVE: dict[str, Any] = {"run": 1, "started_at": EARLIER}
ENDED: dict[str, Any] = {**LIVE, "ended_at": LATELY, "end": "stopped"}


@table(
    ("depth", "most", "allowed"),
    [(0, None, True), (7, None, True), (8, None, False), (2, 3, True), (3, 3, False), (0, 0, False), (8, 9, True)],
)
def test_a_child_may_be_as_deep_as_the_limit_and_no_deeper(depth: int, most: int | None, *, allowed: bool) -> None:
    parent: Any = record_with() | ({} if most is None else {"max_depth": most})
    above = {f"above-{number}": record_with() for number in range(depth)}
    if allowed:
        assert check_depth(parent, above) == (8 if most is None else most)
        return
    with pytest.raises(TooDeep) as refused:
        check_depth(parent, above)
    assert (refused.value.depth, refused.value.max_depth) == (depth + 1, 8 if most is None else most)


def test_the_narrowest_depth_limit_above_holds_even_if_nobody_inherited_it() -> None:
    parent: Any = {**record_with(), "max_depth": 7}
    adopter: Any = {**record_with(), "max_depth": 3}
    assert check_depth(parent, {"a": record_with(), "b": adopter}) == 3
    with pytest.raises(TooDeep):
        check_depth(parent, {"a": record_with(), "b": adopter, "gone": None})


def test_l19_a_sixth_child_at_work_is_refused() -> None:
    check_free_place("agent-1", list("abcd"))
    with pytest.raises(TooManyChildren) as refused:
        check_free_place("agent-1", list("abcde"))
    assert refused.value.at_work == tuple("abcde")


@table(
    ("runs", "changed", "takes_place"),
    [
        ([], {"last_updated": LATELY}, True),
        ([], {"last_updated": EARLIER}, False),
        ([], {"last_updated": AHEAD}, False),
        ([], {"last_updated": LATELY, "phase": "completed"}, False),
        ([LIVE], {"last_updated": EARLIER}, True),
        ([LIVE], {"phase": "abandoned"}, False),
        ([CLAIMED], {}, True),
        ([LAPSED], {"last_updated": LATELY}, False),
        ([ENDED], {"last_updated": LATELY}, False),
        ([ENDED, {"run": 2, "claimed_at": LATELY}], {}, True),
    ],
)
def test_a_child_takes_a_place_while_an_agent_works_on_it_or_is_about_to(
    runs: list[dict[str, Any]], changed: dict[str, Any], *, takes_place: bool
) -> None:
    assert is_at_work(record_with(*runs, **changed), NOW, dead_runs=frozenset()) is takes_place


def test_a_run_whose_host_is_gone_takes_no_place() -> None:
    assert not is_at_work(record_with(LIVE), NOW, dead_runs=frozenset([1]))
