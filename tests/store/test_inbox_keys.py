"""Which records a waiting event may concern, and which of many waiting events one call tries."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.store.inbox_keys import (
    MAX_KEYS,
    MAX_MATCHING,
    all_keys,
    events_to_try,
    keys_named_in,
    keys_of_event,
    keys_of_record,
    matching_events,
    may_concern_others,
)
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store import inbox_keys

SESSION: Any = {"agent_id": "one"}
RUN = {"run": 1, "host_session_id": "h1", "host_agent_id": "a1", "tool_use_id": "t1"}
JOINED: Any = {"agent_id": "one", "runs": [RUN]}
UNJOINED: Any = {"agent_id": "one", "runs": [{"run": 1, "host_session_id": "h1", "tool_use_id": "t1"}]}

CONCERNS: dict[str, tuple[dict[str, object], Any]] = {
    "the end of a session": ({"kind": "finalize", "agent_id": "one"}, SESSION),
    "a stop that names the session in its last line": ({"kind": "stop", "marker_id": "one"}, SESSION),
    "a stop whose first message names it": ({"kind": "stop", "host_agent_id": "a9", "briefed_id": "one"}, SESSION),
    "a delegation that resumes it": ({"kind": "delegate", "tool_use_id": "t9", "resume": ["two", "one"]}, SESSION),
    "a stop of its agent": ({"kind": "stop", "host_session_id": "h1", "host_agent_id": "a1"}, JOINED),
    "its agent in another conversation": ({"kind": "stop", "host_session_id": "h2", "host_agent_id": "a1"}, JOINED),
    "an event of its delegation": ({"kind": "returned", "host_session_id": "h1", "tool_use_id": "t1"}, JOINED),
    "the end of its conversation": ({"kind": "session_end", "host_session_id": "h1"}, JOINED),
    "the end of a turn of its conversation": ({"kind": "main_stop", "host_session_id": "h1"}, JOINED),
    "a start whose key the host writes later": (
        {"kind": "start", "host_session_id": "h1", "host_agent_id": "a9", "key_file": "/x"},
        UNJOINED,
    ),
    "a stop whose delegation the host reports later": (
        {"kind": "stop", "host_session_id": "h1", "host_agent_id": "a9", "key_pending": True},
        UNJOINED,
    ),
    "the start of the agent that started it, while its parent is unknown": (
        {"kind": "start", "host_session_id": "h1", "host_agent_id": "a0"},
        {"agent_id": "one", "runs": [{**RUN, "parent_host_agent_id": "a0"}]},
    ),
    "an event without any key": ({"kind": "session_start"}, SESSION),
    "more sessions than fit into a file name": (
        {"kind": "delegate", "resume": [f"s{number}" for number in range(MAX_KEYS + 1)]},
        SESSION,
    ),
}

NOTHING_TO_IT: dict[str, tuple[dict[str, object], Any]] = {
    "another session": ({"kind": "finalize", "agent_id": "two"}, SESSION),
    "another agent": ({"kind": "stop", "host_session_id": "h1", "host_agent_id": "a2", "tool_use_id": "t2"}, JOINED),
    "another conversation": ({"kind": "session_end", "host_session_id": "h2"}, JOINED),
    "a key that comes later, while all runs are joined": (
        {"kind": "start", "host_session_id": "h1", "host_agent_id": "a9", "key_file": "/x"},
        JOINED,
    ),
    "the agent that started it, while its parent is known": (
        {"kind": "stop", "host_session_id": "h1", "host_agent_id": "a0"},
        {"agent_id": "one", "parent_id": "two", "runs": [{**RUN, "parent_host_agent_id": "a0"}]},
    ),
    "an agent with the name of the session": (
        {"kind": "stop", "host_agent_id": "one", "host_session_id": "h9"},
        SESSION,
    ),
}


@table(("event", "record"), CONCERNS.values())
def test_an_event_that_may_change_a_record_is_found_by_the_keys_in_its_name(
    event: dict[str, object], record: Record
) -> None:
    waiting = [("other", "f" * 8), ("it", keys_of_event(event))]
    assert matching_events(waiting, keys_of_record(record)) == [waiting[1]]
    keys = all_keys(waiting)
    assert keys is None or not keys.isdisjoint(keys_of_record(record))


@table(("event", "record"), NOTHING_TO_IT.values())
def test_an_event_that_cannot_change_a_record_matches_none_of_its_keys(
    event: dict[str, object], record: Record
) -> None:
    waiting = [("it", keys_of_event(event))]
    assert matching_events(waiting, keys_of_record(record)) == []
    assert (all_keys(waiting) or set()).isdisjoint(keys_of_record(record))


def test_keys_are_the_same_in_every_process_and_short_enough_for_a_file_name() -> None:
    event = {
        "kind": "stop",
        "host_session_id": "h",
        "host_agent_id": "a" * 512,
        "tool_use_id": "té\ud800",
        "briefed_id": "x",
    }
    assert keys_of_event({"kind": "stop", "host_agent_id": "a1", "tool_use_id": "t1"}) == "0061613100747431"
    assert len(keys_of_event(event)) == 3 * 8
    assert set(keys_of_event(event)) <= set("0123456789abcdef")


def test_a_delegation_matches_the_waiting_start_of_the_agent_that_delegates() -> None:
    delegation = {"kind": "delegate", "host_session_id": "h", "tool_use_id": "t2", "parent_host_agent_id": "a1"}
    start = keys_of_event({"kind": "start", "host_session_id": "h", "host_agent_id": "a1", "tool_use_id": "t1"})
    assert matching_events([("start", start)], set(keys_named_in(delegation))) == [("start", start)]


@table("event", [{"kind": "main_stop"}, {"kind": "session_end"}, {"kind": "stop", "marker_id": "x"}])
def test_only_events_of_a_conversation_or_a_named_session_may_concern_others(event: dict[str, object]) -> None:
    assert may_concern_others(event)
    assert not may_concern_others({"kind": "stop", "host_agent_id": "a", "tool_use_id": "t"})


def crowd(size: int, *, of: int = 0) -> list[inbox_keys.WaitingEvent]:
    """Returns ``size`` events in order, of ``of`` agents in turn, or each of another agent."""
    return [
        (f"{number:04}", keys_named_in({"host_agent_id": f"a{number % of if of else number}"})[0])
        for number in range(size)
    ]


@given(st.integers(0, 60), st.integers(0, 9), st.integers(0, 12), st.integers(0, (1 << 32) - 1))
def test_all_matching_events_and_some_others_are_tried_in_their_order(
    size: int, agent: int, others: int, seed: int
) -> None:
    waiting = crowd(size, of=10)
    keys = set(keys_named_in({"host_agent_id": f"a{agent}"}))

    names = events_to_try(waiting, keys, others, seed)

    mine = [name for name, event_keys in waiting if any(key in event_keys for key in keys)]
    assert names == sorted(set(names))
    assert set(mine) <= set(names)
    assert len(names) - len(mine) == min(others, size - len(mine))


def test_only_the_oldest_matching_events_up_to_the_limit_are_tried() -> None:
    names = events_to_try(crowd(100, of=1), set(keys_named_in({"host_agent_id": "a0"})), 4, 0)
    assert names == [f"{number:04}" for number in range(MAX_MATCHING)]


def test_a_hundred_calls_together_try_each_of_a_hundred_events() -> None:
    tried = [events_to_try(crowd(100), set(), 4, seed) for seed in range(100)]
    assert {name for names in tried for name in names} == {name for name, _ in crowd(100)}
    assert {len(names) for names in tried} == {4}


@given(st.integers(1, 5), st.integers(0, 100))
def test_no_event_is_tried_without_the_older_events_of_the_same_agent(others: int, seed: int) -> None:
    waiting = crowd(40, of=8)
    names = events_to_try(waiting, set(), others, seed)
    for older, newer in combinations(waiting, 2):
        if older[1] == newer[1] and newer[0] in names:
            assert older[0] in names


def test_an_event_without_keys_matches_any_record_and_is_tried_among_the_others() -> None:
    waiting = [("without keys", ""), *crowd(20)]
    assert matching_events(waiting, keys_of_record(SESSION)) == [("without keys", "")]
    assert "without keys" in events_to_try(waiting, set(), 4, 0)
