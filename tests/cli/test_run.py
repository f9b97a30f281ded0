"""``run``: a command as a sub-agent, with real processes: its input, its limits, its end, its report."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.api.own_runs import end
from gaia_sessions.runner import process_tree, supervise
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.state import QUIET
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system.processes import describe
from tests.cli.conftest import PATIENCE, only_record, records
from tests.cli.forks import Fork, forked, until
from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Gaia

COMMAND = (sys.executable, "-m", "gaia_sessions")
SHELL = ("sh", "-c")
TELL = "import os, sys; print(sys.stdin.read(), end=''); print(sys.argv[1:], os.environ['GAIA_SESSION_ID'])"


def living(tag: str) -> list[int]:
    """The processes with ``tag`` in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if tag.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_run_prints_the_output_of_the_command_and_completes_its_session(program: Gaia, gaia: Gaia, root: str) -> None:
    ended = program("run", "--agent", "greeter", "--purpose", "greet", "--", "echo", "hello")

    assert ended.answer == ["hello"]
    record = only_record(root)
    assert (record["agent_name"], record["purpose"], record["phase"]) == ("greeter", "greet", "completed")
    [run] = record["runs"]
    assert {key: run[key] for key in ("run", "end", "exit_code", "last_message", "timeout_secs")} == {
        "run": 1,
        "end": "stopped",
        "exit_code": 0,
        "last_message": "hello\n",
        "timeout_secs": 600.0,
    }
    assert run["hard_timeout_secs"] == 630.0
    assert Path(run["output_path"]).read_text() == "hello\n"
    assert [move["to_phase"] for move in record["history"]] == ["executing", "completed"]
    assert gaia("report", record["agent_id"]).out == b"hello\n"
    [message] = gaia("transcript", record["agent_id"], "--json").json
    assert (message["role"], message["content"]) == ("assistant", "hello\n")


def test_the_agent_name_defaults_to_the_name_of_the_program(root: str) -> None:
    assert forked("run", "--", "/bin/true").code == 0
    assert only_record(root)["agent_name"] == "true"


def test_a_command_reads_its_task_and_context_on_stdin(root: str) -> None:
    ended = forked("run", "--task", "Count words.", "--context", "In English.", "--", sys.executable, "-IS", "-c", TELL)

    agent_id = only_record(root)["agent_id"]
    assert ended.answer == ["Count words.", "", "Additional context:", "In English.", f"[] {agent_id}"]


def test_the_task_is_not_stored(root: str) -> None:
    assert forked("run", "--id", "work", "--task", "a secret", "--", "true", "{task}").code == 0
    kept = b"".join(path.read_bytes() for path in Path(root, "work").iterdir())
    assert (b"work" in kept, b"secret" in kept) == (True, False)


def test_a_task_placeholder_gets_the_task_and_stdin_has_only_the_context(root: str) -> None:
    words = ("--", sys.executable, "-IS", "-c", TELL, "do: {task}", "{task}", "{other}")
    ended = forked("run", "--task", "Count", "--context", "In English.", *words)

    agent_id = only_record(root)["agent_id"]
    assert ended.answer == ["Additional context:", "In English.", f"['do: Count', 'Count', '{{other}}'] {agent_id}"]


def test_without_a_task_a_command_reads_the_stdin_of_run_unless_it_is_a_terminal(root: str) -> None:
    assert forked("run", "--", "cat", stdin=b"ours\n").out == b"ours\n"
    assert forked("run", "--task", "-", "--", "cat", stdin=b"a task\n").out == b"a task\n"
    own_end, their_end = os.openpty()
    assert forked("run", "--quiet", "--", "cat", stdin=their_end).code == 0  # a terminal would never end
    os.close(own_end)
    os.close(their_end)
    assert len(records(root)) == 3


@table("task", ["", "  \n"])
def test_a_blank_task_is_refused_and_nothing_is_created(gaia: Gaia, root: str, task: str) -> None:
    ended = gaia("run", "--task", task, "--", "true")

    assert ended.code == 7
    assert ended.err.decode().startswith("Error: the task is blank")
    assert not os.path.exists(root)


def test_run_without_a_command_says_that_the_command_follows_a_double_dash(gaia: Gaia, root: str) -> None:
    for words in (["run"], ["run", "--task", "x"], ["run", "true"], ["run", "--"]):
        ended = gaia(*words)
        assert (ended.code, ended.out) == (2, b"")
        assert b"--" in ended.err
    assert not os.path.exists(root)


def test_a_command_knows_its_session_the_root_and_its_deadline(root: str, tmp_path: Path) -> None:
    script = 'echo "$GAIA_SESSION_ID|$GAIA_SESSIONS_ROOT|$GAIA_DEADLINE|$PWD"'
    before = time.time()
    ended = forked("run", "--timeout", "100", "--cwd", str(tmp_path), "--", *SHELL, script)

    agent_id, at_root, deadline, cwd = ended.out.decode().strip().split("|")
    assert (agent_id, at_root, cwd) == (only_record(root)["agent_id"], os.path.abspath(root), str(tmp_path))
    assert before + 99 <= int(deadline) <= time.time() + 100


def test_a_failing_command_gives_one_report_with_its_code_and_fails_its_session(root: str) -> None:
    ended = forked("run", "--json", "--", *SHELL, "echo partly; echo why >&2; exit 3")

    assert (ended.code, ended.err) == (11, b"")
    report = json.loads(ended.out)
    assert {key: report[key] for key in ("status", "error", "exit_code", "partial", "result", "phase")} == {
        "status": "error",
        "error": "exit code 3",
        "exit_code": 3,
        "partial": "partly\n",
        "result": None,
        "phase": "failed",
    }
    assert report["note"] == "Sub-agent did not finish the task. Use partial results below."
    assert report["task_id"].startswith("sub-")
    assert [message["content"] for message in report["recent_messages"]] == ["partly\n"]
    record = only_record(root)
    assert (record["phase"], record["runs"][0]["end"], record["error_count"]) == ("failed", "failed", 1)
    assert Path(record["runs"][0]["output_path"]).read_text() == "partly\nwhy\n"


def test_a_failure_is_printed_on_stderr_with_the_session_id(root: str) -> None:
    ended = forked("run", "--", "false")

    assert (ended.code, ended.out) == (11, b"")
    head, why, *_ = ended.err.decode().splitlines()
    assert head.startswith(f"{only_record(root)['agent_id']}: failed")
    assert why == "  exit code 1"


@table(("agent_id", "path"), [("missing", "/nonexistent/program"), ("text", "/etc/hostname"), ("folder", "/")])
def test_a_command_that_cannot_be_started_has_failed_and_says_why(root: str, agent_id: str, path: str) -> None:
    ended = forked("run", "--json", "--id", agent_id, "--", path)

    assert (ended.code, ended.err) == (11, b"")
    report = json.loads(ended.out)
    assert (report["status"], report["phase"], report["exit_code"]) == ("error", "failed", None)
    assert path in report["error"]
    assert records(root)[agent_id]["runs"][0]["end"] == "failed"


def test_a_command_that_exceeds_its_timeout_is_ended_and_leaves_no_process(root: str) -> None:
    began = time.monotonic()
    ended = forked("run", "--json", "--timeout", "0.2", "--grace", "0.2", "--", "sleep", "60", TAG="tag-of-a-sleeper")
    took = time.monotonic() - began

    report = json.loads(ended.out)
    assert (ended.code, report["status"], report["phase"]) == (124, "timeout", "failed")
    assert (report["timeout_secs"], report["hard_timeout_secs"]) == (0.2, 0.4)
    assert 0.2 <= took < 30
    assert living("tag-of-a-sleeper") == []
    assert only_record(root)["runs"][0]["detail"] == "timeout"


def test_a_command_that_ends_in_the_grace_period_keeps_its_output_and_exit_code(root: str) -> None:
    script = "trap 'echo half of it; exit 0' TERM; while :; do sleep 0.1; done"
    ended = forked("run", "--json", "--timeout", "0.5", "--grace", "20", "--", *SHELL, script)

    report = json.loads(ended.out)
    assert (ended.code, report["status"], report["partial"], report["exit_code"]) == (124, "timeout", "half of it\n", 0)
    assert only_record(root)["phase"] == "failed"


def test_a_command_that_ignores_the_signal_is_killed_after_timeout_and_grace(gaia: Gaia, root: str) -> None:
    script = "trap '' TERM; echo begun; sleep 60"
    ended = forked("run", "--timeout", "1", "--grace", "0.5", "--", *SHELL, script, TAG="tag-of-a-stubborn-one")

    agent_id = only_record(root)["agent_id"]
    assert (ended.code, ended.out) == (124, b"begun\n")
    assert living("tag-of-a-stubborn-one") == []
    assert f"{agent_id}: did not finish in time; killed after 1.5s" in ended.err.decode()
    report = json.loads(gaia("report", agent_id, "--json").out)
    assert report["error"] == "Sub-agent hard timed out after 1.5 seconds"
    assert report["timeout_secs"] == 1.0


def test_a_command_that_asked_is_approved_and_resumed_with_the_note_as_typed(gaia: Gaia, root: str) -> None:
    note = "ja, nur 'x' — and $HOME \\ “so”"
    asked = forked("run", "--agent", "dropper", "--", "echo", "[gaia-sessions: approval] may I drop it?")
    agent_id = only_record(root)["agent_id"]
    assert (asked.code, only_record(root)["phase"]) == (0, "approval")

    assert b"may I drop it?" in gaia("pending").out
    assert gaia("approve", agent_id, "--note", note).code == 0
    ended = forked("run", agent_id, "--", "cat")

    told = ended.out.decode()
    assert told.startswith("Additional context:\n")
    assert "may I drop it?" in told
    assert note in told
    record = only_record(root)
    assert (ended.code, record["phase"], [run["end"] for run in record["runs"]]) == (0, "completed", ["stopped"] * 2)
    assert [move["to_phase"] for move in record["history"]] == ["executing", "approval", "executing", "completed"]


def test_running_a_session_that_asked_approves_it(root: str) -> None:
    forked("run", "--id", "asks", "--", "echo", "[gaia-sessions: approval] may I?")
    assert forked("run", "asks", "--", "true").code == 0
    assert only_record(root)["phase"] == "completed"


def test_an_expired_approval_is_not_run_until_the_hint_is_followed(gaia: Gaia, put: Gaia) -> None:
    put("late", phase="approval", resume_ready=True, idle=timedelta(hours=2))
    refused = forked("run", "late", "--", "true")

    assert (refused.code, refused.out) == (4, b"")
    assert "gaia-sessions approve late" in refused.err.decode()
    assert gaia("approve", "late").code == 0
    assert forked("run", "late", "--", "true").code == 0


def test_a_resumed_command_is_told_the_last_output_of_each_earlier_run(gaia: Gaia) -> None:
    for number, words in enumerate((["--id", "job"], ["job"]), 1):
        forked("run", *words, "--", *SHELL, f"echo Looked {number}; echo '[gaia-sessions: approval] may I?'")
    lines = [
        line
        for number in (1, 2)
        for line in (f"Run {number}:", f"  assistant: Looked {number}", "    [gaia-sessions: approval] may I?")
    ]

    assert gaia("context", "job").lines == lines
    told = forked("run", "job", "--", "cat").out.decode()
    assert "".join(f"| {line}\n" for line in lines) + "=== gaia-sessions: end of data ===" in told


def test_run_continues_an_ended_session_in_a_new_one_with_a_briefing(root: str) -> None:
    forked("run", "--id", "first", "--agent", "tester", "--purpose", "tests", "--", *SHELL, "echo three fail; exit 1")
    refused = forked("run", "first", "--", "true")
    assert (refused.code, "gaia-sessions run --continues first -- COMMAND" in refused.err.decode()) == (4, True)

    ended = forked("run", "--continues", "first", "--task", "Go on.", "--", "cat")

    assert ended.code == 0
    assert ended.out.decode().startswith("Go on.\n\nAdditional context:\n")
    assert "|   assistant: three fail" in ended.out.decode()
    [new] = [record for agent_id, record in records(root).items() if agent_id != "first"]
    assert (new["continues"], new["agent_name"], new["purpose"]) == ("first", "tester", "tests")
    assert records(root)["first"]["phase"] == "failed"


def test_a_run_inside_a_command_creates_a_child_session(root: str) -> None:
    inner = [*COMMAND, "run", "--id", "inner", "--", "true"]
    assert forked("run", "--id", "outer", "--", *inner).code == 0
    assert {agent_id: record.get("parent_id") for agent_id, record in records(root).items()} == {
        "outer": None,
        "inner": "outer",
    }


def test_a_sixth_child_at_work_is_refused_and_nothing_is_made(put: Gaia, root: str) -> None:
    put("top", phase="executing")
    for number in range(5):
        at_work = {"run": 1, "wrapper": describe(os.getpid()), "started_at": ago()}
        put(f"child-{number}", parent_id="top", phase="executing", runs=[at_work])
    before = records(root)

    ended = forked("run", "--parent", "top", "--id", "sixth", "--", *SHELL, "touch started")

    assert (ended.code, ended.out, Path("started").exists()) == (4, b"", False)
    assert records(root) == before


def test_a_session_id_in_the_environment_from_another_root_is_not_the_parent(root: str) -> None:
    assert forked("run", "--", "true", GAIA_SESSION_ID="of-another-root").code == 0
    assert "parent_id" not in only_record(root)


def test_a_cancellation_ends_the_command_and_the_report_has_its_output_and_todos(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "top")
    words = ("run", "--json", "--parent", "top", "--id", "work", "--", *SHELL, "echo so far; touch ready; sleep 60")
    with Fork(*words, TAG="tag-of-a-cancelled-one") as fork:
        until(lambda: os.path.exists("ready"))
        assert gaia("todo", "add", "work", "tidy").code == 0
        began = time.monotonic()
        assert gaia("cancel", "top", "--reason", "enough").code == 0
        code, out, err = fork.ended().all

    report = json.loads(out)
    assert (code, err, report["status"], report["error"]) == (10, "", "cancelled", "enough")
    assert [todo["description"] for todo in report["todos"]] == ["tidy"]
    assert [message["content"] for message in report["recent_messages"]] == ["so far\n"]
    assert time.monotonic() - began < 10
    assert living("tag-of-a-cancelled-one") == []
    assert (records(root)["work"]["phase"], records(root)["work"]["runs"][0]["end"]) == ("abandoned", "killed")


def test_a_command_that_has_spent_its_tokens_is_ended(program: Gaia, root: str) -> None:
    script = f'{sys.executable} -m gaia_sessions usage "$GAIA_SESSION_ID" --charge 100 >&2; sleep 60'
    ended = program("run", "--json", "--max-tokens", "100", "--grace", "1", "--", *SHELL, script)

    report = json.loads(ended.out)
    assert (ended.code, report["status"], report["limit_reached"]) == (11, "error", True)
    assert (only_record(root)["runs"][0]["detail"], report["tokens"], report["max_tokens"]) == ("max_tokens", 100, 100)


def test_a_command_at_work_may_be_given_more_tokens(gaia: Gaia, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "_SECONDS_BETWEEN_LOOKS", 0.01)
    script = "touch ready; until test -e go; do sleep 0.02; done; sleep 0.3; echo done"
    with Fork("run", "--id", "work", "--max-tokens", "100", "--grace", "1", "--", *SHELL, script) as fork:
        until(lambda: os.path.exists("ready"))
        assert gaia("update", "work", "--max-tokens", "1000").code == 0
        assert gaia("usage", "work", "--charge", "100").code == 0
        Path("go").touch()
        ended = fork.ended()
    assert (ended.code, ended.out, only_record(root)["phase"]) == (0, b"done\n", "completed")


@table("is_replaced", [False, True])
def test_a_command_keeps_running_after_its_session_is_removed_or_replaced(
    gaia: Gaia, root: str, monkeypatch: pytest.MonkeyPatch, *, is_replaced: bool
) -> None:
    monkeypatch.setattr(supervise, "_SECONDS_BETWEEN_LOOKS", 0.01)
    agent_id = f"work-{is_replaced}"
    ready, go = (Path(f"{name}-{is_replaced}") for name in ("ready", "go"))
    script = f"touch {ready}; until test -e {go}; do sleep 0.02; done; echo done"
    with Fork("run", "--id", agent_id, "--max-tokens", "1000", "--", *SHELL, script) as fork:
        until(ready.exists)
        assert gaia("rm", "--force", agent_id).code == 0
        if is_replaced:
            assert gaia("create", "--id", agent_id, "--max-tokens", "10").code == 0
            assert gaia("usage", agent_id, "--charge", "10").code == 0
            assert gaia("cancel", agent_id).code == 0
        there = records(root)
        until(lambda: f"kill {fork.pid}\n" in fork.err.decode())
        go.touch()
        ended = fork.ended()

    gone = "its session was removed, so `cancel` no longer reaches this command; its limits still hold"
    assert ended.err.decode().splitlines()[:2] == [f"{agent_id}: {gone}", f"  to end it: kill {fork.pid}"]
    assert (ended.code, ended.out) == (4 if is_replaced else 3, b"done\n")
    assert records(root) == there


def test_contain_and_keep_background_cannot_be_combined(gaia: Gaia, root: str) -> None:
    code, problem, hint = gaia("run", "--contain", "--keep-background", "--", "true").refusal
    assert (code, problem) == (
        2,
        "a contained command cannot keep processes in the background",
    )
    assert hint == "leave out --contain or --keep-background (in Python: is_contained or keeps_background)"
    assert not os.path.exists(root)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_run_leaves_a_session_that_can_be_resumed(gaia: Gaia, root: str) -> None:
    with Fork("run", "--id", "work", "--", *SHELL, "touch ready; sleep 60", TAG="tag-of-an-interrupted-one") as fork:
        until(lambda: os.path.exists("ready"))
        fork.send_signal(signal.SIGINT)
        assert fork.ended().code == 130

    assert living("tag-of-an-interrupted-one") == []
    record = only_record(root)
    [run] = record["runs"]
    assert (run["end"], run["interruption"], record["phase"]) == ("killed", "stopped_by_user", "planning")
    assert gaia("should-resume", "work").code == 0
    assert forked("run", "work", "--", "true").code == 0


def test_a_run_whose_wrapper_was_killed_counts_as_crashed_everywhere(gaia: Gaia, root: str) -> None:
    with Fork("run", "--id", "work", "--", "sleep", "60") as fork:
        until(lambda: "runs" in records(root).get("work", {}))
        [state] = [line["state"] for line in gaia("list", "--json").json]
        assert state == "working"
        fork.kill()

    [line] = gaia("list", "--json").json
    assert line["state"] == "crashed"
    report = json.loads(gaia("report", "work", "--json").out)
    assert (report["status"], report["error"]) == (
        "error",
        "gaia-sessions run crashed or was closed while the agent was at work",
    )
    assert gaia("reconcile").code == 0
    record = only_record(root)
    assert (record["phase"], record["runs"][0]["end"]) == ("abandoned", "lost")


def test_a_silent_command_becomes_quiet_and_recent_output_counts_as_activity(gaia: Gaia, root: str) -> None:
    record, log = (Path(root, "work", name) for name in ("state.json", "output-1.log"))
    with Fork("run", "--id", "work", "--", *SHELL, "echo alive; touch ready; sleep 60") as fork:
        until(lambda: os.path.exists("ready") and log.read_bytes())
        begun = record.read_bytes()
        aged = json.loads(begun)
        [run] = aged["runs"]
        long_ago = datetime.now(UTC) - timedelta(hours=1)
        run["started_at"] = aged["created_at"] = aged["last_updated"] = format_time(long_ago)
        record.write_text(json.dumps(aged))
        [lively] = gaia("list", "--json").json
        os.utime(log, (long_ago.timestamp(),) * 2)
        [silent] = gaia("list", "--json").json
        record.write_bytes(begun)
        fork.send_signal(signal.SIGTERM)
        assert fork.ended().code == 130

    assert (lively["state"], silent["state"]) == ("working", QUIET)


def test_the_report_is_printed_also_if_the_end_cannot_be_written(root: str) -> None:
    ended = forked("run", "--json", "--id", "work", "--", *SHELL, f"rm -rf {root}/work; echo done")

    report = json.loads(ended.out)
    assert (ended.code, report["status"], report["result"]) == (3, "success", "done\n")
    assert json.loads(ended.err)["error"]["code"] == "not_found"


def test_python_run_returns_the_report_of_the_command(root: str) -> None:
    report = gaia_sessions.Sessions(root).run(["echo", "hello"], agent_name="greeter")
    assert (report["status"], report["result"]) == ("success", "hello\n")
    assert only_record(root)["agent_name"] == "greeter"


def test_from_python_no_module_of_the_working_directory_is_imported(root: str, tmp_path: Path) -> None:
    (tmp_path / "pickle.py").write_text("open('planted', 'w')", "utf-8")
    source = "import sys, gaia_sessions; gaia_sessions.Sessions(sys.argv[1]).run(['true'])"
    subprocess.run([sys.executable, "-P", "-c", source, root], check=True, cwd=tmp_path)
    assert only_record(root)["phase"] == "completed"
    assert not (tmp_path / "planted").exists()


def test_from_python_a_token_in_memory_cancels_the_run(root: str) -> None:
    sessions, token = gaia_sessions.Sessions(root), gaia_sessions.CancellationToken()
    token.cancel("enough")
    began = time.monotonic()
    report = sessions.run(["sleep", "60"], token=token)
    assert (report["status"], report["error"]) == ("cancelled", "enough")
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_cancellation_token_ends_the_run_of_a_removed_session_but_not_its_replacement(
    gaia: Gaia, root: str, *, is_replaced: bool
) -> None:
    token, reports = gaia_sessions.CancellationToken(), []
    gaia("create", "--id", "work")
    words = [*SHELL, "touch ready; sleep 60"]
    sessions = gaia_sessions.Sessions(root)
    thread = threading.Thread(target=lambda: reports.append(sessions.run(words, agent_id="work", token=token)))
    thread.start()
    until(lambda: os.path.exists("ready"))
    assert gaia("rm", "--force", "work").code == 0
    if is_replaced:
        assert gaia("create", "--id", "work").code == 0
    there = marks_and_records(root)

    token.cancel("enough")
    thread.join()

    assert [(one["status"], one["error"]) for one in reports] == [("error", "cancelled")]
    assert marks_and_records(root) == there


def marks_and_records(root: str) -> list[tuple[str, bytes]]:
    return sorted((str(path), path.read_bytes()) for path in Path(root).glob("*/*.json"))


def test_python_run_with_a_cancelled_token_starts_no_command(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "work")
    token = gaia_sessions.CancellationToken()
    token.cancel("enough")
    with pytest.raises(gaia_sessions.errors.Cancelled):
        gaia_sessions.Sessions(root).run([*SHELL, "touch begun"], agent_id="work", token=token)
    assert not os.path.exists("begun")


def test_a_background_process_that_cannot_be_killed_keeps_writing_to_the_output_file(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_tree, "kill_all", lambda *_: [1])  # like processes that became another user's
    monkeypatch.setattr(supervise, "SECONDS_FOR_BACKGROUND", 0.0)
    script = f"trap '' TERM; {SERVES} echo $! > pid; echo ready"
    ended = forked("run", "--id", "work", "--", *SHELL, script)
    Path("go").touch()
    until(lambda: sorted(Path(root, "work", "output-1.log").read_text().splitlines()) == ["a fault", "a line", "ready"])
    os.kill(int(Path("pid").read_text()), signal.SIGKILL)
    assert (ended.code, ended.err.decode().splitlines()[1:]) == (
        0,
        [
            "work: some processes that it started could not be killed, for example those of another user",
            "work: its background processes keep running without limits; their output is stored, too",
            f"  whole output: {Path(root, 'work', 'output-1.log')}",
        ],
    )


def test_python_run_raises_exceptions_for_a_missing_session_and_a_blank_task(root: str) -> None:
    sessions = gaia_sessions.Sessions(root)
    with pytest.raises(gaia_sessions.errors.SessionNotFound) as missing:
        sessions.run(["true"], agent_id="missing")
    assert missing.value.agent_id == "missing"
    with pytest.raises(gaia_sessions.errors.InvalidInput, match="the task is blank"):
        sessions.run(["true"], task=" ")
    assert not os.path.exists(root)


FIRST = "printf 'aaa '; touch half; until test -e done; do sleep 0.02; done; echo aaa"
SECOND = "until test -e half; do sleep 0.02; done; echo bbb; touch done"
SIDE_BY_SIDE = f"""
"$@" -- sh -c "{FIRST}" &
"$@" -- sh -c "{SECOND}" &
wait
"""


@pytest.mark.parametrize("place", ["a pipe", "a terminal"])
def test_two_runs_side_by_side_never_mix_their_lines(root: str, place: str) -> None:
    words = ["sh", "-c", SIDE_BY_SIDE, "sh", *COMMAND, "run", "--root", root]
    if place == "a pipe":
        shown = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=-1, check=True).stdout
    else:
        shown = shown_on_terminal(words)
    lines = [line for line in shown.decode().splitlines() if not line.startswith("agent-")]  # without the ends of runs
    assert sorted(lines) == ["aaa aaa", "bbb"]


def shown_on_terminal(words: list[str]) -> bytes:
    """What the command ``words`` shows on a terminal of its own."""
    pid, fd = pty.fork()
    if not pid:
        os.execvp(words[0], words)  # noqa: S606  # it is what the test runs
    shown = b""
    with contextlib.suppress(OSError):  # the command has closed it
        while data := os.read(fd, 1 << 12):
            shown += data
    os.close(fd)
    assert os.waitpid(pid, 0)[1] == 0
    return shown


@pytest.mark.usefixtures("interruptible")  # a run that ignores interrupts counts as started in the background
def test_a_single_run_on_a_terminal_shows_output_at_once_and_ends_the_last_line(root: str) -> None:
    script = "printf 'go on? '; until test -e shown; do sleep 0.02; done; printf yes"
    words = [*COMMAND, "run", "--root", root, "--", "sh", "-c", script]
    pid, fd = pty.fork()
    if not pid:
        os.execvp(words[0], words)  # noqa: S606  # it is what the test runs
    shown = b""
    while b"go on? " not in shown:
        shown += os.read(fd, 1 << 12)
    Path("shown").touch()
    with contextlib.suppress(OSError):
        while data := os.read(fd, 1 << 12):
            shown += data
    os.close(fd)
    assert os.waitpid(pid, 0)[1] == 0
    assert shown.startswith(b"go on? yes\r\n")


SERVES = "(until test -e go; do sleep 0.02; done; echo a line; echo a fault >&2; touch wrote; exec sleep 60) &"


def keep_by_command(_: str, agent_id: str, path: str) -> None:
    ended = forked("run", agent_id, "--keep-background", "--", *SHELL, f"{SERVES} echo $! > pid; echo ready")
    left = "its background processes keep running without limits; their output is stored, too"
    assert ended.all == (0, "ready\n", f"{agent_id}: {left}\n  whole output: {path}\n")


def keep_from_python(root: str, agent_id: str, _: str) -> None:
    words = [*SHELL, f"{SERVES} echo $! > pid; echo ready"]
    assert gaia_sessions.Sessions(root).run(words, agent_id=agent_id, keeps_background=True)["result"] == "ready\n"


@pytest.mark.parametrize("keep", [keep_by_command, keep_from_python])
@pytest.mark.parametrize("is_removed", [False, True])
def test_a_kept_background_process_keeps_writing_and_its_reader_ends_with_it(
    gaia: Gaia, root: str, keep: Callable[[str, str, str], None], *, is_removed: bool
) -> None:
    agent_id = f"kept-{os.getpid()}"
    gaia("create", "--id", agent_id, "--agent", "server")
    log = Path(root, agent_id, "output-1.log")
    keep(root, agent_id, str(log))
    server, reader = int(Path("pid").read_text()), f"reads the background output of {agent_id}"
    if is_removed:
        assert gaia("rm", agent_id).code == 0

    Path("go").touch()
    until(lambda: os.path.exists("wrote"))
    if not is_removed:
        until(lambda: sorted(log.read_text().splitlines()) == ["a fault", "a line", "ready"])
    until(lambda: program_of(server) == "sleep\x0060\x00")
    assert len(running(reader)) == 1
    os.kill(server, signal.SIGKILL)
    until(lambda: not running(reader))


@table("is_replaced", [False, True])
def test_a_kept_background_process_of_a_removed_session_writes_to_no_other_session(
    gaia: Gaia, root: str, *, is_replaced: bool
) -> None:
    agent_id = f"kept-{os.getpid()}-{is_replaced}"
    folder = Path(root, agent_id)
    for name in ("began", "end", "go", "wrote"):
        Path(name).unlink(missing_ok=True)
    command = f"{SERVES} echo $! > pid; touch began; until test -e end; do sleep 0.02; done"
    with Fork("run", "--id", agent_id, "--keep-background", "--", *SHELL, command) as fork:
        until(lambda: os.path.exists("began"))
        assert gaia("rm", "--force", agent_id).code == 0
        if is_replaced:
            assert gaia("create", "--id", agent_id).code == 0
        Path("end").touch()
        ended = fork.ended()
    try:
        left = "its background processes keep running without limits"
        told = f"{agent_id}: {left}, and their output is not stored"
        assert told in ended.err.decode().splitlines()
        assert (ended.code, b"output-1.log" in ended.err) == (4 if is_replaced else 3, False)
        Path("go").touch()
        until(lambda: os.path.exists("wrote"))
        until(lambda: program_of(int(Path("pid").read_text())) == "sleep\x0060\x00")
        assert len(running(f"reads the background output of {agent_id}")) == 1
        assert (folder.exists() and os.listdir(folder)) == (["state.json"] if is_replaced else False)
        if is_replaced:
            assert gaia("run", agent_id, "--", "echo", "new").code == 0
            assert (folder / "output-1.log").read_text() == "new\n"
    finally:
        os.kill(int(Path("pid").read_text()), signal.SIGKILL)


@table("limit", [0, 1000])
def test_run_warns_if_it_cannot_tell_its_processes_from_older_ones(root: str, limit: int) -> None:
    agent_id = f"beside-{limit}"
    lower = f"{{ ulimit -w {limit} || ulimit -x {limit}; }} 2> /dev/null"
    caller = f'{lower}; sleep 60 > /dev/null 2>&1 & echo $! > before; exec "$@"'
    run = [*COMMAND, "run", "--root", root, "--id", agent_id, "--", *SHELL, "(setsid sleep 60 & echo $! > own)"]
    ended = subprocess.run(["sh", "-c", caller, "sh", *run], capture_output=True, text=True, check=True)
    before, own = (int(Path(name).read_text()) for name in ("before", "own"))
    left = [program_of(pid) for pid in (before, own)]
    os.kill(before, signal.SIGKILL)

    told = (
        "processes that already run keep running, but a process that they start in the background now ends with this "
        "command, because ulimit -x cannot be lowered"
    )
    background = f"{agent_id}: its background processes were ended (--keep-background keeps them)"
    assert ended.stderr.splitlines() == [*([] if limit else [f"{agent_id}: {told}"]), background]
    assert left == ["sleep\x0060\x00", ""]


def program_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def running(words: str) -> list[int]:
    """The processes with ``words`` in their command line."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if words in program_of(int(path.name))]


@pytest.mark.skipif(which("unshare") is None, reason="needs unshare of util-linux")
def test_a_contained_command_runs_as_any_other(root: str) -> None:
    ended = forked("run", "--contain", "--", *SHELL, "echo inside; exit 3")
    assert (ended.code, ended.out, only_record(root)["runs"][0]["exit_code"]) == (11, b"inside\n", 3)


@pytest.mark.usefixtures("interruptible")
def test_a_second_interrupt_right_after_the_first_still_records_the_end(root: str) -> None:
    for pause in (0.0, 0.01, 0.05):
        with Fork("run", "--", *SHELL, "echo ready; exec sleep 60") as fork:
            while fork.out != b"ready\n":
                time.sleep(0.005)
            fork.send_signal(signal.SIGINT)
            time.sleep(pause)
            fork.send_signal(signal.SIGINT)
            assert fork.ended().code == 130
    assert [record["runs"][0].get("end") for record in records(root).values()] == ["killed"] * 3


def test_unread_stderr_does_not_delay_the_limits_of_a_run(root: str) -> None:
    words = ["--timeout", "0.5", "--grace", "0.5", "--", *SHELL, "trap '' TERM; yes >&2"]
    began = time.monotonic()
    environment = {**os.environ, "TAG": "tag-of-an-unread-one"}
    process = subprocess.Popen([*COMMAND, "run", *words], stdin=subprocess.DEVNULL, stderr=-1, env=environment)
    until(lambda: "ended_at" in next(iter(records(root).values()), {"runs": [{}]})["runs"][0])
    took = time.monotonic() - began
    assert (living("tag-of-an-unread-one"), took < 8) == ([process.pid], True)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 124


def test_a_task_with_a_nul_is_refused_before_anything_begins(gaia: Gaia, root: str) -> None:
    ended = gaia("run", "--task", "-", "--", "echo", "{task}", stdin=b"a\0b")
    assert (ended.code, os.path.exists(root)) == (7, False)


WRITES_LATE = "touch ready; until test -e go; do sleep 0.02; done; echo x"
AT_ITS_END = ("--lock-timeout", "0.05", "run", "--json", "--id", "work", "--", *SHELL, WRITES_LATE)


@pytest.fixture
def is_refused(monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Whether ``run`` has failed to record an end."""

    def noted(*arguments: Any) -> Any:
        try:
            return end(*arguments)
        except gaia_sessions.errors.LockTimeout:
            Path("refused").touch()
            raise

    monkeypatch.setattr("gaia_sessions.api.own_runs.end", noted)
    return lambda: os.path.exists("refused")


def test_run_retries_until_it_can_record_the_end(root: str, is_refused: Callable[[], bool]) -> None:
    with Fork(*AT_ITS_END) as fork:
        until(lambda: os.path.exists("ready"))
        with FileStore(root).open("work"):
            Path("go").touch()
            until(is_refused)
            assert fork.poll() is None
        code, out, err = fork.ended().all
    assert (code, err, json.loads(out)["status"]) == (0, "", "success")
    assert only_record(root)["phase"] == "completed"


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_the_end_cannot_be_recorded_still_prints_the_report(
    root: str, is_refused: Callable[[], bool]
) -> None:
    with Fork(*AT_ITS_END) as fork:
        until(lambda: os.path.exists("ready"))
        with FileStore(root).open("work"):
            Path("go").touch()
            until(is_refused)
            fork.send_signal(signal.SIGINT)
            ended = fork.ended()
    report = json.loads(ended.out)
    assert (ended.code, report["status"], report["result"]) == (5, "success", "x\n")
    assert json.loads(ended.err)["error"]["code"] == "lock_timeout"
    assert gaia_sessions.Sessions(root).report("work").get("state") == "crashed"


def test_a_run_without_a_free_thread_fails_and_says_so(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    ended = forked("run", "--json", "--id", "work", "--", "true")
    assert (ended.code, json.loads(ended.out)["error"]) == (11, "nothing was started: can't start new thread")
    assert only_record(root)["phase"] == "failed"


def test_output_that_cannot_be_written_is_an_error_although_the_work_is_completed(root: str) -> None:
    with open("/dev/full", "wb") as full:
        process = subprocess.run([*COMMAND, "run", "--", "echo", "lost"], stdout=full, stderr=-1, check=False)
    assert (process.returncode, b"No space left" in process.stderr) == (8, True)
    assert b"Hint: the command has run, only its output is lost" in process.stderr
    assert (only_record(root)["phase"], only_record(root)["runs"][0]["last_message"]) == ("completed", "lost\n")


def test_a_failure_names_the_file_with_the_whole_output(gaia: Gaia, root: str) -> None:
    ended = forked("run", "--", *SHELL, "for i in $(seq 30); do echo line $i; done; exit 3")
    path = only_record(root)["runs"][0]["output_path"]
    assert f"  whole output: {path}\n" in ended.err.decode()
    shown = gaia("show", "latest").out.decode()
    assert ("line 21" in shown, "line 20" in shown, path in shown) == (True, False, True)


def test_without_an_output_file_a_command_for_the_output_is_printed(
    gaia: Gaia, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileStore, "output_path", lambda *_: None)
    words = ["--keep-background", "--", *SHELL, "echo hello; (sleep 0.2; echo later) & exit 3"]
    ended = forked("run", *words)
    record = only_record(root)
    command = f"gaia-sessions report {record['agent_id']} --output"
    assert (ended.code, b"hello" in ended.out, f"  whole output: {command}\n" in ended.err.decode()) == (11, True, True)
    assert "output_path" not in record["runs"][0]
    assert f"output      `{command}`\n" in gaia("show", "latest").out.decode()


def test_a_program_whose_name_is_not_utf_8_can_be_run(root: str) -> None:
    Path(os.fsdecode(b"n\xff")).symlink_to("/bin/true")
    assert forked("run", "--", b"./n\xff").code == 0
    assert only_record(root)["agent_name"] == "n?"


def test_a_session_whose_wrapper_was_killed_shows_a_working_command_to_continue_it(gaia: Gaia, root: str) -> None:
    with Fork("run", "--id", "work", "--", *SHELL, "touch ready; sleep 60") as fork:
        until(lambda: os.path.exists("ready"))
        fork.kill()

    line = "gaia-sessions run --continues work -- COMMAND"
    assert [line in gaia(*words, "work").out.decode() for words in (["show"], ["should-resume"])] == [True, True]
    assert line in gaia("report", "work").err.decode()
    assert forked("run", "--continues", "work", "--", "true").code == 0
    assert records(root)["work"]["phase"] == "abandoned"


def test_the_hint_of_a_refused_run_is_a_command_that_works(gaia: Gaia, put: Gaia) -> None:
    put("late", phase="planning", resume_ready=True, idle=timedelta(hours=2))
    hint = forked("run", "late", "--", "true").err.decode().partition("Hint: ")[2].split("again:")[1]
    assert gaia(*hint.split()[1:]).code == 0
    assert forked("run", "late", "--", "true").code == 0


THREE = """
for id in lint tests slow; do gaia-sessions create --id $id --agent $id; done
gaia-sessions run slow -- sleep 600 &
gaia-sessions run lint -- echo tidy &
gaia-sessions run tests --timeout 15m -- sh -c 'echo 3 failed; exit 1'
gaia-sessions cancel slow --reason 'not needed'; wait
gaia-sessions tree
for id in lint tests slow; do gaia-sessions report $id; done
"""


def test_three_concurrent_runs_complete_fail_and_are_cancelled_independently(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"HOME": str(tmp_path), "PATH": path}
    done = subprocess.run(
        ["sh", "-uc", THREE], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 10
    shown = [line.split("  ")[:2] for line in done.stdout.splitlines()]
    assert [shown.count(one) for one in (["lint", "completed"], ["tests", "failed"], ["slow", "cancelled"])] == [1] * 3
    assert done.stdout.endswith("tidy\nexit code 1\n\nits output ended with:\n\n3 failed\nnot needed\n")
    slow = json.loads((tmp_path / ".claude" / "session" / "slow" / "state.json").read_text())
    ends = [(run["end"], run["exit_code"]) for run in slow.get("runs", [])]
    assert ends in ([("killed", 143)], [])  # none if the cancellation came before it began


PAGE = (Path(gaia_sessions.__file__).parents[1] / "docs" / "run.md").read_text(encoding="utf-8")
SCRIPT = PAGE.partition("A script:\n\n```sh\n")[2].partition("```")[0]


def test_the_documented_script_asks_and_uses_the_note_of_the_approval(gaia: Gaia, root: str) -> None:
    assert forked("run", "--id", "drop", "--", *SHELL, SCRIPT, stdin=b"").code == 0
    assert only_record(root)["phase"] == "approval"
    assert gaia("approve", "drop", "--note", "only the copy").code == 0
    assert forked("run", "drop", "--", *SHELL, SCRIPT).out == b"deleting: only the copy\n"
    assert only_record(root)["phase"] == "completed"


def test_the_documented_script_does_nothing_after_a_denial_or_a_killed_run(gaia: Gaia) -> None:
    for name in ("denied", "killed"):
        assert forked("run", "--id", name, "--", *SHELL, SCRIPT, stdin=b"").code == 0
    assert gaia("deny", "denied").code == 0
    assert forked("run", "denied", "--", *SHELL, SCRIPT).out == b"left as it is\n"

    assert gaia("approve", "killed", "--note", "only the copy").code == 0
    with Fork("run", "killed", "--", *SHELL, "touch ready; sleep 60") as fork:
        until(lambda: os.path.exists("ready"))
        fork.kill()
    asked = forked("run", "--continues", "killed", "--", *SHELL, SCRIPT)
    assert asked.out == b"[gaia-sessions: approval] may I delete the table?\n"
    assert "output-2.log" in gaia("show", "killed").out.decode()
