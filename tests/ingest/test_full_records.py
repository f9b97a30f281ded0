"""Events, updates and ends that meet a full record: the end of the work always has room."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.api import updating
from gaia_sessions.api.creating import store_new
from gaia_sessions.config import Config
from gaia_sessions.errors import SessionFinal, TooLarge
from gaia_sessions.ingest import Terms, deferred, dispatch
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT
from gaia_sessions.session import requests, retention
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.host_events import MAX_MESSAGE_LENGTH
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.record import encode
from gaia_sessions.session.retention import BYTES_FOR_RUN, RESERVED_BYTES, ROOM_FOR_ENDS
from gaia_sessions.session.runs import CLAIM_LIFETIME
from tests.memory_store import MemoryStore
from tests.places import writing
from tests.records import START
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.ingest import EventResult
    from gaia_sessions.session.schema import Record

LIMIT = DOCUMENT_LIMIT

AGENT = "agent-1"
MESSAGES = st.sampled_from(["done", "x" * MAX_MESSAGE_LENGTH, "\U0001f9ed" * MAX_MESSAGE_LENGTH, '"\\' * 2000])
MARKS = st.sampled_from([None, "approval", "planning", "failed"])

STEPS = st.lists(
    st.one_of(
        st.just(("start",)),
        st.just(("start",)),
        st.tuples(st.just("stop"), MESSAGES, MARKS),
        st.tuples(st.just("stop"), MESSAGES, st.just("approval")),
        st.tuples(st.just("fail"), MESSAGES),
        st.tuples(st.just("notification"), st.sampled_from(["completed", "failed", "abandoned"])),
        st.just(("session_end",)),
        st.tuples(st.just("permission"), st.integers(0, 400)),
        st.tuples(st.just("phase"), st.sampled_from(["planning", "executing", "approval"])),
        st.tuples(st.just("metadata"), st.integers(1, 5000)),
    ),
    max_size=30,
)


class Full:
    """A session whose metadata leaves only the reserved room and ``free`` bytes, and the host of its agent.

    is_of_before: an earlier version wrote the metadata, and left 2 KiB free.
    """

    def __init__(self, free: int, limit: int = LIMIT, *, is_of_before: bool = False) -> None:
        self.store = MemoryStore()
        self.now = datetime(2026, 1, 8, 18, 0, tzinfo=UTC)
        self.tell("delegate", tool_use_id="toolu_01ABCDEFGHIJKLMNOPQRSTUV", agent_name="Explore", purpose="p")
        [(self.agent_id, record)] = self.store.scan()
        assert not isinstance(record, Exception)
        left = RESERVED_BYTES if is_of_before else ROOM_FOR_ENDS
        room = limit - left - len(encode({**record, "metadata": {"fill": ""}, "revision": 100})) - free
        if is_of_before:
            self.fill(room)
        else:
            self.update(metadata={"f": "x" * room})
        self.metadata = self.record["metadata"]
        self.tell("start", tool_use_id="toolu_01ABCDEFGHIJKLMNOPQRSTUV", **self.process())

    @property
    def record(self) -> Record:
        return self.store.read(self.agent_id)

    def process(self) -> dict[str, Any]:
        known = {"pid": 4_000_000, "started": "123456789", "boot_id": "b" * 36, "pid_ns": "pid:[4026531836]"}
        return {"transcript_path": "/home/somebody/.claude/projects/" + "p" * 100, "host_process": known}

    def tell(self, kind: str, **keys: Any) -> None:
        self.now += timedelta(seconds=7)
        told = {"kind": kind, "at": format_time(self.now), "host": "claude-code", "host_session_id": "h" * 36}
        agent = {} if kind in ("delegate", "session_end") else {"host_agent_id": "a1b2c3d4e5f6a7b8c"}
        self.take_in({**told, **agent, **keys})

    def take_in(self, event: Any) -> EventResult:
        return dispatch.handle_event(self.store, event, Terms(self.now, Config({"idle_minutes": 10_000}), 0))

    def of(self, number: int) -> dict[str, Any]:
        """The keys of events in the conversation of claim ``number``."""
        return {"host_session_id": f"{number:036}", **self.process()}

    def claim(self, number: int) -> EventResult:
        """Asks for a resume in a new conversation, ten minutes after the last request."""
        self.now += CLAIM_LIFETIME
        keys = {"host_session_id": f"{number:036}", "tool_use_id": f"toolu_{number:024}"}
        told = {"kind": "delegate", "at": format_time(self.now), "host": "claude-code", **keys, **self.process()}
        return self.take_in({**told, "agent_name": "Explore", "purpose": "p", "resume": [self.agent_id]})

    def update(self, phase: str | None = None, **asked: Any) -> None:
        self.now += timedelta(seconds=7)
        updating.update(writing(self.store, self.now), self.agent_id, phase, **asked)

    def fill(self, size: int) -> None:
        """Writes metadata without the limit that commands have."""
        self.store.change(self.agent_id, lambda record: {**record, "metadata": {"f": "x" * size}})

    def take(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("start",):
                self.tell("start", **self.process())
            case ("stop", message, marked):
                self.tell(
                    "stop", has_message=True, last_message=message, **({"marker_phase": marked} if marked else {})
                )
            case ("fail", message):
                self.tell("fail", error=message)
            case ("notification", outcome):
                self.tell("notification", outcome=outcome)
            case ("session_end",):
                self.tell("session_end")
            case ("permission", number):
                self.tell("permission", asked=f"a{number}", tool_name=f"tool-{number}")
            case ("phase", phase):
                self.update(phase)
            case ("metadata", size):
                self.update(metadata={"more": "x" * size})


SMALL = ROOM_FOR_ENDS + (1 << 15)


@given(st.integers(0, 3000), st.booleans(), STEPS)
def test_no_event_is_lost_because_a_record_is_full(
    free: int,
    is_of_before: bool,  # noqa: FBT001  # drawn
    steps: list[tuple[Any, ...]],
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(retention, "DOCUMENT_LIMIT", SMALL)  # the full size takes minutes
        check_events(Full(free, SMALL, is_of_before=is_of_before), steps)


def check_events(full: Full, steps: list[tuple[Any, ...]]) -> None:
    for step in steps:
        try:
            full.take(step)
        except TooLarge:
            if step[0] not in ("phase", "metadata"):
                raise
        except SessionFinal:  # an ended session refuses updates of any size
            pass
        ends = ("stop", "fail", "session_end", "notification")
        assert step[0] not in ends or "ended_at" in full.record["runs"][-1]
        assert {**full.record["metadata"], **full.metadata} == full.record["metadata"]
        assert len(encode(full.record)) <= SMALL
        if len(list(full.store.scan())) > 1:
            return  # the agent was woken after its end, in a new and small session
    told: list[Any] = list(full.store.entries(full.agent_id, "events.jsonl"))
    runs = full.record["runs"]
    last = runs[-1]["run"]
    reopened = set() if "ended_at" in runs[-1] else {last}  # the run may have ended with its conversation and reopened
    assert {entry["run"] for entry in told if "end" in entry} | reopened == set(range(1, last + 1))


@pytest.fixture(params=[SMALL, pytest.param(LIMIT, marks=pytest.mark.slow)])
def limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The size limit of a record; the real limit makes the tests many times slower."""
    monkeypatch.setattr(retention, "DOCUMENT_LIMIT", request.param)
    return int(request.param)


@table(("free", "is_of_before"), [(0, False), (1, False), (500, False), (2000, False), (0, True), (500, True)])
def test_a_session_full_of_metadata_can_be_woken_ten_times_and_still_ends(
    limit: int, free: int, *, is_of_before: bool
) -> None:
    full = Full(free, limit, is_of_before=is_of_before)
    for number in range(10):
        full.tell("stop", has_message=True, marker_phase="approval", last_message=f"{number} {'x' * 3990}")
        assert full.record["runs"][-1]["end"] == "stopped"
        full.tell("start", **full.process())
        assert "ended_at" not in full.record["runs"][-1]
    full.tell("fail", error="e" * MAX_MESSAGE_LENGTH)

    record = full.record
    assert (record["phase"], record["error_count"], record["metadata"]) == ("failed", 1, full.metadata)
    assert (record["runs"][-1]["run"], record["runs"][-1]["end"]) == (11, "failed")
    assert len(encode(record)) <= limit
    told: list[Any] = list(full.store.entries(full.agent_id, "events.jsonl"))
    assert [entry["run"] for entry in told if entry["kind"] in ("stop", "fail")] == list(range(1, 12))
    assert told[-1]["detail"] == "e" * MAX_MESSAGE_LENGTH


def claimed(limit: int, claims: int) -> Full:
    """A full session that waits for approval, after ``claims`` claims that never started."""
    full = Full(0, limit)
    full.tell("stop", has_message=True, marker_phase="approval", last_message="may I?")
    for number in range(claims):
        full.claim(number)
    return full


@table("claims", [1, 2, 3, 4, 5, 6, 40])
def test_an_end_is_recorded_after_many_claims_that_never_started(limit: int, claims: int) -> None:
    full = claimed(limit, claims)

    full.tell("start", host_agent_id="b" * 17, tool_use_id=f"toolu_{claims - 1:024}", **full.of(claims - 1))
    full.tell("stop", host_agent_id="b" * 17, has_message=True, last_message="x" * 4000, **full.of(claims - 1))

    record = full.record
    assert (record["phase"], record["runs"][-1]["run"], record["runs"][-1]["end"]) == (
        "completed",
        claims + 1,
        "stopped",
    )
    assert (record["metadata"], len(list(full.store.scan()))) == (full.metadata, 1)
    assert len(encode(record)) <= limit


@table("claims", [1, 2, 3, 4, 5, 6, 40])
def test_a_command_ends_a_full_session_whose_claims_never_started(limit: int, claims: int) -> None:
    full = claimed(limit, claims)

    error = "it never started"
    updating.finalize(writing(full.store, full.now), full.agent_id, "abandoned", "nobody came", error=error)

    record = full.record
    assert (record["phase"], record["summary"], record["metadata"]) == ("abandoned", "nobody came", full.metadata)


@table("late", [2, 3, 5, 10])
def test_an_end_is_recorded_even_if_every_lapsed_claim_starts_late(limit: int, late: int) -> None:
    full = claimed(limit, late)
    for number in range(late):
        told = {"host_agent_id": f"{number:017}", "tool_use_id": f"toolu_{number:024}", **full.of(number)}
        full.tell("start", **told)
    for number in reversed(range(late)):
        full.tell("stop", host_agent_id=f"{number:017}", has_message=True, last_message="done", **full.of(number))

    record = full.record
    assert (record["phase"], record["runs"][-1]["run"], record["runs"][-1]["end"]) == ("completed", late + 1, "stopped")
    assert record["metadata"] == full.metadata


def test_a_resume_creates_a_new_session_if_the_record_has_no_room_for_its_end() -> None:
    full = claimed(LIMIT, 0)
    room = LIMIT - BYTES_FOR_RUN // 2 - len(encode(full.record))
    full.store.change(full.agent_id, lambda record: {**record, "metadata": {**record["metadata"], "n": "x" * room}})
    before = full.record

    done = full.claim(1)

    assert (done.word, done.refused, full.record) == ("created", "too_large", before)


def test_a_resume_is_accepted_if_dropping_older_runs_makes_room() -> None:
    full = claimed(LIMIT, 0)
    ended: Any = {"run": 1, "ended_at": format_time(full.now), "end": "stopped"}
    latest: Any = {**full.record["runs"][-1], "run": 2}
    room = LIMIT - BYTES_FOR_RUN // 2 - len(encode({**full.record, "runs": [ended, latest]})) - 100
    ended["transcript_path"] = "p" * room
    full.store.change(full.agent_id, lambda record: {**record, "runs": [ended, latest]})

    done = full.claim(1)

    record = full.record
    assert (done.agent_id, record["runs"][-1]["run"], record["metadata"]) == (full.agent_id, 3, full.metadata)
    assert len(encode(record)) <= LIMIT


def test_an_end_without_room_waits_in_the_inbox_until_metadata_is_removed() -> None:
    full = Full(0)
    full.store.change(full.agent_id, lambda record: {**record, "metadata": {}})
    room = LIMIT - len(encode(full.record)) - 20
    full.store.change(full.agent_id, lambda record: {**record, "metadata": {"f": "x" * room}})
    before = full.record

    full.tell("stop", has_message=True, last_message="done")
    assert (full.record, len(full.store.waiting())) == (before, 1)
    assert "waits: too_large" in deferred.apply_deferred(full.store, full.now, Config({}))[0]

    full.store.change(full.agent_id, lambda record: {**record, "metadata": {}})
    deferred.apply_deferred(full.store, full.now, Config({}))
    assert (full.record["phase"], full.record["runs"][-1]["end"], full.store.waiting()) == ("completed", "stopped", [])


def test_a_full_record_refuses_large_additions_but_accepts_phases_and_an_end() -> None:
    full = Full(0)

    for asked in ({"metadata": {"x": "x" * 3000}}, {"error": "e" * 5000}):
        before = full.record
        with pytest.raises(TooLarge, match=str(LIMIT - ROOM_FOR_ENDS)):
            full.update(**asked)
        assert full.record == before
    for number in range(100):  # the revision gets longer
        full.update(["planning", "investigating"][number % 2])
    full.update("approval", question="q" * MAX_MESSAGE_LENGTH, error="e" * MAX_MESSAGE_LENGTH)
    with pytest.raises(TooLarge):
        updating.finalize(writing(full.store, full.now), full.agent_id, "completed", "s" * ROOM_FOR_ENDS)

    updating.finalize(writing(full.store, full.now), full.agent_id, "completed", "it is done")
    assert is_final(full.record["phase"])


def test_a_creation_that_leaves_no_room_for_the_end_is_refused() -> None:
    store = MemoryStore()
    for name, size in (("agent-1", LIMIT - ROOM_FOR_ENDS - 1000), ("agent-2", LIMIT - ROOM_FOR_ENDS)):
        metadata = {"fill": "x" * size}
        try:
            store_new(store, START, bytes, requests.NewSession("Explore", "general", metadata, name))
        except TooLarge:
            assert name == "agent-2"
    assert [agent_id for agent_id, _ in store.scan()] == ["agent-1"]


def test_a_hooks_end_with_too_much_text_is_recorded_and_metadata_stays() -> None:
    full = Full(0, is_of_before=True)
    event = {"kind": "finalize", "at": format_time(full.now), "agent_id": full.agent_id, "outcome": "failed"}
    full.take_in({**event, "summary": "s" * 100_000, "error": "e" * 100_000})

    record = full.record
    assert (record["phase"], record["error_count"]) == ("failed", 1)
    assert record["summary"] == "s" * len(record["summary"])
    assert record["metadata"] == full.metadata


def test_a_permission_request_does_not_change_a_full_record() -> None:
    full = Full(0, is_of_before=True)
    before = full.record

    told = {"kind": "permission", "at": format_time(full.now), "host": "claude-code", "host_session_id": "h" * 36}
    done = full.take_in({**told, "host_agent_id": "a1b2c3d4e5f6a7b8c", "asked": "a", "tool_name": "Bash"})

    assert (done.word, full.record) == ("full", before)
