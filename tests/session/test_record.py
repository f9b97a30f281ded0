"""The record: how a new one looks, how it is written and read, and which records are refused."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.errors import InvalidInput, NewerSchema, TooLarge
from gaia_sessions.session.phases import PHASES
from gaia_sessions.session.record import SCHEMA, check_readable, decode, encode, has_newer_schema, is_open, new_record
from gaia_sessions.session.schema import ENDS, check_record
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

AGENT = "agent-20260108-180530-abc12345"

# The users' own document, byte for byte. It has no schema and no revision.
USERS_SAMPLE = b"""{
  "agent_id": "agent-20260108-180530-abc12345",
  "agent_name": "terraform-architect",
  "purpose": "approval_workflow",
  "created_at": "2026-01-08T18:05:30Z",
  "last_updated": "2026-01-08T18:10:15Z",
  "phase": "approval",
  "metadata": {
    "task_id": "T001",
    "tags": ["terraform", "infrastructure"]
  },
  "resume_ready": true,
  "history": [
    {
      "from_phase": "initializing",
      "to_phase": "investigating",
      "timestamp": "2026-01-08T18:06:00Z"
    },
    {
      "from_phase": "investigating",
      "to_phase": "approval",
      "timestamp": "2026-01-08T18:10:15Z"
    }
  ],
  "error_count": 0,
  "last_error": null
}
"""


def sample(**changed: Any) -> dict[str, Any]:
    """The users' sample with schema and revision, and with some keys changed."""
    return {**json.loads(USERS_SAMPLE), "schema": 1, "revision": 0, **changed}


def full_run(**changed: Any) -> dict[str, Any]:
    return {
        "run": 1,
        "host": "claude-code",
        "host_session_id": "h",
        "host_agent_id": "a",
        "tool_use_id": "t",
        "parent_host_agent_id": "p",
        "host_process": {"pid": 1, "started": "2026", "boot_id": "b", "pid_ns": "4026531836", "machine": "m"},
        "background": False,
        "unannounced": False,
        "claimed_at": "2026-01-08T18:05:30Z",
        "started_at": "2026-01-08T18:05:31Z",
        "ended_at": "2026-01-08T18:05:32Z",
        "end": "stopped",
        "detail": "said so in its last line",
        "reported": "approval",
        "last_message": "done",
        "transcript_path": "t.jsonl",
        **changed,
    }


def refusal(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(InvalidInput) as caught:
        call()
    return caught.value.problem, caught.value.where


def test_a_new_record_has_the_documented_keys_in_their_order() -> None:
    moment = datetime(2026, 1, 8, 20, 5, 30, 123456, tzinfo=timezone(timedelta(hours=2)))
    record = new_record(AGENT, "terraform-architect", "approval_workflow", {"task_id": "T001"}, moment)
    assert list(record.items()) == [
        ("agent_id", AGENT),
        ("agent_name", "terraform-architect"),
        ("purpose", "approval_workflow"),
        ("created_at", "2026-01-08T18:05:30.123456Z"),
        ("last_updated", "2026-01-08T18:05:30.123456Z"),
        ("phase", "initializing"),
        ("metadata", {"task_id": "T001"}),
        ("resume_ready", False),
        ("history", []),
        ("error_count", 0),
        ("last_error", None),
        ("schema", 1),
        ("revision", 1),
    ]


def test_a_record_is_written_as_indented_utf_8_json(now: datetime) -> None:
    assert encode(new_record("agent-1", "Explore", "año", {}, now)) == (
        b'{\n  "agent_id": "agent-1",\n  "agent_name": "Explore",\n  "purpose": "a\xc3\xb1o",\n'
        b'  "created_at": "2026-01-08T18:05:30.123456Z",\n  "last_updated": "2026-01-08T18:05:30.123456Z",\n'
        b'  "phase": "initializing",\n  "metadata": {},\n  "resume_ready": false,\n  "history": [],\n'
        b'  "error_count": 0,\n  "last_error": null,\n  "schema": 1,\n  "revision": 1\n}\n'
    )


def test_an_ordinary_record_is_smaller_than_1024_bytes(now: datetime) -> None:
    assert len(encode(new_record(AGENT, "terraform-architect", "approval_workflow", {"task_id": "T001"}, now))) < 1024


_NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@given(
    _NAMES,
    _NAMES,
    st.dictionaries(_NAMES, st.one_of(st.none(), st.booleans(), st.integers(0, 9), _NAMES, st.lists(_NAMES))),
    st.datetimes(datetime(1000, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_a_new_record_is_read_back_as_it_was_written(
    agent_name: str, purpose: str, metadata: dict[str, Any], moment: datetime
) -> None:
    record = new_record(AGENT, agent_name, purpose, metadata, moment)
    again = decode(encode(record), AGENT)
    assert again == record
    assert list(again) == list(record)


def test_a_record_too_large_to_be_read_is_not_written(now: datetime) -> None:
    with pytest.raises(TooLarge):
        encode(new_record(AGENT, "Explore", "x" * (1 << 20), {}, now))


def test_the_users_own_sample_reads_as_schema_1_and_revision_0() -> None:
    assert list(decode(USERS_SAMPLE, AGENT).items()) == list(sample().items())


def test_optional_keys_of_a_record_and_its_runs_are_read() -> None:
    document = sample(
        history_dropped=3,
        runs=[full_run(), {"run": 2}],
        finalized_at="2026-01-08T19:00:00+01:00",
        duration_seconds=1.5,
        summary="applied",
        last_error={"message": "m", "timestamp": "2026-01-08 18:05:30"},
    )
    assert decode(json.dumps(document).encode(), AGENT) == document


def test_unknown_keys_stay_in_their_order_at_every_level() -> None:
    document = {
        "zebra": {"b": 1, "a": [None]},
        **sample(
            history=[{"why": 1, "from_phase": "planning", "to_phase": "approval", "timestamp": "2026-01-08T18:05Z"}]
        ),
        "turtles": [],
        "aardvark": 1,
        "runs": [{"seen": True, "run": 1, "host_process": {"pid": 1, "name": "n"}}],
    }
    text = json.dumps(document, indent=2) + "\n"
    assert encode(decode(text.encode(), AGENT)).decode() == text


def test_the_id_in_a_record_must_be_the_one_asked_for() -> None:
    assert refusal(lambda: decode(USERS_SAMPLE, "agent-2")) == (
        "is the ID of another session: " + repr(AGENT),
        "agent_id",
    )


def test_ids_that_differ_in_case_are_not_the_same() -> None:
    assert refusal(lambda: decode(USERS_SAMPLE, AGENT.upper()))[1] == "agent_id"


def test_a_record_without_an_id_is_refused() -> None:
    assert refusal(lambda: decode(b"{}", AGENT)) == ("missing", "agent_id")


@table(
    ("changed", "problem", "where"),
    [
        ({"agent_id": 1}, "must be a string, not a number", "agent_id"),  # an ID that is not text
        (
            {"agent_id": "agent-2", "purpose": 1},
            "must be a string, not a number",
            "purpose",
        ),  # another ID and a bad key
    ],
)
def test_the_shape_of_a_record_is_checked_before_its_id(changed: dict[str, Any], problem: str, where: str) -> None:
    assert refusal(lambda: decode(json.dumps(sample(**changed)).encode(), AGENT)) == (problem, where)


def test_a_very_long_id_of_another_session_is_shortened_in_the_error() -> None:
    document = sample(agent_id="x" * 100_000)
    expected = ("is the ID of another session: " + repr("x" * 128), "agent_id")
    assert refusal(lambda: decode(json.dumps(document).encode(), AGENT)) == expected


@table(
    ("data", "problem", "where"),
    [
        (b"", "not JSON: the text is empty", ""),  # empty file
        (USERS_SAMPLE[:110], "not JSON: no closing quote", "line 4 column 14"),  # cut short
        (b"[]", "expected a JSON object, not an array", ""),  # array
        (b"\0" * 512, r"not JSON: '\x00' instead of a value", "line 1 column 1"),  # zeros after a power cut
        (USERS_SAMPLE.replace(b"T001", b"\xff"), "not UTF-8", "byte 260"),  # broken text
    ],
)
def test_data_that_is_not_a_json_object_is_refused(data: bytes, problem: str, where: str) -> None:
    assert refusal(lambda: decode(data, AGENT)) == (problem, where)


_REQUIRED = list(new_record("a", "b", "c", {}, datetime(2026, 1, 8, tzinfo=UTC)))


@table("key", [key for key in _REQUIRED if key not in {"agent_id", "schema", "revision"}])
def test_a_record_without_a_documented_key_is_refused(key: str) -> None:
    document = sample()
    del document[key]
    assert refusal(lambda: decode(json.dumps(document).encode(), AGENT)) == ("missing", key)


MOVE = {"from_phase": "planning", "to_phase": "approval", "timestamp": "2026-01-08T18:05:30.123456Z"}


@table("at", [0, 100, 199])
@table(
    ("changed", "key"),
    [
        ({"from_phase": "sleeping"}, "from_phase"),  # from an unknown phase
        ({"to_phase": None}, "to_phase"),  # to null
        ({"to_phase": ["planning"]}, "to_phase"),  # to a list
        ({"timestamp": "2026-02-30T18:05:30.123456Z"}, "timestamp"),  # on a day that does not exist
        ({"timestamp": "2026-W02-4T18:05:30.123456Z"}, "timestamp"),  # a week date
        ({"timestamp": 1767895530}, "timestamp"),  # a number of seconds
    ],
)
def test_one_bad_move_among_hundreds_is_named(at: int, changed: dict[str, Any], key: str) -> None:
    moves = [MOVE] * at + [{**MOVE, **changed}] + [MOVE] * (199 - at)
    assert refusal(lambda: decode(json.dumps(sample(history=moves)).encode(), AGENT))[1] == f"history[{at}].{key}"


@table("time", ["2026-01-08T18:05:30+02:00", "2026-01-08 18:05", "20260108T180530Z"])
def test_moves_with_other_forms_of_times_are_read(time: str) -> None:
    document = sample(history=[MOVE, {"why": 1, **MOVE, "timestamp": time}, MOVE])
    assert decode(json.dumps(document).encode(), AGENT)["history"] == document["history"]


_ANY_PHASE = "must be one of " + ", ".join(PHASES) + ""

FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"agent_name": None}, "must be a string, not null", "agent_name"),
    ({"purpose": 1}, "must be a string, not a number", "purpose"),
    ({"created_at": "2026-01-08"}, "must be an ISO 8601 time", "created_at"),
    ({"last_updated": 1767895530}, "must be an ISO 8601 time", "last_updated"),
    ({"phase": "sleeping"}, _ANY_PHASE, "phase"),
    ({"phase": None}, _ANY_PHASE, "phase"),
    ({"metadata": []}, "must be an object, not an array", "metadata"),
    ({"resume_ready": 1}, "must be true or false, not a number", "resume_ready"),
    ({"history": {}}, "must be an array, not an object", "history"),
    ({"history": ["a"]}, "must be an object, not a string", "history[0]"),
    ({"history": [{"from_phase": "planning", "timestamp": "2026-01-08T18:05Z"}]}, "missing", "history[0].to_phase"),
    (
        {"history": [{"from_phase": "x", "to_phase": "planning", "timestamp": "2026-01-08T18:05Z"}]},
        _ANY_PHASE,
        "history[0].from_phase",
    ),
    (
        {"history": [{"from_phase": "planning", "to_phase": "planning", "timestamp": ""}]},
        "must be an ISO 8601 time",
        "history[0].timestamp",
    ),
    ({"error_count": -1}, "must be a whole number from 0", "error_count"),
    ({"error_count": 1.0}, "must be a whole number from 0", "error_count"),
    ({"last_error": "boom"}, "must be an object, not a string", "last_error"),
    ({"last_error": {"message": "m"}}, "missing", "last_error.timestamp"),
    (
        {"last_error": {"message": None, "timestamp": "2026-01-08T18:05Z"}},
        "must be a string, not null",
        "last_error.message",
    ),
    ({"schema": 0}, "must be a whole number from 1", "schema"),
    ({"schema": True}, "must be a whole number from 1", "schema"),
    ({"schema": "2"}, "must be a whole number from 1", "schema"),
    ({"schema": 2.5}, "must be a whole number from 1", "schema"),
    ({"schema": None}, "must be a whole number from 1", "schema"),
    ({"revision": -1}, "must be a whole number from 0", "revision"),
    ({"revision": None}, "must be a whole number from 0", "revision"),
    ({"history_dropped": -1}, "must be a whole number from 0", "history_dropped"),
    ({"finalized_at": None}, "must be an ISO 8601 time", "finalized_at"),
    ({"duration_seconds": True}, "must be a number from 0", "duration_seconds"),
    ({"runs_dropped": -1}, "must be a whole number from 0", "runs_dropped"),
    ({"duration_seconds": None}, "must be a number from 0", "duration_seconds"),
    ({"summary": 1}, "must be a string, not a number", "summary"),
    ({"runs": {}}, "must be an array, not an object", "runs"),
    ({"runs": [{}]}, "missing", "runs[0].run"),
    ({"runs": [{"run": 0}]}, "must be a whole number from 1", "runs[0].run"),
    *(
        ({"runs": [full_run(**{key: None})]}, "must be a string, not null", f"runs[0].{key}")
        for key in (
            "host",
            "host_session_id",
            "host_agent_id",
            "tool_use_id",
            "parent_host_agent_id",
            "detail",
            "last_message",
            "transcript_path",
        )
    ),
    *(
        ({"runs": [full_run(**{key: "soon"})]}, "must be an ISO 8601 time", f"runs[0].{key}")
        for key in ("claimed_at", "started_at", "ended_at")
    ),
    ({"runs": [full_run(background=0)]}, "must be true or false, not a number", "runs[0].background"),
    ({"runs": [full_run(unannounced="no")]}, "must be true or false, not a string", "runs[0].unannounced"),
    ({"runs": [full_run(reported="done")]}, _ANY_PHASE, "runs[0].reported"),
    (
        {"runs": [full_run(), full_run(end="died")]},
        "must be one of killed, failed, stopped, returned, ended_with_host, lost, denied",
        "runs[1].end",
    ),
    (
        {"runs": [{"run": 1}, {"run": 2, "ended_at": "2026-01-08T18:05Z"}]},
        "missing, though the run has ended",
        "runs[1].end",
    ),
    *(
        ({"runs": [{"run": 1, "end": end}]}, f"missing, though the run has the end {end!r}", "runs[0].ended_at")
        for end in ENDS
        if end != "stopped"
    ),
    ({"runs": [full_run(host_process=1)]}, "must be an object, not a number", "runs[0].host_process"),
    ({"runs": [full_run(host_process={"pid": 0})]}, "must be a whole number from 1", "runs[0].host_process.pid"),
    *(
        ({"runs": [full_run(host_process={key: 1})]}, "must be a string, not a number", f"runs[0].host_process.{key}")
        for key in ("started", "boot_id", "pid_ns", "machine")
    ),
]


@table(("changed", "problem", "where"), FAULTS)
def test_a_faulty_record_is_refused_with_its_first_bad_key(changed: dict[str, Any], problem: str, where: str) -> None:
    document = sample(**changed)
    assert refusal(lambda: decode(json.dumps(document).encode(), AGENT)) == (problem, where)
    assert refusal(lambda: check_record(document, "")) == (problem, where)


def test_a_run_with_a_silent_stop_may_lack_the_time_of_its_end() -> None:
    document = sample(runs=[{"run": 1, "end": "stopped"}])
    assert decode(json.dumps(document).encode(), AGENT) == document


UPSTREAM = [
    ({"duration_seconds": -0.25}, {"duration_seconds": 0.0}),
    ({"duration_seconds": -3}, {"duration_seconds": 0.0}),
    ({"summary": None}, {}),
    ({"duration_seconds": -1.5, "summary": None, "theirs": None}, {"duration_seconds": 0.0, "theirs": None}),
]


@table(("theirs", "ours"), UPSTREAM)
def test_a_record_of_the_users_own_program_is_normalized_when_it_is_read(
    theirs: dict[str, Any], ours: dict[str, Any]
) -> None:
    assert decode(json.dumps(sample(**theirs)).encode(), AGENT) == sample(**ours)


@table("theirs", [theirs for theirs, _ in UPSTREAM])
def test_decode_accepts_the_form_of_that_program_but_check_record_refuses_it(theirs: dict[str, Any]) -> None:
    document = sample(**theirs)
    assert refusal(lambda: check_record(document, ""))[1] in theirs
    check_record(json.loads(encode(decode(json.dumps(document).encode(), AGENT))), "")


@table("end", ["killed", "failed", "stopped", "returned", "ended_with_host", "lost", "denied"])
def test_every_documented_end_of_a_run_is_accepted(end: str) -> None:
    document = sample(runs=[full_run(end=end)])
    assert decode(json.dumps(document).encode(), AGENT) == document
    assert end in ENDS


def test_the_ends_of_a_run_are_listed_strongest_first() -> None:
    assert ENDS == ("killed", "failed", "stopped", "returned", "ended_with_host", "lost", "denied")


@table(("numbers", "place"), [([2], 0), ([1, 1], 1), ([2, 1], 0), ([1, 3], 1), ([1, 2, 3, 5, 4], 3)])
def test_runs_that_are_not_numbered_in_order_from_1_are_refused(numbers: list[int], place: int) -> None:
    document = sample(runs=[{"run": number} for number in numbers])
    assert refusal(lambda: decode(json.dumps(document).encode(), AGENT)) == (
        f"must be {place + 1}: runs are numbered in order, from 1",
        f"runs[{place}].run",
    )


@table("number", [0, 1, 2, 30])
def test_runs_that_are_numbered_in_order_from_1_are_accepted(number: int) -> None:
    document = sample(runs=[{"run": place} for place in range(1, number + 1)])
    assert decode(json.dumps(document).encode(), AGENT) == document


NEWER = {"agent_id": AGENT, "schema": 2, "phase": ["new", "kinds"], "last_updated": 7, "revision": None}


def test_a_record_of_a_newer_schema_is_returned_unchecked() -> None:
    assert decode(json.dumps(NEWER).encode(), AGENT) == NEWER


def test_even_a_newer_record_must_have_the_id_asked_for() -> None:
    assert refusal(lambda: decode(json.dumps(NEWER).encode(), "agent-2"))[1] == "agent_id"


@table(
    ("schema", "newer"),
    [(1, False), (2, True), (1 << 62, True), (True, False), (0, False), (2.5, False), ("2", False), (None, False)],
)
def test_only_a_larger_whole_number_is_a_newer_schema(schema: Any, newer: bool) -> None:  # noqa: FBT001
    assert (has_newer_schema({"schema": schema}), SCHEMA) == (newer, 1)


def test_a_newer_record_is_readable_if_its_known_keys_are_valid() -> None:
    check_readable(decode(json.dumps(sample(schema=2, of_later=1)).encode(), AGENT))


def test_a_newer_record_is_not_readable_if_a_known_key_is_invalid() -> None:
    newer = decode(json.dumps(sample(schema=2, phase="sleeping")).encode(), AGENT)
    with pytest.raises(NewerSchema) as caught:
        check_readable(newer)
    assert (caught.value.agent_id, caught.value.schema) == (AGENT, 2)


def test_check_readable_accepts_a_record_of_the_current_schema() -> None:
    check_readable(decode(USERS_SAMPLE, AGENT))


@table("phase", PHASES)
def test_a_session_is_open_until_its_phase_is_final(phase: str) -> None:
    record = decode(json.dumps(sample(phase=phase)).encode(), AGENT)
    assert is_open(record) == (phase not in {"completed", "failed", "abandoned"})


@table("phase", ["completed", "a phase of later", None])
def test_a_newer_record_counts_as_open_whatever_its_phase(phase: Any) -> None:
    assert is_open(decode(json.dumps({**NEWER, "phase": phase}).encode(), AGENT))


def test_encoding_does_not_change_the_record() -> None:
    record = decode(USERS_SAMPLE, AGENT)
    before = deepcopy(record)
    encode(record)
    assert record == before
