from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.session.clock import format_time
from gaia_sessions.session.phases import OUTCOMES, PHASES
from gaia_sessions.session.record import decode, encode
from gaia_sessions.session.run_ends import (
    is_silent_stop,
    is_stronger_evidence,
    marker_fields,
    may_be_rejudged,
    with_end,
    with_failure_detail,
    with_later_stop,
    with_settled_return,
    with_silent_stop,
)
from gaia_sessions.session.run_reopening import with_agent_in_conversation
from gaia_sessions.session.runs import has_ended, with_claimed_run, with_reported_phase, with_start
from gaia_sessions.session.schema import ENDS
from gaia_sessions.session.updates import with_next_revision, with_phase, with_stated_end
from tests.records import START, WHEN, moved, record_with, unchanged

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.session.schema import Record, Run

    Evidence = Callable[[Record, Run, datetime], Record]

LATER = START + timedelta(minutes=4)
LATEST = START + timedelta(minutes=5)
THEN = "2026-01-08T18:00:00.000000Z"
AT_LAST = "2026-01-08T18:05:00.000000Z"

KEYS: Run = {"host": "claude-code", "host_session_id": "h", "tool_use_id": "t"}
WORKING: dict[str, Any] = {**KEYS, "run": 1, "claimed_at": THEN, "host_agent_id": "a"}
SAID_SO = "said so in its last line"

OPEN = [phase for phase in PHASES if phase not in OUTCOMES]
RESUMABLE = {"investigating", "planning", "approval"}
FINAL: dict[str, Any] = {"finalized_at": THEN, "duration_seconds": 0.0, "summary": "by hand"}


def in_its_phase(one: str, other: str, at: str = WHEN) -> dict[str, Any]:
    """What of a record changes when the work goes from one phase to the other."""
    if one == other:
        return {}
    ending = {"finalized_at": at, "duration_seconds": 240.0} if other in OUTCOMES else {}
    return {"phase": other, "resume_ready": other in RESUMABLE, "history": [moved(one, other, at)], **ending}


class Row(NamedTuple):
    """Where an end leaves the work that stands in a resumable phase, or in another open one (None: where it stands)."""

    resumable: str | None
    other: str | None
    is_activity: bool
    is_error: bool

    def leaves(self, phase: str) -> str:
        return (self.resumable if phase in RESUMABLE else self.other) or phase


TABLE = {
    "killed": Row("abandoned", "abandoned", is_activity=True, is_error=False),
    "failed": Row(None, "failed", is_activity=True, is_error=True),
    "stopped": Row("completed", "completed", is_activity=True, is_error=False),
    "returned": Row(None, None, is_activity=True, is_error=False),
    "ended_with_host": Row(None, "abandoned", is_activity=False, is_error=False),
    "lost": Row(None, "abandoned", is_activity=False, is_error=False),
    "denied": Row(None, "abandoned", is_activity=False, is_error=False),
}


def test_the_table_has_every_end_the_strongest_first() -> None:
    assert list(TABLE) == list(ENDS)


@pytest.mark.parametrize("phase", OPEN)
@pytest.mark.parametrize("end", ENDS)
def test_an_end_closes_the_run_and_leaves_the_session_where_the_table_says(end: str, phase: str) -> None:
    record = record_with(WORKING, phase=phase, resume_ready=phase in RESUMABLE)
    row = TABLE[end]
    told: Run = {"detail": "how it was", "last_message": "bye"}
    assert unchanged(lambda record: with_end(record, record["runs"][0], end, told, LATER), record) == {
        **record,
        **({"last_updated": WHEN} if row.is_activity else {}),
        **({"error_count": 1, "last_error": {"message": "how it was", "timestamp": WHEN}} if row.is_error else {}),
        **in_its_phase(phase, row.leaves(phase)),
        "runs": [{**WORKING, **told, "ended_at": WHEN, "end": end}],
    }


@pytest.mark.parametrize("phase", OPEN)
@pytest.mark.parametrize("end", [end for end in ENDS if end != "denied"])
def test_a_resumed_run_ends_like_the_first(end: str, phase: str) -> None:
    earlier = {"run": 1, "ended_at": THEN, "end": "stopped"}
    first = record_with(WORKING, phase=phase)
    again = record_with(earlier, {**WORKING, "run": 2}, phase=phase)
    alone = with_end(first, first["runs"][0], end, {}, LATER)
    runs = [earlier, {**alone["runs"][0], "run": 2}]
    assert with_end(again, again["runs"][1], end, {}, LATER) == {**alone, "runs": runs}


@pytest.mark.parametrize("phase", OPEN)
def test_a_denied_resume_leaves_the_session_as_it_was(phase: str) -> None:
    claim = {**KEYS, "run": 2, "claimed_at": THEN}
    record = record_with({**WORKING, "ended_at": THEN, "end": "stopped"}, claim, phase=phase)
    denied = unchanged(lambda record: with_end(record, record["runs"][1], "denied", {"detail": "no"}, LATER), record)
    assert denied == {
        **record,
        "runs": [record["runs"][0], {**claim, "ended_at": WHEN, "end": "denied", "detail": "no"}],
    }


@pytest.mark.parametrize("phase", OPEN)
@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_an_earlier_run_says_nothing_about_the_work(end: str, phase: str) -> None:
    record = record_with(WORKING, {"run": 2, "claimed_at": THEN}, phase=phase)
    told: Run = {"detail": "how it was", "last_message": "bye", "reported": "approval"}
    assert unchanged(lambda record: with_end(record, record["runs"][0], end, told, LATER), record) == {
        **record,
        "runs": [{**WORKING, **told, "ended_at": WHEN, "end": end}, {"run": 2, "claimed_at": THEN}],
    }


@pytest.mark.parametrize("more", [[], [{"run": 2, "claimed_at": THEN}]], ids=["the latest", "an earlier one"])
@pytest.mark.parametrize("phase", OUTCOMES)
@pytest.mark.parametrize("end", ENDS)
def test_in_a_final_session_an_end_closes_the_run_and_nothing_else(
    end: str, phase: str, more: list[dict[str, Any]]
) -> None:
    record = record_with(WORKING, *more, phase=phase, **FINAL)
    told: Run = {"detail": "how it was"}
    assert unchanged(lambda record: with_end(record, record["runs"][0], end, told, LATER), record) == {
        **record,
        "runs": [{**WORKING, **told, "ended_at": WHEN, "end": end}, *more],
    }


@pytest.mark.parametrize("told", [{"last_message": "bye", "transcript_path": "t.jsonl"}, {"reported": "failed"}])
def test_the_first_end_of_a_run_keeps_what_was_told_though_the_session_was_finalized_before(told: Run) -> None:
    record = record_with(WORKING, phase="completed", **FINAL)
    assert with_end(record, record["runs"][0], "stopped", told, LATER) == {
        **record,
        "runs": [{**WORKING, **told, "ended_at": WHEN, "end": "stopped"}],
    }


PAIRS = [
    pytest.param(one, other, id=f"{one}, then {other}") for number, one in enumerate(ENDS) for other in ENDS[number:]
]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(("before", "end"), PAIRS)
def test_evidence_that_is_not_stronger_changes_nothing(before: str, end: str, phase: str) -> None:
    run = {**WORKING, "ended_at": THEN, "end": before, "detail": "as it was"}
    record = record_with(run, phase=phase, **(FINAL if phase in OUTCOMES else {}))
    assert not is_stronger_evidence(record["runs"][0], end)
    assert with_end(record, record["runs"][0], end, {"detail": "otherwise", "last_message": "m"}, LATER) is record


STRONGER = [
    pytest.param(other, one, id=f"{other}, then {one}")
    for number, one in enumerate(ENDS)
    for other in ENDS[number + 1 :]
]


@pytest.mark.parametrize("phase", OPEN)
@pytest.mark.parametrize(("before", "end"), STRONGER)
def test_in_an_open_session_stronger_evidence_counts_as_if_it_were_the_first(before: str, end: str, phase: str) -> None:
    weaker = record_with({**WORKING, "ended_at": THEN, "end": before, "detail": "as it was"}, phase=phase)
    first = record_with(WORKING, phase=phase)
    told: Run = {"detail": "how it was", "last_message": "bye"}
    assert is_stronger_evidence(weaker["runs"][0], end)
    assert with_end(weaker, weaker["runs"][0], end, told, LATER) == with_end(first, first["runs"][0], end, told, LATER)


@pytest.mark.parametrize(("before", "end"), STRONGER)
def test_the_detail_of_weaker_evidence_goes_with_it(before: str, end: str) -> None:
    weaker = record_with({**WORKING, "ended_at": THEN, "end": before, "detail": "as it was"}, phase="planning")
    assert with_end(weaker, weaker["runs"][0], end, {}, LATER)["runs"] == [{**WORKING, "ended_at": WHEN, "end": end}]


@pytest.mark.parametrize("more", [[], [{"run": 2, "claimed_at": THEN}]], ids=["the latest", "an earlier one"])
@pytest.mark.parametrize("phase", OUTCOMES)
@pytest.mark.parametrize(("before", "end"), STRONGER)
@pytest.mark.parametrize("told", [{}, {"detail": "how it was"}], ids=["without a detail", "with one"])
def test_in_a_final_session_stronger_evidence_corrects_end_and_detail_never_the_outcome(
    before: str, end: str, told: Run, phase: str, more: list[dict[str, Any]]
) -> None:
    run = {**WORKING, "ended_at": THEN, "end": before, "detail": "as it was"}
    by_hand = {**FINAL, "finalized_at": WHEN}
    record = record_with(run, *more, phase=phase, **by_hand)
    assert unchanged(lambda record: with_end(record, record["runs"][0], end, told, LATER), record) == {
        **record,
        "runs": [{**WORKING, "ended_at": THEN, "end": end, **told}, *more],
    }


@pytest.mark.parametrize(
    ("end", "phase"),
    [("killed", "abandoned"), ("failed", "failed"), ("stopped", "completed"), ("returned", "failed")],
)
@pytest.mark.parametrize("before", ["executing", "validating"])
def test_an_outcome_that_the_end_of_a_conversation_made_gives_way_to_the_true_end(
    before: str, end: str, phase: str
) -> None:
    record = record_with(WORKING, phase=before)
    over = with_end(record, record["runs"][0], "ended_with_host", {"detail": "over"}, LATER)

    after = unchanged(lambda record: with_end(record, record["runs"][0], end, {"detail": "how"}, LATEST), over)

    assert (over["phase"], after["phase"], after["finalized_at"]) == ("abandoned", phase, AT_LAST)
    assert after["runs"] == [{**WORKING, "ended_at": AT_LAST, "end": end, "detail": "how"}]
    assert after["history"] == [
        moved(before, "abandoned", WHEN),
        moved("abandoned", before, AT_LAST),
        moved(before, phase, AT_LAST),
    ]


@pytest.mark.parametrize("end", [*ENDS, None])
def test_news_in_another_conversation_takes_back_no_end_but_that_of_the_conversation(end: str | None) -> None:
    ending = {} if end is None else {"ended_at": THEN, "end": end}
    record = record_with({**WORKING, **ending}, phase="investigating")

    after = unchanged(lambda record: with_agent_in_conversation(record, record["runs"][0], "next", LATER), record)

    moved_on = {**WORKING, "current_host_session_id": "next"}
    gives_way = end in {None, "ended_with_host"}
    assert after == {**record, "runs": [moved_on if gives_way else {**WORKING, **ending}]}
    assert with_agent_in_conversation(after, after["runs"][0], "next", LATER) is after
    if gives_way:
        assert with_agent_in_conversation(after, after["runs"][0], "h", LATER)["runs"] == [WORKING]


def test_news_from_before_the_end_of_a_conversation_takes_nothing_back() -> None:
    record = record_with({**WORKING, "ended_at": WHEN, "end": "ended_with_host"}, phase="investigating")

    assert with_agent_in_conversation(record, record["runs"][0], "next", START) is record


def test_a_failure_without_words_is_counted_all_the_same() -> None:
    record = record_with(WORKING, phase="planning")
    assert with_end(record, record["runs"][0], "failed", {}, LATER) == {
        **record,
        "last_updated": WHEN,
        "error_count": 1,
        "last_error": {"message": "it failed", "timestamp": WHEN},
        "runs": [{**WORKING, "ended_at": WHEN, "end": "failed"}],
    }


# What a stop leaves behind: by the marker of the last line, and by the phase last reported in the run.
STOPS = [
    pytest.param(None, None, "completed", id="no word: done"),
    pytest.param(None, "approval", "approval", id="no word, approval reported: paused"),
    pytest.param(None, "planning", "completed", id="no word, another phase reported: done"),
    pytest.param(None, "completed", "completed", id="no word, done reported: done"),
    pytest.param("approval", None, "approval", id="says approval"),
    pytest.param("planning", "approval", "planning", id="says planning, whatever was reported"),
    pytest.param("investigating", None, "investigating", id="says investigating"),
    pytest.param("failed", None, "failed", id="says failed"),
    pytest.param("failed", "approval", "failed", id="says failed, whatever was reported"),
]


@pytest.mark.parametrize(("marked", "before", "phase"), STOPS)
@pytest.mark.parametrize("one", OPEN)
@pytest.mark.parametrize(
    "told",
    [{}, {"last_message": ""}, {"last_message": "All done.", "transcript_path": "t.jsonl"}],
    ids=["nothing told", "empty message", "message and transcript"],
)
def test_a_stop_ends_the_run_and_pauses_or_ends_the_session(
    marked: str | None, before: str | None, phase: str, one: str, told: Run
) -> None:
    run = WORKING if before is None else {**WORKING, "reported": before}
    record = record_with(run, phase=one, resume_ready=one in RESUMABLE)
    closed = {**run, **told, "ended_at": WHEN, "end": "stopped"}
    if marked is not None:
        closed |= {"reported": marked, "detail": SAID_SO}
    everything: Run = {**told, **marker_fields(marked)}
    assert unchanged(lambda record: with_end(record, record["runs"][0], "stopped", everything, LATER), record) == {
        **record,
        "last_updated": WHEN,
        **in_its_phase(one, phase),
        "runs": [closed],
    }


def test_a_pause_in_the_phase_the_session_stands_in_keeps_a_resume_switched_off_by_hand() -> None:
    record = record_with(WORKING, phase="approval", resume_ready=False)
    assert with_end(record, record["runs"][0], "stopped", marker_fields("approval"), LATER) == {
        **record,
        "last_updated": WHEN,
        "runs": [{**WORKING, "ended_at": WHEN, "end": "stopped", "reported": "approval", "detail": SAID_SO}],
    }


@pytest.mark.parametrize(
    ("marked", "told"),
    [(None, {}), ("approval", {"reported": "approval", "detail": SAID_SO})],
    ids=["no marker", "a marker"],
)
def test_a_marker_is_a_report_and_says_so(marked: str | None, told: Run) -> None:
    assert marker_fields(marked) == told


# A failure told by others first, then by the agent itself.
FAILED = {**WORKING, "ended_at": THEN, "end": "failed", "detail": "theirs"}
THEIRS = {"message": "theirs", "timestamp": THEN}


@pytest.mark.parametrize("phase", ["planning", "executing"])
def test_the_agents_own_words_for_its_failure_replace_those_of_others_and_count_once(phase: str) -> None:
    record = record_with(FAILED, phase=phase, error_count=1, last_error=THEIRS)
    assert unchanged(lambda record: with_failure_detail(record, record["runs"][0], "mine"), record) == {
        **record,
        "last_error": {"message": "mine", "timestamp": THEN},
        "runs": [{**FAILED, "detail": "mine"}],
    }


@pytest.mark.parametrize(
    ("phase", "last"),
    [
        pytest.param("planning", None, id="no error is known"),
        pytest.param("planning", {"message": "another", "timestamp": WHEN}, id="another error came since"),
        *(pytest.param(phase, THEIRS, id=f"the session is {phase}") for phase in OUTCOMES),
    ],
)
def test_the_agents_own_words_stay_with_the_run_when_the_last_error_is_not_that_failure_or_the_session_final(
    phase: str, last: dict[str, str] | None
) -> None:
    record = record_with(FAILED, phase=phase, error_count=2, last_error=last)
    assert unchanged(lambda record: with_failure_detail(record, record["runs"][0], "mine"), record) == {
        **record,
        "runs": [{**FAILED, "detail": "mine"}],
    }


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(FAILED | {"detail": "mine"}, id="the same words again"),
        pytest.param(WORKING, id="it has not ended"),
        *(pytest.param({**FAILED, "end": end}, id=end) for end in ENDS if end != "failed"),
    ],
)
def test_there_are_no_words_to_replace_for_a_run_that_did_not_fail(run: dict[str, Any]) -> None:
    record = record_with(run, error_count=1, last_error=THEIRS)
    assert with_failure_detail(record, record["runs"][0], "mine") is record


SILENT = {**WORKING, "end": "stopped", "detail": "stopped without a word"}


@pytest.mark.parametrize("more", [[], [{"run": 2, "claimed_at": THEN}]], ids=["the latest", "an earlier one"])
@pytest.mark.parametrize("phase", PHASES)
def test_a_stop_without_a_word_leaves_the_run_open(phase: str, more: list[dict[str, Any]]) -> None:
    record = record_with(WORKING, *more, phase=phase)
    silent = unchanged(lambda record: with_silent_stop(record, record["runs"][0], LATER), record)
    assert silent == {**record, "runs": [SILENT, *more]}
    assert (is_silent_stop(silent["runs"][0]), has_ended(silent["runs"][0])) == (True, False)


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(SILENT, id="it did before"),
        *(pytest.param({**WORKING, "ended_at": THEN, "end": end}, id=end) for end in ENDS[:3]),
    ],
)
def test_a_stop_without_a_word_tells_nothing_after_evidence_as_strong(run: dict[str, Any]) -> None:
    record = record_with(run)
    assert with_silent_stop(record, record["runs"][0], LATER) is record


@pytest.mark.parametrize("phase", OPEN)
@pytest.mark.parametrize("end", ENDS)
def test_whatever_becomes_of_the_delegation_decides_on_a_stop_without_a_word(end: str, phase: str) -> None:
    silent, at_work = record_with(SILENT, phase=phase), record_with(WORKING, phase=phase)
    assert is_stronger_evidence(silent["runs"][0], end)
    told: Run = {"detail": "how it was"}
    assert with_end(silent, silent["runs"][0], end, told, LATER) == with_end(
        at_work, at_work["runs"][0], end, told, LATER
    )


@pytest.mark.parametrize("run", [WORKING, *({**WORKING, "ended_at": THEN, "end": end} for end in ENDS)])
def test_only_an_open_run_that_stopped_is_silent(run: dict[str, Any]) -> None:
    assert not is_silent_stop(run)  # type: ignore[arg-type]  # a run as documents have it


@pytest.mark.parametrize("phase", OPEN)
@pytest.mark.parametrize("end", ["returned", "ended_with_host", "lost"])
def test_a_stop_without_a_word_after_weaker_evidence_leaves_what_it_leaves_before_it(end: str, phase: str) -> None:
    """``returned`` is what becomes of the delegation: with a stop, in whatever order, that is ``stopped``."""
    record = record_with(WORKING, phase=phase)
    weaker_first = with_end(record, record["runs"][0], end, {}, LATER)
    silent_last = with_silent_stop(weaker_first, weaker_first["runs"][0], LATER)
    silent_first = with_silent_stop(record, record["runs"][0], LATER)
    weaker_last = with_end(silent_first, silent_first["runs"][0], "stopped" if end == "returned" else end, {}, LATER)
    assert silent_last["phase"] == weaker_last["phase"]
    assert silent_last["runs"][0]["end"] == weaker_last["runs"][0]["end"]


RETURNED = {**WORKING, "ended_at": THEN, "end": "returned"}


@pytest.mark.parametrize("phase", [phase for phase in OPEN if phase not in RESUMABLE])
def test_work_that_returned_without_a_stop_outside_a_resumable_phase_failed(phase: str) -> None:
    record = record_with(RETURNED, phase=phase)
    assert unchanged(lambda record: with_settled_return(record, record["runs"][0], LATER), record) == {
        **record,
        "last_updated": WHEN,
        **in_its_phase(phase, "failed"),
        "runs": [{**RETURNED, "detail": "returned, and no stop came"}],
    }


@pytest.mark.parametrize(("end", "after"), [("killed", "abandoned"), ("failed", "failed"), ("stopped", "completed")])
@pytest.mark.parametrize("phase", [phase for phase in OPEN if phase not in RESUMABLE])
def test_a_failure_concluded_from_the_missing_stop_gives_way_to_a_report(phase: str, end: str, after: str) -> None:
    record = record_with(RETURNED, phase=phase)
    settled = with_settled_return(record, record["runs"][0], LATER)

    told = unchanged(lambda record: with_end(record, record["runs"][0], end, {"last_message": "x"}, LATEST), settled)

    before = record_with(WORKING, phase=phase)
    at_once = with_end(before, before["runs"][0], end, {"last_message": "x"}, LATEST)
    assert {**told, "history": at_once["history"]} == at_once
    assert (told["phase"], told["history"][-2]) == (after, moved("failed", phase, AT_LAST))


def test_a_failure_that_somebody_has_confirmed_gives_way_to_no_report() -> None:
    record = record_with(RETURNED, phase="executing")
    settled = with_settled_return(record, record["runs"][0], LATER)
    confirmed = with_stated_end(settled, None, LATEST)

    told = with_end(confirmed, confirmed["runs"][0], "stopped", {}, LATEST)

    assert told == {**confirmed, "runs": [{**RETURNED, "end": "stopped"}]}


@pytest.mark.parametrize("interruption", ["stopped_by_user", "usage_limit", "overloaded", "connection_lost"])
def test_that_the_main_agent_gave_up_the_work_is_stronger_than_an_interruption_in_any_order(interruption: str) -> None:
    record = record_with(WORKING, phase="investigating")
    kinds: list[Run] = [{"interruption": interruption, "detail": "how"}, {"detail": "how"}]
    for order in permutations(kinds):
        told = record
        for fields in order:
            told = with_end(told, told["runs"][0], "killed", fields, LATER)
        assert (told["phase"], told["runs"]) == (
            "abandoned",
            [{**WORKING, "ended_at": WHEN, "end": "killed", "detail": "how"}],
        )


@pytest.mark.parametrize(
    ("run", "more", "phase"),
    [
        *(pytest.param(RETURNED, [], phase, id=f"it rests in {phase}") for phase in sorted(RESUMABLE)),
        *(pytest.param(RETURNED, [], phase, id=f"it is {phase}") for phase in OUTCOMES),
        pytest.param(RETURNED, [{"run": 2, "claimed_at": THEN}], "executing", id="a later run began"),
        pytest.param(WORKING, [], "executing", id="it is at work"),
        pytest.param(SILENT, [], "executing", id="it stopped without a word"),
        *(
            pytest.param({**RETURNED, "end": end}, [], "executing", id=f"it ended otherwise: {end}")
            for end in ENDS
            if end != "returned"
        ),
    ],
)
def test_nothing_else_is_settled(run: dict[str, Any], more: list[dict[str, Any]], phase: str) -> None:
    record = record_with(run, *more, phase=phase)
    assert with_settled_return(record, record["runs"][0], LATER) is record


def stopped(record: Record, marked: str | None, told: Run, now: datetime) -> Record:
    return with_end(record, record["runs"][0], "stopped", {**told, **marker_fields(marked)}, now)


def after_stop(marked: str | None, before: str | None = None) -> Record:
    run = WORKING if before is None else {**WORKING, "reported": before}
    return stopped(record_with(run, phase="executing"), marked, {"last_message": "first"}, LATER)


@pytest.mark.parametrize("marked", [None, "approval", "failed"], ids=["completed", "paused", "failed"])
def test_an_end_made_by_a_stop_is_provisional(marked: str | None) -> None:
    record = after_stop(marked)
    assert may_be_rejudged(record, record["runs"][0])


def _finalized_by_hand() -> Record:
    by_hand = with_phase(record_with(WORKING, phase="executing"), "completed", START)
    return stopped(by_hand, None, {}, LATER)


def _paused_then_finalized_by_hand() -> Record:
    return with_phase(after_stop("approval"), "abandoned", LATEST)


@pytest.mark.parametrize(
    ("record", "number"),
    [
        pytest.param(_finalized_by_hand(), 1, id="somebody finalized it before the stop"),
        pytest.param(_paused_then_finalized_by_hand(), 1, id="somebody finalized it after the pause"),
        pytest.param(with_claimed_run(after_stop("approval"), KEYS, LATEST), 1, id="a new run began"),
        pytest.param(
            with_claimed_run(after_stop("approval"), KEYS, LATEST), 2, id="the new run itself has not stopped"
        ),
        pytest.param(record_with(WORKING), 1, id="the run has not ended"),
        pytest.param(record_with(SILENT), 1, id="the run stopped without a word"),
        *(
            pytest.param(
                record_with({**WORKING, "ended_at": THEN, "end": end}), 1, id=f"the run ended otherwise: {end}"
            )
            for end in ENDS
            if end != "stopped"
        ),
    ],
)
def test_an_end_made_otherwise_or_followed_by_more_is_not_provisional(record: Record, number: int) -> None:
    assert not may_be_rejudged(record, record["runs"][number - 1])


def test_an_outcome_that_another_end_made_is_not_provisional_though_the_end_was_corrected() -> None:
    working = record_with(WORKING, phase="executing")
    abandoned = with_end(working, working["runs"][0], "lost", {}, LATER)
    corrected = stopped(abandoned, None, {}, LATEST)
    assert (corrected["phase"], corrected["runs"][0]["end"]) == ("abandoned", "stopped")
    assert not may_be_rejudged(corrected, corrected["runs"][0])


RESTOPS = [
    pytest.param(None, None, None, "completed", None, id="done, still done"),
    pytest.param(None, None, "approval", "approval", "approval", id="done, now paused"),
    pytest.param(None, None, "failed", "failed", "failed", id="done, now failed"),
    pytest.param("approval", None, None, "completed", None, id="paused by its word, now without it: done"),
    pytest.param("approval", None, "planning", "planning", "planning", id="paused, now in another phase"),
    pytest.param("approval", None, "approval", "approval", "approval", id="paused, still paused"),
    pytest.param("failed", None, None, "completed", None, id="failed by its word, now without it: done"),
    pytest.param("failed", None, "approval", "approval", "approval", id="failed, now paused"),
    pytest.param(None, "approval", None, "approval", "approval", id="paused by command: that still counts"),
    pytest.param(None, "approval", "failed", "failed", "failed", id="paused by command, now failed"),
    pytest.param(None, "planning", None, "completed", "planning", id="another phase by command: done, still done"),
]


@pytest.mark.parametrize(("first", "before", "again", "phase", "kept"), RESTOPS)
def test_a_second_stop_judges_the_same_run_afresh(
    first: str | None, before: str | None, again: str | None, phase: str, kept: str | None
) -> None:
    record = after_stop(first, before)
    one = record["phase"]
    rest = {key: value for key, value in record.items() if key not in {"finalized_at", "duration_seconds"}}
    run = {**WORKING, "ended_at": AT_LAST, "end": "stopped", "last_message": "second"}
    if kept is not None:
        run["reported"] = kept
    if again is not None:
        run["detail"] = SAID_SO
    ending = {"finalized_at": AT_LAST, "duration_seconds": 300.0} if phase in OUTCOMES else {}
    told: Run = {"last_message": "second", **marker_fields(again)}
    assert unchanged(lambda record: with_later_stop(record, record["runs"][0], told, LATEST), record) == {
        **rest,
        "last_updated": AT_LAST,
        "phase": phase,
        "resume_ready": phase in RESUMABLE,
        "history": [*record["history"], *([moved(one, phase, AT_LAST)] if phase != one else [])],
        "runs": [run],
        **ending,
    }


def test_a_second_stop_that_tells_nothing_keeps_what_the_first_told() -> None:
    record = after_stop(None)
    assert with_later_stop(record, record["runs"][0], {}, LATEST)["runs"] == [
        {**WORKING, "ended_at": AT_LAST, "end": "stopped", "last_message": "first"}
    ]


def test_a_judgement_stays_provisional_however_often_it_is_made() -> None:
    record = after_stop(None)
    for marked in ("approval", None, "failed", "planning", None):
        record = with_later_stop(record, record["runs"][0], marker_fields(marked), LATEST)
        assert may_be_rejudged(record, record["runs"][0])
    assert [step["to_phase"] for step in record["history"]] == [
        "completed",
        "approval",
        "completed",
        "failed",
        "planning",
        "completed",
    ]


def timeless(value: Any) -> Any:
    """``value`` without its times and the revision."""
    if isinstance(value, list):
        return [timeless(item) for item in value]
    if not isinstance(value, dict):
        return value
    times = {"last_updated", "timestamp", "ended_at", "finalized_at", "duration_seconds", "revision"}
    return {key: timeless(item) for key, item in value.items() if key not in times}


def evidence_of(end: str) -> Evidence:
    return lambda record, run, now: with_end(record, run, end, {"detail": end}, now)


def notified(record: Record, run: Run, now: datetime) -> Record:
    """It returned, and no stop will come any more."""
    record = with_end(record, run, "returned", {"detail": "returned"}, now)
    return with_settled_return(record, record["runs"][run["run"] - 1], now)


EVIDENCE: dict[str, Evidence] = {
    **{end: evidence_of(end) for end in ENDS},
    "notified": notified,
    "said approval": lambda record, run, now: with_end(record, run, "stopped", marker_fields("approval"), now),
    "silent": with_silent_stop,
    "its own words": lambda record, run, _now: with_failure_detail(record, run, "mine"),
}


def told_in(order: list[str], record: Record, *, times: int = 1) -> Record:
    """``record`` after all the evidence, each piece so many ``times`` in a row, a second apart."""
    now = LATER
    for word in order:
        for _ in range(times):
            now += timedelta(seconds=1)
            record = EVIDENCE[word](record, record["runs"][0], now)
    return record


_ORDERS = st.lists(st.sampled_from(sorted(EVIDENCE)), max_size=8)
_MORE = st.sampled_from([[], [{"run": 2, "claimed_at": THEN}]])


@given(_ORDERS, st.sampled_from(OPEN), _MORE)
def test_evidence_told_twice_is_evidence_told_once(order: list[str], phase: str, more: list[dict[str, Any]]) -> None:
    record = record_with(WORKING, *more, phase=phase)
    assert timeless(told_in(order, record, times=2)) == timeless(told_in(order, record))


@given(_ORDERS, st.sampled_from(PHASES), _MORE)
def test_the_strongest_of_all_ends_is_the_end_of_the_run_in_whatever_order_they_come(
    order: list[str], phase: str, more: list[dict[str, Any]]
) -> None:
    ends = [word for word in order if word in ENDS]
    [run, *_] = told_in(ends, record_with(WORKING, *more, phase=phase))["runs"]
    strongest = next((end for end in TABLE if end in ends), None)
    assert (run.get("end"), run.get("detail"), has_ended(run)) == (strongest, strongest, strongest is not None)


@given(_ORDERS, _ORDERS, st.sampled_from(OPEN))
def test_once_the_session_is_final_no_evidence_changes_more_than_its_run(
    order: list[str], late: list[str], phase: str
) -> None:
    """But for what was concluded from the end of a conversation, or from a stop that did not come."""
    record = told_in(order, record_with(WORKING, phase=phase))
    if record["phase"] in OUTCOMES and {"ended_with_host", "notified"}.isdisjoint((*order, *late)):
        assert {**told_in(late, record), "runs": record["runs"]} == record


# These leave a session that waits for approval open and where it is.
_PATIENT = ["failed", "said approval", "returned", "ended_with_host", "lost"]


@given(st.permutations([*_PATIENT, *_PATIENT]).flatmap(lambda order: st.tuples(st.just(order), st.permutations(order))))
def test_while_the_session_is_open_and_still_the_same_evidence_in_any_order_gives_the_same_record(
    orders: tuple[list[str], list[str]],
) -> None:
    record = record_with({**WORKING, "reported": "approval"}, phase="approval")
    one, other = (timeless(told_in(order, record)) for order in orders)
    assert one == other
    assert (one["runs"][0]["end"], one["error_count"]) == ("failed", 1)


_MARKS = st.sampled_from([None, "investigating", "planning", "approval", "failed"])
_WORDS = st.one_of(st.none(), st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5))
_NEWS = st.sampled_from(["delegate", "begin", "report", "again", *EVIDENCE])


@given(st.lists(st.tuples(_NEWS, _MARKS, _WORDS), max_size=12))
def test_whatever_hosts_tell_the_record_can_be_written_and_read_back(
    news: list[tuple[str, str | None, str | None]],
) -> None:
    record, now = record_with(phase="initializing"), START
    for number, (kind, marked, words) in enumerate(news):
        now += timedelta(seconds=1)
        record = with_next_revision(_after_news(record, kind, marked, words, now))
        assert decode(encode(record), "agent-1") == record
        assert [run["run"] for run in record.get("runs", [])] == list(range(1, len(record.get("runs", [])) + 1))
        assert record["revision"] == number + 2
        assert ("finalized_at" in record) == (record["phase"] in OUTCOMES)


def _after_news(record: Record, kind: str, marked: str | None, words: str | None, now: datetime) -> Record:
    if kind == "delegate":
        return with_claimed_run(record, {"host_session_id": "h", "tool_use_id": format_time(now)}, now)
    if kind == "report":
        taken = record["phase"] not in OUTCOMES and marked != "failed"
        return with_reported_phase(with_phase(record, marked, now), marked) if taken and marked else record
    for run in record.get("runs", [])[-1:]:
        if kind == "begin":
            return with_start(record, run, {"host_agent_id": f"agent {run['run']}"}, now)
        if kind in EVIDENCE:
            return EVIDENCE[kind](record, run, now)
        if may_be_rejudged(record, run):
            return with_later_stop(record, run, {"last_message": words or "", **marker_fields(marked)}, now)
    return record


@pytest.mark.parametrize("phase", ["approval", "planning", "failed", None])
def test_a_denial_is_over_when_the_agent_that_was_told_of_it_stops(phase: str | None) -> None:
    denial = {"message": "too dear", "timestamp": THEN}
    record = record_with(WORKING, phase="approval", resume_ready=True, denial=denial)
    without = record_with(WORKING, phase="approval", resume_ready=True)
    for judge in (with_end, _restopped):
        assert judge(record, record["runs"][0], "stopped", marker_fields(phase), LATER) == judge(
            without, without["runs"][0], "stopped", marker_fields(phase), LATER
        )


def _restopped(record: Record, run: Run, _end: str, told: Run, now: datetime) -> Record:
    return with_later_stop(record, run, told, now)


@pytest.mark.parametrize("end", ["failed", "returned", "ended_with_host", "lost", "denied"])
def test_a_denial_outlasts_every_other_end_of_a_run(end: str) -> None:
    denial = {"message": "too dear", "timestamp": THEN}
    first = {**WORKING, "ended_at": THEN, "end": "stopped"}
    record = record_with(first, {**WORKING, "run": 2}, phase="approval", resume_ready=True, denial=denial)
    assert with_end(record, record["runs"][1], end, {}, LATER).get("denial") == denial
