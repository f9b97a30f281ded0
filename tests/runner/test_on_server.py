"""Runs whose sessions are on a server, seen from two machines."""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.machines import Machine, gaia_words, send_signal
from tests.servers import empty_url, shared_server
from tests.table import table

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE = 60
WHILE_AT_WORK = [
    ("list", 0, "agent-1  tester  working"),
    ("show agent-1", 0, "working on another machine, since"),
    ("should-resume agent-1", 1, "it may still be at work"),
    ("wait agent-1 --timeout 0.1", 124, "agent-1: working"),
    ("approve agent-1", 4, "its agent is at work"),
    ("deny agent-1", 4, "its agent is at work"),
    ("run agent-1 -- true", 4, "its agent is at work"),
    ("run --continues agent-1 -- true", 4, "its agent is at work"),
    ("send agent-1 hello -- true", 4, "its agent is at work"),
    ("rm agent-1", 4, "session 'agent-1' is open"),
    ("cleanup --hours 0 --verbose", 0, "kept 1 session whose agent may still be at work"),
]
"""Commands on another machine, with their exit codes and what they say."""
RUNNING = "running: gaia-sessions run runs: its lease is valid"
LOST = "lost: gaia-sessions run crashed or was closed: its lease has lapsed"
SAME = "0123456789abcdef" * 2
UPDATE = f"{sys.executable} -m gaia_sessions update agent-1"

pytestmark = pytest.mark.slow


@pytest.fixture
def url() -> Iterator[str]:
    """An empty database on which a lease lapses in four seconds."""
    url = empty_url()
    shared_server().set_lapse("4 seconds")
    yield url
    shared_server().set_lapse("120 seconds")


@pytest.fixture
def machines(url: str, tmp_path: Path) -> tuple[Machine, Machine]:
    return Machine(tmp_path / "a", url), Machine(tmp_path / "b", url)


def until(condition: Callable[[], Any]) -> Any:
    """What ``condition`` returns once it is true."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def run(machine: Machine, *options: str, number: int = 1, command: str = "exec sleep 1000") -> subprocess.Popen[str]:
    """Starts a run of session agent-1 on a machine, and returns its process when the session has that run."""
    process = machine.start(*gaia_words("run", *options, "--", "sh", "-c", command))
    until(lambda: f'"run": {number}' in machine.gaia("get", "agent-1").stdout)
    return process


def said(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code and the output of a process, at its end."""
    output = process.communicate(timeout=PATIENCE)[0]
    return process.returncode, output


def answer(machine: Machine, *words: str) -> tuple[int, str]:
    """The exit code of a command and what it prints on stdout."""
    done = machine.gaia(*words)
    return done.returncode, done.stdout


def verdicts(machine: Machine) -> list[str]:
    answer = json.loads(machine.gaia("reconcile", "--json").stdout)
    return [f"{one['verdict']}: {one['evidence']}" for one in answer["verdicts"]]


@table("machine_ids", [(None, None), (SAME, SAME)])
def test_a_live_run_is_never_lost_for_another_machine_and_a_killed_one_is_after_its_lease(
    url: str, tmp_path: Path, machine_ids: tuple[str | None, str | None]
) -> None:
    empty_url()
    folder = tmp_path / str(machine_ids[0])
    folder.mkdir()
    first, second = (Machine(folder / name, url, one) for name, one in zip("ab", machine_ids, strict=True))
    process = run(first, "--id", "agent-1")
    began = time.monotonic()
    while time.monotonic() < began + 6:  # longer than a lease
        assert verdicts(second) == [RUNNING]
    send_signal(process, signal.SIGKILL)

    lost = until(lambda: [one for one in verdicts(second) if not one.startswith("running")])

    assert lost == [LOST]
    assert answer(second, "run", "--continues", "agent-1", "--", "echo", "continued") == (0, "continued\n")


def test_a_run_that_was_stopped_past_its_lease_ends_its_command_and_says_that_its_end_does_not_count(
    machines: tuple[Machine, Machine],
) -> None:
    first, second = machines
    process = run(first, "--id", "agent-1")
    assert answer(first, "update", "agent-1", "--phase", "planning")[0] == 0  # so the work can be resumed
    send_signal(process, signal.SIGSTOP)
    until(lambda: verdicts(second) == [LOST])
    run(second, "agent-1", number=2)

    send_signal(process, signal.SIGCONT)

    code, printed = said(process)
    assert (code, "the end of run 1 of session 'agent-1' does not count" in printed) == (4, True), printed
    assert verdicts(second) == [RUNNING]


def test_a_run_on_one_machine_is_shown_and_respected_on_another(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    run(first, "--id", "agent-1", "--agent", "tester")

    for command, code, told in WHILE_AT_WORK:
        done = second.gaia(*command.split())
        assert (done.returncode, told in done.stdout + done.stderr) == (code, True), (command, done)
    assert verdicts(second) == [RUNNING]


@table("verb, told", [("approve", "approved"), ("deny", "denied")])
def test_a_question_from_one_machine_is_answered_on_another_and_its_work_resumed_there(
    url: str, tmp_path: Path, verb: str, told: str
) -> None:
    empty_url()
    first, second = Machine(tmp_path / f"{verb} a", url), Machine(tmp_path / f"{verb} b", url)
    process = run(first, "--id", "agent-1", command=f"echo found it; {UPDATE} --phase approval --question 'May I?'")

    assert answer(second, "wait", "agent-1")[0] == 0
    assert said(process)[0] == 0
    assert "May I?" in answer(second, "pending")[1]
    assert answer(second, verb, "agent-1", "--note", "only in staging")[0] == 0
    assert [answer(machine, "should-resume", "agent-1")[0] for machine in (first, second)] == [0, 0]
    code, context = answer(second, "run", "agent-1", "--", "cat")
    assert code == 0
    assert [text for text in (told, "only in staging", "found it") if text not in context] == [], context


def test_of_runs_that_begin_on_two_machines_at_once_exactly_one_works(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    assert answer(machines[0], "create", "--id", "agent-1")[0] == 0
    words = gaia_words("run", "agent-1", "--", "sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.1; done; echo done")
    runs = [machine.start(*words) for machine in machines * 3]
    until(lambda: sum(one.poll() is not None for one in runs) == len(runs) - 1)

    (tmp_path / "go").touch()

    ends = sorted(said(one) for one in runs)
    assert ends[0] == (0, "done\n")
    assert [(code, "its agent is at work" in printed) for code, printed in ends[1:]] == [(4, True)] * 5, ends
    assert len(json.loads(answer(machines[0], "get", "agent-1")[1])["runs"]) == 1


def test_each_message_that_two_machines_send_at_once_is_one_turn(machines: tuple[Machine, Machine]) -> None:
    assert answer(machines[0], "create", "--id", "agent-1")[0] == 0
    texts = [f"message {number}" for number in range(6)]
    sends = [
        machine.start(*gaia_words("send", "agent-1", text, "--wait", "60", "--", "echo", f"answer to {text}"))
        for text, machine in zip(texts, machines * 3, strict=True)
    ]

    assert sorted(said(one) for one in sends) == [(0, f"answer to {text}\n") for text in texts]

    messages = json.loads(answer(machines[1], "transcript", "agent-1", "--json")[1])
    turns = [(one["turn"], one["content"]) for one in messages]
    asked = [content for _, content in turns[::2]]
    assert sorted(asked) == texts
    assert turns == [pair for turn, text in enumerate(asked, 1) for pair in ((turn, text), (turn, f"answer to {text}"))]


def test_wait_tells_on_one_machine_how_a_run_on_another_has_ended(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    first, second = machines
    run(first, "--id", "agent-1", command="until [ -e go ]; do sleep 0.1; done; exit 3")
    waits = second.start(*gaia_words("wait", "agent-1", "--json"))

    (tmp_path / "a" / "go").touch()

    code, printed = said(waits)
    [report] = json.loads(printed)
    assert (code, report["status"], report["exit_code"]) == (11, "error", 3)


def test_a_cancellation_on_one_machine_ends_the_command_on_another(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    process = run(first, "--id", "agent-1")

    code, told = answer(second, "cancel", "agent-1")

    assert (code, "agent-1, in gaia-sessions run on another machine\n" in told) == (0, True), told
    assert said(process)[0] == 10
    assert json.loads(answer(second, "get", "agent-1")[1])["phase"] == "abandoned"
    assert answer(second, "wait", "agent-1")[0] == 10


def test_after_the_end_of_a_whole_machine_another_resumes_its_work_with_its_context(
    machines: tuple[Machine, Machine],
) -> None:
    first, second = machines
    command = f"echo found it; setsid sleep 1000 & {UPDATE} --phase planning -m finding=leak; exec sleep 1000"
    run(first, "--id", "agent-1", "--purpose", "find leaks", command=command)
    until(lambda: '"phase": "planning"' in answer(second, "get", "agent-1")[1])
    until(lambda: answer(second, "report", "agent-1", "--output")[1].startswith("found it\n"))
    waits = second.start(*gaia_words("wait", "agent-1"))

    first.end()

    code, printed = said(waits)
    assert (code, "agent-1: crashed" in printed) == (11, True), printed
    assert answer(second, "report", "agent-1", "--output")[1].startswith("found it\n")
    assert answer(second, "should-resume", "agent-1")[0] == 0
    code, context = answer(second, "run", "agent-1", "--", "cat")
    assert code == 0
    assert [text for text in ("find leaks", "planning", "leak") if text not in context] == [], context
    ends = [run["end"] for run in json.loads(answer(second, "get", "agent-1")[1])["runs"]]
    assert ends == ["lost", "stopped"]


@table("minutes", [-5, 5])
def test_a_clock_that_is_five_minutes_off_ends_no_wait_and_hinders_no_cancellation(
    url: str, tmp_path: Path, minutes: int
) -> None:
    empty_url()
    first, second = Machine(tmp_path / f"a{minutes}", url), Machine(tmp_path / f"b{minutes}", url)
    process = first.start(
        sys.executable, "-c", WITH_CLOCK, str(minutes), "run", "--id", "agent-1", "--", "sleep", "1000"
    )
    until(lambda: '"run": 1' in answer(second, "get", "agent-1")[1])

    assert verdicts(second) == [RUNNING]
    assert answer(second, "wait", "agent-1", "--timeout", "5")[0] == 124  # longer than a lease
    assert answer(second, "cancel", "agent-1")[0] == 0
    assert said(process)[0] == 10
    assert answer(second, "wait", "agent-1")[0] == 10


WITH_CLOCK = """
import sys
from datetime import timedelta
from gaia_sessions import system

off, now = timedelta(minutes=int(sys.argv.pop(1))), system.utc_now
system.utc_now = lambda: now() + off

from gaia_sessions.cli.start import main
main()
"""
"""A command of ours on a machine whose clock is off by so many minutes."""
