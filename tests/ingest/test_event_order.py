"""The events of one agent give the same record in any order and if repeated, from the event to the store."""

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

# Lives of one agent: the events in their order after the delegation, the phase, and the end of the run.
LIVES: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "done": ([START, STOP, RETURNED, DELEGATION_CLOSED], "completed", "stopped"),
    "paused": ([START, PAUSE, RETURNED, DELEGATION_CLOSED], "approval", "stopped"),
    "done in the background": ([LAUNCH, START, STOP, NOTIFIED_COMPLETED], "completed", "stopped"),
    "no stop came": ([START, RETURNED, DELEGATION_CLOSED], "investigating", "returned"),
    "failed": ([START, FAIL, DELEGATION_CLOSED], "investigating", "failed"),
    "failed with a message of its own": ([START, OWN_FAIL, FAIL, DELEGATION_CLOSED], "investigating", "failed"),
    "failed in the background": ([LAUNCH, START, NOTIFIED_FAILED], "investigating", "failed"),
    "interrupted": ([START, INTERRUPT, DELEGATION_CLOSED], "abandoned", "killed"),
    "killed in the background": ([LAUNCH, START, NOTIFIED_KILLED], "abandoned", "killed"),
}


def at(fields: dict[str, Any], second: int) -> tuple[Event, datetime]:
    """The event and its time; an event from the inbox is applied with the time that it carries."""
    moment = BEGAN + timedelta(seconds=second)
    return {**HOST, **fields, "at": format_time(moment)}, moment  # type: ignore[typeddict-item]  # fields has the kind


def record_after(events: list[tuple[Event, datetime]]) -> Any:
    """The record of the only session, without its times, its ID and its revision."""
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
def test_events_in_order_give_the_expected_end_and_repeats_change_nothing(
    life: list[dict[str, Any]], phase: str, end: str
) -> None:
    events = in_order(life)
    record = record_after(events)
    assert (record["phase"], [run["end"] for run in record["runs"]]) == (phase, [end])
    assert record_after([*events, *events]) == record
    assert record_after([event for event in events for _ in range(2)]) == record


@table("name", LIVES)
@given(data=st.data())
def test_repeated_events_in_any_order_give_the_same_record(name: str, data: st.DataObject) -> None:
    delegation, *others = in_order(LIVES[name][0])
    order = data.draw(st.permutations([*others, *others]))
    record = record_after([delegation, *order])
    expected = record_after([delegation, *others])
    assert {**record, "history": moves(record)} == {**expected, "history": moves(expected)}


def moves(record: Any) -> Counter[str]:
    return Counter(move["to_phase"] for move in record["history"])


def test_a_stop_without_a_message_after_the_return_gives_the_same_record() -> None:
    delegation, *others = in_order([START, {"kind": "stop", **AGENT}, RETURNED])
    assert record_after([delegation, *others])["phase"] == "completed"
    assert record_after([delegation, *reversed(others)]) == record_after([delegation, *others])


def test_a_stop_with_a_message_replaces_an_earlier_stop_without_one() -> None:
    [delegation, start, silent, with_message] = in_order(
        [START, {"kind": "stop", **AGENT}, {**STOP, "after_block": True}]
    )
    assert record_after([delegation, start, silent, with_message]) == record_after([delegation, start, with_message])


@table("kind", KINDS)
def test_each_kind_of_event_leaves_the_inbox_even_without_its_keys(kind: str) -> None:
    store = MemoryStore()
    store.defer({"kind": kind, "at": format_time(BEGAN)}, BEGAN)
    store.defer({**HOST, "kind": kind, "at": format_time(BEGAN)}, BEGAN)  # type: ignore[typeddict-item]
    assert len(deferred.apply_deferred(store, BEGAN + timedelta(days=2), Config({}))) == 2
    assert list(store.deferred()) == []


def told(store: MemoryStore, fields: dict[str, Any], second: int) -> str:
    event, moment = at(fields, second)
    return dispatch.handle_event(store, event, Terms(moment, Config({}), 0)).word


def test_only_one_of_two_starts_that_wake_a_finished_agent_creates_a_session() -> None:
    class Overtaken(MemoryStore):
        """Another process applies the same start after this one looked, and before this one has the lock."""

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


def test_a_start_that_creates_no_session_does_not_wait_for_the_lock_of_the_agent() -> None:
    store = MemoryStore()
    told(store, DELEGATE, 0)

    with store.lock_key(("agent", "a")):
        assert told(store, START, 10) == "started"


def test_each_try_of_a_waiting_event_looks_up_each_key_once() -> None:
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
