"""``stats``: rates and durations of 40 sessions, worked out by hand; as JSON, in a pipe and on a terminal."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len

from gaia_sessions import Sessions
from gaia_sessions.errors import BadArgument
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.phases import OUTCOMES, RESUMABLE
from tests.session.test_figures import NOTHING
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Gaia

BEGAN = datetime(2024, 3, 1, 14, tzinfo=UTC)  # 23:00 in Tokyo: an end at least one hour later is on the next day
STOPPED, KILLED = "stopped", "killed"


def at(seconds: float) -> str:
    return format_time(BEGAN + timedelta(seconds=seconds))


def run(number: int, began: float, ended: float | None = None, end: str = STOPPED, **keys: Any) -> dict[str, Any]:
    over = {} if ended is None else {"ended_at": at(ended), "end": end}
    return {"run": number, "started_at": at(began), **over, **keys}


def moves(*reached: Any) -> list[dict[str, str]]:
    """The moves to each phase; the second of the move follows the phase."""
    phases = ["initializing", *reached[::2]]
    return [
        {"from_phase": one, "to_phase": other, "timestamp": at(second)}
        for one, other, second in zip(phases, reached[::2], reached[1::2], strict=False)
    ]


SEND: dict[str, Any] = {"turn": 1, "wrapper": {}, "end": "returned"}
MARK = {"at": at(500), "reason": "no longer needed", "below": True}
AGENTS = {"c": "Explore", "f": "planner", "a": "planner", "x": "reviewer", "o": "reviewer"}
NOW: dict[str, Any] = {"last_updated": format_time(datetime.now(UTC))}

# By ID: the phases with their seconds, the runs, and other keys of the record. "1 of 2" means: 2 runs left the
# session open, and 1 of them was resumed.
LIVING: dict[str, tuple[list[Any], list[Any], dict[str, Any]]] = {
    # 14 completed. Six with one run, after 100, 200 ... 600 s:
    "c01": (["investigating", 0, "completed", 100], [run(1, 0, 100)], {"charged_tokens": 1000}),
    "c02": (["investigating", 0, "completed", 200], [run(1, 0, 200)], {"usage": {"total_tokens": 500}}),
    **{
        f"c0{number}": (["investigating", 0, "completed", 100 * number], [run(1, 0, 100 * number)], {})
        for number in (3, 4, 5, 6)
    },
    # resumed after an approval, 1 of 1:
    "c07": (
        ["investigating", 0, "approval", 100, "executing", 1900, "completed", 2000],
        [run(1, 0, 100), run(2, 1900, 2000)],
        {},
    ),
    # resumed twice, 2 of 2; a delegation between them was denied:
    "c08": (
        ["investigating", 0, "planning", 50, "approval", 150, "executing", 250, "completed", 350],
        [run(1, 0, 50), run(2, 60, 150), run(3, 200, 210, "denied"), run(4, 250, 350)],
        {},
    ),
    # a person ended it two hours after its pause, 0 of 1:
    "c09": (["investigating", 0, "planning", 60, "completed", 7260], [run(1, 0, 60)], {}),
    # a conversation of an app, only with sends, 0 of 0:
    "c10": (
        ["investigating", 0, "completed", 90],
        [run(1, 0, 30, **SEND), run(2, 40, 60, **SEND)],
        {"app": "desk", "user": "ann"},
    ),
    # a workflow, and one of its agents; the user stopped the agent, and the host resumed it, 1 of 1:
    "c11": (["investigating", 0, "completed", 40], [run(1, 0, 40, workflow={"run_id": "w"})], {}),
    "c12": (
        ["investigating", 0, "completed", 70],
        [
            run(1, 0, 20, KILLED, interruption="stopped_by_user", workflow={"run_id": "w", "key": "k"}),
            run(2, 30, 70, workflow={"run_id": "w", "key": "k"}),
        ],
        {"parent_id": "c11"},
    ),
    # continues another session, which does not count as a resume:
    "c13": (["investigating", 0, "completed", 80], [run(1, 0, 80)], {"continues": "f01"}),
    # its first 3 runs and 5 moves were dropped; the rest counts 1 of 1:
    "c14": (
        ["executing", 0, "validating", 500, "completed", 700],
        [run(4, 400, 450), run(5, 500, 700)],
        {"runs_dropped": 3, "history_dropped": 5},
    ),
    # 5 failed, 0 of 0: an error; no stop event; a marker; the agent itself, before it stopped; a command at its
    # limit.
    "f01": (
        ["investigating", 0, "executing", 100, "failed", 160],
        [run(1, 0, 160, "failed", detail="broke")],
        {"error_count": 1},
    ),
    "f02": (
        ["investigating", 0, "executing", 50, "failed", 300],
        [run(1, 0, 250, "returned", detail="returned, and no stop came")],
        {},
    ),
    "f03": (["investigating", 0, "failed", 30], [run(1, 0, 30, reported="failed")], {}),
    "f04": (["investigating", 0, "failed", 40], [run(1, 0, 45)], {}),
    "f05": (
        ["executing", 0, "failed", 600],
        [run(1, 0, 600, "failed", detail="timeout", wrapper={})],
        {"error_count": 2},
    ),
    # 4 abandoned: the delegation was denied; the conversation ended; the client crashed, which was noticed an hour
    # later; the session was imported and given up, 0 of 1.
    "a01": (["abandoned", 5], [{"run": 1, "claimed_at": at(0), "ended_at": at(5), "end": "denied"}], {}),
    "a02": (["investigating", 0, "executing", 10, "abandoned", 20], [run(1, 0, 20, "ended_with_host")], {}),
    "a03": (["investigating", 0, "executing", 30, "abandoned", 3630], [run(1, 0, 3630, "lost")], {}),
    "a04": (["investigating", 0, "abandoned", 900], [run(1, 0, 100, "lost")], {"imported_from": "/elsewhere"}),
    # 3 cancelled: at work, 0 of 0; stopped, with no change after the cancellation, 0 of 1; the child of that one.
    "x01": (["investigating", 0, "abandoned", 550], [run(1, 0, 550, KILLED)], {}),
    "x02": (["investigating", 0, "planning", 20], [run(1, 0, 20)], {"last_updated": at(20)}),
    "x03": (["investigating", 0], [], {"parent_id": "x02", "last_updated": at(10)}),
    # 11 open, each 0 of 1; but o01 and o10 0 of 0, and o09 1 of 1.
    "o01": ([], [], {}),
    "o02": (["investigating", 0, "approval", 60], [run(1, 0, 60)], {}),
    "o03": (
        ["investigating", 0, "approval", 60],
        [run(1, 0, 60)],
        {"denial": {"message": "no", "timestamp": at(100)}},
    ),
    "o04": (
        ["investigating", 0, "approval", 60],
        [run(1, 0, 60)],
        {"approval": {"message": "", "timestamp": at(100)}},
    ),
    "o05": (["investigating", 0, "planning", 30], [run(1, 0, 30)], NOW),
    "o06": (["investigating", 0, "planning", 30], [run(1, 0, 30)], {}),
    "o07": (["investigating", 0], [run(1, 0, 40, "lost")], {}),
    "o08": (["investigating", 0], [run(1, 0, 40, KILLED, interruption="usage_limit")], {}),
    "o09": (["investigating", 0, "planning", 50], [run(1, 0, 50), run(2, 60)], {}),
    "o10": (["investigating", 0], [run(1, 0, 70, **SEND)], {"turns": 0, "transcripts_archived": 1}),  # reset
    "o11": (["investigating", 0, "executing", 10], [run(1, 0, 70, "returned")], {}),
}


def line(agent_id: str, state: str, phase: str, **keys: Any) -> dict[str, Any]:
    return {
        **NOTHING,
        "agent_id": agent_id,
        "created_at": at(-3_000_000),
        "state": state,
        "phase": phase,
        "last_activity": at(-2_500_000),  # 2024-02-02 in Tokyo
        **keys,
    }


ENDED = {"ended_at": at(-2_500_000)}
LINES: list[Any] = [
    # 3 removed: completed, 1 of 2; open, 0 of 1; failed (the last line with the highest revision counts).
    line(
        "r1",
        "completed",
        "completed",
        **ENDED,
        stays={"initializing": [0], "investigating": [10], "approval": [600]},
        rests=2,
        resumed=1,
        interruptions={"overloaded": 1},
        tokens=70,
    ),
    line("r2", "paused", "planning", stays={"approval": [50]}, rests=1),
    line("r3", "completed", "completed", **ENDED, errors=9, revision=3),
    line("r3", "failed", "failed", **ENDED, stays={"planning": [1000]}, errors=4, revision=3),
    line("r3", "paused", "planning", rests=9, errors=9, revision=2),  # a cleanup read it earlier and wrote it later
    # no session: an existing session, a torn line, a foreign line, impossible figures
    {**line("c01", "failed", "failed", **ENDED), "created_at": at(0)},
    '{"agent_id": "r4", "created',
    {"event": "something else"},
    line("r4", "completed", "completed"),
]

EXPLORE, PLANNER, REVIEWER = 17, 9, 14  # c and r; f and a; x and o
TOTAL: dict[str, Any] = {
    "sessions": 40,  # 14 + 5 + 4 + 3 + 11 + 3
    "gone": 3,  # r1, r2, r3
    "ended": 28,  # 15 + 6 + 4 + 3
    "outcomes": {"completed": 15, "failed": 6, "abandoned": 4, "cancelled": 3},
    "shares": {"completed": 15 / 28, "failed": 6 / 28, "abandoned": 4 / 28, "cancelled": 3 / 28},
    "success_rate": 15 / 28,
    "open": 11,
    "states": {
        "waiting": 1,  # o02
        "quiet": 1,  # o09
        "denied": 1,
        "approved": 1,
        "crashed": 1,  # o07
        "interrupted": 1,  # o08
        "cut short": 1,  # o11
        "paused": 3,  # o05, o06, o10
        "new": 1,
    },
    "expired": 7,  # o02 to o04, o06 to o08, o10
    "removed": 1,
    "rests": 20,  # c07 1, c08 2, c09 1, c12 1, c14 1, a04 1, x02 1: 8; o02 to o09 and o11: 9; r1 2, r2 1
    "resumed": 7,  # c07 1, c08 2, c12 1, c14 1, o09 1, r1 1
    "resume_rate": 7 / 20,
    "phases": [
        # 35 stays of 0 s, and 5 s of a01. Ranks: 50% of 36 is 18, 90% is 32.4: the 33rd
        {"phase": "initializing", "open": 1, "stays": 36, "median": 0, "p90": 0},
        # 10 10 10 20 30 30 30 30 40 40 50 50 50 60 60 60 60 70 80 90 100 100 100 200 300 400 500 500 550 600 900
        # are 31: the 16th, and the 28th because 90% is 27.9
        {"phase": "investigating", "open": 3, "stays": 31, "median": 60, "p90": 500},
        # 100 480 1000 7200: the 2nd and the 4th
        {"phase": "planning", "open": 3, "stays": 4, "median": 480, "p90": 7200},
        # 50 100 600 1800: the 2nd and the 4th
        {"phase": "approval", "open": 3, "stays": 4, "median": 100, "p90": 1800},
        # 10 60 100 100 250 600 3600: the 4th and the 7th
        {"phase": "executing", "open": 1, "stays": 7, "median": 100, "p90": 3600},
        # 200 of c14; the beginning of its stay before that is unknown
        {"phase": "validating", "open": 0, "stays": 1, "median": 200, "p90": 200},
    ],
    "errors": 7,  # f01 1, f05 2, r3 4
    "interruptions": {"overloaded": 1, "stopped_by_user": 1, "usage_limit": 1},  # r1, c12, o08
    "tokens": 1570,  # 1000 + 500 + 70
    "unreported": 37,
    "runs_dropped": 3,
    "history_dropped": 5,
}
UNREAD = {"unread": 2, "unread_lines": 3}


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def forty(put: Gaia, spoil: Gaia, root: str) -> None:
    """40 sessions, of which 3 were removed; 2 unreadable sessions; 3 unreadable lines."""
    for agent_id, (reached, runs, more) in LIVING.items():
        phase = reached[-2] if reached else "initializing"
        ended = {"finalized_at": at(reached[-1]), "duration_seconds": 1.0} if phase in OUTCOMES else {}
        history = moves(*reached)[1 if "history_dropped" in more else 0 :]
        put(
            agent_id,
            agent_name=AGENTS[agent_id[0]],
            created_at=at(0),
            phase=phase,
            resume_ready=phase in RESUMABLE,
            **{"history": history, "last_updated": at(0), **({"runs": runs} if runs else {}), **ended, **more},
        )
    Path(root, "x01", "cancelled.json").write_text(json.dumps({**MARK, "at": at(540)}), encoding="utf-8")
    Path(root, "x02", "cancelled.json").write_text(json.dumps(MARK), encoding="utf-8")
    spoil("corrupt")
    put("newer", schema=2)
    lines = [one if isinstance(one, str) else json.dumps(one) for one in LINES]
    Path(root, ".stats.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.usefixtures("forty")
def test_stats_of_40_sessions_match_the_figures_worked_out_by_hand(gaia: Gaia, tree: Gaia) -> None:
    before = tree()

    assert gaia("stats", "--json").json == {"total": TOTAL, **UNREAD}
    assert gaia("stats", "--by", "phase", "--json").json == {"total": TOTAL, **UNREAD}
    assert Sessions().stats() == {"total": TOTAL, **UNREAD}
    assert tree() == before


@pytest.mark.usefixtures("forty")
def test_stats_counts_each_state_as_often_as_list_shows_it(root: str) -> None:
    Path(root, ".stats.jsonl").unlink()

    total, listed = Sessions().stats()["total"], Sessions().list(every_app=True)

    assert Counter({**total["outcomes"], **total["states"]}) == Counter(
        line["state"] for line in listed if "problem" not in line and "state" in line
    )


def test_stats_reports_unreadable_lines_in_a_root_without_sessions(gaia: Gaia, root: str) -> None:
    Path(root).mkdir()
    Path(root, ".stats.jsonl").write_text('{"torn\n{"torn', encoding="utf-8")
    said = "not counted: 2 lines of .stats.jsonl that cannot be read"
    assert gaia("stats").all == (0, f"0 sessions: 0 ended, 0 open\nerrors: 0\n{said}\n", "")


@table(
    "name, make, why",
    [
        ("a-folder", lambda path: path.mkdir(), "not a regular file"),
        ("a-link", lambda path: path.symlink_to("elsewhere"), "Too many levels of symbolic links"),
        ("too-large", lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 30), "more than 256 MiB"),
    ],
)
def test_stats_counts_existing_sessions_even_if_the_stats_file_cannot_be_read(
    gaia: Gaia, tmp_path: Path, name: str, make: Any, why: str
) -> None:
    root = tmp_path / name
    assert gaia("--root", root, "create", "--id", "a").code == 0
    make(root / ".stats.jsonl")

    found = gaia("--root", root, "stats", "--json").json
    assert (found["total"]["sessions"], found["unread_lines"], why in found["removed_unread"]) == (1, 0, True)
    *_, said, hint = gaia("--root", root, "stats").out.decode().splitlines()
    assert said.startswith(f"not all removed sessions are counted: {root}/.stats.jsonl: cannot read: ")
    assert hint == f"`gaia-sessions --root {root} doctor` says what to do"


def test_a_corrupt_session_is_not_counted_from_its_line_in_the_stats_file(gaia: Gaia, spoil: Gaia, root: str) -> None:
    spoil("torn")
    Path(root, ".stats.jsonl").write_text(json.dumps(line("torn", "paused", "planning")) + "\n", encoding="utf-8")
    found = gaia("stats", "--json").json
    assert (found["total"]["sessions"], found["unread"], found["unread_lines"]) == (0, 1, 0)


def test_a_share_above_zero_is_never_shown_as_0_percent(gaia: Gaia, put: Gaia) -> None:
    put("failed", phase="failed", finalized_at=at(1))
    for number in range(100):
        put(f"done-{number}", phase="completed", finalized_at=at(1))

    assert gaia("stats").out.decode().splitlines()[1:5] == [
        "completed  100  99%  (success rate)",
        "failed       1  <1%",
        "abandoned    0   0%",
        "cancelled    0   0%",
    ]


def in_parts(parts: Any, name: str, *keys: str) -> dict[Any, tuple[Any, ...]]:
    return {part[name]: tuple(part["totals"].get(key) for key in keys) for part in parts}


@pytest.mark.usefixtures("forty")
def test_stats_by_agent_counts_each_agent_and_keeps_the_total(gaia: Gaia) -> None:
    found = gaia("stats", "--by", "agent", "--json").json

    assert found == Sessions().stats(by="agent")
    assert found.pop("total") == TOTAL
    parts = in_parts(found["agents"], "agent_name", "sessions", "ended", "success_rate", "rests", "resumed")
    assert [*parts.items()] == [
        ("Explore", (EXPLORE, 16, 15 / 16, 9, 6)),
        ("reviewer", (REVIEWER, 3, 0, 10, 1)),
        ("planner", (PLANNER, 9, 0, 1, 0)),
    ]


@pytest.mark.usefixtures("forty", "in_tokyo")
def test_stats_by_day_uses_the_local_day_of_the_end_and_none_for_open_sessions(gaia: Gaia) -> None:
    found = gaia("stats", "--by", "day", "--json").json

    assert found == Sessions().stats(by="day")
    parts = in_parts(found["days"], "day", "sessions", "ended", "success_rate", "open", "removed")
    assert [*parts.items()] == [
        ("2024-03-02", (2, 2, 1 / 2, 0, 0)),  # c09 and a03
        ("2024-03-01", (24, 24, 13 / 24, 0, 0)),
        ("2024-02-02", (2, 2, 1 / 2, 0, 0)),  # r1 and r3
        (None, (12, 0, None, 11, 1)),
    ]


@pytest.mark.usefixtures("forty", "in_tokyo")
@table(
    "since, until, sessions",
    [
        ("2024-03-02", None, 3),  # c09, a03, and o05, which was active just now
        (None, "2024-02-20", 3),  # r1 to r3
        ("2024-02-20", "2024-03-02", 34),  # all but these six
        (at(7260), at(7260), 1),  # both included
        (at(7260.5), at(90000), 0),
    ],
)
def test_since_and_until_select_sessions_by_their_end_or_last_activity(
    gaia: Gaia, since: str | None, until: str | None, sessions: int
) -> None:
    words = [*(["--since", since] if since else []), *(["--until", until] if until else [])]

    found = gaia("stats", "--json", *words).json

    assert found == Sessions().stats(since=since, until=until)
    assert found["total"]["sessions"] == sessions


def test_stats_omits_figures_that_are_unknown(gaia: Gaia, put: Gaia) -> None:
    put("a", phase="initializing", resume_ready=False)

    total = gaia("stats", "--json").json["total"]

    assert total.keys() == TOTAL.keys() - {"shares", "success_rate", "resume_rate", "tokens"}
    assert total["phases"] == [{"phase": "initializing", "open": 1, "stays": 0}]
    assert gaia("stats").answer == [
        "1 session: 0 ended, 1 open",
        "open: 1 new",
        "",
        "phase         open  stays  median  90%",
        "initializing     1      0  -       -",
        "",
        "errors: 0",
    ]
    assert gaia("stats", "--by", "agent").answer == [
        "agent   sessions  ended  completed  resumed  open  errors  tokens",
        "tester         1      0          -        -     1       0       -",
    ]


def test_stats_says_why_there_are_no_sessions_and_refuses_a_reversed_span(gaia: Gaia, root: str, put: Gaia) -> None:
    assert gaia("stats").answer == [f"No sessions found: {root} does not exist"]
    assert gaia("stats", "--json").json["total"]["sessions"] == 0
    put("a")
    assert gaia("stats", "--since", "1s").answer == [
        "No sessions ended or were active in that time; without --since and --until, there is 1"
    ]
    reversed_span = ["--since", "1h", "--until", "2h"]
    assert gaia("stats", *reversed_span).refusal == (
        2,
        "--until is before --since",
        "give the earlier time to --since",
    )


def test_stats_refuses_an_unknown_grouping(gaia: Gaia) -> None:
    assert gaia("stats", "--by", "host").code == 2
    with pytest.raises(BadArgument, match="'host' is not valid\\nHint: must be one of agent, day, phase"):
        Sessions().stats(by="host")


SHOWN = """\
40 sessions (3 removed by now): 28 ended, 11 open, 1 removed before the end
completed  15  53%  (success rate)
failed      6  21%
abandoned   4  14%
cancelled   3  10%
open: 1 waiting, 1 quiet, 1 denied, 1 approved, 1 crashed, 1 interrupted, 1 cut short, 3 paused, 1 new; \
7 of them idle for too long to be resumed
resume rate: 35%, 7 of 20 runs that left the session open

phase          open  stays  median  90%
initializing      1     36  0s      0s
investigating     3     31  1m      8m 20s
planning          3      4  8m      2h
approval          3      4  1m 40s  30m
executing         1      7  1m 40s  1h
validating        0      1  3m 20s  3m 20s

interruptions: 1 stopped because the model service was overloaded, 1 stopped by the user, \
1 stopped by a usage limit
errors: 7; tokens: 1,570; 37 sessions reported none
not counted, because dropped from records: 3 runs and 5 phase changes
2 sessions cannot be read: `gaia-sessions doctor` says why
not counted: 3 lines of .stats.jsonl that cannot be read
"""


@pytest.mark.usefixtures("forty")
def test_a_pipe_gets_every_figure_and_no_bars(gaia: Gaia) -> None:
    assert gaia("stats").all == (0, SHOWN, "")


@pytest.mark.usefixtures("forty", "in_tokyo")
def test_a_terminal_gets_bars_and_no_line_that_is_too_long(terminal: Gaia) -> None:
    shown = terminal("stats").out.decode().splitlines()

    assert len(shown) < 24, "and the prompt"
    assert shown[1:5] == [
        f"completed  15  53%  {'█' * 13}  (success rate)",
        f"failed      6  21%  {'█' * 5}",
        f"abandoned   4  14%  {'█' * 3}",
        f"cancelled   3  10%  {'█' * 3}",
    ]
    for words in ([], ["--by", "agent"], ["--by", "day"], ["--by", "phase"]):
        found = {columns: terminal("stats", *words, columns=columns).out.decode() for columns in (40, 60, 80, 120)}
        for columns, text in found.items():
            assert max(map(cell_len, text.splitlines())) <= columns, (words, columns)
        assert "█" in found[120], words
        assert "█" in found[80] or words[1:] in (["agent"], ["day"])  # the column of removed sessions takes the space
    assert terminal("stats", NO_COLOR="1").out.decode().splitlines() == shown
    assert "\x1b" not in "".join(shown)


def test_stats_of_many_sessions_shows_progress_on_a_terminal_and_erases_it(
    terminal: Gaia, put: Gaia, tmp_path: Path
) -> None:
    for number in range(501):
        put(f"s-{number}")

    with tmp_path.joinpath("answer").open("wb") as answer:
        shown = terminal("stats", stdout=answer.fileno()).out.decode()

    steps = ["250 of 501 sessions read", "500 of 501 sessions read"]
    assert shown.split("\r") == ["", *steps, " " * len(steps[1]), ""]
    assert tmp_path.joinpath("answer").read_text(encoding="utf-8").startswith("501 sessions: 0 ended, 501 open\n")


@pytest.mark.usefixtures("forty")
def test_removal_keeps_the_figures_of_ended_sessions_and_counts_open_ones_as_removed(gaia: Gaia, root: str) -> None:
    ended = [agent_id for agent_id in LIVING if agent_id[0] in "cfa" or agent_id == "x01"]
    before = gaia("stats", "--by", "agent", "--json").json

    assert gaia("rm", *ended).code == 0
    after = gaia("stats", "--by", "agent", "--json").json
    assert after["total"]["gone"] == 3 + len(ended)
    for totals in [
        one for stats in (before, after) for one in (stats["total"], *(a["totals"] for a in stats["agents"]))
    ]:
        del totals["gone"]
    assert after == before
    assert gaia("cleanup", "--hours", "1").code == 0

    left = [path.name for path in Path(root).glob("[!.]*")]
    assert sorted(left) == ["corrupt", "newer", "o05"]
    phases = [{**phase, "open": int(phase["phase"] == "planning")} for phase in TOTAL["phases"]]
    now = {"gone": 39, "open": 1, "states": {"paused": 1}, "expired": 0, "removed": 11, "phases": phases}
    assert gaia("stats", "--json").json == {"total": {**TOTAL, **now}, **UNREAD}
