"""Whom a waiting event concerns, and which of many one call tries: nothing that matters is missed, nothing starves."""

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
    "the end of a turn of it": ({"kind": "main_stop", "host_session_id": "h1"}, JOINED),
    "a start whose key the host notes later": (
        {"kind": "start", "host_session_id": "h1", "host_agent_id": "a9", "key_file": "/x"},
        UNJOINED,
    ),
    "a stop whose delegation the host tells later": (
        {"kind": "stop", "host_session_id": "h1", "host_agent_id": "a9", "key_pending": True},
        UNJOINED,
    ),
    "the start of the agent that began it, while no parent is known": (
        {"kind": "start", "host_session_id": "h1", "host_agent_id": "a0"},
        {"agent_id": "one", "runs": [{**RUN, "parent_host_agent_id": "a0"}]},
    ),
    "an event without any key": ({"kind": "session_start"}, SESSION),
    "more sessions than a name can tell": (
        {"kind": "delegate", "resume": [f"s{number}" for number in range(MAX_KEYS + 1)]},
        SESSION,
    ),
}

NOTHING_TO_IT: dict[str, tuple[dict[str, object], Any]] = {
    "another session": ({"kind": "finalize", "agent_id": "two"}, SESSION),
    "another agent": ({"kind": "stop", "host_session_id": "h1", "host_agent_id": "a2", "tool_use_id": "t2"}, JOINED),
    "another conversation": ({"kind": "session_end", "host_session_id": "h2"}, JOINED),
    "a key noted later, where all are joined": (
        {"kind": "start", "host_session_id": "h1", "host_agent_id": "a9", "key_file": "/x"},
        JOINED,
    ),
    "the agent that began it, whose session is known": (
        {"kind": "stop", "host_session_id": "h1", "host_agent_id": "a0"},
        {"agent_id": "one", "parent_id": "two", "runs": [{**RUN, "parent_host_agent_id": "a0"}]},
    ),
    "an agent called like the session": ({"kind": "stop", "host_agent_id": "one", "host_session_id": "h9"}, SESSION),
}


@table(("event", "record"), CONCERNS.values())
def test_what_may_change_a_record_is_found_by_its_name(event: dict[str, object], record: Record) -> None:
    waiting = [("other", "f" * 8), ("it", keys_of_event(event))]
    assert matching_events(waiting, keys_of_record(record)) == [waiting[1]]
    keys = all_keys(waiting)
    assert keys is None or not keys.isdisjoint(keys_of_record(record))


@table(("event", "record"), NOTHING_TO_IT.values())
def test_what_cannot_change_a_record_need_not_be_read(event: dict[str, object], record: Record) -> None:
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


def test_a_delegation_waits_for_the_start_of_the_agent_that_delegates() -> None:
    delegation = {"kind": "delegate", "host_session_id": "h", "tool_use_id": "t2", "parent_host_agent_id": "a1"}
    start = keys_of_event({"kind": "start", "host_session_id": "h", "host_agent_id": "a1", "tool_use_id": "t1"})
    assert matching_events([("start", start)], set(keys_named_in(delegation))) == [("start", start)]


@table("event", [{"kind": "main_stop"}, {"kind": "session_end"}, {"kind": "stop", "marker_id": "x"}])
def test_only_records_say_whom_a_conversation_or_a_named_session_is_about(event: dict[str, object]) -> None:
    assert may_concern_others(event)
    assert not may_concern_others({"kind": "stop", "host_agent_id": "a", "tool_use_id": "t"})


def crowd(size: int, *, of: int = 0) -> list[inbox_keys.WaitingEvent]:
    """So many events in order; each number of ``of`` agents comes again and again, else each is of its own."""
    return [
        (f"{number:04}", keys_named_in({"host_agent_id": f"a{number % of if of else number}"})[0])
        for number in range(size)
    ]


@given(st.integers(0, 60), st.integers(0, 9), st.integers(0, 12), st.integers(0, (1 << 32) - 1))
def test_the_events_at_hand_are_all_tried_and_some_others_in_the_order_in_which_they_came(
    size: int, agent: int, others: int, seed: int
) -> None:
    waiting = crowd(size, of=10)
    keys = set(keys_named_in({"host_agent_id": f"a{agent}"}))

    names = events_to_try(waiting, keys, others, seed)

    mine = [name for name, event_keys in waiting if any(key in event_keys for key in keys)]
    assert names == sorted(set(names))
    assert set(mine) <= set(names)
    assert len(names) - len(mine) == min(others, size - len(mine))


def test_of_the_events_at_hand_no_more_than_a_bound_are_tried_and_those_the_oldest() -> None:
    names = events_to_try(crowd(100, of=1), set(keys_named_in({"host_agent_id": "a0"})), 4, 0)
    assert names == [f"{number:04}" for number in range(MAX_MATCHING)]


def test_each_of_a_hundred_is_tried_in_one_of_the_calls_whatever_stays() -> None:
    tried = [events_to_try(crowd(100), set(), 4, seed) for seed in range(100)]
    assert {name for names in tried for name in names} == {name for name, _ in crowd(100)}
    assert {len(names) for names in tried} == {4}


@given(st.integers(1, 5), st.integers(0, 100))
def test_of_one_agent_no_event_is_tried_before_an_older_one(others: int, seed: int) -> None:
    waiting = crowd(40, of=8)
    names = events_to_try(waiting, set(), others, seed)
    for older, newer in combinations(waiting, 2):
        if older[1] == newer[1] and newer[0] in names:
            assert older[0] in names


def test_an_event_without_keys_may_concern_anybody_and_is_one_of_the_others() -> None:
    waiting = [("without keys", ""), *crowd(20)]
    assert matching_events(waiting, keys_of_record(SESSION)) == [("without keys", "")]
    assert "without keys" in events_to_try(waiting, set(), 4, 0)
