"""The totals of many sessions: the same in any order, rates, ranks, and numbers that JSON can hold."""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.jsonio import strict
from gaia_sessions.session.phases import OPEN, OUTCOMES
from gaia_sessions.session.state import ENDED, STATES
from gaia_sessions.session.totals import Sum, nearest_rank

AT = "2026-01-08T18:00:00.000000Z"
COUNTS = st.integers(0, 3) | st.just(strict.LARGEST_INTEGER)


def as_ended(figures: dict[str, Any]) -> dict[str, Any]:
    more = {"ended_at": AT} if figures["state"] in ENDED else {}
    return {**figures, **more, "rests": figures["resumed"] + figures["rests"]}


FIGURES = st.fixed_dictionaries(
    {
        "state": st.sampled_from(STATES),
        "phase": st.sampled_from(OPEN),
        "stays": st.dictionaries(st.sampled_from(OPEN), st.lists(st.integers(0, 5), max_size=4)),
        "resumed": st.integers(0, 3),
        "rests": st.integers(0, 3),
        "interruptions": st.dictionaries(st.sampled_from(["overloaded", "usage_limit"]), COUNTS),
        "runs_dropped": COUNTS,
        "history_dropped": COUNTS,
        "errors": COUNTS,
    },
    optional={"tokens": COUNTS, "expired": st.just(value=True)},
).map(as_ended)
SESSIONS = st.lists(st.tuples(FIGURES, st.booleans()), max_size=8)


def total(sessions: Any) -> Any:
    together = Sum()
    for figures, is_removed in sessions:
        together.add(figures, is_removed=is_removed)
    return together.totals()


@given(SESSIONS)
def test_each_session_counts_once_in_any_order_and_with_any_numbers(sessions: Any) -> None:
    found = total(sessions)

    assert found == total(sessions[::-1])
    assert strict.loads(strict.dumps(found)) == found
    assert found["sessions"] == len(sessions) == found["ended"] + found["open"] + found["removed"]
    assert found["ended"] == sum(found["outcomes"].values())
    assert found["open"] == sum(found["states"].values()) == sum(phase["open"] for phase in found["phases"])
    assert found["expired"] <= found["open"]
    assert found["resumed"] <= found["rests"]
    assert [*found["outcomes"]] == [*OUTCOMES, "cancelled"]


@given(SESSIONS)
def test_a_rate_is_given_only_if_there_is_something_to_divide_by(sessions: Any) -> None:
    found = total(sessions)

    assert {"shares", "success_rate"} & found.keys() == ({"shares", "success_rate"} if found["ended"] else set())
    assert sum(found.get("shares", {}).values()) == pytest.approx(1 if found["ended"] else 0)
    assert ("resume_rate" in found) == (found["rests"] > 0)
    assert ("tokens" in found) == any("tokens" in figures for figures, _ in sessions)
    assert all(("median" in phase) == ("p90" in phase) == (phase["stays"] > 0) for phase in found["phases"])


@given(st.lists(st.integers(0, 20), min_size=1), st.integers(1, 100))
def test_the_nearest_rank_is_the_shortest_length_that_covers_the_percentage(lengths: list[int], percent: int) -> None:
    found = nearest_rank(Counter(lengths), percent)

    assert found == sorted(lengths)[ceil(len(lengths) * percent / 100) - 1]
    assert sum(length <= found for length in lengths) * 100 >= len(lengths) * percent
    assert sum(length < found for length in lengths) * 100 < len(lengths) * percent
