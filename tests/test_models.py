"""The models and the checks of a record agree, and both accept every record that operations write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue, TypeAdapter

from gaia_sessions import models
from gaia_sessions.api import updating
from gaia_sessions.api.creating import store_new
from gaia_sessions.config import Config
from gaia_sessions.errors import InvalidInput, NewerSchema, SessionFinal, SessionsError
from gaia_sessions.ingest import EventResult, Terms, deferred, dispatch
from gaia_sessions.jsonio import strict
from gaia_sessions.session import requests
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.event_checks import REQUIRED_FIELDS
from gaia_sessions.session.phases import OUTCOMES, PHASES, RESUMABLE
from gaia_sessions.session.record import check_readable, decode, encode
from gaia_sessions.session.schema import ENDS, INTERRUPTIONS, TODO_STATUSES
from tests.examples import examples
from tests.memory_store import MemoryStore
from tests.places import writing
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.session.host_events import Event

CHECKOUT = Path(__file__).parents[1]

START = datetime(2026, 1, 8, 18, 0, tzinfo=UTC)
MOMENT = "2026-01-08T18:05:30.123456Z"

PROCESS: dict[str, Any] = {"pid": 4242, "started": "1", "boot_id": "b", "pid_ns": "4026531836", "machine": "m"}

USAGE: dict[str, Any] = {
    "input_tokens": 1,
    "output_tokens": 2,
    "cache_read_tokens": 3,
    "cache_creation_tokens": 4,
    "total_tokens": 10,
    "tool_uses": 0,
    "duration_ms": 5,
}

RUN: dict[str, Any] = {
    "run": 1,
    "host": "claude-code",
    "host_session_id": "h",
    "current_host_session_id": "g",
    "host_agent_id": "a",
    "tool_use_id": "t",
    "parent_host_agent_id": "p",
    "workflow": {"run_id": "wf_1", "key": "v2:1"},
    "host_process": PROCESS,
    "wrapper": PROCESS,
    "turn": 7,
    "depth": 3,
    "timeout_secs": 600,
    "hard_timeout_secs": 630.5,
    "background": False,
    "unannounced": True,
    "enforced": True,
    "mentioned": ["agent-2"],
    "claimed_at": MOMENT,
    "started_at": MOMENT,
    "ended_at": MOMENT,
    "end": "stopped",
    "waiting": {"since": MOMENT, "for": "Bash"},
    "unanswered": True,
    "own_work": {"since": MOMENT, "kind": "command", "tasks": ["b1"], "assumed": True},
    "interruption": "usage_limit",
    "detail": "d",
    "exit_code": 143,
    "reported": "approval",
    "last_message": "m",
    "transcript_path": "/t",
    "output_path": "/o",
    "model": "m-1",
    "searches": ["0a1b2c3d"],
    "held": ["0a1b2c3d"],
    "warned_at": MOMENT,
    "conversation": {"preset": "claude", "id": "c-1", "cwd": "/w", "generation": 0, "seq": 3},
    "worktree": {"path": "/w", "branch": "b"},
    "usage": USAGE,
    "consumed": {"total_tokens": 0},
    "below": {"agents": 1, "states": {"completed": 1}, "tokens": 5},
}

ORDINARY: dict[str, Any] = {
    "agent_id": "agent-1",
    "agent_name": "Explore",
    "purpose": "general",
    "created_at": MOMENT,
    "last_updated": MOMENT,
    "phase": "approval",
    "metadata": {"task_id": "T001", "deep": {"list": [1, 2.5, None, True]}},
    "resume_ready": True,
    "history": [{"from_phase": "initializing", "to_phase": "approval", "timestamp": MOMENT}],
    "error_count": 1,
    "last_error": {"message": "boom", "timestamp": MOMENT},
    "schema": 1,
    "revision": 2,
}

FULL: dict[str, Any] = {
    **ORDINARY,
    "phase": "completed",
    "history_dropped": 3,
    "continues": "agent-0",
    "imported_from": "/old/session",
    "parent_id": "agent-7",
    "stand_in": True,
    "moving": {"source": "/old/session", "target": "postgresql:///agents", "token": "0123abcd"},
    "max_depth": 0,
    "max_tokens": 1,
    "allowed_tools": ["Read"],
    "app": "kb",
    "user": "u1",
    "app_session": {"id": "of the app", "event_time": 1700000000.5},
    "session_state": {"intent": None},
    "question": "May I?",
    "approval": {"message": "yes", "timestamp": MOMENT},
    "denial": {"message": "no", "timestamp": MOMENT},
    "answers": [
        {"answer": "denied", "by": "resume_line", "timestamp": MOMENT},
        {
            "answer": "approved",
            "by": "command",
            "timestamp": MOMENT,
            "message": "yes",
            "shell": "codex",
            "after_run": 1,
        },
    ],
    "runs": [RUN, {"run": 2}],
    "runs_dropped": 0,
    "paused_until": MOMENT,
    "usage": {"output_tokens": 7},
    "charged_tokens": 0,
    "token_correction": -5,
    "skills": {"terraform": 300, "": 0},
    "todos": [{"description": "read", "status": "completed"}, {"description": "write", "status": "pending"}],
    "turns": 2,
    "transcript_bytes": 512,
    "last_seq": 9,
    "compaction": {"summary": "s", "through": 1, "messages": 3},
    "transcripts_archived": 1,
    "finalized_at": MOMENT,
    "duration_seconds": 12.5,
    "summary": "done",
    "theirs": {"unknown": [1]},
}

LONG: dict[str, Any] = {**FULL, "runs": [RUN, {"run": 4}, {"run": 60}], "runs_dropped": 57}

USERS = {key: ORDINARY[key] for key in list(ORDINARY)[:11]} | {"last_error": None, "error_count": 0}

TIMES = [
    MOMENT,
    "2026-01-08T18:05:30Z",
    "2026-01-08T18:05:30+02:00",
    "2026-01-08 18:05",
    "20260108T180530Z",
    "2026-01-08T18:05:30,5Z",
    "2026-01-08T18",
    "2026-01-08",
    "2026-02-30T10:00:00Z",
    "2026-W02-4T10:00:00Z",
    "2026-01-08x18:05:30",
    "0001-01-01T00:00:00+23:00",
    "9999-12-31T23:59:59-23:00",
    "yesterday",
    "",
    "٢٠٢٦-01-08T18:05:30Z",
]

NUMBERS = [0, 1, 2, 3, -1, 201, 2**62, -(2**63), 0.0, 1.0, -0.5, 1e308, True, False]

WORDS = [*PHASES, *ENDS, *TODO_STATUSES, "dreaming", "Approval", "x", "agent-1", "agent-2", "1", "true"]

JUNK = st.one_of(
    st.sampled_from(TIMES),
    st.sampled_from(NUMBERS),
    st.sampled_from(WORDS),
    st.sampled_from([None, [], {}, [None], {"run": 1}, [RUN], [{"run": 2}], PROCESS]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
)

KEYS = sorted({*FULL, *RUN, *PROCESS, "from_phase", "to_phase", "timestamp", "message", "schema_", "model_config", "x"})


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value inside ``value``."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*at, key)
        yield from places(child, (*at, key))


def inside(document: Any, way: tuple[Any, ...]) -> Any:
    for key in way:
        document = document[key]
    return document


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Sound records, and records with up to three changes."""
    document: Any = deepcopy(draw(st.sampled_from([ORDINARY, FULL, LONG, USERS])))
    for _ in range(draw(st.integers(0, 3))):
        *way, key = draw(st.sampled_from(list(places(document))))
        container = inside(document, tuple(way))
        match draw(st.sampled_from(["drop", "null", "swap", "swap", "add", "twice"])):
            case "drop":
                del container[key]
            case "null":
                container[key] = None
            case "swap":
                container[key] = deepcopy(draw(JUNK))
            case "add" if isinstance(container, dict):
                container[draw(st.sampled_from(KEYS))] = deepcopy(draw(JUNK))
            case "twice" if isinstance(container, list):
                container.append(deepcopy(container[key]))
            case _:
                pass
        if not document:
            break
    return document  # type: ignore[no-any-return]  # deepcopy of a dict


def passes_checks(document: dict[str, Any]) -> bool:
    """Whether the package reads ``document`` as a record."""
    try:
        check_readable(decode(strict.dumps(document), document.get("agent_id", "agent-1")))
    except (InvalidInput, NewerSchema):
        return False
    return True


def passes_models(document: dict[str, Any]) -> bool:
    try:
        models.validate(document)
    except InvalidInput:
        return False
    return True


@table("document", [ORDINARY, FULL, LONG, USERS])
def test_the_checks_and_the_models_accept_a_sound_record(document: dict[str, Any]) -> None:
    assert (passes_checks(document), passes_models(document)) == (True, True)


# The checks and the models share these two rules about runs, so the verdicts are written here.
@table(
    ("document", "is_accepted"),
    [
        ({**FULL, "runs": [RUN, {"run": 2}]}, True),
        ({**FULL, "runs": [{**RUN, "run": 2}]}, False),
        ({**FULL, "runs": [RUN, RUN]}, False),
        ({**FULL, "runs": [{"run": 2}], "runs_dropped": 1}, True),
        ({**LONG, "runs": [RUN, {"run": 4}, {"run": 60}]}, True),
        ({**LONG, "runs": [RUN, {"run": 60}, {"run": 4}]}, False),
        ({**LONG, "runs": [RUN, {"run": 58}]}, False),
        ({**LONG, "runs": []}, True),
        ({**FULL, "runs": [{"run": 1, "ended_at": MOMENT}]}, False),
        ({**FULL, "runs": [{"run": 1, "end": "lost"}]}, False),
        ({**FULL, "runs": [{"run": 1, "end": "stopped"}]}, True),
        ({**FULL, "runs": [{"run": 1, "end": "lost", "ended_at": MOMENT}]}, True),
    ],
)
def test_runs_are_numbered_in_their_order_and_say_how_and_when_they_ended(
    document: dict[str, Any],
    is_accepted: bool,  # noqa: FBT001
) -> None:
    assert (passes_checks(document), passes_models(document)) == (is_accepted, is_accepted)


@table(("app", "user", "is_accepted"), [(1, 1, True), (0, 0, True), (1, 0, False), (0, 1, False)])
def test_a_record_has_both_an_app_and_a_user_or_neither(app: int, user: int, is_accepted: bool) -> None:  # noqa: FBT001
    document = {**ORDINARY, **dict([("app", "kb")] * app + [("user", "u1")] * user)}
    assert (passes_checks(document), passes_models(document)) == (is_accepted, is_accepted)
    if not is_accepted:
        assert problem_of(document) == problem_for_store(document)


# Rules that both share are not compared here: see the cases above and in tests/session/test_record.py.
@settings(max_examples=examples(500))
@given(documents())
@example({**FULL, "duration_seconds": -3})
@example({**FULL, "summary": None})
@example({**FULL, "summary": None, "schema": 2})
@example({**FULL, "summary": None, "schema": None})
@example({**FULL, "duration_seconds": True})
@example({**FULL, "error_count": 1.0})
@example({**ORDINARY, "schema": 2, "phase": "dreaming"})
@example({**ORDINARY, "schema": None})
@example({**ORDINARY, "schema_": "x"})
def test_the_models_and_the_checks_refuse_the_same_documents_in_the_same_words(document: dict[str, Any]) -> None:
    problem = problem_for_store(document)
    if problem:
        assert problem_of(document) == problem
    else:
        assert passes_models(document) == passes_checks(document)


def problem_for_store(document: dict[str, Any]) -> tuple[str, str] | None:
    try:
        decode(strict.dumps(document), document.get("agent_id", "agent-1"))
    except InvalidInput as error:
        return error.where, error.problem
    return None


def problem_of(document: object) -> tuple[str, str]:
    """The place and the text of the first fault that ``validate`` finds in ``document``."""
    with pytest.raises(InvalidInput) as caught:
        models.validate(document)
    return caught.value.where, caught.value.problem


TEXTS = st.one_of(st.none(), st.sampled_from(["", "boom", "ünï\ncode"]))

UPDATES = st.builds(
    partial,
    st.just(updating.update),
    phase=st.one_of(st.none(), st.sampled_from(PHASES)),
    metadata=st.one_of(st.none(), st.just({"k": [1, {"deep": None}]})),
    error=TEXTS,
    resume_ready=st.sampled_from([None, None, True, False]),
    if_revision=st.sampled_from([None, None, None, 1, 2]),
)

ENDINGS = st.builds(partial, st.just(updating.finalize), outcome=st.sampled_from(OUTCOMES), summary=TEXTS, error=TEXTS)

HOST = {"at": MOMENT, "host": "claude-code", "host_session_id": "h"}


KEYS_OF_HOST = {
    "host_agent_id": st.sampled_from(["a1", "a2"]),
    "tool_use_id": st.sampled_from(["t1", "t2"]),
    "parent_host_agent_id": st.just("a1"),
    "workflow": st.sampled_from([{"run_id": "wf_1"}, {"run_id": "wf_1", "key": "k1"}]),
    "host_process": st.sampled_from([PROCESS, {}]),
    "agent_name": st.just("Explore"),
    "purpose": st.just("p"),
    "agent_id": st.just("agent-1"),
    "background": st.booleans(),
    "unannounced": st.booleans(),
    "enforced": st.booleans(),
    "resume": st.lists(st.sampled_from(["agent-1", "agent-2"]), max_size=2),
    "mentioned": st.lists(st.sampled_from(["agent-1", "agent-2"]), max_size=2),
    "transcript_path": st.just("/t"),
    "last_message": st.sampled_from(["", "m"]),
    "marker_phase": st.sampled_from([*RESUMABLE, "failed"]),
    "marker_id": st.sampled_from(["agent-1", "agent-2"]),
    "briefed_id": st.sampled_from(["agent-1", "agent-2"]),
    "has_message": st.booleans(),
    "after_block": st.booleans(),
    "launch": st.booleans(),
    "interrupted": st.booleans(),
    "interruption": st.sampled_from(INTERRUPTIONS),
    "paused_until": st.just(MOMENT),
    "running": st.lists(st.sampled_from(["a1", "a2"]), max_size=2),
    "outcome": st.sampled_from(OUTCOMES),
    "outcome_assumed": st.booleans(),
    "summary": st.just("s"),
    "error": st.sampled_from(["", "boom"]),
    "tool_name": st.sampled_from(["Bash", "Read"]),
    "call": st.sampled_from(["c1", "c2", "c3"]),
    "events": st.just([]),
}


@st.composite
def events(draw: st.DrawFn) -> Event:
    """Events of any kind of two delegations and two agents, with the required keys and any other keys."""
    kind = draw(st.sampled_from(sorted(REQUIRED_FIELDS)))
    needed = set(REQUIRED_FIELDS[kind]) - set(HOST)
    others = draw(st.sets(st.sampled_from(sorted(set(KEYS_OF_HOST) - needed)), max_size=6))
    told = {key: draw(KEYS_OF_HOST[key]) for key in sorted(needed | others)}
    return {**HOST, "kind": kind, **told}  # type: ignore[typeddict-item]  # the keys fit the kind


STEPS = st.lists(
    st.tuples(
        st.one_of(events(), events(), UPDATES, ENDINGS, st.just("what waits")),
        st.sampled_from([timedelta(seconds=seconds) for seconds in (0, 5, 7200, -180, -86400)]),
    ),
    max_size=20,
)


@settings(max_examples=examples(200))
@given(STEPS)
def test_the_checks_and_the_models_accept_every_record_that_operations_write(
    steps: list[tuple[Any, timedelta]],
) -> None:
    store, now = MemoryStore(), START
    store_new(store, now, bytes, requests.NewSession("Explore", "general", {}, "agent-1"))
    for asked, later in steps:
        now += later
        if isinstance(asked, dict):
            with suppress(SessionFinal):  # only a late finalization is refused
                assert isinstance(
                    dispatch.handle_event(store, as_event(asked, now), Terms(now, Config({}), 0)), EventResult
                )
        elif isinstance(asked, str):
            assert all(word.isascii() for word in deferred.apply_deferred(store, now, Config({})))
        else:
            by_hand(store, now, asked)
        for _, record in store.scan():
            assert not isinstance(record, SessionsError)
            document = json.loads(encode(record))
            assert (passes_checks(document), passes_models(document)) == (True, True)


def as_event(told: dict[str, Any], now: datetime) -> Event:
    return {**told, "at": format_time(now)}  # type: ignore[typeddict-item]  # ``told`` has the other keys


def by_hand(store: MemoryStore, now: datetime, asked: Any) -> None:
    for agent_id in [agent_id for agent_id, _ in store.scan()]:
        with suppress(SessionsError):
            asked(writing(store, now), agent_id)


def test_the_typed_session_has_the_values_of_the_document() -> None:
    session = models.validate(FULL)
    assert session.runs is not None
    assert session.runs[0].host_process is not None
    assert (session.agent_id, session.phase, session.schema_, session.revision) == ("agent-1", "completed", 1, 2)
    assert (session.runs[0].host_process.pid, session.runs[1].started_at) == (4242, None)
    assert session.model_dump(by_alias=True, exclude_unset=True) == FULL


def test_a_type_checker_sees_the_types_of_the_fields() -> None:
    # mypy does most of this check.
    session = models.validate(FULL)
    assert_type(session.error_count, int)
    assert_type(session.last_error, models.LastError | None)
    assert_type(session.metadata, dict[str, JsonValue])
    assert session.runs
    assert_type(session.runs, list[models.Run])
    assert_type(session.runs[0].host_process, models.HostProcess | None)
    assert_type(session.runs[0].started_at, str | None)


def test_the_files_generated_from_the_table_are_current() -> None:
    subprocess.run([sys.executable, CHECKOUT / "scripts" / "render_models", "--check"], check=True)


ADDED = """
import copy, json, sys
from gaia_sessions import models
from gaia_sessions.errors import InvalidInput
from gaia_sessions.session.record import decode

def refusals(document):
    for judge in (lambda: decode(json.dumps(document).encode(), "agent-1"), lambda: models.validate(document)):
        try:
            judge()
        except InvalidInput as error:
            yield [error.where, error.problem]

sound = json.load(sys.stdin)
for key, good, bad in [("probed_at", "2026-01-08T18:05Z", "soon"), ("probes", [{"name": "p"}], [{"name": 1}])]:
    print(json.dumps([*refusals({**sound, key: good}), *refusals({**sound, key: bad})]))
schema = models.json_schema()
keys = schema["properties"]
print(json.dumps([keys["probed_at"], keys["probes"]["items"], schema["$defs"]["Probe"]]))
"""


def test_a_key_added_to_the_table_is_in_everything_generated_from_it(tmp_path: Path) -> None:
    # In a copy of the checkout. One key is a time, the other a new object.
    for name in ("gaia_sessions", "scripts", "docs"):
        shutil.copytree(CHECKOUT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    table = tmp_path / "gaia_sessions" / "session" / "shapes.py"
    before, record, keys = table.read_text("utf-8").partition("class _EveryRecord(TypedDict):")
    every, first, rest = keys.partition("    history_dropped:")
    probe = 'class Probe(TypedDict):\n    """P."""\n\n    name: str\n    tries: NotRequired[Number]\n\n\n'
    added = '    probed_at: Annotated[Time, "When, [see](x.md)."]\n    probes: list[Probe]\n'
    table.write_text(before + probe + record + every + added + first + rest, "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    subprocess.run([sys.executable, tmp_path / "scripts" / "render_models"], env=environment, check=True)
    said = subprocess.run(
        [sys.executable, "-c", ADDED],
        env=environment,
        cwd=tmp_path,
        input=json.dumps(FULL),
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    time, objects, (at, items, shape) = map(json.loads, said.splitlines())
    assert time == [["probed_at", "must be an ISO 8601 time"]] * 2
    assert objects == [["probes[0].name", "must be a string, not a number"]] * 2
    assert (at["description"], items, shape["required"]) == ("When, see.", {"$ref": "#/$defs/Probe"}, ["name"])
    page = (tmp_path / "docs" / "record.md").read_text("utf-8")
    assert "| `probed_at` | time | When, [see](x.md). |\n| `probes` | list of `{name, tries?}` |  |\n" in page


@table(
    ("run", "problem"),
    [
        ({"run": 1, "ended_at": MOMENT}, ("runs[0].end", "missing, though the run has ended")),
        ({"run": 1, "end": "lost"}, ("runs[0].ended_at", "missing, though the run has the end 'lost'")),
    ],
)
def test_an_ended_run_without_its_end_or_end_time_is_refused(run: dict[str, Any], problem: tuple[str, str]) -> None:
    assert problem_of({**FULL, "runs": [run]}) == problem


def test_a_negative_duration_and_a_null_summary_are_normalized() -> None:
    session = models.validate({**FULL, "duration_seconds": -3.5, "summary": None})
    assert (session.duration_seconds, session.summary) == (0.0, None)


def test_a_refusal_names_the_place_of_the_fault() -> None:
    document = {**FULL, "runs": [{**RUN, "end": "vanished"}]}
    assert problem_of(document) == ("runs[0].end", f"must be one of {', '.join(ENDS)}")


@table(
    ("document", "kind"), [(None, "null"), ([], "an array"), ("text", "a string"), (1, "a number"), (True, "a boolean")]
)
def test_a_document_that_is_not_an_object_is_refused(document: object, kind: str) -> None:
    assert problem_of(document) == ("", f"must be an object, not {kind}")


def test_a_session_cannot_be_changed_in_place() -> None:
    session = models.validate(ORDINARY)
    with pytest.raises(ValueError, match="frozen"):
        session.phase = "failed"  # type: ignore[misc]  # frozen for a type checker too


def test_the_schema_names_its_draft_its_keys_and_the_required_keys() -> None:
    schema = models.json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["required"] == [key for key in ORDINARY if key not in {"schema", "revision"}]
    assert list(schema["properties"]) == [key for key in FULL if key != "theirs"]
    assert schema["properties"]["phase"]["enum"] == list(PHASES)
    assert schema["$defs"]["Run"]["required"] == ["run"]
    assert list(schema["$defs"]["Run"]["properties"]) == list(RUN)
    assert schema["$defs"]["Run"]["properties"]["end"]["enum"] == list(ENDS)
    assert schema["$defs"]["Run"]["dependentRequired"] == {"ended_at": ["end"]}
    assert schema["dependentRequired"] == {"app": ["user"], "user": ["app"]}
    assert schema["$defs"]["Move"]["required"] == ["from_phase", "to_phase", "timestamp"]


def test_the_schema_allows_null_only_for_last_error() -> None:
    schema = models.json_schema()
    assert schema["properties"]["last_error"]["anyOf"] == [{"$ref": "#/$defs/LastError"}, {"type": "null"}]
    del schema["properties"]["last_error"]
    assert '"null"' not in json.dumps(schema)


def test_the_schema_allows_unknown_keys() -> None:
    schema = models.json_schema()
    assert {shape.get("additionalProperties", True) for shape in (schema, *schema["$defs"].values())} == {True}


@table(
    ("name", "good", "bad"),
    [
        ("Phase", "approval", "thinking"),
        ("End", "stopped", "vanished"),
        ("Time", "2026-01-08T18:05:30Z", "yesterday"),
        ("Count", 0, -1),
        ("Number", 1, 0),
    ],
)
def test_the_types_of_single_values_are_public_and_check_them(name: str, good: object, bad: object) -> None:
    adapter: TypeAdapter[object] = TypeAdapter(getattr(models, name))
    assert adapter.validate_python(good) == good
    with pytest.raises(ValueError, match="validation error"):
        adapter.validate_python(bad)
