"""Output for people: words, wrapped lines, plain text, short IDs, tables."""

from __future__ import annotations

import io
import re
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gaia_sessions.api.listing import summarize
from gaia_sessions.api.showing import View
from gaia_sessions.api.standing import Standing
from gaia_sessions.api.sums import total_of
from gaia_sessions.cli.render import columns, decisions, one_session, plain, reports, tables, tree_table, trees
from gaia_sessions.cli.render.short_ids import shorten_ids
from gaia_sessions.cli.render.words import (
    Copyable,
    Prose,
    ago,
    duration,
    exactly,
    local_time,
    resume_text,
    safe,
    seen_text,
    state_text,
)
from gaia_sessions.cli.render.wrapped import wrap_line
from gaia_sessions.errors import plural
from gaia_sessions.session.budget import usage_of
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.policy import ADVICE, RESUMABLE_REASON, Limits, decide, decide_without_record
from gaia_sessions.session.record import new_record
from gaia_sessions.session.state import state_of
from tests.records import LIMITS
from tests.table import table

NOW = datetime(2026, 1, 8, 18, 5, 30, 123456, tzinfo=UTC)
MOMENT = format_time(NOW)
LOCAL = local_time(MOMENT)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]")

FILLERS = "\u115f\u1160\u3164\uffa0"
"""Letters in Unicode, but invisible."""


def record(**changed: Any) -> Any:
    return {**new_record("agent-1", "Explore", "general", {}, NOW), **changed}


def decided(of: Any, now: datetime) -> Any:
    return decide("agent-1", of, now, LIMITS, dead_runs=frozenset(), cancellation=None, written_at=None)


def stands(of: Any, now: datetime) -> Standing:
    decision = decided(of, now)
    return Standing(decision, None, state_of(of, decision, None), ())


def viewed(of: Any, now: datetime) -> View:
    return View(of, stands(of, now), usage_of(of, now, None), None, [], None, None)


def summarized(of: Any, now: datetime) -> Any:
    return summarize(of, stands(of, now))


# Words


@given(st.text(st.characters()), st.integers(1, 300))
def test_a_safe_text_is_one_short_line_without_control_characters(text: str, longest: int) -> None:
    shown = safe(text, longest)
    assert (STEERING.search(shown), len(shown) <= longest, shown == shown.strip()) == (None, True, True)


@given(st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters=FILLERS), max_size=200))
def test_a_harmless_text_is_shown_as_it_is(text: str) -> None:
    assert safe(text) == text


@table(
    ("text", "longest", "shown"),
    [
        ("\x1b[31mred\x1b[0m", 200, "[31mred [0m"),
        ("two\r\nlines\tand  blanks ", 200, "two lines and blanks"),
        ("abc\u202ecba\u2066x", 200, "abccbax"),
        ("abc\U000e0041\u200bx", 4, "abcx"),
        ("c1\x9b31m\x85", 200, "c1 31m"),
        ("x" * 201, 200, "x" * 199 + "…"),
        ("x" * 200, 200, "x" * 200),
        ("abc", 1, "…"),
        ("", 5, ""),
        ({"a": "\x1b"}, 200, "{'a': '\\x1b'}"),
    ],
)
def test_control_characters_become_blanks_and_long_texts_are_cut(text: object, longest: int, shown: str) -> None:
    assert safe(text, longest) == shown


@table(("number", "text"), [(0, "0 errors"), (1, "1 error"), (2, "2 errors"), (201, "201 errors")])
def test_plural_uses_the_singular_only_for_one(number: int, text: str) -> None:
    assert plural(number, "error") == text


@table(
    ("seconds", "text"),
    [
        (0, "0 seconds"),
        (0.99, "0 seconds"),
        (1, "1 second"),
        (59.9, "59 seconds"),
        (60, "1 minute"),
        (3599, "59 minutes"),
        (3600, "1 hour"),
        (86399, "23 hours"),
        (86400, "1 day"),
        (1e6, "11 days"),
    ],
)
def test_a_duration_is_in_the_largest_unit_that_fits_rounded_down(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@table(
    ("seconds", "text"),
    [
        (0.9, "0 seconds"),
        (61, "1 minute 1 second"),
        (1800, "30 minutes"),
        (3599, "59 minutes 59 seconds"),
        (3601, "1 hour"),
        (5700, "1 hour 35 minutes"),
        (90000, "1 day 1 hour"),
    ],
)
def test_a_span_is_in_the_two_largest_units_that_it_has(seconds: float, text: str) -> None:
    assert duration(seconds, 2) == text


@table(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1.5, "1.5s"),
        (60, "1m"),
        (90.1, "1m 30.1s"),
        (5400.0, "1h 30m"),
        (5430, "1h 30m 30s"),
        (86400, "1d"),
        (90061, "1d 1h 1m 1s"),
    ],
)
def test_a_limit_is_not_rounded(seconds: float, text: str) -> None:
    assert exactly(seconds) == text


@table(
    ("before", "text"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=0.9), "just now"),
        (timedelta(seconds=1), "1 second ago"),
        (timedelta(minutes=3), "3 minutes ago"),
        (timedelta(days=400), "400 days ago"),
        (timedelta(hours=-2), "in 2 hours"),
    ],
)
def test_a_time_is_shown_relative_to_now(before: timedelta, text: str) -> None:
    assert ago(format_time(NOW - before), NOW) == text
    assert ago((NOW - before).astimezone(timezone(timedelta(hours=5))).isoformat(), NOW) == text


@table(
    ("before", "text"),
    [
        (timedelta(seconds=59), "now"),
        (timedelta(seconds=-59), "now"),
        (timedelta(minutes=59, seconds=59), "59m"),
        (timedelta(hours=23), "23h"),
        (timedelta(days=400), "400d"),
        (timedelta(hours=-2), "in 2h"),
    ],
)
def test_a_table_shows_times_in_their_shortest_form(before: timedelta, text: str) -> None:
    assert seen_text(format_time(NOW - before), NOW) == text


@table(
    ("left", "text"),
    [
        (timedelta(minutes=29, seconds=59.99), "resumable for 30 minutes"),
        (timedelta(minutes=30), "resumable for 30 minutes"),
        (timedelta(minutes=12, seconds=20), "resumable for 12 minutes"),
        (timedelta(seconds=59), "resumable for 59 seconds"),
        (timedelta(milliseconds=1), "resumable for 0 seconds"),
        (timedelta(minutes=80), "resumable for 1 hour"),
        (timedelta(days=3), "resumable for 3 days"),
    ],
)
def test_a_resumable_session_shows_the_time_that_is_left(left: timedelta, text: str) -> None:
    resume: Any = {"should_resume": True, "reason": "session_resumable", "until": format_time(NOW + left)}
    assert resume_text(resume, "approval", NOW) == text


@table(
    ("changed", "text"),
    [
        ({"phase": "approval", "resume_ready": True, "runs": [{"run": 1, "started_at": MOMENT}]}, "working"),
        ({"phase": "executing", "runs": [{"run": 1, "started_at": MOMENT}]}, "working"),
        ({"phase": "executing"}, "not resumable"),
        ({"phase": "approval", "resume_ready": True, "runs": [{"run": 1, "claimed_at": MOMENT}]}, "starting"),
        ({"phase": "approval"}, "resuming is off"),
        ({"phase": "approval", "resume_ready": True, "error_count": 3}, "too many errors"),
        ({"phase": "completed"}, ""),
        ({"phase": "completed", "runs": [{"run": 1, "started_at": MOMENT}]}, ""),
    ],
)
def test_a_session_that_is_not_resumable_shows_the_reason(changed: dict[str, Any], text: str) -> None:
    line = summarized(record(**changed), NOW)
    assert resume_text(line["resume"], line["phase"], NOW, running=line["running"]) == text


@table(("later", "text"), [(timedelta(minutes=30), "expired"), (-timedelta(minutes=6), "clock skew")])
def test_activity_too_long_ago_or_in_the_future_makes_a_session_not_resumable(later: timedelta, text: str) -> None:
    line = summarized(record(phase="approval", resume_ready=True), NOW + later)
    assert resume_text(line["resume"], "approval", NOW + later) == text


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the time zone of the machine."""

    def move(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


@table(
    ("place", "text", "shown"),
    [
        ("UTC0", MOMENT, "2026-01-08 18:05:30+00:00"),
        ("EAST-02:00", MOMENT, "2026-01-08 20:05:30+02:00"),
        ("INDIA-05:30", "2026-01-08T23:05:30+01:00", "2026-01-09 03:35:30+05:30"),
        ("WEST+08", "2026-01-08T18:05", "2026-01-08 10:05:00-08:00"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-07-01T10:00:00Z", "2026-07-01 12:00:00+02:00"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-12-01T10:00:00Z", "2026-12-01 11:00:00+01:00"),
        ("WEST+08", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("EAST-02:00", "soon", "soon"),
    ],
)
def test_a_time_is_shown_in_the_zone_of_the_machine_with_its_offset(
    zone: Callable[[str], None], place: str, text: str, shown: str
) -> None:
    zone(place)
    assert local_time(text) == shown


def test_all_times_of_a_session_and_its_events_are_shown_in_local_time(zone: Callable[[str], None]) -> None:
    zone("EAST-02:00")
    whole = record(
        history=[{"from_phase": "initializing", "to_phase": "approval", "timestamp": MOMENT}],
        runs=[{"run": 1, "claimed_at": MOMENT}, {"run": 2, "started_at": MOMENT, "ended_at": MOMENT, "end": "lost"}],
        last_error={"message": "no", "timestamp": MOMENT},
    )
    text = "\n".join(one_session.session_lines(viewed(whole, NOW), NOW))
    assert re.findall(r"\d\d:\d\d[^, \n]*", text) == ["20:05"] * 5
    event = plain.event_line({"at": MOMENT, "kind": "start", "phase": "approval"})
    assert event.startswith("2026-01-08 20:05:30+02:00 start")


# Lines for a terminal


@table(
    ("line", "width", "shown"),
    [
        ("it fits", 7, "it fits"),
        ("no: one two three", 12, "no: one two\n    three"),
        ("  one two three four", 12, "  one two\n    three\n    four"),
        ("FIX   modes   one two three four", 42, "FIX   modes   one two three four"),
        (
            "FIX   modes   one two three four five six seven",
            42,
            "FIX   modes   one two three four five six\n" + " " * 14 + "seven",
        ),
        ("Hint: keep them there: export A=b c", 30, "Hint: keep them there:\n  export A=b c"),
        ("Hint: type gaia-sessions list --x", 20, "Hint: type\n  gaia-sessions list --x"),
        ("gaia-sessions list --limit 3", 20, "gaia-sessions list --limit 3"),
        ("see `gaia-sessions list` first", 26, "see `gaia-sessions list`\n  first"),
        ("it is there; add --root '/a b'", 22, "it is there; add\n  --root '/a b'"),
        (
            "FIX   modes   see /a/path/that/is/quite/long/x",
            42,
            "FIX   modes   see\n              /a/path/that/is/quite/long/x",
        ),
        ("``: one two `three four`", 14, "``: one two\n  `three four`"),
        (Copyable("find / -name x"), 10, "find / -name x"),
        (Copyable("/bin/a b c", before="  starts: "), 12, "  starts:\n    /bin/a b c"),
    ],
)
def test_a_line_is_wrapped_between_words_but_not_inside_text_to_copy(line: str, width: int, shown: str) -> None:
    assert wrap_line(line, width) == shown


@given(st.lists(st.text("abc-:;,'/`", min_size=1, max_size=30), max_size=30).map(" ".join), st.integers(40, 100))
def test_a_wrapped_line_has_all_its_words_and_fits(line: str, width: int) -> None:
    lines = wrap_line(line, width).split("\n")
    assert " ".join(lines).split() == line.split()
    breakable = [re.sub("`[^`]{0,300}`|'/[^']*'", "", shown.strip()) for shown in lines if len(shown) > width]
    assert [rest for rest in breakable if " " in rest] == []


@table(
    ("text", "indent", "shown"),
    [
        ("one  two three", 2, "one  two\n  three"),
        ("  - one two three", 4, "  - one\n    two\n    three"),
        ("see: rm -rf 123456789 12345678901 x", 2, "see: rm\n  -rf\n 123456789\n12345678901\n  x"),
        ("abcdefghijkl", 0, "abcdefghijkl"),
        ("`¡ 23456` 1", 0, "`¡ 23456`\n1"),
        ("a [gaia-sessions: resume a] b", 2, "a\n[gaia-sessions: resume a]\n  b"),
        ("is it 談話室漢字。", 2, "is it 談話\n  室漢字。"),
        ("談話室漢字。", 0, "談話室漢\n字。"),
        ("👩‍💻👍🏽👩‍💻👍🏽👩‍💻👍🏽", 0, "👩‍💻👍🏽👩‍💻👍🏽👩‍💻\n👍🏽"),
        ("한글입니다 한글", 2, "한글입니다\n  한글"),
        ("한글입니다한", 2, "한글입니다\n  한"),
    ],
)
def test_free_text_is_wrapped_between_words_or_beside_wide_characters(text: str, indent: int, shown: str) -> None:
    assert wrap_line(Prose(text, indent), 10) == shown


@given(
    st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=300), st.integers(0, 60), st.integers(40, 90)
)
def test_wrapped_free_text_is_complete_and_as_narrow_as_possible(text: str, indent: int, width: int) -> None:
    lines = wrap_line(Prose(text, indent), width).split("\n")
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert [
        line for line in lines if cell_len(line) > width and len(re.sub("`[^`]{0,300}`", "`", line).split()) > 1
    ] == []
    if text.isascii():
        assert " ".join(lines).split() == text.split()


# Plain text


@table(
    ("changed", "text"),
    [
        ({}, "agent-1: phase initializing, revision 1, not resumable"),
        ({"phase": "approval", "resume_ready": True}, "agent-1: phase approval, revision 1, resumable for 30 minutes"),
        ({"error_count": 1}, "agent-1: phase initializing, revision 1, 1 error, not resumable"),
        ({"error_count": 2, "phase": "planning"}, "agent-1: phase planning, revision 1, 2 errors, resuming is off"),
        ({"phase": "completed"}, "agent-1: phase completed, revision 1"),
    ],
)
def test_update_line_shows_the_phase_revision_errors_and_resumability(changed: dict[str, Any], text: str) -> None:
    now_is = record(**changed)
    assert plain.update_line(now_is, decided(now_is, NOW), NOW) == text


IN_AN_HOUR = format_time(NOW + timedelta(hours=1))

FAILING: dict[str, dict[str, Any]] = {
    "cancelled": {},
    "phase_not_resumable": {"phase": "executing"},
    "running": {"runs": [{"run": 1, "started_at": MOMENT}]},
    "claimed": {"runs": [{"run": 1, "claimed_at": MOMENT}]},
    "not_approved": {},
    "not_ready": {"resume_ready": False},
    "clock_skew": {"last_updated": format_time(NOW + timedelta(hours=1))},
    "waiting_for_limit": {"paused_until": IN_AN_HOUR},
    "expired": {"last_updated": format_time(NOW - timedelta(minutes=95))},
    "too_many_errors": {"error_count": 3},
}
RESTING: dict[str, Any] = {"phase": "approval", "resume_ready": True}


@table("reason", [reason for reason in ADVICE if reason != RESUMABLE_REASON])
def test_each_reason_is_a_sentence_that_ends_with_its_code(reason: str) -> None:
    said = {
        "not_found": "no: there is no session agent-1",
        "corrupt": "no: agent-1 cannot be read: line 1 : not JSON",
        "cancelled": f"no: agent-1 was cancelled at {local_time(IN_AN_HOUR)}",
        "phase_not_resumable": "no: agent-1 is in executing, which is not resumable",
        "running": "no: agent-1 may still be at work: run 1 has not ended",
        "claimed": "no: agent-1 is just starting run 1",
        "not_approved": "no: agent-1 waits for approval, and only a person can approve",
        "not_ready": "no: resuming is off for agent-1",
        "clock_skew": "no: the last activity of agent-1 is 1 hour in the future; the limit is 5 minutes",
        "waiting_for_limit": f"no: agent-1 waits until its usage limit is reset at {local_time(IN_AN_HOUR)}",
        "expired": "no: agent-1 has been idle for 1 hour 35 minutes; the limit is 30 minutes",
        "too_many_errors": "no: agent-1 has had 3 errors; the limit is 3",
    }
    if reason in FAILING:
        cancelled: Any = {"at": IN_AN_HOUR} if reason == "cancelled" else None
        found = record(**(RESTING | FAILING[reason]))
        asks = Limits(LIMITS.idle, LIMITS.max_errors, LIMITS.quiet, explicit_approvals=reason == "not_approved")
        decision = decide("agent-1", found, NOW, asks, dead_runs=frozenset(), cancellation=cancelled, written_at=None)
    else:
        decision = decide_without_record("agent-1", "line 1\x1b: not JSON" if reason == "corrupt" else None)

    assert list(decisions.decision_lines(decision)) == [f"{said[reason]} ({reason})", f"  {decision['advice']}"]


def test_the_decision_on_an_ended_session_names_its_final_phase() -> None:
    ended = decide(
        "agent-1", record(phase="failed"), NOW, LIMITS, dead_runs=frozenset(), cancellation=None, written_at=None
    )
    assert list(decisions.decision_lines(ended)) == [
        "no: agent-1 has ended in phase failed (phase_not_resumable)",
        "  start new work: this session has ended",
    ]


def test_list_lines_show_ordinary_corrupt_and_newer_sessions_on_one_line_each() -> None:
    ordinary = summarized(record(agent_name="a\nb", phase="approval", resume_ready=True, error_count=1), NOW)
    corrupt: Any = {"agent_id": "bad", "status": "corrupt", "problem": "line 1\x1b: not JSON"}
    newer: Any = {key: ordinary[key] for key in ordinary if key != "state"} | {"status": "newer"}
    assert list(plain.list_lines([ordinary, corrupt, newer], NOW + timedelta(minutes=18))) == [
        "agent-1  a b  waiting  18 minutes ago  resumable for 12 minutes",
        "bad  -  corrupt  -  line 1 : not JSON",
        "agent-1  a b  newer  18 minutes ago  resumable for 12 minutes",
    ]


def test_the_cleanup_report_names_every_kind_of_result() -> None:
    report: Any = {
        "corrupt_too": False,
        "dry_run": False,
        "hours": 24.0,
        "keep_days": 7.0,
        "closed": [
            {"agent_id": "f", "run": 2, "verdict": "lost", "evidence": "no\nhost", "phase": "abandoned", "closed": True}
        ],
        "removed": ["a"],
        "recent": 2,
        "kept": [{"agent_id": "b", "reason": "resumable"}],
        "busy": ["c"],
        "corrupt": [{"agent_id": "d", "reason": "not\nJSON"}],
        "failed": [{"agent_id": "e", "reason": "permission denied"}],
        "swept": ["x.tmp"],
    }
    named = {
        "removed 1 session not updated for 1 day": ["a"],
        "closed 1 run that ended without a report": ["lost: f, run 2: no host; the session is abandoned"],
        "kept 2 sessions updated since then": [],
        "kept 1 session that can be resumed": ["b"],
        "kept 1 session that cannot be read": ["d: not JSON"],
        "skipped 1 session locked by another process": ["c"],
        "failed: the system refused access to 1 session": ["e: permission denied"],
        "swept 1 file that killed processes left behind": ["x.tmp"],
    }
    assert list(reports.cleanup_lines(report, is_verbose=False)) == list(named)
    verbose = [part for line, lines in named.items() for part in (line, *(f"  {one}" for one in lines))]
    assert list(reports.cleanup_lines(report, is_verbose=True)) == verbose
    report |= {"corrupt_too": False, "dry_run": True, "hours": 0.5}
    first, second, third, *_, last = reports.cleanup_lines(report, is_verbose=False)
    assert [first, second, third, last] == [
        "would remove 1 session not updated for 30 minutes",
        "would close 1 run that ended without a report",
        "would keep 2 sessions updated since then",
        "to see which, add --verbose",
    ]


ENDED: Any = {"started_at": format_time(NOW - timedelta(minutes=3)), "ended_at": MOMENT}
BEGAN = local_time(format_time(NOW - timedelta(minutes=3)))[:16]


@table(
    ("run", "row"),
    [
        ({}, "not started"),
        ({"claimed_at": MOMENT}, f"starting     {LOCAL[:16]}"),
        ({"started_at": MOMENT}, f"working      {LOCAL[:16]}  0s"),
        (ENDED | {"end": "stopped"}, f"ended        {BEGAN}  3m"),
        (ENDED | {"end": "failed", "consumed": {"output_tokens": 1234}}, f"error        {BEGAN}  3m        1,234"),
        (ENDED | {"end": "returned", "usage": {"output_tokens": 1}}, f"cut short    {BEGAN}  3m"),
        (ENDED | {"end": "killed"}, f"killed       {BEGAN}  3m"),
        (ENDED | {"end": "killed", "interruption": "overloaded"}, f"interrupted  {BEGAN}  3m"),
        ({"ended_at": MOMENT, "end": "lost"}, "crashed"),
        ({"ended_at": MOMENT, "end": "denied"}, "not started"),
    ],
)
def test_each_run_is_a_row_with_the_known_facts(run: Any, row: str) -> None:
    other = {"run": 1, **ENDED, "end": "killed", "interruption": "usage_limit", "detail": "no more"}
    whole = record(phase="executing", runs=[other, {"run": 2, **run}, {"run": 3, "started_at": MOMENT}])
    lines = list(one_session.session_lines(viewed(whole, NOW), NOW))
    heading = next(place for place, line in enumerate(lines) if line.startswith("run"))
    assert lines[heading + 1 : heading + 4] == [
        f"  1  interrupted  {BEGAN}  3m",
        "     stopped by a usage limit: no more",
        f"  2  {row}",
    ]


@table(
    ("runs", "why"),
    [
        ([{"end": "killed", "interruption": "interrupted", "detail": "interrupted"}], None),
        ([{"end": "killed", "interruption": "usage_limit", "detail": "resets at 2"}], "by a usage limit: resets at 2"),
        ([{"end": "failed", "detail": "API Error: 400"}], None),
        ([{"end": "ended_with_host"}], "stopped because its conversation was closed"),
        (
            [{"end": "lost", "detail": "there is no process 7", "host": "codex"}],
            "Codex crashed or was closed while the agent was at work",
        ),
        ([{"end": "denied", "detail": "denied by a rule"}], "denied by a rule"),
        (
            [{"end": "ended_with_host"}, {"end": "denied", "detail": "denied by a rule"}],
            "stopped because its conversation was closed",
        ),
    ],
)
def test_the_reason_why_work_stopped_is_shown_at_most_once(runs: list[Any], why: str | None) -> None:
    numbered = [{"run": number, **ENDED, **run} for number, run in enumerate(runs, 1)]
    failed = {"message": "API Error: 400", "timestamp": MOMENT}
    whole = record(phase="investigating", runs=numbered, last_error=failed)
    lines = list(one_session.session_lines(viewed(whole, NOW), NOW))
    said = [line for line in lines if line.startswith("why")]
    assert [line.endswith(why or "") for line in said] == [True] * bool(why)


@table("phase", ["completed", "failed", "abandoned"])
def test_an_open_run_of_an_ended_session_is_shown_as_not_reported(phase: str) -> None:
    whole = record(phase=phase, runs=[{"run": 1, "claimed_at": MOMENT}])
    assert f"  1  not reported  {LOCAL[:16]}" in list(one_session.session_lines(viewed(whole, NOW), NOW))


# Short IDs


@table(
    ("ids", "short"),
    [
        (["agent-20260108-180530-abc12345", "agent-20260108-180530-abc12346"], ["abc12345", "abc12346"]),
        (["agent-20260108-180530-abc12345", "agent-20260108-180531-abc12345"], ["0-abc12345", "1-abc12345"]),
        (["agent-20260108-180530-abc12345", "abc12345"], ["0-abc12345", "abc12345"]),
        (["T001", "my-job", "x"], ["T001", "my-job", "x"]),
        (["terraform-production"], ["terraform-pr"]),
        (["deploy-stage-eu-1", "deploy-stage-eu-2"], ["stage-eu-1", "stage-eu-2"]),
        (["deploy-staging", "deploy-staging-eu"], ["staging", "staging-eu"]),
        (["agent-of-my-own-making-abc12345"], ["agent-of-my-"]),
        (["aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaa"], ["aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaa"]),
    ],
)
def test_a_short_id_differs_from_all_other_ids(ids: list[str], short: list[str]) -> None:
    assert shorten_ids(ids) == short


@given(st.lists(st.from_regex(r"[ab]([ab-]{0,20}[ab])?|agent-20260108-18053[01]-[ab]{8}", fullmatch=True), unique=True))
def test_a_short_id_is_the_beginning_or_the_end_of_one_session_only(ids: list[str]) -> None:
    for agent_id, short in zip(ids, shorten_ids(ids), strict=True):
        others = [other for other in ids if other != agent_id]
        assert agent_id.startswith(short) or agent_id.endswith(short)
        meant = [other for other in others if other.startswith(short) or other.endswith(short)]
        assert short == agent_id or (meant == [] and len(short) >= 4)


# Widths


@table(
    ("text", "room", "shown"),
    [
        ("abc", 5, "abc  "),
        ("abcdef", 4, "abc…"),
        ("ab cdef", 4, "ab …"),
        ("한글입니다", 5, "한글…"),
        ("한글입니다", 6, "한글 …"),
        ("e\u0301te\u0301", 3, "e\u0301te\u0301"),
        ("e\u0301te\u0301s", 3, "e\u0301t…"),
        ("\U0001f469\U0001f4bb", 4, "\U0001f469\U0001f4bb"),
    ],
)
def test_a_text_is_cut_by_its_width_in_cells(text: str, room: int, shown: str) -> None:
    assert columns.cut(text, room) == shown


def test_an_id_that_does_not_fit_keeps_both_its_ends() -> None:
    assert [tables.cut_middle("deploy-production", room) for room in (17, 9, 2, 1)] == [
        "deploy-production",
        "depl…tion",
        "d…",
        "…",
    ]


@table(
    ("room", "shown"),
    [
        (24, {"id": 8, "state": 9, "purpose": 3}),
        (30, {"id": 8, "state": 9, "purpose": 9}),
        (40, {"id": 8, "state": 9, "left": 5, "purpose": 12}),
        (60, {"id": 12, "state": 14, "left": 5, "purpose": 17, "seen": 4}),
        (80, {"id": 12, "state": 14, "left": 5, "agent": 13, "purpose": 22, "seen": 4}),
        (120, {"id": 12, "state": 14, "left": 5, "agent": 20, "purpose": 55, "seen": 4}),
        (300, {"id": 12, "state": 14, "left": 5, "agent": 30, "purpose": 200, "seen": 4}),
    ],
)
def test_narrow_tables_drop_the_agent_column_before_the_purpose(room: int, shown: dict[str, int]) -> None:
    longest = {"id": 12, "state": 14, "left": 5, "agent": 30, "purpose": 200, "seen": 4}
    assert tables.fit_columns(longest, room) == shown


@given(
    st.tuples(
        *(st.integers(2, 36), st.integers(3, 60), st.integers(0, 10), st.integers(0, 6)),
        *(st.integers(0, 200), st.integers(0, 200), st.integers(1, 6)),
    ),
    st.integers(20, 200),
)
def test_the_purpose_is_in_every_table_and_no_table_is_too_wide(wanted: tuple[int, ...], room: int) -> None:
    longest = dict(zip(tables.COLUMNS, wanted, strict=True))
    widths = tables.fit_columns(longest, room)
    assert sum(widths.values()) + 2 * (len(widths) - 1) <= room
    assert all(0 < width <= longest[name] for name, width in widths.items())
    if room >= 70 or (room >= 60 and not longest["share"]):
        assert widths["purpose"] >= min(12, longest["purpose"]) if longest["purpose"] else "purpose" not in widths
        assert all(widths.get(name, 0) == longest[name] for name in ("share", "left", "seen"))
        assert ("agent" in widths) <= (room >= 70)


@table(
    ("levels", "shown"),
    [
        ([0], [""]),
        ([0, 1, 0], ["", "└─ ", ""]),
        ([0, 1, 2, 2, 1, 0, 1], ["", "├─ ", "│  ├─ ", "│  └─ ", "└─ ", "", "└─ "]),
        ([0, 1, 2, 1, 2], ["", "├─ ", "│  └─ ", "└─ ", "   └─ "]),
        ([0, 1, 2, 3, 4, 1], ["", "├─ ", "│  └─ ", "…    └─ ", "…    └─ ", "└─ "]),
    ],
)
def test_a_branch_is_drawn_as_long_as_a_sibling_follows(levels: list[int], shown: list[str]) -> None:
    assert trees.branches(levels, 2) == shown


@table(
    ("sums", "line"),
    [
        ({"states": {"working": 2}, "tokens": 1, "unreported": 0}, "2 sessions, 1 token: 2 working"),
        (
            {"states": {"completed": 1, "newer": 1, "crashed": 1, "waiting": 9}, "tokens": 1500, "unreported": 3},
            "12 sessions, 1,500 tokens (3 reported none): 9 waiting, 1 crashed, 1 completed, 1 newer",
        ),
        ({"states": {"new": 2}, "unreported": 2}, "2 sessions, no tokens reported: 2 new"),
    ],
)
def test_the_sums_of_a_tree_begin_with_states_that_need_a_person(sums: Any, line: str) -> None:
    assert trees.sums_line(sums | {"sessions": sum(sums["states"].values())}) == line


# Tables


def drawn(lines: Any, columns: int) -> list[str]:
    text = tables.session_table(lines, NOW, (), io.StringIO(), columns)
    assert text.endswith("\n")
    return text.splitlines()


def test_the_table_shows_the_same_as_the_plain_list() -> None:
    line = summarized(record(phase="approval", resume_ready=True, error_count=1, purpose="plan"), NOW)
    heading, row = drawn([line], 120)
    assert heading.split() == ["id", "state", "left", "agent", "purpose", "seen"]
    assert row.split() == ["agent-1", "waiting", "30m", "Explore", "plan", "now"]
    assert list(plain.list_lines([line], NOW)) == [
        "agent-1  Explore: plan  waiting  just now  resumable for 30 minutes"
    ]


names = st.text(st.characters(), max_size=60)


@given(
    st.lists(st.tuples(st.from_regex(r"[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?", fullmatch=True), names, names), min_size=1),
    st.integers(1, 200),
    st.lists(st.integers(0, 40)),
)
def test_every_session_is_one_line_that_no_terminal_wraps(
    rows: list[tuple[str, str, str]], columns: int, levels: list[int]
) -> None:
    lines: list[Any] = [
        summarized(record(agent_id=agent_id, agent_name=agent, purpose=purpose), NOW)
        for agent_id, agent, purpose in rows
    ]
    lines.append({"agent_id": "bad", "status": "corrupt", "problem": f"/r/bad/state.json: {rows[0][1]}"})
    lines.append({"agent_id": rows[0][1], "status": "gone", "problem": "", "selected": False})

    shown = drawn(lines, columns)
    assert len(shown) == len(lines) + 1
    assert [line for line in shown if cell_len(line) > columns] == []

    with_sums: list[Any] = [{**line, "sums": total_of(())} for line in lines]
    tree = list(zip([*levels, *[0] * len(lines)], with_sums, strict=False))
    shown = tree_table.tree_table(tree, (), io.StringIO(), columns).splitlines()
    assert len(shown) == len(lines) + 1
    assert [line for line in shown if cell_len(line) > columns] == []


stored = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)
"""Texts that a record can have."""


@given(stored, stored, stored, stored, stored, st.integers(40, 130))
def test_show_wraps_any_text_to_the_width_of_the_terminal(
    agent: str, purpose: str, message: str, error: str, name: str, columns: int
) -> None:
    whole = record(
        agent_name=agent,
        purpose=purpose * 9,
        metadata={name: message, f"{name}2": [error]},
        last_error={"message": error * 9, "timestamp": MOMENT},
        todos=[{"description": purpose * 9, "status": "in_progress"}],
        runs=[{"run": 1, "started_at": MOMENT, "detail": error, "last_message": message * 9}],
    )
    child: Any = summarized(record(agent_name=agent, purpose=purpose), NOW)
    view = viewed(whole, NOW)._replace(parent=child, children=[child])
    lines = "\n".join(wrap_line(line, columns) for line in one_session.session_lines(view, NOW, verbose=True))
    too_wide = [line for line in lines.split("\n") if cell_len(line) > columns]
    assert [line for line in too_wide if " " in re.sub("`[^`]{0,300}`", "", line.strip())] == []


@table(
    ("state", "phase", "text"),
    [
        ("starting", "initializing", "starting: cancelled"),  # a claimed run may still begin
        ("cancelled", "initializing", "cancelled"),
        ("completed", "completed", "completed"),  # it had ended before
    ],
)
def test_a_cancelled_session_says_so_beside_its_state(state: str, phase: str, text: str) -> None:
    assert state_text(state, phase, cancelled=True) == text
