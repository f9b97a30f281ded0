"""A supervised command: limits, signals, background processes, and readers of its output.

Each test sets the clock of its own wrapper forward. Tests do not measure speed: "at once" means long before a limit.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.runner.supervise import SECONDS_AFTER_SIGNAL, SECONDS_FOR_BACKGROUND
from tests.runner.conftest import PATIENCE, becomes, linux, state_of
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.runner.conftest import Wrapper

    Supervise = Callable[..., "Supervised"]

pytestmark = [linux, pytest.mark.usefixtures("interruptible")]

MIB = 1 << 20
SLACK = 15.0
"""Seconds that a slow machine may add to a limit."""
LOOKS = 3
"""After so many looks the wrapper has done everything that was due."""

SUPERVISOR = """
from gaia_sessions.api.command import Command
from gaia_sessions.runner import supervise
from gaia_sessions.runner.signals import Signals
from gaia_sessions.runner.supervise import Supervisor, Teller
from gaia_sessions.store.output_file import Kept

class Clock:
    @staticmethod
    def monotonic():
        try:
            with open(path + ".passed") as file:
                return time.monotonic() + float(file.read())
        except FileNotFoundError:
            return time.monotonic()

path, options, argv = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
log, events, looks, began = Kept(), [], 0, Clock.monotonic()
supervise.time, supervise._SECONDS_BETWEEN_LOOKS = Clock, 0.05
supervise.SECONDS_AFTER_SIGNAL = options.get("after_signal", supervise.SECONDS_AFTER_SIGNAL)
supervise.SECONDS_FOR_BACKGROUND = options.get("for_background", supervise.SECONDS_FOR_BACKGROUND)

def look():
    global looks
    looks += 1
    write(".looks", str(looks))
    if os.path.exists(path + ".look"):
        with open(path + ".look") as file:
            return file.read() or None

def peak_memory():
    # Only of this program: ru_maxrss may be that of the parent.
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))

def write(name, content):
    with open(path + "~", "w") as file:
        file.write(content)
    os.replace(path + "~", path + name)

with Signals() as signals:
    write(".pid", str(os.getpid()))
    command = Command(sys.argv[3:], timeout=options.get("timeout", 600), grace=options.get("grace", 30),
                      keeps_background=options.get("keeps_background", False))
    live = {1: 1, 2: 2} if options.get("live", True) else {}
    supervisor = Supervisor(command, look, Teller(lambda event, _: events.append(event)), log, live, signals)
    stdin = options.get("stdin")
    ended = supervisor.run(argv, os.environ, 0 if stdin is None else "x" * stdin)
    supervisor.close_log()
seconds = Clock.monotonic() - began
log.close()
children = process_tree.descendants()
write("", json.dumps({
    "cause": ended.cause, "exit_code": ended.exit_code, "message": ended.message, "detail": ended.detail,
    "seconds": seconds, "log": len(bytes(log)), "left": len(children),
    "left_open": None if supervisor.left_open is None else len(supervisor.left_open),
    "memory": peak_memory(), "events": list(events),
}))
supervisor.finish()
write("", json.dumps({**json.load(open(path)), "events": events}))
"""


class Supervised:
    """A wrapper with its command, and the end of the command."""

    def __init__(self, wrapper: Wrapper, path: Path) -> None:
        self.wrapper = wrapper
        self.path = path
        self._passed = 0.0

    def line(self) -> str:
        """The next line that the command shows."""
        return self.wrapper.line()

    def send(self, number: int) -> None:
        self.wrapper.process.send_signal(number)

    def answer(self, cause: str) -> None:
        """Makes the next look of the wrapper return ``cause``."""
        self.path.with_suffix(".look").write_text(cause)
        assert self.goes_on()

    def passes(self, seconds: float) -> None:
        """Sets the clock of the wrapper forward, after the wrapper has read the start time."""
        assert becomes(self.path.with_suffix(".looks").exists, PATIENCE)
        self._passed += seconds
        pass_time(self.path, self._passed)

    def goes_on(self) -> bool:
        """Whether the command still runs after some looks."""
        looks = self.path.with_suffix(".looks")
        assert becomes(looks.exists, PATIENCE)
        enough = int(looks.read_text()) + LOOKS
        assert becomes(lambda: self.path.exists() or int(looks.read_text()) >= enough, PATIENCE)
        return not self.path.exists()

    def ended(self) -> dict[str, Any]:
        """How it ended, once that is known; readers may not have all output yet."""
        assert becomes(self.path.exists, PATIENCE), self.wrapper.process.poll()
        return json.loads(self.path.read_text())  # type: ignore[no-any-return]  # as the wrapper writes it

    def result(self) -> dict[str, Any]:
        """How it ended, with its output in ``shown``; checks that no process is left."""
        shown, err = self.wrapper.process.communicate(timeout=PATIENCE)
        assert self.wrapper.process.returncode == 0, err
        assert self.wrapper.left() == []
        return {**self.ended(), "shown": shown, "err": err}


def pass_time(path: Path, seconds: float) -> None:
    """Sets the clock of the wrapper at ``path`` to ``seconds`` more than real time."""
    new = path.with_suffix(".passed-new")
    new.write_text(str(seconds))
    new.replace(path.with_suffix(".passed"))


@pytest.fixture
def supervise(wrap: Callable[..., Wrapper], tmp_path: Path) -> Supervise:
    numbers = count()

    def begin(*argv: str, through: tuple[str, ...] = (), stdout: int = subprocess.PIPE, **options: Any) -> Supervised:
        path = tmp_path / f"ended-{next(numbers)}"
        words = (str(path), json.dumps(options), *argv)
        return Supervised(wrap(SUPERVISOR, *words, through=through, stdout=stdout), path)

    return begin


def shell(script: str) -> tuple[str, ...]:
    return ("sh", "-c", script)


def python(source: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", f"import os, signal, sys, time\n{source}")


STUBBORN = python("""
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, lambda got, _: os.write(1, b"got %d\\n" % got))
print("ready", flush=True)
while True:
    time.sleep(0.1)
""")
"""Prints each signal and ignores it."""

OBEDIENT = python("""
def obey(number, _):
    os.write(1, b"got %d\\n" % number)
    sys.exit(5)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, obey)
print("ready", flush=True)
while True:
    time.sleep(0.1)
""")


def essence(ended: dict[str, Any]) -> tuple[Any, ...]:
    return ended["cause"], ended["exit_code"], ended["message"], ended["events"], ended["left"]


# Commands that end by themselves.


@table(
    ("script", "code"),
    [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("exec no-such", 127)],
)
def test_a_command_that_ends_by_itself_has_its_own_exit_code(supervise: Supervise, script: str, code: int) -> None:
    ended = supervise(*shell(f"echo said; echo more >&2; {script} 2>/dev/null")).result()
    assert essence(ended) == ("exited", code, "said\n", ["started"], 0)
    assert (ended["shown"], ended["err"], ended["log"]) == ("said\n", "more\n", 10)


@table(
    ("argv", "detail"),
    [
        (["no-such-command"], "cannot be started: no-such-command: No such file or directory"),
        (["/"], "cannot be started: /: Permission denied"),
    ],
)
def test_a_command_that_cannot_be_started_ends_at_once_and_says_why(
    supervise: Supervise, argv: list[str], detail: str
) -> None:
    ended = supervise(*argv, stdin=MIB).result()
    assert essence(ended) == ("not_started", None, "", [], 0)
    assert ended["detail"] == detail


def test_without_live_streams_nothing_is_shown_and_all_output_is_logged(supervise: Supervise) -> None:
    ended = supervise(*shell("echo said; echo more >&2"), live=False).result()
    assert (ended["shown"], ended["err"], ended["message"], ended["log"]) == ("", "", "said\n", 10)


def test_a_command_that_closes_its_streams_is_waited_for(supervise: Supervise) -> None:
    ended = supervise(*shell("exec >&- 2>&-; sleep 0.3; exit 4")).result()
    assert essence(ended) == ("exited", 4, "", ["started"], 0)


# Limits.


def test_at_the_soft_limit_the_command_gets_sigterm_and_may_finish_in_its_grace(supervise: Supervise) -> None:
    script = 'trap "sleep 0.2; echo done; exit 0" TERM; echo ready; while :; do sleep 0.1; done'
    running = supervise(*shell(script), timeout=60)
    running.line()
    running.passes(59 - SLACK)
    assert running.goes_on()
    running.passes(1 + SLACK)
    ended = running.result()
    assert essence(ended) == ("timeout", 0, "ready\ndone\n", ["started", "soft_limit"], 0)
    assert 60 <= ended["seconds"] < 60 + SLACK


def test_all_processes_are_killed_after_the_grace(supervise: Supervise) -> None:
    running = supervise(*STUBBORN, timeout=60, grace=60)
    running.line()
    running.passes(60)
    assert running.line() == "got 15"
    running.passes(59 - SLACK)
    assert running.goes_on()
    running.passes(1 + SLACK)
    ended = running.result()
    assert essence(ended) == ("timeout", 137, "ready\ngot 15\n", ["started", "soft_limit", "hard_limit"], 0)
    assert 120 <= ended["seconds"] < 120 + SLACK


def test_without_a_grace_all_processes_are_killed_at_the_limit(supervise: Supervise) -> None:
    running = supervise(*STUBBORN, timeout=60, grace=0)
    running.line()
    running.passes(60)
    ended = running.result()
    assert (ended["cause"], ended["exit_code"] in (137, 143), ended["left"]) == ("timeout", True, 0)
    assert 60 <= ended["seconds"] < 60 + SLACK


def test_a_limit_by_the_real_clock_ends_a_command(supervise: Supervise) -> None:
    ended = supervise("sleep", "300", timeout=0.5, grace=60).result()
    assert essence(ended) == ("timeout", 143, "", ["started", "soft_limit"], 0)
    assert 0.5 <= ended["seconds"] < 0.5 + SLACK


def test_a_command_that_stopped_itself_is_also_asked_to_end(supervise: Supervise) -> None:
    running = supervise(*shell('trap "exit 6" TERM; kill -STOP $$; sleep 60'), timeout=60, grace=60)
    assert becomes(lambda: [*map(state_of, running.wrapper.left())] == ["T"], PATIENCE)
    running.passes(60)
    assert essence(running.result()) == ("timeout", 6, "", ["started", "soft_limit"], 0)


def test_processes_of_a_command_are_killed_with_it_at_the_limit(supervise: Supervise) -> None:
    script = "trap '' TERM; (trap '' TERM; setsid sleep 300) & sleep 300 & echo ready; wait; wait"
    running = supervise(*shell(script), timeout=60, grace=60)
    running.line()
    running.passes(60)
    assert running.goes_on()
    running.passes(60)
    ended = running.result()
    assert (ended["cause"], ended["exit_code"], ended["left"]) == ("timeout", 137, 0)


# Signals that the wrapper receives.


@table("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_is_passed_on_and_the_command_chooses_its_exit_code(supervise: Supervise, number: int) -> None:
    running = supervise(*OBEDIENT)
    assert running.line() == "ready"
    running.send(number)
    message = f"ready\ngot {int(number)}\n"
    assert essence(running.result()) == ("signalled", 5, message, ["started", "signal_passed"], 0)


def test_a_command_that_ignores_a_signal_is_killed_after_five_seconds(supervise: Supervise) -> None:
    running = supervise(*STUBBORN, after_signal=60)
    running.line()
    running.send(signal.SIGTERM)
    assert running.line() == "got 15"
    running.passes(59 - SLACK)
    assert running.goes_on()
    running.passes(1 + SLACK)
    ended = running.result()
    assert essence(ended) == ("signalled", 137, "ready\ngot 15\n", ["started", "signal_passed"], 0)
    assert SECONDS_AFTER_SIGNAL == 5


@table("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_kills_the_command_at_once(supervise: Supervise, second: int) -> None:
    running = supervise(*STUBBORN, after_signal=PATIENCE)
    running.line()
    running.send(signal.SIGINT)
    assert running.line() == "got 2"
    running.send(second)
    ended = running.result()
    assert essence(ended) == ("signalled", 137, "ready\ngot 2\n", ["started", "signal_passed"], 0)
    assert ended["seconds"] < PATIENCE / 2


def test_a_second_hangup_does_not_kill_the_command_at_once(supervise: Supervise) -> None:
    """A closed window causes two hangups: from the shell, and from the kernel when the shell has ended."""
    running = supervise(*STUBBORN, after_signal=60)
    running.line()
    running.send(signal.SIGHUP)
    assert running.line() == "got 1"
    running.send(signal.SIGHUP)
    running.passes(59 - SLACK)
    assert running.goes_on()
    running.passes(1 + SLACK)
    assert essence(running.result())[:3] == ("signalled", 137, "ready\ngot 1\n")


def test_a_signal_after_the_soft_limit_shortens_the_grace_and_keeps_the_cause(supervise: Supervise) -> None:
    running = supervise(*STUBBORN, timeout=60, grace=300)
    running.line()
    running.passes(60)
    assert running.line() == "got 15"
    running.send(signal.SIGTERM)
    assert running.line() == "got 15"
    running.passes(5)
    assert essence(running.result())[:3] == ("timeout", 137, "ready\ngot 15\ngot 15\n")


def test_an_ignored_hangup_stays_ignored_in_the_wrapper_and_the_command(supervise: Supervise, tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = f"echo ready; kill -HUP $$; while [ ! -e {go} ]; do sleep 0.05; done; exit 4"
    running = supervise(*shell(script), through=("sh", "-c", "trap '' HUP; exec \"$@\"", "sh"))
    assert running.line() == "ready"
    running.send(signal.SIGHUP)
    assert running.goes_on()
    go.touch()
    assert essence(running.result()) == ("exited", 4, "ready\n", ["started"], 0)


# Causes that a look of the wrapper finds.


def test_a_cancelled_command_is_asked_to_end_and_killed_after_five_seconds(supervise: Supervise) -> None:
    running = supervise(*STUBBORN, after_signal=60)
    running.line()
    running.answer("cancelled")
    assert running.line() == "got 15"
    running.passes(59 - SLACK)
    assert running.goes_on()
    running.passes(1 + SLACK)
    assert essence(running.result())[:3] == ("cancelled", 137, "ready\ngot 15\n")
    assert SECONDS_AFTER_SIGNAL == 5


def test_a_command_that_used_all_tokens_has_its_grace(supervise: Supervise) -> None:
    running = supervise(*STUBBORN, grace=60)
    running.line()
    running.answer("max_tokens")
    assert running.line() == "got 15"
    running.passes(59 - SLACK)
    assert running.goes_on()
    running.passes(1 + SLACK)
    assert essence(running.result())[:3] == ("max_tokens", 137, "ready\ngot 15\n")


def test_a_cancellation_shortens_the_grace_of_a_limit(supervise: Supervise) -> None:
    running = supervise(*STUBBORN, timeout=60, grace=300)
    running.line()
    running.passes(60)
    assert running.line() == "got 15"
    running.answer("cancelled")
    running.passes(5)
    assert essence(running.result())[:2] == ("timeout", 137)


# Background processes.


def test_output_of_a_background_process_that_ends_soon_is_in_the_message(supervise: Supervise) -> None:
    ended = supervise(*shell("(sleep 0.2; echo late) & echo early"), for_background=PATIENCE).result()
    assert essence(ended) == ("exited", 0, "early\nlate\n", ["started"], 0)


def test_a_background_process_that_holds_the_pipes_is_asked_to_end(supervise: Supervise) -> None:
    source = """
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"told\\n"), os._exit(0)))
if os.fork():
    os._exit(3)
time.sleep(300)
"""
    ended = supervise(*python(source), for_background=0.5).result()
    assert essence(ended) == ("exited", 3, "told\n", ["started", "background_ended"], 0)
    assert 0.5 <= ended["seconds"] < 0.5 + SLACK
    assert SECONDS_FOR_BACKGROUND == 2


def test_a_background_process_that_stopped_itself_is_also_asked_to_end(supervise: Supervise) -> None:
    script = "(trap 'echo told; exit' TERM; echo ready; kill -STOP $(exec sh -c 'echo $PPID'); sleep 60) & exit 0"
    ended = supervise(*shell(script), for_background=1).result()
    assert essence(ended) == ("exited", 0, "ready\ntold\n", ["started", "background_ended"], 0)


def test_a_signal_ends_the_wait_for_background_processes(supervise: Supervise) -> None:
    running = supervise(*shell("(trap '' TERM INT; echo ready; exec sleep 300) & exit 0"), for_background=PATIENCE)
    assert running.line() == "ready"
    assert becomes(lambda: len(running.wrapper.left()) == 1)
    time.sleep(0.2)
    running.send(signal.SIGINT)
    ended = running.result()
    assert essence(ended)[:3] == ("exited", 0, "ready\n")
    assert ended["seconds"] < PATIENCE / 2


@table("leaves", ["", "setsid "])
def test_a_background_process_that_ignores_sigterm_is_killed(supervise: Supervise, leaves: str) -> None:
    ended = supervise(*shell(f"trap '' TERM; exec {leaves}sleep 300 & exit 0"), for_background=0.3).result()
    assert essence(ended) == ("exited", 0, "", ["started", "background_ended"], 0)
    assert 0.6 <= ended["seconds"] < 0.6 + SLACK


@table(("streams", "pipes"), [("", 2), ("exec 2> /dev/null;", 1), ("exec > /dev/null 2>&1;", 0)])
def test_with_keeps_background_a_background_process_stays_and_delays_nothing(
    supervise: Supervise, streams: str, pipes: int
) -> None:
    running = supervise(
        *shell(f"echo done; {streams} (trap '' TERM HUP; exec sleep 300) & true"), keeps_background=True
    )
    running.wrapper.process.wait(PATIENCE)
    ended = running.ended()
    assert essence(ended) == ("exited", 0, "done\n", ["started"], 1)
    assert ended["left_open"] == pipes
    assert len(running.wrapper.left()) == 1


def test_a_command_ended_by_a_signal_leaves_no_process_even_with_keeps_background(supervise: Supervise) -> None:
    running = supervise(*shell("sleep 300 & echo ready; wait"), keeps_background=True)
    running.line()
    running.send(signal.SIGTERM)
    assert essence(running.result())[:2] == ("signalled", 143)


# Readers, input and memory.


@table("reader", ["never reads", "is gone"])
def test_a_slow_or_closed_reader_delays_no_limit(supervise: Supervise, reader: str) -> None:
    running = supervise(*python("while True: os.write(1, b'x' * 65536)"), timeout=0.5, grace=2)
    assert running.wrapper.process.stdout is not None
    if reader == "is gone":
        running.wrapper.process.stdout.close()
    ended = running.ended()
    assert (ended["cause"], ended["left"]) == ("timeout", 0)
    assert ended["exit_code"] == 143
    assert 0.5 <= ended["seconds"] < 2.5 + SLACK


def test_a_late_reader_gets_all_output(supervise: Supervise) -> None:
    running = supervise(*python("os.write(1, b'x' * 65536 * 40) and os.write(1, b'end')"))
    time.sleep(0.3)
    ended = running.result()
    assert (len(ended["shown"]), ended["shown"][-4:]) == (65536 * 40 + 3, "xend")
    assert essence(ended)[:2] == ("exited", 0)


def test_a_closed_reader_changes_neither_the_message_nor_the_exit_code(supervise: Supervise) -> None:
    running = supervise(*python("print(end='x' * 5_000_000 + 'end', flush=True)"))
    assert running.wrapper.process.stdout is not None
    running.wrapper.process.stdout.close()
    running.wrapper.process.wait(PATIENCE)
    ended = running.ended()
    assert (ended["cause"], ended["exit_code"], ended["message"][-4:]) == ("exited", 0, "xend")


def test_a_command_that_never_reads_stdin_ends_with_its_own_exit_code(supervise: Supervise) -> None:
    for script in ("sleep 0.2; exit 3", "exec 0<&-; sleep 0.2; exit 3", "exit 3"):
        assert essence(supervise(*shell(script), stdin=MIB).result()) == ("exited", 3, "", ["started"], 0)


def test_a_command_that_never_reads_stdin_is_ended_at_its_limit(supervise: Supervise) -> None:
    ended = supervise("sleep", "300", stdin=MIB, timeout=0.3).result()
    assert essence(ended) == ("timeout", 143, "", ["started", "soft_limit"], 0)


@table("size", [0, 1, MIB])
def test_a_command_reads_all_input_and_then_end_of_file(supervise: Supervise, size: int) -> None:
    assert supervise(*python("print(len(sys.stdin.read()))"), stdin=size).result()["message"] == f"{size}\n"


def test_a_command_without_input_reads_the_stdin_of_the_wrapper(supervise: Supervise) -> None:
    running = supervise("cat")
    shown, _ = running.wrapper.process.communicate("hello\n", timeout=PATIENCE)
    assert (shown, running.ended()["message"]) == ("hello\n", "hello\n")


@pytest.mark.parametrize("mebibytes", [64, pytest.param(1024, marks=pytest.mark.slow)])
@table("live", [False, True])
def test_memory_does_not_grow_with_the_output_of_a_command(supervise: Supervise, mebibytes: int, *, live: bool) -> None:
    source = f"for _ in range({mebibytes * 16}): os.write(1, b'x' * 65536)\nprint('end', flush=True)"
    running = supervise(*python(source), live=live, stdout=subprocess.DEVNULL)
    running.wrapper.process.wait(600)
    ended = running.ended()
    assert (ended["cause"], ended["exit_code"], ended["message"][-5:]) == ("exited", 0, "xend\n")
    assert len(ended["message"]) == 65536
    assert ended["memory"] < 64 * MIB
    assert ended["log"] < 2 * MIB + 100


def test_memory_does_not_grow_with_output_that_nobody_reads(supervise: Supervise) -> None:
    running = supervise(*python("while True: os.write(1, b'x' * 65536)"), timeout=1, grace=0)
    assert running.ended()["memory"] < 64 * MIB
