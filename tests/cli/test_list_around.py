"""``list --around``: the sessions that worked in a span of time, each with its share of the span."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.session.clock import format_time
from gaia_sessions.system.processes import describe
from tests.records import moved
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Gaia

SIX = datetime(2026, 1, 8, 18, tzinfo=UTC)
FIRST = {"timestamp": "2026-01-08T18:00:00+00:00", "duration_seconds": 600.0}
SECOND = {"timestamp": "2026-01-08T19:05:00+01:00", "duration_seconds": 299.5}
"""Two episodes, as a program logs them: the second begins before the first ends."""
A_SPAN = "must be a time and a number of seconds, like ('2026-01-08T18:05:30', 90)"


def at(minute: float) -> str:
    return format_time(SIX + timedelta(minutes=minute))


def run(number: int, start: float, end: float, how: str = "stopped", **more: Any) -> dict[str, Any]:
    times = {"started_at": at(start), "ended_at": at(end)}
    return {"run": number, "host": "claude-code", "host_session_id": "s", "end": how, **times, **more}


@pytest.fixture
def episodes(put: Gaia, spoil: Gaia) -> None:
    """Sessions that worked in one, both or none of the episodes; one is corrupt, and one is of a later version."""
    done: dict[str, Any] = {"phase": "completed", "resume_ready": False, "created_at": at(-60), "last_updated": at(30)}
    put("first-alone", runs=[run(1, 1, 4)], **done)
    put("both", runs=[run(1, 2, 8)], agent_name="planner", **done)
    put("rested-meanwhile", runs=[run(1, -5, 1), run(2, 12, 20)], **done)
    put("second-alone", runs=[run(1, 9, 30)], **done, app="kb", user="u1")
    put("a-moment", runs=[run(1, 9.999, 20)], **done)
    put("begins-at-its-end", runs=[run(1, 10, 20)], **done)
    put("before", runs=[run(1, -9, 0)], **done)
    put("long-talk", runs=[run(5, 20, 30, "returned", turn=5)], runs_dropped=4, turns=5, **done)
    moves = [moved("initializing", "approval", at(3)), moved("approval", "completed", at(9))]
    put("by-hand", history=moves, **done | {"created_at": at(0), "finalized_at": at(9)})
    put("later", schema=2, runs=[run(1, 0, 1)], **done)
    spoil("torn")


def asked(episode: dict[str, Any]) -> list[str]:
    return ["--around", episode["timestamp"], "--duration", str(episode["duration_seconds"])]


def overlaps(lines: Any) -> dict[str, Any]:
    return {line["agent_id"]: tuple(line["overlap"].values()) for line in lines}


IN_FIRST = {
    "both": (360.0, 0.6),
    "by-hand": (180.0, 0.3),
    "first-alone": (180.0, 0.3),
    "later": (60.0, 0.1),
    "rested-meanwhile": (60.0, 0.1),
    "a-moment": (0.06, 0.0001),
    "long-talk": (0.0, 0.0, True),
}
IN_SECOND = {"both": (180.0, 180 / 299.5), "long-talk": (0.0, 0.0, True)}


@pytest.mark.usefixtures("episodes")
def test_a_session_that_worked_in_two_overlapping_episodes_is_listed_for_both(gaia: Gaia, root: str) -> None:
    for episode, found in [(FIRST, IN_FIRST), (SECOND, IN_SECOND)]:
        lines = gaia("list", "--json", *asked(episode)).json

        assert list(overlaps(lines).items()) == list(found.items())
        around: Any = (episode["timestamp"], episode["duration_seconds"])
        assert list(gaia_sessions.Sessions(root).list(around=around)) == lines
        assert list(gaia_sessions.list_sessions(around=around, root=root)) == lines
        assert gaia("list", "-q", *asked(episode)).lines == list(found)
        everything = {line["agent_id"]: line for line in gaia("list", "--json").json}
        without = [{key: line[key] for key in line if key != "overlap"} for line in lines]
        assert without == [everything[name] for name in found]


@pytest.mark.usefixtures("episodes")
@table(
    ("words", "found"),
    [
        (["--agent", "planner"], ["both"]),
        (["--app", "kb", "--duration", "11m"], ["second-alone"]),
        (["--limit", "2"], ["both", "by-hand"]),
        (["--limit", "0"], []),
        (["--state", "completed", "--grep", "PLAN"], ["both"]),
        (["--active-only"], []),
        (["--parent", "both"], []),
        (["--duration", "1m"], ["by-hand", "later", "rested-meanwhile", "long-talk"]),
        (["--duration", "0"], ["by-hand", "later", "rested-meanwhile", "long-talk"]),
        (["--around", at(10), "--duration", "0s"], ["a-moment", "begins-at-its-end", "long-talk"]),
        (["--around", at(2.5), "--duration", "30s", "--since", at(0)], ["both", "by-hand", "first-alone", "long-talk"]),
        (["--around", at(-100), "--duration", "1m"], []),
    ],
)
def test_list_around_combines_with_other_filters(gaia: Gaia, words: list[str], found: list[str]) -> None:
    lines = gaia("list", "--json", *asked(FIRST), *words)
    assert [line["agent_id"] for line in lines.json] == found


@pytest.mark.usefixtures("episodes")
def test_each_line_shows_the_share_of_the_span_and_the_time_worked(gaia: Gaia) -> None:
    code, out, err = gaia("list", *asked(FIRST), "--agent", "tester").all
    shown = [line.split("  ")[:4] for line in out.splitlines()]
    assert (code, shown, err) == (
        0,
        [
            ["by-hand", "tester: test", "completed", "30% 3m"],
            ["first-alone", "tester: test", "completed", "30% 3m"],
            ["later", "tester: test", "newer", "10% 1m"],
            ["rested-meanwhile", "tester: test", "completed", "10% 1m"],
            ["a-moment", "tester: test", "completed", "<1% 0s"],
            ["long-talk", "tester: test", "completed, 5 turns", "unknown"],
        ],
        "left out: 1 session of an app; --app kb has 1\n",
    )


@pytest.mark.usefixtures("episodes")
@table("columns", [20, 30, 40, 60, 80, 120])
def test_terminal_lines_fit_the_width_and_show_the_share_from_40_columns(terminal: Gaia, columns: int) -> None:
    lines = terminal("list", *asked(FIRST), "--agent", "tester", columns=columns, NO_COLOR="1", TERM="dumb").lines[:7]
    assert all(len(line) <= columns for line in lines)
    shares = ["share", "30% 3m", "30% 3m", "10% 1m", "10% 1m", "<1% 0s", "unknown"]
    assert [share in line for share, line in zip(shares, lines, strict=True)] == [columns >= 40] * 7


def test_an_80_column_terminal_shows_the_share_after_the_state(terminal: Gaia, put: Gaia, talks: Path) -> None:
    now, name = datetime.now(UTC), "agent-20260108-180530-0000000{}".format
    start = now - timedelta(minutes=60)
    transcript = talks / "t.jsonl"
    transcript.write_text("{}\n")
    written = (now - timedelta(minutes=20, seconds=30)).timestamp()
    os.utime(transcript, (written, written))

    def began(minute: float, **more: Any) -> dict[str, Any]:
        started_at = format_time(start + timedelta(minutes=minute))
        return {"run": 1, "host": "claude-code", "started_at": started_at, **more}

    long_ago = timedelta(hours=2)
    gone = {**(describe(os.getpid()) or {}), "pid": 2**22 + 1}
    rest: dict[str, Any] = {"purpose": "review the plan of the network in all regions", "agent_name": "reviewer"}
    put(name(1), runs=[began(-60)], phase="executing", **rest)
    put(name(2), runs=[began(30)], phase="executing", **rest)
    put(name(3), runs=[began(0, transcript_path=str(transcript))], idle=long_ago, phase="executing", **rest)
    put(name(4), runs=[began(0, host_process=gone)], idle=timedelta(minutes=12), **rest)
    put(name(5), runs=[began(59.95)], idle=long_ago, phase="executing", **rest)
    put(name(6), runs=[began(70)], phase="executing", **rest)  # its clock is ahead

    shown = terminal("list", "--around", format_time(start), "--duration", "1h", NO_COLOR="1", TERM="dumb").lines

    assert shown == [
        "id        state    share    left  agent     purpose                         seen",
        "00000001  working  100% 1h        reviewer  review the plan of the networ…  1m",
        "00000004  waiting  80% 48m  18m   reviewer  review the plan of the networ…  12m",
        "00000003  quiet    65% 39m        reviewer  review the plan of the networ…  20m",
        "00000002  working  50% 30m        reviewer  review the plan of the networ…  1m",
        "00000005  working  <1% 3s         reviewer  review the plan of the networ…  2h",
    ]


@table(
    ("words", "code", "problem", "hint"),
    [
        (
            ["--around", "18:05"],
            "usage",
            "--around needs --duration",
            "add the length of the span, for example --duration 5m",
        ),
        (
            ["--duration", "90"],
            "usage",
            "--duration needs --around",
            "add the beginning of the span, for example --around 18:05",
        ),
        (
            ["--around", "soon", "--duration", "90"],
            "bad_argument",
            "--around 'soon' is not valid",
            "must be a time like 2h, 18:05, yesterday, 'last week' or 2026-01-08",
        ),
        (
            ["--around", "18:05", "--duration", "-1"],
            "usage",
            "--duration '-1' is not a length of time",
            "give, for example, 90s, 15m, 1h30m or 2d, or a number of seconds",
        ),
        (
            ["--around", "18:05", "--duration", "9999999w"],
            "usage",
            "the span ends after the year 9999",
            "use a shorter --duration",
        ),
    ],
)
def test_an_incomplete_or_invalid_span_is_refused_with_a_hint(
    gaia: Gaia, words: list[str], code: str, problem: str, hint: str
) -> None:
    ended = gaia("list", "--json", *words)
    assert (ended.code, ended.error["code"]) == (2, code)
    assert gaia("list", *words).refusal == (2, problem, hint)


@pytest.mark.usefixtures("in_berlin")
@table(
    "start, said",
    [
        ("2026-01-08T18:05", "from 2026-01-08 18:05:00+01:00 to 2026-01-08 18:06:30+01:00"),
        ("2126-07-08T18:05", "from 2126-07-08 18:05:00+02:00 to 2126-07-08 18:06:30+02:00, which is in the future"),
    ],
)
def test_list_around_without_a_match_prints_the_local_times_of_the_span(
    gaia: Gaia, root: str, start: str, said: str
) -> None:
    assert gaia("list", "--around", start, "--duration", "90").answer == [
        f"No session worked {said}",
        f"No sessions found: {root} does not exist",
    ]


def test_tree_refuses_around_and_duration(gaia: Gaia) -> None:
    assert gaia("tree", "--around", "18:05", "--duration", "5m").code == 2


@table(
    "around",
    [
        *["2h", ("2h",), ("2h", "90"), ("2h", -1), ("2h", True), ("2h", None), ("2h", float("nan")), ("2h", 1e300)],
        *[("2h", 1, 2), {"start": "2h"}, 5, [], b"ab", ("9999-12-31T23:00:00Z", 4000)],
    ],
)
def test_python_refuses_an_invalid_span_when_list_or_tree_is_called(around: Any, root: str) -> None:
    for ask in (gaia_sessions.Sessions(root).list, gaia_sessions.Sessions(root).tree):
        with pytest.raises(gaia_sessions.errors.BadArgument, match=r"^around .+ is not valid") as refused:
            ask(around=around)
        assert refused.value.hint == A_SPAN


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
@table("start", ["2026-01-08T19:00:00", "2026-01-08 18:00Z", "2026-01-08T10:00:00-08:00", "2026-01-08T19:00:00.000000"])
def test_a_span_begins_at_local_time_unless_the_time_has_an_offset(gaia: Gaia, put: Gaia, start: str) -> None:
    put("one", created_at=at(0), last_updated=at(0), runs=[run(1, 0, 1)])
    found = gaia("list", "--json", "--around", start, "--duration", "2m").json
    assert overlaps(found) == {"one": (60.0, 0.5)}


def test_python_tree_and_usage_by_agent_count_only_sessions_in_the_span(put: Gaia, root: str) -> None:
    put("one", created_at=at(0), last_updated=at(0), runs=[run(1, 0, 1)], charged_tokens=70)
    put("two", created_at=at(0), last_updated=at(0), runs=[run(1, 50, 60)], charged_tokens=5)
    sessions = gaia_sessions.Sessions(root)
    around: Any = [json.loads('"2026-01-08T18:00:00Z"'), 120]

    assert [line["agent_id"] for _, line in sessions.tree(around=around)] == ["one"]
    assert sessions.usage_by_agent(around=around)["total"]["tokens"] == 70
