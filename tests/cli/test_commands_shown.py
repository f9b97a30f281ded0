"""Sessions of commands: each output says to resume them with ``gaia-sessions run ID -- COMMAND``."""

from __future__ import annotations

import os
import shlex
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.session.clock import format_time
from gaia_sessions.session.schema import MARKER_DETAIL, RUN_FAILED
from gaia_sessions.system.processes import describe
from tests.cli.conftest import fresh_table
from tests.cli.forks import forked
from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia

NOTE = "nur „staging“ — naïve $HOME \\ `x`"
LONG = "deploy-of-the-web-shop-to-all-regions-20260108-180530-abc12345"
ASKS = "Two ports are open.\n[gaia-sessions: approval] may I close them?"
HERE: Any = describe(os.getpid())
AGENTS_WAY = ("delegate", "your agent", "[gaia-sessions: resume", "prompt", "client")
"""Words that no output about a session of a command contains."""


@pytest.fixture
def ran(put: Gaia) -> Gaia:
    """Writes a session whose command ended ``minutes`` ago; ``run`` has further keys of its run."""

    def session(agent_id: str, phase: str, minutes: float = 12, record: Any = None, **run: Any) -> Any:
        then = ago(minutes=minutes)
        limits = {"timeout_secs": 600, "hard_timeout_secs": 630, "output_path": "output-1.log"}
        end = {"ended_at": then, "end": "stopped", "exit_code": 0}
        wrapped = {"run": 1, "wrapper": {"pid": 4711}, "started_at": then, **limits, **end, **run}
        moved = {"from_phase": "executing", "to_phase": phase, "timestamp": then}
        idle = timedelta(minutes=minutes)
        return put(agent_id, idle=idle, phase=phase, history=[moved], runs=[wrapped], **(record or {}))

    return session


def command(agent_id: str) -> str:
    return f"gaia-sessions run {agent_id} -- COMMAND"


def test_pending_shows_the_run_command_instead_of_a_resume_line(gaia: Gaia, ran: Gaia) -> None:
    ran("job-1", "approval", last_message=ASKS, detail=MARKER_DETAIL)
    ran("job-2", "approval", 45, last_message=ASKS, detail="timeout", end=RUN_FAILED, exit_code=143)
    late, early = gaia("pending").out.decode().split("\n\n")

    question = ["    may I close them?", "  it said:", "    Two ports are open."]
    assert late.splitlines() == [
        "tester: test",
        "  asked 45 minutes ago:",
        *question,
        "  expired 15 minutes ago; to approve it, which makes it resumable:",
        "gaia-sessions approve job-2",
        "  then, to resume it, type:",
        command("job-2"),
        "  to deny (--reason adds a reason):",
        "gaia-sessions deny job-2",
    ]
    assert early.splitlines() == [
        "tester: test",
        "  asked 12 minutes ago:",
        *question,
        "  resumable for 18 minutes; to approve and resume it, type:",
        command("job-1"),
        "  to approve now and resume later (--note adds a note):",
        "gaia-sessions approve job-1",
        "  to deny (--reason adds a reason):",
        "gaia-sessions deny job-1",
    ]
    found = gaia("pending", "--json").json
    assert [(one["run_command"], "resume_line" in one) for one in found] == [
        (command("job-2"), False),
        (command("job-1"), False),
    ]


@table(("word", "what"), [("approve", "to resume it"), ("deny", "to let it find another way")])
def test_approve_and_deny_show_the_run_command(gaia: Gaia, ran: Gaia, word: str, what: str) -> None:
    ran("job-1", "approval", 300, last_message=ASKS, detail=MARKER_DETAIL)
    done = {"approve": "approved", "deny": "denied"}[word]
    assert gaia(word, "job-1").lines == [
        f"job-1: {done}, resumable for 30 minutes",
        f"{what}, type:",
        command("job-1"),
    ]


def test_the_run_command_has_the_root_that_was_typed(gaia: Gaia, ran: Gaia, root: str) -> None:
    ran("job-1", "approval", last_message=ASKS, detail=MARKER_DETAIL)
    expected = f"gaia-sessions --root {root} run job-1 -- COMMAND"
    assert expected in gaia("pending", "--root", root).lines
    assert gaia("approve", "job-1", "--root", root).lines[-1] == expected


def test_should_resume_advises_a_run_command_or_new_work(gaia: Gaia, ran: Gaia) -> None:
    def advice(agent_id: str) -> list[str]:
        return gaia("should-resume", agent_id).lines[1:]  # type: ignore[no-any-return]

    ran("rests", "planning")
    ran("late", "approval", 45, last_message=ASKS, detail=MARKER_DETAIL)
    ran("tired", "approval", 45, record={"error_count": 3})
    ran("done", "completed")
    assert advice("rests") == ["  to resume it, type:", f"    {command('rests')}"]
    assert advice("late") == [
        "  to make it resumable, type this (or deny instead of approve): gaia-sessions approve late",
        "  then, to resume it, type:",
        f"    {command('late')}",
    ]
    assert advice("tired")[-1].endswith("type: gaia-sessions finalize tired failed")
    assert advice("done")[-2:] == [
        "  to continue it in a new session, type:",
        f"    {command('--continues done')}",
    ]


def test_show_prints_exit_code_limits_end_of_output_and_the_log_path(gaia: Gaia, root: str, ran: Gaia) -> None:
    error = {"timestamp": "2026-01-08T18:05:30Z", "message": "exit code 3"}
    failed = {"last_error": error, "error_count": 1}
    ran("job-1", "failed", record=failed, end=RUN_FAILED, exit_code=3, detail="exit code 3", last_message="Oh.\nNo.")
    lines = gaia("show", "job-1").lines

    place = lines.index("end of its output")
    assert lines[place : place + 3] == ["end of its output", "  Oh.", "  No."]
    last = [line for line in lines[lines.index("  No.") :] if not line.startswith(("created", "active"))]
    assert last[-4:] == [
        "exit code   3",
        "time limit  10m, then 30s to finish",
        "id          job-1",
        f"output      {root}/job-1/output-1.log",
    ]
    assert not [line for line in lines if line.startswith("to resume")]


def test_show_prints_all_output_before_a_question_but_otherwise_only_ten_lines(gaia: Gaia, ran: Gaia) -> None:
    plan = [f"step {number}" for number in range(30)]
    said = "\n".join([*plan, "may I?"])
    ran("marked", "approval", last_message=said.replace("may I?", "[gaia-sessions: approval] may I?"))
    ran("reported", "approval", last_message=said)
    ran("answered", "approval", record={"approval": {"message": "", "timestamp": ago(minutes=1)}}, last_message=said)
    ran("rests", "planning", last_message=said)

    def shown(agent_id: str) -> list[str]:
        lines = gaia("show", agent_id).lines
        place = lines.index("end of its output") + 1
        return [line.strip() for line in lines[place : lines.index("", place)]]

    assert shown("marked") == plan
    assert "question   may I?" in gaia("show", "marked").lines
    assert shown("reported") == [*plan, "may I?"]
    assert shown("answered") == shown("rests") == [*plan, "may I?"][-10:]


def test_show_prints_the_commands_that_resume_the_session(gaia: Gaia, ran: Gaia) -> None:
    ran("rests", "planning")
    ran("idle", "planning", 45)
    ran("late", "approval", 45, last_message=ASKS, detail=MARKER_DETAIL)

    def how(agent_id: str) -> list[str]:
        lines: list[str] = gaia("show", agent_id).lines
        [place] = [number for number, line in enumerate(lines) if line.startswith(("to resume", "next"))]
        return lines[place : place + 2]

    assert how("rests") == [f"to resume  `{command('rests')}`", ""]
    assert how("idle") == [
        "next       to make it resumable again, type: gaia-sessions update idle",
        f"           then `{command('idle')}`",
    ]
    assert how("late") == [
        "next       to make it resumable, type this (or deny instead of approve): gaia-sessions approve late",
        f"           then `{command('late')}`",
    ]


def test_resume_shows_the_run_command_of_an_interrupted_session(gaia: Gaia, ran: Gaia) -> None:
    ran("job-1", "planning", end="killed", interruption="stopped_by_user", detail="stopped by a signal", exit_code=143)
    assert gaia("resume").lines == [
        "tester: test",
        "  interrupted 12 minutes ago, resumable for 18 minutes: STOPPED BY THE USER",
        "  to resume it, type this; what was said so far is passed on:",
        command("job-1"),
        "  job-1",
    ]
    [one] = gaia("resume", "--json").json
    assert (one["means"], one["command"], one["run_command"], "resume_line" in one) == (
        "run",
        None,
        command("job-1"),
        False,
    )


def test_report_says_on_stderr_what_to_type_next(gaia: Gaia, ran: Gaia) -> None:
    ran("asks", "approval", last_message=ASKS, detail=MARKER_DETAIL)
    ran("broken", "planning", end="killed", interruption="stopped_by_user", last_message="Half.", exit_code=143)
    ran("failed", "failed", end=RUN_FAILED, detail="exit code 3", exit_code=3, last_message="Oh.")

    def said(agent_id: str) -> list[str]:
        lines: list[str] = gaia("report", agent_id).err.decode().splitlines()
        return lines[1:]

    to_go_on = ["to resume it, type:"]
    asks = "`gaia-sessions pending` shows its question, and how to answer"
    to_approve = "to approve and resume it, type:"
    assert said("asks") == [asks, to_approve, f"  {command('asks')}"]
    assert said("broken") == [*to_go_on, f"  {command('broken')}"]
    assert said("failed") == [
        "start new work: this session has ended",
        "to continue it in a new session, type:",
        f"  {command('--continues failed')}",
    ]
    assert gaia("report", "failed").out.decode() == "exit code 3\n\nits output ended with:\n\nOh.\n"
    more = gaia("report", "failed", "--verbose").err.decode().splitlines()
    assert [line for line in more if line.startswith(("exit code", "time limit"))] == [
        "exit code: 3",
        "time limit: 10m, then 30s to finish",
    ]


def typed(line: str, **environment: Any) -> Any:
    """Runs a shown line, with ``cat`` in place of COMMAND."""
    name, *words = shlex.split(line)
    assert (name, words.pop()) == ("gaia-sessions", "COMMAND")
    return forked(*words, "cat", **environment)


def test_every_shown_run_command_works_when_typed(gaia: Gaia, root: str) -> None:
    def shown(*words: str) -> str:
        answered = gaia(*words)
        lines = [line.strip() for line in (answered.out + answered.err).decode().splitlines()]
        [line] = (line for line in lines if line.endswith(" -- COMMAND"))
        return str(line)

    elsewhere = {"GAIA_SESSIONS_ROOT": os.devnull}
    assert forked("run", "--id", "job-1", "--", "echo", ASKS).code == 0
    assert gaia("approve", "job-1", "--note", NOTE).code == 0
    from_answer = shown("deny", "job-1", "--reason", NOTE, "--root", root)
    told = typed(from_answer, **elsewhere)
    assert (told.code, f"| denied: {NOTE}" in told.lines) == (0, True)

    forked("run", "--id", "job-2", "--", "echo", ASKS)
    told = typed(shown("pending", "--root", root), **elsewhere)
    assert (told.code, "|   assistant: Two ports are open." in told.lines) == (0, True)

    told = typed(shown("should-resume", "job-2"))
    assert told.code == 0
    assert "This is new work that continues an earlier session, which has ended." in told.out.decode()


def test_cancel_says_that_the_command_ends_and_no_run_command_is_shown_afterwards(
    gaia: Gaia, ran: Gaia, put: Gaia
) -> None:
    began = format_time(datetime.now(UTC))
    put("job-1", phase="executing", runs=[{"run": 1, "wrapper": HERE, "started_at": began}])
    assert gaia("cancel", "job-1").lines == [
        "job-1: cancelled, with everything below it",
        "Its command ends within a few seconds:",
        f"  job-1, in gaia-sessions run (process {HERE['pid']})",
    ]
    ran("rests", "planning")
    gaia("cancel", "rests")
    for shown in ("show", "should-resume", "report"):
        assert "gaia-sessions run" not in gaia(shown, "rests").out.decode() + gaia(shown, "rests").err.decode()


SHOWN = ("pending", "approve", "deny", "show", "should-resume", "resume", "list", "tree", "report", "wait", "events")
STATES: list[tuple[str, dict[str, Any]]] = [
    ("approval", {"last_message": ASKS, "detail": MARKER_DETAIL}),
    ("planning", {"end": "killed", "interruption": "stopped_by_user", "detail": "stopped by a signal"}),
    ("planning", {"end": RUN_FAILED, "detail": "timeout", "exit_code": 137, "reported": "planning"}),
    ("failed", {"end": RUN_FAILED, "detail": "exit code 3", "exit_code": 3}),
    ("abandoned", {"end": "lost", "detail": "no process 4711"}),
]


def is_whole(line: str) -> bool:
    """Whether the line fits in 80 columns, or has only a command or a path to copy."""
    alone = line.strip().startswith(("gaia-sessions ", "`gaia-sessions ", LONG, "/"))
    return len(line) <= 80 or (alone and LONG in line)


@table("word", SHOWN)
@table("minutes", [12, 45])
@fresh_table(("phase", "run"), STATES)
def test_every_line_fits_80_columns_and_mentions_no_agent(
    terminal: Gaia, ran: Gaia, word: str, minutes: int, phase: str, run: dict[str, Any]
) -> None:
    ran(LONG, phase, minutes, **run)
    asked = [] if word in ("pending", "resume", "list", "tree") else [LONG]

    text = terminal(word, *asked, NO_COLOR="1").out.decode()

    assert [found for found in AGENTS_WAY if found in text] == []
    assert [line for line in text.splitlines() if not is_whole(line)] == []
