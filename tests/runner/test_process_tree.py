"""The processes of a command. They are real, and each test has its own wrapper."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.runner import process_tree
from tests.runner.conftest import PRELUDE, becomes, linux, needs_user
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.runner.conftest import Wrapper

    Wrap = Callable[..., Wrapper]

pytestmark = linux


def test_the_exit_code_is_the_one_that_a_shell_reports(wrap: Wrap) -> None:
    source = "print([ended(begin('sh', '-c', command)) for command in sys.argv[1:]])"
    commands = ("exit 0", "exit 3", "exit 255", "kill -9 $$", "kill -TERM $$", "kill -ABRT $$")
    assert wrap(source, *commands).result() == "[0, 3, 255, 137, 143, 134]"


def test_the_exit_code_is_right_if_many_other_children_are_reaped(wrap: Wrap) -> None:
    source = """
child = begin("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (exit $i) & (sleep 0.05; exit 9) & done; exit 3")
until(lambda: not process_tree.descendants())
process_tree.reap(child)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print(child.exit_code)
"""
    assert wrap(source).result() == "3"


@table("ignored", [False, True])
def test_the_exit_code_is_right_if_the_caller_ignores_sigchld(wrap: Wrap, *, ignored: bool) -> None:
    through = (
        sys.executable,
        "-c",
        "import os, signal, sys; signal.signal(17, 1); os.execv(sys.argv[1], sys.argv[1:])",
    )
    assert wrap("print(ended(begin('sh', '-c', 'exit 3')))", through=through if ignored else ()).result() == "3"


CANNOT_BE_STARTED = [
    ("no-such-command", ".", "FileNotFoundError: no-such-command"),
    ("/", ".", "PermissionError: /"),
    ("./text", ".", "OSError: ./text"),
    ("true", "no-such-folder", "FileNotFoundError: no-such-folder"),
]


def test_a_command_that_cannot_be_started_raises_and_leaves_no_process(wrap: Wrap, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a program", encoding="utf-8")
    (tmp_path / "text").chmod(0o755)
    source = """
os.chdir(sys.argv[2])
for name, folder, _ in json.loads(sys.argv[1]):
    try:
        begin(name, cwd=folder)
    except OSError as error:
        print(f"{type(error).__name__}: {error.filename}")
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        print("no child")
"""
    told = wrap(source, json.dumps(CANNOT_BE_STARTED), str(tmp_path)).result().splitlines()
    assert told == [line for *_, error in CANNOT_BE_STARTED for line in (error, "no child")]


RECORD = """
import json, os, signal
print(json.dumps({
    "leader": os.getsid(0) == os.getpgrp() == os.getpid(),
    "open": [n for n in range(64) if os.path.exists(f"/proc/self/fd/{n}")],
    "ignored": [n for n in signal.valid_signals() if signal.getsignal(n) is signal.SIG_IGN],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "terminal": os.path.exists("/dev/tty") and not os.system("(: < /dev/tty) 2> /dev/null"),
}), flush=True)
"""


@table("hup", ["SIG_DFL", "SIG_IGN"])
def test_a_command_has_its_own_terminal_session_three_descriptors_and_usual_signals(wrap: Wrap, hup: str) -> None:
    source = """
os.dup2(0, 7)  # inheritable
for number in signal.SIGTERM, signal.SIGUSR1, signal.SIGQUIT:
    signal.signal(number, signal.SIG_IGN)
signal.signal(signal.SIGUSR2, lambda *_: print("the wrapper's handler"))
signal.signal(signal.SIGHUP, getattr(signal, sys.argv[1]))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
ended(begin(*python(sys.argv[2])))
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())) == [signal.SIGINT])
"""
    state, mask = wrap(source, hup, RECORD).result().splitlines()
    assert mask == "True"
    # Python itself ignores these two when it starts.
    of_python = [signal.SIGPIPE, signal.SIGXFSZ]
    assert json.loads(state) == {
        "leader": True,
        "open": [0, 1, 2],
        "ignored": sorted([*of_python, *([signal.SIGHUP] if hup == "SIG_IGN" else [])]),
        "blocked": [],
        "terminal": False,
    }


def test_a_command_gets_the_given_descriptors_in_any_order(wrap: Wrap) -> None:
    source = """
(reader, out), (faults, err) = os.pipe(), os.pipe()
nothing = os.open("/dev/null", os.O_RDONLY)
print(ended(begin("sh", "-c", "echo out; echo err >&2; cat", stdin=nothing, stdout=out, stderr=err)))
print(os.read(reader, 99), os.read(faults, 99))
"""
    assert wrap(source).result().splitlines() == ["0", r"b'out\n' b'err\n'"]


# Starts two sleeping processes: one in its own session whose parent has ended, and one in its own group.
FLEEING = """
import os, subprocess, sys, time
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    os.execvp("sleep", ["sleep", "60"])
os.wait()
subprocess.Popen(["sleep", "60"], process_group=0)
print("fled", flush=True)
"""


def test_processes_that_left_the_session_or_the_group_are_killed(wrap: Wrap) -> None:
    source = """
child = begin(*python(sys.argv[1]))
ended(child)
until(lambda: len(process_tree.descendants()) == 2)
print("found")
print(process_tree.kill_all(child, 5), child.exit_code, process_tree.descendants())
"""
    wrapper = wrap(source, FLEEING)
    assert wrapper.result().splitlines() == ["fled", "found", "[] 0 []"]
    assert wrapper.left() == []


# Starts a child in the session of the caller, a daemon, and a child that starts a daemon during the run and then ends.
# The last child may have its own limit.
BEFORE = """
{
    sleep 61 &
    setsid sleep 62 &
    (eval "$1"; until test -e "$0"; do sleep 0.02; done; setsid sleep 63 &) &
} > /dev/null 2>&1
shift
exec "$@"
"""
OWN_LIMITS = ["", "ulimit -w 100 || ulimit -x 100"]  # for dash and for bash
CHILDREN = """
def children():
    found = open(f"/proc/self/task/{os.getpid()}/children").read().split()
    return sorted(open(f"/proc/{pid}/cmdline").read().replace(chr(0), " ").strip() for pid in found)
"""
ENDS_ALL = """
child = begin("sh", "-c", "exec > /dev/null 2>&1; env -i setsid sleep 60 & (setsid sleep 60 &); sleep 60 & exit 0")
ended(child)
open(sys.argv[1], "w").close()
until(lambda: "sleep 63" in children())
until(lambda: len(process_tree.descendants()) == 3)
process_tree.stop()
process_tree.go_on()
print(process_tree.kill_all(child, 5), process_tree.descendants(), [one for one in children() if one])
"""


@pytest.mark.parametrize("own_limit", OWN_LIMITS)
def test_children_of_the_caller_and_their_processes_are_not_killed(wrap: Wrap, tmp_path: Path, own_limit: str) -> None:
    go = str(tmp_path / "go")
    wrapper = wrap(CHILDREN + ENDS_ALL, go, through=("sh", "-c", BEFORE, go, own_limit))
    assert wrapper.result() == "[] [] ['sleep 61', 'sleep 62', 'sleep 63']"
    assert len(wrapper.left()) == 3


# Starts another wrapper that has a child of its own and ends during the run.
BESIDE = """
(sleep 61 & exec "$1" -c "$2" "$0") > /dev/null 2>&1 &
shift 2
exec "$@"
"""
KEEPS = """
ended(begin("sh", "-c", "setsid sleep 62 &"))
until(lambda: os.path.exists(sys.argv[1]))
"""


def test_a_background_process_of_another_wrapper_is_not_killed(wrap: Wrap, tmp_path: Path) -> None:
    source = """
child = begin("sh", "-c", "setsid sleep 60 > /dev/null 2>&1 &")
ended(child)
open(sys.argv[1], "w").close()
until(lambda: "sleep 62" in children())
print(process_tree.kill_all(child, 5), process_tree.descendants(), [one for one in children() if one])
"""
    go = str(tmp_path / "go")
    wrapper = wrap(CHILDREN + source, go, through=("sh", "-c", BESIDE, go, sys.executable, PRELUDE + KEEPS))
    assert wrapper.result() == "[] [] ['sleep 61', 'sleep 62']"
    assert len(wrapper.left()) == 2


@table(
    ("limit", "most"),
    [(1 << 62, 4), (5 << 42, 3), (3 << 22, 2), (5 << 2, 1), (1000, 1), (2, 1), (999, 0), (1, 0), (0, 0)],
)
def test_nested_runs_take_distinct_limits_while_there_is_room(limit: int, most: int) -> None:
    room, found = range(limit - (limit & -limit) + 1, limit), []
    while (taken := process_tree._lower_limits(limit)) is not None:
        found.append(taken)
        assert room[0] <= taken[0] <= taken[-1] <= room[-1]
        limit, room = taken[-1], taken[:-1]
    assert len(found) == most


def test_without_proc_children_of_the_caller_are_not_killed(wrap: Wrap) -> None:
    source = """
process_tree._PROC = "/nowhere"
process_tree.become_subreaper()
child = begin("sh", "-c", "exec 2>/dev/null; sleep 60 & setsid sleep 60 & sleep 60")
until(lambda: len(process_tree.descendants()) == 4)
print(process_tree.kill_all(child, 5), child.exit_code, process_tree.descendants())
"""
    before = 'sleep 61 > /dev/null 2>&1 & setsid sh -c "sleep 62; true" > /dev/null 2>&1 & exec "$@"'
    wrapper = wrap(source, through=("sh", "-c", before, "sh"))
    assert wrapper.result() == "[] 137 []"
    assert len(wrapper.left()) == 3


def test_a_process_that_a_nested_wrapper_started_is_killed(wrap: Wrap) -> None:
    inner = f"{PRELUDE}\nbegin('setsid', 'sleep', '60', stdout=2)\nos.kill(os.getpid(), 9)"
    source = """
child = begin("sh", "-c", 'exec 2> /dev/null; sleep 60 >&2 & exec "$@"', "sh", sys.executable, "-c", sys.argv[1])
ended(child)
print(process_tree.kill_all(child, 5), child.exit_code)
"""
    wrapper = wrap(source, inner, through=("sh", "-c", 'sleep 61 > /dev/null 2>&1 & exec "$@"', "sh"))
    assert wrapper.result() == "[] 137"
    assert len(wrapper.left()) == 1


def test_without_proc_all_processes_of_a_command_are_killed(wrap: Wrap) -> None:
    source = """
process_tree._PROC = "/nowhere"
child = begin("sh", "-c", "exec 2>/dev/null; sleep 60 & setsid sleep 60 & sleep 60")
until(lambda: len(process_tree.descendants()) == 4)
print(process_tree.kill_all(child, 5), child.exit_code, process_tree.descendants(), "psutil" in sys.modules)
"""
    wrapper = wrap(source)
    assert wrapper.result().splitlines() == ["[] 137 [] True"]
    assert wrapper.left() == []


def test_psutil_is_not_loaded_if_there_is_proc(wrap: Wrap) -> None:
    source = "print(process_tree.kill_all(begin('sleep', '60'), 5), 'psutil' in sys.modules)"
    assert wrap(source).result() == "[] False"


# Prints the signal that it gets, and ends. The signal may come during the first write, so nothing is buffered.
LISTENS = """
import os, signal, sys, time
def got(number, _):
    os.write(1, f"{sys.argv[1]} {signal.Signals(number).name}\\n".encode())
    os._exit(4)
signal.signal(signal.SIGTERM, got)
os.write(1, f"{sys.argv[1]} ready\\n".encode())
time.sleep(60)
"""


def test_a_signal_reaches_only_the_process_group_of_the_command(wrap: Wrap) -> None:
    source = """
reader, writer = os.pipe()
in_group, left = (shlex.join(python(sys.argv[1], name)) for name in ("group", "left"))
child = begin("sh", "-c", f"{in_group} & setsid {left} & wait; wait; exit 5", stdout=writer)
heard = open(reader)
print(heard.readline() + heard.readline(), end="")
process_tree.send(child, signal.SIGTERM)
print(ended(child), heard.readline(), end="")
until(lambda: len(process_tree.descendants()) == 1)
print(process_tree.kill_all(child, 5))
"""
    *ready, ended, left = wrap(source, LISTENS).result().splitlines()
    assert (sorted(ready), ended, left) == (["group ready", "left ready"], "143 group SIGTERM", "[]")


def test_a_signal_reaches_the_group_after_its_leader_has_ended(wrap: Wrap) -> None:
    source = """
reader, writer = os.pipe()
child = begin("sh", "-c", '"$@" & exit 5', "sh", *python(sys.argv[1], "left"), stdout=writer)
heard = open(reader)
print(ended(child), heard.readline(), end="")
process_tree.send(child, signal.SIGTERM)
print(heard.readline(), end="")
"""
    assert wrap(source, LISTENS).result().splitlines() == ["5 left ready", "left SIGTERM"]


def test_all_processes_of_a_command_stop_and_run_again(wrap: Wrap, tmp_path: Path) -> None:
    source = """
os.chdir(sys.argv[1])
count = 'while :; do echo >> $1; sleep 0.01; done'
child = begin("sh", "-c", f"setsid sh -c '{count}' sh a & sh -c '{count}' sh b & wait")
def grown():
    before = [os.path.getsize(name) for name in "ab"]
    time.sleep(0.2)
    return [os.path.getsize(name) > size for name, size in zip("ab", before)]
until(lambda: os.path.exists("a") and os.path.exists("b"))
print(grown())
process_tree.stop()
print(grown(), len(process_tree.descendants()) >= 3)
process_tree.go_on()
print(grown())
print(process_tree.kill_all(child, 5))
"""
    expected = ["[True, True]", "[False, False] True", "[True, True]", "[]"]
    assert wrap(source, str(tmp_path)).result().splitlines() == expected


def test_stopped_processes_are_killed_too(wrap: Wrap) -> None:
    source = """
child = begin("sh", "-c", "sleep 60 & setsid sleep 60 & wait")
until(lambda: len(process_tree.descendants()) == 3)
process_tree.stop()
print(process_tree.kill_all(child, 5), child.exit_code)
"""
    wrapper = wrap(source)
    assert wrapper.result() == "[] 137"
    assert wrapper.left() == []


def test_the_command_dies_with_its_wrapper(wrap: Wrap) -> None:
    wrapper = wrap("begin('sh', '-c', 'echo there; exec sleep 60'); time.sleep(60)")
    assert wrapper.line() == "there"
    assert len(wrapper.left()) == 1

    os.kill(wrapper.process.pid, signal.SIGKILL)

    assert becomes(lambda: wrapper.left() == [])


@needs_user
def test_kill_all_returns_and_does_not_await_a_process_that_it_may_not_kill(wrap_as_user: Wrap, tmp_path: Path) -> None:
    source = """
def is_wholly_root(pid):
    with open(f"/proc/{pid}/status") as file:
        return "Uid:\\t0\\t0\\t0\\t0\\n" in file

child = begin("sh", "-c", "sleep 60 > /dev/null & exec $0 --reuid=0 sleep 60 > /dev/null 2>&1", sys.argv[1])
until(lambda: len(process_tree.descendants()) == 2 and is_wholly_root(child.pid))
begun = time.monotonic()
left = process_tree.kill_all(child, 0.5)
took = time.monotonic() - begun
print(left == [child.pid], child.exit_code, process_tree.descendants() == left, 0.5 < took < 30, len(left), flush=True)
"""
    program = tmp_path / "setpriv"  # becomes root for every user, as sudo does
    shutil.copy(shutil.which("setpriv") or "", program)
    program.chmod(0o4755)
    for folder in [tmp_path, *tmp_path.parents]:
        folder.chmod(folder.stat().st_mode | 0o055)
    wrapper = wrap_as_user(source, str(program))
    assert wrapper.result() == "True None True True 1"
