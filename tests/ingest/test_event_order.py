"""What hosts report of one agent, in any order and twice, is one record: the whole way from the event to the store."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.config import Config
from gaia_sessions.ingest import Terms, deferred, dispatch
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.host_events import KINDS
from tests.memory_store import MemoryStore
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import Record
    from tests.memory_store import MemoryKeyLock

BEGAN = datetime(2026, 1, 8, 18, 0, tzinfo=UTC)
HOST = {"host": "claude-code", "host_session_id": "h"}
AGENT = {"host_agent_id": "a", "tool_use_id": "t"}

DELEGATE: dict[str, Any] = {"kind": "delegate", "tool_use_id": "t", "agent_name": "Explore", "purpose": "p"}
START = {"kind": "start", **AGENT}
LAUNCH = {"kind": "start", **AGENT, "launch": True, "background": True}
STOP = {"kind": "stop", **AGENT, "has_message": True, "last_message": "All done.", "transcript_path": "/t"}
PAUSE = {**STOP, "marker_phase": "approval"}
RETURNED = {"kind": "returned", **AGENT}
DELEGATION_CLOSED = {"kind": "delegation_closed", **AGENT}
NOTIFIED_COMPLETED = {"kind": "notification", **AGENT, "outcome": "completed"}
NOTIFIED_FAILED = {"kind": "notification", **AGENT, "outcome": "failed", "error": "boom"}
NOTIFIED_KILLED = {"kind": "notification", **AGENT, "outcome": "abandoned"}
FAIL = {"kind": "fail", **AGENT, "error": "boom"}
OWN_FAIL = {**FAIL, "has_message": True, "error": "rate limit"}
INTERRUPT = {"kind": "fail", **AGENT, "interrupted": True}

# The lives of one agent, told in the order in which they happened; the delegation always comes first.
LIVES: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "done": ([START, STOP, RETURNED, DELEGATION_CLOSED], "completed", "stopped"),
    "paused": ([START, PAUSE, RETURNED, DELEGATION_CLOSED], "approval", "stopped"),
    "done in the background": ([LAUNCH, START, STOP, NOTIFIED_COMPLETED], "completed", "stopped"),
    "no stop came": ([START, RETURNED, DELEGATION_CLOSED], "investigating", "returned"),
    "failed": ([START, FAIL, DELEGATION_CLOSED], "investigating", "failed"),
    "failed in its own words": ([START, OWN_FAIL, FAIL, DELEGATION_CLOSED], "investigating", "failed"),
    "failed in the background": ([LAUNCH, START, NOTIFIED_FAILED], "investigating", "failed"),
    "interrupted": ([START, INTERRUPT, DELEGATION_CLOSED], "abandoned", "killed"),
    "killed in the background": ([LAUNCH, START, NOTIFIED_KILLED], "abandoned", "killed"),
}


def at(fields: dict[str, Any], second: int) -> tuple[Event, datetime]:
    """The event, and when it was heard; one that waited in the inbox is applied with the time it carries."""
    moment = BEGAN + timedelta(seconds=second)
    return {**HOST, **fields, "at": format_time(moment)}, moment  # type: ignore[typeddict-item]  # told has the kind


def record_after(events: list[tuple[Event, datetime]]) -> Any:
    """The one session there is, without its times, its id and the revision."""
    store = MemoryStore()
    for event, moment in events:
        result = dispatch.handle_event(store, event, Terms(moment, Config({}), 0))
        assert result.word not in {"deferred", "not_joined", "no_key", "keys_disagree"}
    [(_, record)] = store.scan()
    return timeless({**record, "agent_id": "the only one"})  # type: ignore[dict-item]


def timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [timeless(item) for item in value]
    if not isinstance(value, dict):
        return value
    times = {"created_at", "last_updated", "timestamp", "claimed_at", "started_at", "ended_at", "finalized_at"}
    dropped = {*times, "duration_seconds", "revision"}
    return {key: timeless(item) for key, item in value.items() if key not in dropped}


def in_order(life: list[dict[str, Any]]) -> list[tuple[Event, datetime]]:
    return [at(event, second) for second, event in enumerate([DELEGATE, *life])]


@table(("life", "phase", "end"), LIVES.values())
def test_a_life_reported_in_order_ends_as_it_did_and_twice_it_is_the_same(
    life: list[dict[str, Any]], phase: str, end: str
) -> None:
    events = in_order(life)
    record = record_after(events)
    assert (record["phase"], [run["end"] for run in record["runs"]]) == (phase, [end])
    assert record_after([*events, *events]) == record
    assert record_after([event for event in events for _ in range(2)]) == record


@table("name", LIVES)
@given(data=st.data())
def test_a_life_reported_in_any_order_and_twice_is_the_same_life(name: str, data: st.DataObject) -> None:
    delegation, *others = in_order(LIVES[name][0])
    order = data.draw(st.permutations([*others, *others]))
    record = record_after([delegation, *order])
    expected = record_after([delegation, *others])
    assert {**record, "history": moves(record)} == {**expected, "history": moves(expected)}


def moves(record: Any) -> Counter[str]:
    return Counter(move["to_phase"] for move in record["history"])


def test_a_stop_without_a_word_reported_after_its_delegation_returned_is_the_same_life() -> None:
    delegation, *others = in_order([START, {"kind": "stop", **AGENT}, RETURNED])
    assert record_after([delegation, *others])["phase"] == "completed"
    assert record_after([delegation, *reversed(others)]) == record_after([delegation, *others])


def test_a_stop_with_a_word_after_one_without_is_a_stop_with_a_word() -> None:
    [delegation, start, silent, with_message] = in_order(
        [START, {"kind": "stop", **AGENT}, {**STOP, "after_block": True}]
    )
    assert record_after([delegation, start, silent, with_message]) == record_after([delegation, start, with_message])


@table("kind", KINDS)
def test_every_kind_of_event_that_passes_the_check_can_wait_in_the_inbox(kind: str) -> None:
    store = MemoryStore()
    store.defer({"kind": kind, "at": format_time(BEGAN)}, BEGAN)
    store.defer({**HOST, "kind": kind, "at": format_time(BEGAN)}, BEGAN)  # type: ignore[typeddict-item]
    assert len(deferred.apply_deferred(store, BEGAN + timedelta(days=2), Config({}))) == 2
    assert list(store.deferred()) == []


def told(store: MemoryStore, fields: dict[str, Any], second: int) -> str:
    event, moment = at(fields, second)
    return dispatch.handle_event(store, event, Terms(moment, Config({}), 0)).word


def test_of_two_starts_that_wake_an_agent_whose_work_is_over_one_begins_a_session() -> None:
    class Overtaken(MemoryStore):
        """Another process applies the same start after this one has looked, and before it is alone with the agent."""

        def lock_key(self, key: tuple[str, ...], timeout: float | None = None) -> MemoryKeyLock:
            if key == ("agent", "a") and not self.overtaken:
                self.overtaken.append(key)
                assert told(self, START, 40) == "continued"
            return super().lock_key(key, timeout)

        overtaken: ClassVar[list[object]] = []

    store = Overtaken()
    assert [told(store, event, 10 * number) for number, event in enumerate([DELEGATE, START, STOP])] == [
        *("created", "started", "finalized")
    ]

    assert told(store, START, 40) == "known"

    assert [record["phase"] for _, record in store.scan()] == ["completed", "investigating"]  # type: ignore[index]


def test_a_start_that_begins_no_session_waits_for_nobody_who_looks_for_the_agent() -> None:
    store = MemoryStore()
    told(store, DELEGATE, 0)

    with store.lock_key(("agent", "a")):
        assert told(store, START, 10) == "started"


def test_an_event_that_waits_is_looked_up_once_each_time_it_is_tried() -> None:
    class Watched(MemoryStore):
        found: ClassVar[list[Alias]] = []

        def find(self, alias: Alias, *, strict: bool = False) -> Record | None:
            self.found.append(alias)
            return super().find(alias, strict=strict)

    store = Watched()
    told(store, DELEGATE, 0)
    waiting, moment = at(START, 10)
    store.defer(waiting, moment)
    store.found.clear()

    assert deferred.apply_deferred(store, moment, Config({})) == ["000000001 started"]
    assert store.found == [
        ("agent_of_host", ("claude-code", "a")),
        ("delegation", ("h", "t")),
        ("orphan", ("claude-code", "a")),
    ]
