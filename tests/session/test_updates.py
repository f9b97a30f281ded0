"""Updates of a record: moves, history, errors, metadata, ends, revisions and answers."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gaia_sessions.errors import IllegalMove, InvalidInput, NewerSchema, ResumeNotAllowed, RevisionChanged, SessionFinal
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.phases import MOVES, OPEN, OUTCOMES, PHASES, RESUMABLE
from gaia_sessions.session.record import ANSWER_WORDS, decode, encode, new_record
from gaia_sessions.session.updates import (
    check_open,
    check_revision,
    check_writable,
    with_activity,
    with_answer,
    with_error,
    with_metadata,
    with_next_revision,
    with_phase,
    with_rejudged_end,
    with_resume_ready,
    without_answer,
)
from tests.records import START, WHEN, moved, unchanged
from tests.session.test_runs import LATER, THEN
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.session.schema import AnswerKey, Record

    Change = Callable[[Record, datetime], Record]


def record_in(phase: str, **changed: Any) -> Record:
    """A record in ``phase``, without history, with some keys changed."""
    record: Any = {**new_record("agent-1", "Explore", "general", {}, START), "phase": phase, **changed}
    return decode(encode(record), "agent-1")


LEGAL = [(one, other) for one in OPEN for other in OPEN if other in MOVES[one] and other != one]


@table(("one", "other"), LEGAL)
def test_a_move_sets_the_phase_and_resume_ready_and_adds_one_history_entry(one: str, other: str) -> None:
    record = record_in(one, resume_ready=one in RESUMABLE)
    assert unchanged(lambda record: with_phase(record, other, LATER), record) == {
        **record,
        "phase": other,
        "resume_ready": other in RESUMABLE,
        "history": [moved(one, other)],
    }


@table(("one", "other"), [(one, other) for one in PHASES for other in PHASES if other not in MOVES[one]])
def test_a_move_that_the_table_lacks_is_refused(one: str, other: str) -> None:
    with pytest.raises(IllegalMove) as caught:
        with_phase(record_in(one), other, LATER)
    assert (caught.value.from_phase, caught.value.to_phase) == (one, other)


@table("phase", OPEN)
@table("ready", [True, False])
def test_setting_the_same_phase_is_a_heartbeat_and_keeps_history_and_resume_ready(phase: str, ready: bool) -> None:  # noqa: FBT001
    record = record_in(phase, resume_ready=ready)
    assert with_phase(record, phase, LATER) is record
    assert with_next_revision(with_activity(with_phase(record, phase, LATER), LATER)) == {
        **record,
        "last_updated": WHEN,
        "revision": 2,
    }


def test_a_move_resets_a_resume_ready_that_was_set_by_hand() -> None:
    off = with_resume_ready(record_in("planning", resume_ready=True), ready=False)
    assert with_phase(off, "approval", LATER)["resume_ready"] is True


_ENTRIES = [moved("planning", "approval", THEN), moved("approval", "planning", THEN)]


@table(
    ("kept", "dropped", "kept_then", "dropped_then"),
    [
        (0, None, 1, None),  # the first move
        (198, None, 199, None),  # 199 fit
        (199, None, 200, None),  # 200 fit
        (200, None, 200, 1),  # the 201st replaces the oldest
        (200, 1, 200, 2),  # the 202nd replaces the next oldest
        (199, 7, 200, 7),  # dropped moves stay counted
        (300, None, 200, 101),  # a longer history of another program is cut
    ],
)
def test_the_newest_200_moves_stay_and_the_dropped_ones_are_counted(
    kept: int, dropped: int | None, kept_then: int, dropped_then: int | None
) -> None:
    old = [{**_ENTRIES[0], "number": number} for number in range(kept)]
    counted = {} if dropped is None else {"history_dropped": dropped}
    counted_then = {} if dropped_then is None else {"history_dropped": dropped_then}
    record = record_in("planning", history=old, **counted)
    assert unchanged(lambda record: with_phase(record, "executing", LATER), record) == {
        **record,
        "phase": "executing",
        "history": [*old[kept - kept_then + 1 :], moved("planning", "executing")],
        **counted_then,
    }


_SECONDS = st.integers(-1_000_000, 1_000_000).map(lambda number: timedelta(seconds=number))


@given(_SECONDS, _SECONDS)
@example(timedelta(0), timedelta(0))
@example(timedelta(0), timedelta(microseconds=1))
@example(timedelta(0), timedelta(microseconds=-1))
@example(timedelta(0), timedelta(minutes=-5))
@example(timedelta(0), timedelta(minutes=-5, microseconds=-1))
@example(timedelta(days=4000), timedelta(0))
def test_last_updated_goes_backwards_only_from_more_than_five_minutes_in_the_future(
    last: timedelta, moment: timedelta
) -> None:
    before, now = START + last, START + moment
    record = record_in("planning", last_updated=format_time(before))
    wrong = before - now > timedelta(minutes=5)
    then = format_time(now if wrong else max(before, now))
    assert unchanged(lambda record: with_activity(record, now), record) == {**record, "last_updated": then}


@table(
    ("old", "new", "merged"),
    [
        ({}, {"a": 1}, {"a": 1}),  # a first key
        ({"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),  # an equal key is replaced at its place
        ({"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"y": 2}}),  # it is replaced whole, not merged deeply
        ({"a": [1]}, {"a": None}, {"a": None}),  # null is a value
        ({"a": 1}, {}, {"a": 1}),  # nothing new
    ],
)
def test_metadata_is_merged_one_level_deep(old: dict[str, Any], new: dict[str, Any], merged: dict[str, Any]) -> None:
    record = record_in("planning", metadata=old)
    after = unchanged(lambda record: with_metadata(record, new), record)
    assert after == {**record, "metadata": merged}
    assert list(after["metadata"]) == list(merged)


@table("count", [0, 2, 3, 100])
def test_an_error_is_counted_and_the_latest_one_is_stored(count: int) -> None:
    earlier = {"message": "older", "timestamp": THEN} if count else None
    record = record_in("executing", error_count=count, last_error=earlier)
    assert unchanged(lambda record: with_error(record, "boom", LATER), record) == {
        **record,
        "error_count": count + 1,
        "last_error": {"message": "boom", "timestamp": WHEN},
    }


@table("change", [lambda record: with_error(record, "boom", LATER), with_next_revision])
def test_a_count_past_the_largest_number_is_refused_before_it_is_written(change: Callable[[Record], Record]) -> None:
    record = record_in("planning", error_count=(1 << 63) - 1, revision=(1 << 63) - 1)

    with pytest.raises(InvalidInput):
        encode(change(record))


@table("phase", PHASES)
@table("was", [True, False])
def test_resuming_is_switched_off_by_hand_in_any_phase(phase: str, was: bool) -> None:  # noqa: FBT001
    record = record_in(phase, resume_ready=was)
    assert unchanged(lambda record: with_resume_ready(record, ready=False), record) == {**record, "resume_ready": False}


@table("phase", PHASES)
@table("was", [True, False])
def test_resuming_is_switched_on_by_hand_only_in_a_resumable_phase(phase: str, was: bool) -> None:  # noqa: FBT001
    record = record_in(phase, resume_ready=was)
    if phase in RESUMABLE:
        assert unchanged(lambda record: with_resume_ready(record, ready=True), record) == {
            **record,
            "resume_ready": True,
        }
        return
    with pytest.raises(ResumeNotAllowed) as caught:
        with_resume_ready(record, ready=True)
    assert (caught.value.agent_id, caught.value.phase) == ("agent-1", phase)


@table("outcome", OUTCOMES)
@table("phase", OPEN)
@table(("summary", "told"), [("applied", {"summary": "applied"}), (None, {}), ("", {})])
def test_an_end_is_a_move_with_its_time_its_duration_and_its_summary(
    phase: str, outcome: str, summary: str | None, told: dict[str, str]
) -> None:
    record = record_in(phase, resume_ready=phase in RESUMABLE)
    assert unchanged(lambda record: with_phase(record, outcome, LATER, summary), record) == {
        **record,
        "phase": outcome,
        "resume_ready": False,
        "history": [moved(phase, outcome)],
        "finalized_at": WHEN,
        "duration_seconds": 240.0,
        **told,
    }


def test_a_session_finalized_before_it_began_took_no_time() -> None:
    ended = with_phase(record_in("planning"), "failed", START - timedelta(hours=1))
    assert (ended["finalized_at"], ended["duration_seconds"]) == ("2026-01-08T17:00:00.000000Z", 0.0)


@table("final", OUTCOMES)
@table("phase", RESUMABLE)
def test_a_rejudged_end_is_removed_and_the_move_back_is_in_the_history(final: str, phase: str) -> None:
    ended = with_phase(record_in("planning"), final, START, "applied")
    reopened = {
        key: value for key, value in ended.items() if key not in {"finalized_at", "duration_seconds", "summary"}
    }
    assert unchanged(lambda record: with_rejudged_end(record, phase, LATER), ended) == {
        **reopened,
        "phase": phase,
        "resume_ready": True,
        "history": [moved("planning", final, THEN), moved(final, phase)],
    }


@table("final", OUTCOMES)
@table("outcome", OUTCOMES)
def test_an_end_rejudged_as_an_end_has_the_new_time_and_no_old_summary(final: str, outcome: str) -> None:
    ended = with_phase(record_in("planning"), final, START, "applied")
    rest = {key: value for key, value in ended.items() if key != "summary"}
    assert unchanged(lambda record: with_rejudged_end(record, outcome, LATER), ended) == {
        **rest,
        "phase": outcome,
        "history": [moved("planning", final, THEN), *([moved(final, outcome)] if outcome != final else [])],
        "finalized_at": WHEN,
        "duration_seconds": 240.0,
    }


@table(
    ("phase", "then", "ending"),
    [
        ("approval", "approval", {}),  # the same pause changes nothing
        ("approval", "planning", {}),  # a pause in another phase
        ("approval", "completed", {"finalized_at": WHEN, "duration_seconds": 240.0}),  # an end
    ],
)
def test_a_pause_can_be_rejudged_as_well(phase: str, then: str, ending: dict[str, Any]) -> None:
    record = record_in(phase, resume_ready=True)
    assert with_rejudged_end(record, then, LATER) == {
        **record,
        "phase": then,
        "resume_ready": then in RESUMABLE,
        "history": [moved(phase, then)] if phase != then else [],
        **ending,
    }


@table("revision", [0, 1, 41])
def test_every_write_increases_the_revision_by_one(revision: int) -> None:
    record = record_in("planning", revision=revision)
    assert unchanged(with_next_revision, record) == {**record, "revision": revision + 1}


@table("asked", [None, 5])
def test_a_write_with_the_current_revision_or_none_is_accepted(asked: int | None) -> None:
    check_revision(record_in("planning", revision=5), asked)


@table("asked", [0, 4, 6])
def test_a_write_with_another_revision_is_a_conflict(asked: int) -> None:
    with pytest.raises(RevisionChanged) as caught:
        check_revision(record_in("planning", revision=5), asked)
    assert (caught.value.agent_id, caught.value.asked, caught.value.actual) == ("agent-1", asked, 5)


@table("phase", PHASES)
def test_a_change_of_a_final_session_is_refused(phase: str) -> None:
    if phase not in OUTCOMES:
        check_open(record_in(phase))
        return
    with pytest.raises(SessionFinal) as caught:
        check_open(record_in(phase))
    assert (caught.value.agent_id, caught.value.phase) == ("agent-1", phase)
    assert caught.value.continuable == (phase != "abandoned")


def test_a_record_of_the_current_schema_may_be_rewritten() -> None:
    check_writable(record_in("completed"))


def test_a_newer_record_is_never_rewritten() -> None:
    with pytest.raises(NewerSchema) as caught:
        check_writable(record_in("planning", schema=2))
    assert (caught.value.agent_id, caught.value.schema) == ("agent-1", 2)


_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10)
_METADATA: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    _TEXT, st.one_of(st.none(), st.booleans(), st.lists(_TEXT))
)
_STEPS: st.SearchStrategy[Change] = st.one_of(
    st.sampled_from(PHASES).map(lambda phase: lambda record, now: with_phase(record, phase, now)),
    st.tuples(st.sampled_from(OUTCOMES), st.one_of(st.none(), _TEXT)).map(
        lambda end: lambda record, now: with_phase(record, end[0], now, end[1])
    ),
    st.sampled_from(PHASES).map(lambda phase: lambda record, now: with_rejudged_end(record, phase, now)),
    _METADATA.map(lambda metadata: lambda record, _now: with_metadata(record, metadata)),
    _TEXT.map(lambda message: lambda record, now: with_error(record, message, now)),
    st.booleans().map(lambda ready: lambda record, _now: with_resume_ready(record, ready)),
    st.just(lambda record, _now: record),
)


@given(st.lists(st.tuples(_STEPS, st.integers(-3600, 3600)), max_size=12))
def test_a_record_can_be_written_and_read_back_after_any_changes(steps: list[tuple[Change, int]]) -> None:
    record, now = record_in("initializing", later=["keys", {"are": "kept"}]), START
    for change, seconds in steps:
        now += timedelta(seconds=seconds)
        try:
            record = with_next_revision(with_activity(change(record, now), now))
        except (IllegalMove, ResumeNotAllowed):
            continue
        assert decode(encode(record), "agent-1") == record
        assert record["later"] == ["keys", {"are": "kept"}]  # type: ignore[typeddict-item]  # a key of later
        assert ("finalized_at" in record) == ("duration_seconds" in record)
        assert record["resume_ready"] is False or record["phase"] in RESUMABLE


KEYS: list[AnswerKey] = ["approval", "denial"]
answers = table("key", KEYS)


@answers
def test_an_answer_keeps_the_phase_and_replaces_an_earlier_answer(key: AnswerKey) -> None:
    record = record_in("approval", resume_ready=True)
    for earlier in KEYS:
        told = with_answer(record, earlier, "before", START, "python")
        answered = unchanged(lambda record: with_answer(record, key, "too dear", LATER, "command", "codex"), told)
        first = {"answer": ANSWER_WORDS[earlier], "by": "python", "message": "before", "timestamp": format_time(START)}
        last = {"by": "command", "message": "too dear", "shell": "codex", "timestamp": WHEN}
        given = [{**first, "after_run": 0}, {**last, "answer": ANSWER_WORDS[key], "after_run": 0}]
        assert answered == {**record, key: {"message": "too dear", "timestamp": WHEN}, "answers": given}


@answers
def test_only_the_latest_answer_names_the_run_that_it_follows(key: AnswerKey) -> None:
    record = record_in("approval", runs=[{"run": 1, "started_at": WHEN}])
    for earlier in KEYS:
        told = with_answer(record, earlier, "before", START, "command")
        answered = unchanged(lambda record: with_answer(record, key, "", LATER, "python"), told)
        assert [one.get("after_run") for one in answered["answers"]] == [None, 1]


@answers
@table("phase", [phase for phase in MOVES["approval"] if phase != "approval"])
def test_the_next_move_removes_the_answer(phase: str, key: AnswerKey) -> None:
    record = with_answer(record_in("approval"), key, "too dear", START, "command")
    moved = {**with_phase(record_in("approval"), phase, LATER), "answers": record["answers"]}
    assert unchanged(lambda record: with_phase(record, phase, LATER), record) == moved


@answers
def test_an_answer_outlasts_a_heartbeat_and_can_be_removed(key: AnswerKey) -> None:
    record = with_answer(record_in("approval"), key, "too dear", START, "command")
    assert with_phase(record, "approval", LATER) is record
    assert unchanged(without_answer, record) == {**record_in("approval"), "answers": record["answers"]}
    plain = record_in("approval")
    assert without_answer(plain) is plain


def test_the_newest_20_answers_stay_with_the_first_1000_characters_of_their_notes() -> None:
    record = record_in("approval")
    for number in range(30):
        record = with_answer(record, "approval", f"{number} " + "x" * 2000, LATER, "command")
    numbers = [given["message"].split()[0] for given in record["answers"]]
    lengths = {len(given["message"]) for given in record["answers"]}
    assert (numbers, lengths) == ([str(number) for number in range(10, 30)], {1000})
