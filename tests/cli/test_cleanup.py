"""``cleanup``: it removes unused sessions, and reports which sessions stay and why."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.api.cleaning import CleanupPolicy, remove_unused
from gaia_sessions.errors import StoreFailure
from gaia_sessions.session.clock import format_time
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.locks import acquire, sleep_and_retry
from gaia_sessions.system import utc_now
from gaia_sessions.system.processes import describe
from tests.cli.conftest import fresh_table, ids_in
from tests.records import LIMITS
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia

HOUR = timedelta(hours=1)
NOBODY = 2**22 + 1  # no pid is as large
QUIET: dict[str, Any] = {"phase": "executing", "resume_ready": False}


@pytest.fixture
def mixed(put: Gaia, spoil: Gaia) -> dict[str, Any]:
    """Creates a session of every kind that cleanup knows; the expected report."""
    put("young", idle=23 * HOUR, **QUIET)
    put("old", idle=25 * HOUR, **QUIET)
    put("asked", idle=25 * HOUR)
    put("talked", idle=25 * HOUR, turns=1, **QUIET)
    put("asked-long-ago", idle=8 * 24 * HOUR)
    put("older-final", idle=99 * HOUR, phase="completed", resume_ready=False)
    put("future", idle=-HOUR, **QUIET)
    put("newer", idle=99 * HOUR, schema=2)
    put("running", idle=23 * HOUR, runs=[{"run": 1, "started_at": "2026-01-08T18:05:30Z"}])
    path = spoil("torn")
    return {
        "dry_run": False,
        "hours": 24.0,
        "keep_days": 7.0,
        "corrupt_too": False,
        "closed": [],
        "removed": ["asked-long-ago", "old", "older-final"],
        "recent": 2,
        "kept": [
            {"agent_id": "asked", "reason": "keep_days"},
            {"agent_id": "future", "reason": "clock_skew"},
            {"agent_id": "newer", "reason": "newer_schema"},
            {"agent_id": "talked", "reason": "keep_days"},
        ],
        "busy": [],
        "corrupt": [{"agent_id": "torn", "reason": f"{path}: line 1 column 1: not JSON: this brace is not closed"}],
        "failed": [],
        "swept": [],
    }


def in_order(report: dict[str, Any]) -> dict[str, Any]:
    """The report with sorted lists, since folders have no order."""
    by_id = {key: sorted(report[key], key=lambda one: one["agent_id"]) for key in ("kept", "corrupt", "failed")}
    return {**report, **by_id, "removed": sorted(report["removed"])}


def test_with_json_cleanup_reports_every_kind_of_session(gaia: Gaia, mixed: dict[str, Any], root: str) -> None:
    assert in_order(gaia("cleanup", "--json").json) == mixed
    assert ids_in(root) == ["asked", "future", "newer", "running", "talked", "torn", "young"]


def test_a_dry_run_says_what_the_real_run_does_and_changes_nothing(
    gaia: Gaia, mixed: dict[str, Any], tree: Gaia
) -> None:
    before = tree()
    dry = in_order(gaia("cleanup", "--dry-run", "--json").json)
    assert (dry, tree()) == ({**mixed, "dry_run": True}, before)
    assert in_order(gaia("cleanup", "-n", "--json").json) == dry
    assert in_order(gaia("cleanup", "--json").json) == {**dry, "dry_run": False}


def test_a_missing_root_is_reported_and_not_created(gaia: Gaia, tree: Gaia, root: str) -> None:
    before = tree()
    missing = f"No sessions found: {root} does not exist\n"
    assert gaia("cleanup", "--dry-run").all == (0, "would remove 0 sessions not updated for 1 day\n", missing)
    assert gaia("cleanup", "-q").all == (0, "", missing)
    assert gaia("pending").all == gaia("resume").all == (0, "", missing)
    assert [gaia(command, "--json").all for command in ("pending", "resume")] == [(0, "[]\n", "")] * 2
    assert tree() == before


@pytest.mark.usefixtures("mixed")
def test_cleanup_prints_a_line_with_count_and_reason_for_each_group_of_sessions(gaia: Gaia, root: str) -> None:
    numbers = [
        "3 sessions not updated for 1 day",
        "2 sessions updated since then",
        "1 session of a later version, or being moved",
        "1 session whose last activity is in the future",
        "2 sessions with turns or in approval, for 7 days (setting keep_days)",
        "1 session that cannot be read",
    ]
    would = "".join(f"would {verb} {line}\n" for verb, line in zip(["remove", *["keep"] * 5], numbers, strict=True))
    assert gaia("cleanup", "-n").all == (0, f"{would}to see which, add --verbose\n", "")
    talked_or_asked = [f"  {name}" for name in os.listdir(root) if name in ("asked", "talked")]
    assert gaia("cleanup", "-n", "--verbose").all[1].splitlines() == [
        "would remove 3 sessions not updated for 1 day",
        "  asked-long-ago",
        "  old",
        "  older-final",
        "would keep 2 sessions updated since then",
        "would keep 1 session of a later version, or being moved",
        "  newer",
        "would keep 1 session whose last activity is in the future",
        "  future",
        "would keep 2 sessions with turns or in approval, for 7 days (setting keep_days)",
        *talked_or_asked,
        "would keep 1 session that cannot be read",
        f"  torn: {root}/torn/state.json: line 1 column 1: not JSON: this brace is not closed",
    ]
    done = "".join(f"{verb} {line}\n" for verb, line in zip(["removed", *["kept"] * 5], numbers, strict=True))
    assert gaia("cleanup").all == (0, done, "")


def test_a_dry_run_also_names_sessions_that_go_only_after_runs_are_closed(gaia: Gaia, put: Gaia, spoil: Gaia) -> None:
    """A session above a closed run is removed; a corrupt session above an open one stays."""
    gone: dict[str, Any] = {
        "run": 1,
        "started_at": "2026-01-08T18:05:30Z",
        "host": "claude-code",
        "host_session_id": "h",
    }
    gone["host_process"] = {**(describe(os.getpid()) or {}), "pid": NOBODY}
    put("above", idle=99 * HOUR, phase="completed", resume_ready=False)
    put("below", idle=HOUR, parent_id="above", runs=[gone], **QUIET)
    put("cancelled", idle=99 * HOUR, runs=[gone])
    gaia("cancel", "cancelled")
    spoil("torn")
    put("open", parent_id="torn")

    dry = gaia("cleanup", "-n", "--corrupt", "--json").json
    real = gaia("cleanup", "--corrupt", "--json").json

    assert (sorted(dry["removed"]), dry["removed"]) == (["above", "cancelled"], real["removed"])
    assert dry["closed"] == real["closed"]


@pytest.mark.usefixtures("mixed")
def test_quiet_prints_nothing_and_removes_the_same_sessions(gaia: Gaia, root: str) -> None:
    assert gaia("cleanup", "--quiet").all == (0, "", "")
    assert ids_in(root) == ["asked", "future", "newer", "running", "talked", "torn", "young"]


@pytest.mark.usefixtures("mixed")
def test_corrupt_sessions_are_removed_only_with_the_option_corrupt(gaia: Gaia, root: str) -> None:
    report = gaia("cleanup", "--corrupt", "--json").json
    assert (sorted(report["removed"]), report["corrupt"]) == (["asked-long-ago", "old", "older-final", "torn"], [])
    assert ids_in(root) == ["asked", "future", "newer", "running", "talked", "young"]


def test_the_option_hours_sets_how_long_removed_sessions_were_unused(gaia: Gaia, put: Gaia, root: str) -> None:
    for hours in (1, 2, 3):
        put(f"h{hours}", idle=hours * HOUR, **QUIET)
    assert gaia("cleanup", "--hours", "2.5").answer == [
        "removed 1 session not updated for 2 hours 30 minutes",
        "kept 2 sessions updated since then",
    ]
    assert gaia("cleanup", "--hours", "0", "--json").json["removed"] != []
    assert ids_in(root) == []


def test_a_resumable_session_stays_even_with_hours_0(gaia: Gaia, put: Gaia) -> None:
    put("a")
    assert gaia("cleanup", "--hours", "0").answer == [
        "removed 0 sessions not updated for 0 seconds",
        "kept 1 session that can be resumed",
    ]


ASKED_ON_FRIDAY = {"idle": 64 * HOUR}
TALKED_ON_FRIDAY: dict[str, Any] = {"turns": 1, **QUIET}
SAID = {"message": "", "timestamp": "2026-01-08T18:05:30Z"}


@fresh_table(
    ("hours", "keys", "stays"),
    [
        ("24", {}, True),  # asked
        ("0", {}, True),  # asked, whatever the hours
        ("24", {"approval": SAID}, True),  # approved, and idle for too long
        ("24", {"denial": SAID}, False),  # denied
        ("24", {"phase": "planning"}, False),  # paused
        ("24", {"idle": 7 * 24 * HOUR}, False),  # asked a week ago
        ("240", {"idle": 9 * 24 * HOUR}, True),  # asked a week ago, but the hours are more
        ("24", TALKED_ON_FRIDAY, True),  # has turns
        ("0", TALKED_ON_FRIDAY, True),  # has turns, whatever the hours
        ("24", TALKED_ON_FRIDAY | {"phase": "planning"}, True),  # has turns, and is paused
        ("24", {"denial": SAID, "turns": 1}, True),  # denied, and has turns
        ("24", TALKED_ON_FRIDAY | {"turns": 0}, False),  # has no turns
        ("24", TALKED_ON_FRIDAY | {"turns": 0, "transcripts_archived": 1}, True),  # had turns before a reset
        ("24", TALKED_ON_FRIDAY | {"idle": 7 * 24 * HOUR}, False),  # the last turn was a week ago
        ("24", TALKED_ON_FRIDAY | {"phase": "completed"}, False),  # has turns, but is completed
        ("24", TALKED_ON_FRIDAY | {"phase": "failed"}, False),  # has turns, but has failed
    ],
)
def test_cleanup_keeps_open_questions_and_open_sessions_with_turns_for_seven_days(
    gaia: Gaia, put: Gaia, root: str, hours: str, keys: dict[str, Any], *, stays: bool
) -> None:
    put("a", **ASKED_ON_FRIDAY | keys)
    dry = gaia("cleanup", "--hours", hours, "--dry-run", "--json").json
    assert (dry["removed"], dry["recent"] + len(dry["kept"])) == (["a"] * (not stays), int(stays))
    assert gaia("cleanup", "--hours", hours, "-q").all == (0, "", "")
    assert ids_in(root) == ["a"] * stays


@fresh_table(("days", "said"), [("0", ""), ("2d", ""), ("3", "3 days"), ("36h", ""), ("2.75", "2 days 18 hours")])
def test_keep_days_sets_how_long_questions_and_sessions_with_turns_stay(
    gaia: Gaia, put: Gaia, root: str, monkeypatch: pytest.MonkeyPatch, days: str, said: str
) -> None:
    put("asked", **ASKED_ON_FRIDAY)
    put("talked", **ASKED_ON_FRIDAY | TALKED_ON_FRIDAY)
    monkeypatch.setenv("GAIA_SESSIONS_KEEP_DAYS", days)
    removed = f"removed {0 if said else 2} sessions not updated for 0 seconds\n"
    kept = f"kept 2 sessions with turns or in approval, for {said} (setting keep_days)\n" if said else ""
    assert gaia("cleanup", "--hours", "0").all == (0, removed + kept, "")
    assert ids_in(root) == (["asked", "talked"] if said else [])


def test_a_session_with_turns_keeps_its_parent_but_not_its_ended_child(gaia: Gaia, put: Gaia, root: str) -> None:
    ended: dict[str, Any] = {"idle": 64 * HOUR, "phase": "completed", "resume_ready": False}
    put("above", **ended)
    put("talk", parent_id="above", **ASKED_ON_FRIDAY | TALKED_ON_FRIDAY)
    put("below", parent_id="talk", **ended)
    report = gaia("cleanup", "--hours", "0", "--json").json
    kept = [("above", "above_open"), ("talk", "keep_days")]
    assert (report["removed"], sorted((one["agent_id"], one["reason"]) for one in report["kept"])) == (["below"], kept)
    assert ids_in(root) == ["above", "talk"]


@fresh_table("keys", [{}, TALKED_ON_FRIDAY])
def test_cleanup_removes_cancelled_sessions_despite_a_question_or_turns(
    gaia: Gaia, put: Gaia, root: str, keys: dict[str, Any]
) -> None:
    put("above", **ASKED_ON_FRIDAY | keys)
    put("a", parent_id="above", **ASKED_ON_FRIDAY | keys)
    assert gaia("cancel", "above").code == 0
    assert gaia("cleanup", "--hours", "0").code == 0
    assert ids_in(root) == []


def test_the_reasons_to_keep_a_session_are_printed_in_words(gaia: Gaia, put: Gaia) -> None:
    final = {"phase": "completed", "resume_ready": False}
    put("above", idle=99 * HOUR, **final)
    put("runs", idle=HOUR, parent_id="above", runs=[{"run": 1, "started_at": format_time(utc_now())}])

    assert gaia("cleanup", "--hours", "0").lines[1:] == [
        "kept 1 session above a session that is, or perhaps is, open",
        "kept 1 session whose agent may still be at work",
    ]


def test_cleanup_removes_a_cancelled_session_that_is_its_own_parent(gaia: Gaia, put: Gaia, root: str) -> None:
    """Its record was written by hand. The removal already holds its lock, and writes no second mark."""
    put("a", idle=99 * HOUR, parent_id="a", phase="completed", resume_ready=False)
    gaia("cancel", "a")
    for options in (["--dry-run"], []):
        report = gaia("cleanup", "--json", *options).json
        assert (report["removed"], report["busy"]) == (["a"], [])
    assert ids_in(root) == []


def test_cleanup_keeps_a_session_whose_mark_cannot_be_read_and_exits_8(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    os.mkdir(f"{root}/a/cancelled.json")

    code, said, err = gaia("cleanup", "--hours", "0", "--verbose").all

    reason = f"{root}/a/cancelled.json: cannot read: cancelled.json is not a regular file"
    failed = f"failed: the system refused access to 1 session\n  a: {reason}\n"
    kept = "kept 1 session whose cancellation mark cannot be read\n  a\n"
    assert err.startswith(f"Error: {reason}\n")
    assert (code, said) == (8, f"removed 0 sessions not updated for 0 seconds\n{kept}{failed}")
    assert ids_in(root) == ["a"]


def test_cleanup_keeps_a_cancelled_session_while_a_record_below_it_cannot_be_read(
    put: Gaia, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("above", idle=99 * HOUR, phase="completed", resume_ready=False)
    put("other", idle=99 * HOUR, phase="completed", resume_ready=False)
    put("below", parent_id="above")
    Path(root, "above", "cancelled.json").write_text('{"at": "2026-01-08T18:05:30Z", "below": true}', encoding="utf-8")
    read = FileStore._read_or_error

    def refused(store: FileStore, agent_id: str) -> Any:
        return StoreFailure("read", "state.json", "I/O error") if agent_id == "below" else read(store, agent_id)

    monkeypatch.setattr(FileStore, "_read_or_error", refused)
    store, policy = FileStore(root, durable=False), CleanupPolicy(utc_now(), 24, LIMITS, keep_days=7)

    report = remove_unused(store, policy)

    assert report["kept"] == [{"agent_id": "above", "reason": "above_open"}]
    assert report["removed"] == ["other"]


@table("hours", ["-1", "-0.001", "-2h", "nan", "inf"])
def test_invalid_hours_are_a_usage_error_and_remove_nothing(gaia: Gaia, put: Gaia, tree: Gaia, hours: str) -> None:
    put("old", idle=99 * HOUR, **QUIET)
    before = tree()
    error = gaia("cleanup", "--json", f"--hours={hours}").error
    assert (error["message"], error["hint"]) == (
        f"--hours {hours!r} is not a length of time",
        "give, for example, 90s, 15m, 1h30m or 2d, or a number of hours",
    )
    refused = gaia("cleanup", "--json", "--hours=1e9").error
    assert refused["hint"] == "must be a number from 0 to 1000000 (114 years)"
    assert tree() == before


def test_a_locked_session_is_reported_as_busy_and_stays(gaia: Gaia, put: Gaia, root: str) -> None:
    put("held", idle=99 * HOUR, **QUIET)
    gaia("update", "held", "--if-revision", "99")  # makes the folder of locks
    with Directory.at(f"{root}/.locks") as folder, acquire(folder, "held.lock", 0, sleep_and_retry):
        report = gaia("cleanup", "--json").json
        assert gaia("cleanup", "--quiet").all == (0, "", "")
    assert (report["removed"], report["busy"]) == ([], ["held"])
    assert ids_in(root) == ["held"]


def test_the_age_of_a_session_is_its_last_update_not_its_file_time_or_id(gaia: Gaia, put: Gaia, root: str) -> None:
    put("agent-20000101-000000-00000000", idle=HOUR, **QUIET)
    put("fresh-file", idle=99 * HOUR, **QUIET)
    os.utime(Path(root, "agent-20000101-000000-00000000", "state.json"), (0, 0))
    assert gaia("cleanup", "--json").json["removed"] == ["fresh-file"]


def test_cleanup_sweeps_files_of_killed_processes_and_names_them(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    gaia("update", "a")
    left = Path(root, "..stats.jsonl.0123456789abcdef.tmp")
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    rest = f"kept 1 session updated since then\nswept 1 file that killed processes left behind\n  {left}\n"
    assert gaia("cleanup", "-v").all == (0, f"removed 0 sessions not updated for 1 day\n{rest}", "")
    assert not left.exists()


def test_control_characters_in_the_name_of_a_swept_file_do_not_reach_the_terminal(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "a")
    left = Path(root, ".locks", ".key.\x1b[2J\x1b]0;mine\x07.lock")
    left.write_bytes(b"")
    os.utime(left, (0, 0))
    ended = gaia("cleanup", "--verbose")
    assert (ended.code, b"swept 1 file" in ended.out, left.exists()) == (0, True, False)
    assert [byte for byte in ended.out if byte < 0x20 and byte != 0x0A] == []


def test_with_json_cleanup_sweeps_a_file_whose_name_is_not_utf8(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "a")
    left = os.fsencode(root) + b"/.locks/.key.\xff.lock"
    with open(left, "wb"):
        os.utime(left, (0, 0))
    ended = gaia("cleanup", "--json")
    assert (ended.code, os.path.exists(left)) == (0, False)


def test_sessions_of_apps_are_counted_and_left_alone(gaia: Gaia, put: Gaia) -> None:
    old: Any = {"phase": "completed", "resume_ready": False, "idle": timedelta(days=9)}
    put("own", **old)
    for agent_id, app in (("a", "kb"), ("b", "kb"), ("c", "else")):
        put(agent_id, app=app, user="u1", **old)

    lines = gaia("cleanup").answer
    assert lines[-1] == "left out: 3 sessions of apps; --app kb has 2, --app else has 1"
    assert gaia("cleanup", "--json").json["left_out"] == {"kb": 2, "else": 1}
    assert gaia("cleanup", "--quiet").all == (0, "", "")
    assert "left_out" not in gaia("cleanup", "--app", "kb", "--json").json


@table("words", [(), ("--quiet",), ("--json",)])
def test_figures_that_cannot_be_stored_are_a_notice_and_no_failure(
    gaia: Gaia, put: Gaia, anew: Gaia, root: str, words: tuple[str, ...]
) -> None:
    anew()
    put("old", idle=99 * HOUR, phase="completed", resume_ready=False)
    path = Path(root, ".stats.jsonl")
    path.mkdir()

    ended = gaia("cleanup", *words)

    reason = f"the figures of removed sessions could not be stored: {path}: cannot append to: Is a directory"
    hint = "`gaia-sessions doctor` says what is wrong; to store no figures, set keep_figures = false"
    if "--json" in words:
        assert json.loads(ended.err) == {"notice": {"code": "figures_lost", "message": reason, "hint": hint}}
    else:
        assert ended.err.decode() == f"Note: {reason}\nHint: {hint}\n"
    assert (ended.code, ids_in(root)) == (0, [])
