"""The ends of runs: which evidence counts, what it does to the session, and which ends are provisional."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from itertools import permutations, product
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.concluded_ends import with_agent_in_conversation
from gaia_sessions.session.phases import OPEN, OUTCOMES, PHASES, RESUMABLE
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
from gaia_sessions.session.runs import has_ended, with_claimed_run, with_reported_phase, with_start
from gaia_sessions.session.schema import ENDS
from gaia_sessions.session.updates import with_next_revision, with_phase, with_stated_end
from tests.records import START, WHEN, moved, record_with, unchanged
from tests.session.test_runs import KEYS, LATER, THEN, WORKING
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from gaia_sessions.session.schema import Record, Run

    Evidence = Callable[[Record, Run, datetime], Record]

LATEST = START + timedelta(minutes=5)
AT_LAST = "2026-01-08T18:05:00.000000Z"

SAID_SO = "said so in its last line"
UNSTOPPED = "returned, and no stop came"

FINAL: dict[str, Any] = {"finalized_at": THEN, "duration_seconds": 0.0, "summary": "by hand"}


def in_its_phase(one: str, other: str, at: str = WHEN) -> dict[str, Any]:
    """The keys of a record that change in a move from one phase to another."""
    if one == other:
        return {}
    ending = (
        {"finalized_at": at, "duration_seconds": (parse_time(at) - START).total_seconds()} if other in OUTCOMES else {}
    )
    return {"phase": other, "resume_ready": other in RESUMABLE, "history": [moved(one, other, at)], **ending}


class Row(NamedTuple):
    """How strong an end is, and the phase it leads to from a resumable phase, and from another open phase.

    None: the phase stays. new: the phase it leads to from ``initializing``, if that is another one.
    """

    strength: int
    resumable: str | None
    other: str | None
    is_activity: bool = True
    is_error: bool = False
    new: str | None = None

    def leaves(self, phase: str) -> str:
        if phase == "initializing" and self.new:
            return self.new
        return (self.resumable if phase in RESUMABLE else self.other) or phase


TABLE = {
    "killed": Row(7, "abandoned", "abandoned"),
    "failed": Row(6, None, "failed", is_error=True),
    "stopped": Row(5, "completed", "completed"),
    "returned": Row(4, None, None),
    "ended_with_host": Row(3, None, "abandoned", is_activity=False, new="investigating"),
    "lost": Row(2, None, "abandoned", is_activity=False, new="investigating"),
    "denied": Row(1, None, "abandoned", is_activity=False),
}


def after_end(record: Any, end: str, fields: Run, now: datetime) -> Any:
    """The record after ``end`` of its first run, by the table."""
    run, *more = record["runs"]
    if "end" in run and TABLE[end].strength <= TABLE[run["end"]].strength:
        return record
    row, at, is_final = TABLE[end], format_time(now), record["phase"] in OUTCOMES
    if "end" in run and is_final and (more or not is_concluded(record, run)):
        corrected = {**known_of(run), "ended_at": run["ended_at"], "end": end}
        return {**record, "runs": [corrected | ({"detail": fields["detail"]} if fields else {}), *more]}
    if "end" in run and is_final:
        record = taken_back(record, at)
        if end == "returned":  # no stop will follow
            row, fields = row._replace(other="failed"), {"detail": UNSTOPPED, **fields}
    record = {**record, "runs": [{**known_of(run), **fields, "ended_at": at, "end": end}, *more]}
    phase = record["phase"]
    if more or phase in OUTCOMES:
        return record
    if row.is_activity:
        record["last_updated"] = at
    if row.is_error:
        record |= {"error_count": 1, "last_error": {"message": fields.get("detail", "it failed"), "timestamp": at}}
    moves = in_its_phase(phase, row.leaves(phase), at)
    return {**record, **moves, "history": [*record["history"], *moves.get("history", [])]}


def is_concluded(record: Any, run: dict[str, Any]) -> bool:
    """Whether the outcome was concluded from the end of the conversation, or from a missing stop."""
    is_of_run = [move["timestamp"] for move in record["history"][-1:]] == [run["ended_at"]]
    return is_of_run and (run["end"] == "ended_with_host" or run.get("detail") == UNSTOPPED)


def taken_back(record: Any, at: str) -> Any:
    """``record`` without its outcome, in the phase before it."""
    [*_, last] = record["history"]
    moves = in_its_phase(record["phase"], last["from_phase"], at)
    rest = {key: value for key, value in record.items() if key not in {"finalized_at", "duration_seconds"}}
    return {**rest, **moves, "history": [*record["history"], *moves["history"]]}


def known_of(run: Run) -> dict[str, Any]:
    """The keys of a run without those of its end."""
    return {key: value for key, value in run.items() if key not in {"end", "ended_at", "detail"}}


def check_ends(told: Sequence[tuple[str, Run]], phase: str, more: list[dict[str, Any]]) -> None:
    """Each end in ``told`` does what the table says, and the strongest stays."""
    record = record_with(WORKING, *more, phase=phase, **(FINAL if phase in OUTCOMES else {}))
    for number, (end, fields) in enumerate(told):
        now = LATER + timedelta(seconds=number)
        after = unchanged(partial(with_first_end, end, fields, now), record)
        expected = after_end(record, end, fields, now)
        assert is_stronger_evidence(record["runs"][0], end) == (after is not record) == (expected is not record)
        assert after == expected
        record = after
    strongest = max((end for end, _ in told), key=lambda end: TABLE[end].strength, default=None)
    assert (record["runs"][0].get("end"), has_ended(record["runs"][0])) == (strongest, strongest is not None)


def with_first_end(end: str, fields: Run, now: datetime, record: Record) -> Record:
    return with_end(record, record["runs"][0], end, fields, now)


WORDS: tuple[Run, Run] = ({}, {"detail": "how it was", "last_message": "bye"})
PIECES = [*product(ENDS, WORDS)]
LATER_RUN = {"run": 2, "claimed_at": THEN}
_MORE = st.sampled_from([[], [LATER_RUN]])


@table("phase", PHASES)
@table("more", [[], [LATER_RUN]])
def test_the_stronger_of_two_ends_counts_in_either_order(phase: str, more: list[dict[str, Any]]) -> None:
    for told in product(PIECES, repeat=2):
        check_ends(told, phase, more)


@given(st.lists(st.sampled_from(PIECES), max_size=10), st.sampled_from(PHASES), _MORE)
def test_the_strongest_of_many_ends_counts_in_any_order_and_with_any_repeats(
    told: list[tuple[str, Run]], phase: str, more: list[dict[str, Any]]
) -> None:
    check_ends(told, phase, more)


@table("phase", OPEN)
@table("end", [end for end in ENDS if end != "denied"])
def test_a_resumed_run_ends_like_the_first(end: str, phase: str) -> None:
    earlier = {"run": 1, "ended_at": THEN, "end": "stopped"}
    first = record_with(WORKING, phase=phase)
    again = record_with(earlier, {**WORKING, "run": 2}, phase=phase)
    alone = with_end(first, first["runs"][0], end, {}, LATER)
    runs = [earlier, {**alone["runs"][0], "run": 2}]
    assert with_end(again, again["runs"][1], end, {}, LATER) == {**alone, "runs": runs}


@table("phase", OPEN)
def test_a_denied_resume_leaves_the_session_as_it_was(phase: str) -> None:
    claim = {**KEYS, "run": 2, "claimed_at": THEN}
    record = record_with({**WORKING, "ended_at": THEN, "end": "stopped"}, claim, phase=phase)
    denied = unchanged(lambda record: with_end(record, record["runs"][1], "denied", {"detail": "no"}, LATER), record)
    assert denied == {
        **record,
        "runs": [record["runs"][0], {**claim, "ended_at": WHEN, "end": "denied", "detail": "no"}],
    }


@table(
    "told", [{"last_message": "bye", "transcript_path": "t.jsonl"}, {"reported": "failed"}, {"reported": "approval"}]
)
@table(("phase", "more"), [("completed", []), *((phase, [LATER_RUN]) for phase in OPEN)])
@table("end", ENDS)
def test_a_run_that_does_not_decide_the_session_records_all_fields_of_its_end(
    told: Run, phase: str, more: list[dict[str, Any]], end: str
) -> None:
    record = record_with(WORKING, *more, phase=phase, **(FINAL if phase in OUTCOMES else {}))
    assert with_end(record, record["runs"][0], end, told, LATER) == {
        **record,
        "runs": [{**WORKING, **told, "ended_at": WHEN, "end": end}, *more],
    }


@table("end", [*ENDS, None])
def test_an_event_in_another_conversation_takes_back_only_the_end_ended_with_host(end: str | None) -> None:
    ending = {} if end is None else {"ended_at": THEN, "end": end}
    record = record_with({**WORKING, **ending}, phase="investigating")

    after = unchanged(lambda record: with_agent_in_conversation(record, record["runs"][0], "next", LATER), record)

    moved_on = {**WORKING, "current_host_session_id": "next"}
    gives_way = end in {None, "ended_with_host"}
    assert after == {**record, "runs": [moved_on if gives_way else {**WORKING, **ending}]}
    assert with_agent_in_conversation(after, after["runs"][0], "next", LATER) is after
    if gives_way:
        assert with_agent_in_conversation(after, after["runs"][0], "h", LATER)["runs"] == [WORKING]


def test_an_event_from_before_the_end_of_a_conversation_takes_nothing_back() -> None:
    record = record_with({**WORKING, "ended_at": WHEN, "end": "ended_with_host"}, phase="investigating")

    assert with_agent_in_conversation(record, record["runs"][0], "next", START) is record


# The phase after a stop: by the marker in the last line, and by the phase last reported in the run.
STOPS = [
    (None, None, "completed"),  # no marker: completed
    (None, "approval", "approval"),  # no marker, approval reported: paused
    (None, "planning", "completed"),  # no marker, another phase reported: completed
    (None, "completed", "completed"),  # no marker, completed reported: completed
    ("approval", None, "approval"),  # marker of approval
    ("planning", "approval", "planning"),  # marker of planning, whatever was reported
    ("investigating", None, "investigating"),  # marker of investigating
    ("failed", None, "failed"),  # marker of failed
    ("failed", "approval", "failed"),  # marker of failed, whatever was reported
]


@table(("marked", "before", "phase"), STOPS)
@table("one", OPEN)
@table("told", [{}, {"last_message": ""}, {"last_message": "All done.", "transcript_path": "t.jsonl"}])
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


def test_a_pause_in_the_current_phase_leaves_resuming_switched_off_by_hand() -> None:
    record = record_with(WORKING, phase="approval", resume_ready=False)
    assert with_end(record, record["runs"][0], "stopped", marker_fields("approval"), LATER) == {
        **record,
        "last_updated": WHEN,
        "runs": [{**WORKING, "ended_at": WHEN, "end": "stopped", "reported": "approval", "detail": SAID_SO}],
    }


@table(("marked", "told"), [(None, {}), ("approval", {"reported": "approval", "detail": SAID_SO})])
def test_a_marker_sets_the_reported_phase_and_the_detail(marked: str | None, told: Run) -> None:
    assert marker_fields(marked) == told


# A failure that others report first, and then the agent itself.
FAILED = {**WORKING, "ended_at": THEN, "end": "failed", "detail": "theirs"}
THEIRS = {"message": "theirs", "timestamp": THEN}


@table("phase", ["planning", "executing"])
def test_the_agents_own_failure_message_replaces_an_earlier_one_and_adds_no_error(phase: str) -> None:
    record = record_with(FAILED, phase=phase, error_count=1, last_error=THEIRS)
    assert unchanged(lambda record: with_failure_detail(record, record["runs"][0], "mine"), record) == {
        **record,
        "last_error": {"message": "mine", "timestamp": THEN},
        "runs": [{**FAILED, "detail": "mine"}],
    }


@table(
    ("phase", "last"),
    [
        ("planning", None),  # no error is known
        ("planning", {"message": "another", "timestamp": WHEN}),  # another error followed
        *((phase, THEIRS) for phase in OUTCOMES),
    ],
)
def test_the_agents_message_changes_only_the_run_in_a_final_session_or_after_another_error(
    phase: str, last: dict[str, str] | None
) -> None:
    record = record_with(FAILED, phase=phase, error_count=2, last_error=last)
    assert unchanged(lambda record: with_failure_detail(record, record["runs"][0], "mine"), record) == {
        **record,
        "runs": [{**FAILED, "detail": "mine"}],
    }


@table(
    "run",
    [
        FAILED | {"detail": "mine"},  # the same message again
        WORKING,  # the run has not ended
        *({**FAILED, "end": end} for end in ENDS if end != "failed"),
    ],
)
def test_a_failure_message_changes_nothing_without_a_failure_or_a_new_text(run: dict[str, Any]) -> None:
    record = record_with(run, error_count=1, last_error=THEIRS)
    assert with_failure_detail(record, record["runs"][0], "mine") is record


SILENT = {**WORKING, "end": "stopped", "detail": "stopped without a word"}


@table("more", [[], [LATER_RUN]])
@table("phase", PHASES)
def test_a_silent_stop_leaves_the_run_open(phase: str, more: list[dict[str, Any]]) -> None:
    record = record_with(WORKING, *more, phase=phase)
    silent = unchanged(lambda record: with_silent_stop(record, record["runs"][0], LATER), record)
    assert silent == {**record, "runs": [SILENT, *more]}
    assert (is_silent_stop(silent["runs"][0]), has_ended(silent["runs"][0])) == (True, False)


@table(
    "run",
    [
        SILENT,  # a silent stop before
        *({**WORKING, "ended_at": THEN, "end": end} for end in ENDS[:3]),
    ],
)
def test_a_silent_stop_changes_nothing_after_equal_or_stronger_evidence(run: dict[str, Any]) -> None:
    record = record_with(run)
    assert with_silent_stop(record, record["runs"][0], LATER) is record


@table("phase", OPEN)
@table("end", ENDS)
def test_after_a_silent_stop_any_end_counts_as_it_does_for_a_run_at_work(end: str, phase: str) -> None:
    silent, at_work = record_with(SILENT, phase=phase), record_with(WORKING, phase=phase)
    assert is_stronger_evidence(silent["runs"][0], end)
    told: Run = {"detail": "how it was"}
    assert with_end(silent, silent["runs"][0], end, told, LATER) == with_end(
        at_work, at_work["runs"][0], end, told, LATER
    )


@table("run", [WORKING, *({**WORKING, "ended_at": THEN, "end": end} for end in ENDS)])
def test_a_run_at_work_or_with_an_end_time_is_not_a_silent_stop(run: dict[str, Any]) -> None:
    assert not is_silent_stop(run)  # type: ignore[arg-type]  # a run as documents have it


@table("phase", OPEN)
@table("end", ["returned", "ended_with_host", "lost"])
def test_a_silent_stop_has_the_same_effect_before_and_after_weaker_evidence(end: str, phase: str) -> None:
    """A delegation that returned counts as ``stopped`` if there is a stop, in either order."""
    record = record_with(WORKING, phase=phase)
    weaker_first = with_end(record, record["runs"][0], end, {}, LATER)
    silent_last = with_silent_stop(weaker_first, weaker_first["runs"][0], LATER)
    silent_first = with_silent_stop(record, record["runs"][0], LATER)
    weaker_last = with_end(silent_first, silent_first["runs"][0], "stopped" if end == "returned" else end, {}, LATER)
    assert silent_last["phase"] == weaker_last["phase"]
    assert silent_last["runs"][0]["end"] == weaker_last["runs"][0]["end"]


RETURNED = {**WORKING, "ended_at": THEN, "end": "returned"}


@table("phase", [phase for phase in OPEN if phase not in RESUMABLE])
def test_a_return_without_a_stop_fails_a_session_outside_a_resumable_phase(phase: str) -> None:
    record = record_with(RETURNED, phase=phase)
    assert unchanged(lambda record: with_settled_return(record, record["runs"][0], LATER), record) == {
        **record,
        "last_updated": WHEN,
        **in_its_phase(phase, "failed"),
        "runs": [{**RETURNED, "detail": UNSTOPPED}],
    }


@table(("end", "after"), [("killed", "abandoned"), ("failed", "failed"), ("stopped", "completed")])
@table("phase", [phase for phase in OPEN if phase not in RESUMABLE])
def test_a_reported_end_replaces_a_failure_concluded_from_a_missing_stop(phase: str, end: str, after: str) -> None:
    record = record_with(RETURNED, phase=phase)
    settled = with_settled_return(record, record["runs"][0], LATER)

    told = unchanged(lambda record: with_end(record, record["runs"][0], end, {"last_message": "x"}, LATEST), settled)

    before = record_with(WORKING, phase=phase)
    at_once = with_end(before, before["runs"][0], end, {"last_message": "x"}, LATEST)
    assert {**told, "history": at_once["history"]} == at_once
    assert (told["phase"], told["history"][-2]) == (after, moved("failed", phase, AT_LAST))


def test_a_reported_end_does_not_replace_a_confirmed_failure() -> None:
    record = record_with(RETURNED, phase="executing")
    settled = with_settled_return(record, record["runs"][0], LATER)
    confirmed = with_stated_end(settled, None, LATEST)

    told = with_end(confirmed, confirmed["runs"][0], "stopped", {}, LATEST)

    assert told == {**confirmed, "runs": [{**RETURNED, "end": "stopped"}]}


@table("interruption", ["stopped_by_user", "usage_limit", "overloaded", "connection_lost"])
def test_a_kill_by_the_main_agent_outweighs_an_interruption_in_any_order(interruption: str) -> None:
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


@table(
    ("run", "more", "phase"),
    [
        *((RETURNED, [], phase) for phase in sorted(RESUMABLE)),
        *((RETURNED, [], phase) for phase in OUTCOMES),
        (RETURNED, [LATER_RUN], "executing"),  # a later run began
        (WORKING, [], "executing"),  # the run is at work
        (SILENT, [], "executing"),  # the run had a silent stop
        *(({**RETURNED, "end": end}, [], "executing") for end in ENDS if end != "returned"),
    ],
)
def test_no_other_run_is_settled_as_a_failure(run: dict[str, Any], more: list[dict[str, Any]], phase: str) -> None:
    record = record_with(run, *more, phase=phase)
    assert with_settled_return(record, record["runs"][0], LATER) is record


def stopped(record: Record, marked: str | None, told: Run, now: datetime) -> Record:
    return with_end(record, record["runs"][0], "stopped", {**told, **marker_fields(marked)}, now)


def after_stop(marked: str | None, before: str | None = None) -> Record:
    run = WORKING if before is None else {**WORKING, "reported": before}
    return stopped(record_with(run, phase="executing"), marked, {"last_message": "first"}, LATER)


@table("marked", [None, "approval", "failed"])
def test_an_end_made_by_a_stop_is_provisional(marked: str | None) -> None:
    record = after_stop(marked)
    assert may_be_rejudged(record, record["runs"][0])


def _finalized_by_hand() -> Record:
    by_hand = with_phase(record_with(WORKING, phase="executing"), "completed", START)
    return stopped(by_hand, None, {}, LATER)


def _paused_then_finalized_by_hand() -> Record:
    return with_phase(after_stop("approval"), "abandoned", LATEST)


@table(
    ("record", "number"),
    [
        (_finalized_by_hand(), 1),  # finalized by hand before the stop
        (_paused_then_finalized_by_hand(), 1),  # finalized by hand after the pause
        (with_claimed_run(after_stop("approval"), KEYS, LATEST), 1),  # a new run began
        (with_claimed_run(after_stop("approval"), KEYS, LATEST), 2),  # the new run itself has not stopped
        (record_with(WORKING), 1),  # the run has not ended
        (record_with(SILENT), 1),  # the run had a silent stop
        *((record_with({**WORKING, "ended_at": THEN, "end": end}), 1) for end in ENDS if end != "stopped"),
    ],
)
def test_an_end_without_a_stop_or_with_a_later_change_is_not_provisional(record: Record, number: int) -> None:
    assert not may_be_rejudged(record, record["runs"][number - 1])


def test_the_outcome_of_a_lost_run_is_not_provisional_after_a_stop_corrects_the_end() -> None:
    working = record_with(WORKING, phase="executing")
    abandoned = with_end(working, working["runs"][0], "lost", {}, LATER)
    corrected = stopped(abandoned, None, {}, LATEST)
    assert (corrected["phase"], corrected["runs"][0]["end"]) == ("abandoned", "stopped")
    assert not may_be_rejudged(corrected, corrected["runs"][0])


RESTOPS = [
    (None, None, None, "completed", None),  # completed, still completed
    (None, None, "approval", "approval", "approval"),  # completed, now paused
    (None, None, "failed", "failed", "failed"),  # completed, now failed
    ("approval", None, None, "completed", None),  # paused by a marker, now without one: completed
    ("approval", None, "planning", "planning", "planning"),  # paused, now in another phase
    ("approval", None, "approval", "approval", "approval"),  # paused, still paused
    ("failed", None, None, "completed", None),  # failed by a marker, now without one: completed
    ("failed", None, "approval", "approval", "approval"),  # failed, now paused
    (None, "approval", None, "approval", "approval"),  # paused by command, which still counts
    (None, "approval", "failed", "failed", "failed"),  # paused by command, now failed
    (None, "planning", None, "completed", "planning"),  # another phase by command: completed, still completed
]


@table(("first", "before", "again", "phase", "kept"), RESTOPS)
def test_a_second_stop_judges_the_same_run_again(
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


def test_a_second_stop_without_a_message_keeps_the_message_of_the_first() -> None:
    record = after_stop(None)
    assert with_later_stop(record, record["runs"][0], {}, LATEST)["runs"] == [
        {**WORKING, "ended_at": AT_LAST, "end": "stopped", "last_message": "first"}
    ]


def test_an_end_by_a_stop_stays_provisional_however_many_stops_follow() -> None:
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
    """The delegation returned, and no stop will follow."""
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
    """``record`` after all the evidence, each piece given ``times`` in a row, a second apart."""
    now = LATER
    for word in order:
        for _ in range(times):
            now += timedelta(seconds=1)
            record = EVIDENCE[word](record, record["runs"][0], now)
    return record


_ORDERS = st.lists(st.sampled_from(sorted(EVIDENCE)), max_size=8)


@given(_ORDERS, st.sampled_from(OPEN), _MORE)
def test_repeated_evidence_has_the_same_effect_as_evidence_given_once(
    order: list[str], phase: str, more: list[dict[str, Any]]
) -> None:
    record = record_with(WORKING, *more, phase=phase)
    assert timeless(told_in(order, record, times=2)) == timeless(told_in(order, record))


@given(_ORDERS, _ORDERS, st.sampled_from(OPEN))
def test_in_a_final_session_evidence_changes_only_its_run(order: list[str], late: list[str], phase: str) -> None:
    """Except for outcomes concluded from the end of a conversation or from a missing stop."""
    record = told_in(order, record_with(WORKING, phase=phase))
    if record["phase"] in OUTCOMES and {"ended_with_host", "notified"}.isdisjoint((*order, *late)):
        assert {**told_in(late, record), "runs": record["runs"]} == record


# These leave a session in approval open and in its phase.
_PATIENT = ["failed", "said approval", "returned", "ended_with_host", "lost"]


@given(st.permutations([*_PATIENT, *_PATIENT]).flatmap(lambda order: st.tuples(st.just(order), st.permutations(order))))
def test_while_a_session_waits_for_approval_the_order_of_evidence_does_not_matter(
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
def test_a_record_can_be_written_and_read_back_after_any_events(
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


@table("phase", ["approval", "planning", "failed", None])
def test_a_denial_is_dropped_when_the_agent_stops(phase: str | None) -> None:
    denial = {"message": "too dear", "timestamp": THEN}
    record = record_with(WORKING, phase="approval", resume_ready=True, denial=denial)
    without = record_with(WORKING, phase="approval", resume_ready=True)
    for judge in (with_end, _restopped):
        assert judge(record, record["runs"][0], "stopped", marker_fields(phase), LATER) == judge(
            without, without["runs"][0], "stopped", marker_fields(phase), LATER
        )


def _restopped(record: Record, run: Run, _end: str, told: Run, now: datetime) -> Record:
    return with_later_stop(record, run, told, now)


@table("end", ["failed", "returned", "ended_with_host", "lost", "denied"])
def test_a_denial_stays_in_the_record_after_a_failure_or_evidence_weaker_than_a_stop(end: str) -> None:
    denial = {"message": "too dear", "timestamp": THEN}
    first = {**WORKING, "ended_at": THEN, "end": "stopped"}
    record = record_with(first, {**WORKING, "run": 2}, phase="approval", resume_ready=True, denial=denial)
    assert with_end(record, record["runs"][1], end, {}, LATER).get("denial") == denial
