"""The sums of several sessions: each session counts once, and unreported tokens are not counted."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.api.listing import Filter, list_sessions
from gaia_sessions.api.sums import sums_of, total_of, usage_by_agent
from tests.memory_store import MemoryStore
from tests.places import writing
from tests.records import LIMITS, START, record_with

COUNTS = st.integers(0, 10**13)
SESSIONS = st.lists(
    st.fixed_dictionaries(
        {"agent_name": st.sampled_from(["Explore", "planner", "\ud55c\uae00"])},
        optional={
            "charged_tokens": COUNTS,
            "token_correction": COUNTS,
            "max_tokens": COUNTS,
            "usage": st.fixed_dictionaries({}, optional={"total_tokens": COUNTS, "tool_uses": COUNTS}),
        },
    ),
    max_size=8,
)


@given(SESSIONS)
def test_the_sums_of_all_agents_equal_those_of_the_list_and_are_sorted(sessions: list[Any]) -> None:
    store = MemoryStore()
    for number, keys in enumerate(sessions):
        store.create({**record_with(), "agent_id": f"s-{number}", **keys})

    usage = usage_by_agent(writing(store, START))

    listed = list(list_sessions(store, Filter(), START, LIMITS))
    assert usage["total"] == total_of(map(sums_of, listed)) == total_of(agent["sums"] for agent in usage["agents"])
    assert usage["total"]["sessions"] == len(sessions)
    reported = [
        keys
        for keys in sessions
        if keys.keys() & {"charged_tokens", "token_correction"} or "total_tokens" in keys.get("usage", {})
    ]
    assert usage["total"]["unreported"] == len(sessions) - len(reported)
    names = [agent["agent_name"] for agent in usage["agents"]]
    assert sorted(names) == sorted({keys["agent_name"] for keys in sessions})
    tokens = [agent["sums"].get("tokens", -1) for agent in usage["agents"]]
    assert tokens == sorted(tokens, reverse=True)
