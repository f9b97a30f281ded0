"""Descriptions of real processes, and the proof that a process is gone. Only paths of system files are replaced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.session.record import decode, encode, new_record
from gaia_sessions.system import boots, processes
from gaia_sessions.system.processes import describe, elsewhere, is_alive, is_gone, nearest_ancestor
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gaia_sessions.session.schema import HostProcess, Record

    Renamed = Callable[[bytes], subprocess.Popen[bytes]]

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs Linux with its /proc")

NOBODY = 2**22 + 1  # larger than any pid

# Prints that it is ready, and runs until its standard input ends.
LIVES = "import sys; print('ready', flush=True); sys.stdin.read()"
RENAMED = "import sys; open('/proc/self/comm', 'wb').write(bytes.fromhex(sys.argv[1]))\n" + LIVES


THIS_MACHINE = "3d1219c7c4c5404aaa1f6d2a48adfda4"


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts children and kills them at the end of the test."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(source: str = LIVES, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", source, *arguments]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        return child

    yield begin
    for child in started:
        child.kill()
        child.communicate()


@pytest.fixture
def child(start: Callable[..., subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    return start()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the ID of this machine."""
    path = tmp_path / "machine-id"
    path.write_text(f"{THIS_MACHINE}\n", encoding="utf-8")
    monkeypatch.setattr(processes, "_MACHINE", str(path))
    return path


@pytest.fixture
def rebooted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def reboot() -> None:
        path = tmp_path / "boot-id"
        path.write_text("the next boot\n", encoding="utf-8")
        monkeypatch.setattr(boots, "_BOOT_ID", str(path))

    return reboot


def described(pid: int) -> HostProcess:
    found = describe(pid)
    assert found is not None
    return found


def text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8").strip()


@pytest.mark.usefixtures("machine")
def test_the_description_of_a_process_has_its_pid_start_boot_namespace_and_machine(
    child: subprocess.Popen[bytes],
) -> None:
    assert described(child.pid) == {
        "pid": child.pid,
        "started": text(f"/proc/{child.pid}/stat").split()[21],  # the name of Python contains no blank
        "boot_id": text("/proc/sys/kernel/random/boot_id"),
        "pid_ns": os.readlink("/proc/self/ns/pid"),
        "machine": THIS_MACHINE,
    }


@pytest.mark.usefixtures("machine")
def test_a_record_with_a_described_process_can_be_read_back() -> None:
    record: Record = {**record_with({"run": 1}), "runs": [{"run": 1, "host_process": described(os.getpid())}]}
    assert decode(encode(record), "agent-1") == record


def test_a_description_leaves_out_a_machine_without_an_id(machine: Path) -> None:
    machine.unlink()
    assert sorted(described(os.getpid())) == ["boot_id", "pid", "pid_ns", "started"]


def test_a_process_that_does_not_exist_has_no_description() -> None:
    assert describe(NOBODY) is None


def test_without_a_boot_id_a_process_has_no_description(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boots, "_BOOT_ID", "/nowhere")
    assert describe(os.getpid()) is None


def test_this_process_is_not_gone() -> None:
    assert not is_gone(described(os.getpid()))


def test_a_child_is_not_gone_until_it_is_killed(child: subprocess.Popen[bytes]) -> None:
    process = described(child.pid)
    assert not is_gone(process)
    child.kill()
    child.wait()
    assert is_gone(process)


def test_a_zombie_child_is_gone(child: subprocess.Popen[bytes]) -> None:
    process = described(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # the child has ended and stays a zombie
    assert text(f"/proc/{child.pid}/stat").rpartition(")")[2].split()[0] == "Z"
    assert is_gone(process)


def test_a_process_is_gone_if_its_pid_belongs_to_another_process(child: subprocess.Popen[bytes]) -> None:
    process = described(child.pid)
    assert is_gone({**process, "started": str(int(process["started"]) - 1)})


@table("name", [b"a) Z 1 (b", b"two words", b") ) )", b"\xff\xfe", b"(", b"", b"a\nZ 1"])
def test_a_process_with_a_strange_name_is_described_and_is_not_gone(
    start: Callable[..., subprocess.Popen[bytes]], name: bytes
) -> None:
    plain, renamed = described(start().pid), described(start(RENAMED, name.hex()).pid)
    assert int(renamed["started"]) >= int(plain["started"])
    assert not is_gone(renamed)


@pytest.mark.usefixtures("machine")
def test_a_process_is_gone_after_a_reboot_of_its_machine(
    child: subprocess.Popen[bytes], rebooted: Callable[[], None]
) -> None:
    process = described(child.pid)
    rebooted()
    assert is_gone(process)


def test_a_boot_of_another_machine_does_not_prove_a_process_gone(
    child: subprocess.Popen[bytes], machine: Path, rebooted: Callable[[], None]
) -> None:
    process = described(child.pid)
    machine.write_text("0123456789abcdef" * 2, encoding="utf-8")
    rebooted()
    assert not is_gone(process)


@pytest.mark.parametrize("known", ["then", "now", "never"])
def test_another_boot_does_not_prove_a_process_gone_if_a_machine_is_unknown(
    child: subprocess.Popen[bytes], machine: Path, rebooted: Callable[[], None], known: str
) -> None:
    at_first = machine.read_text(encoding="utf-8")
    if known != "then":
        machine.unlink()
    process = described(child.pid)
    if known == "now":
        machine.write_text(at_first, encoding="utf-8")
    else:
        machine.unlink(missing_ok=True)
    rebooted()
    assert not is_gone(process)


@pytest.mark.parametrize("content", ["", "\n", "uninitialized\n"], ids=["empty", "an empty line", "not set up yet"])
def test_an_empty_or_uninitialized_machine_id_counts_as_unknown(
    child: subprocess.Popen[bytes], machine: Path, rebooted: Callable[[], None], content: str
) -> None:
    """System images contain such IDs: see machine-id(5)."""
    machine.write_text(content, encoding="utf-8")
    process = described(child.pid)
    rebooted()
    assert not is_gone(process)


def test_a_process_of_another_pid_namespace_is_not_proved_gone(child: subprocess.Popen[bytes]) -> None:
    process: HostProcess = {**described(child.pid), "pid_ns": "pid:[1]"}
    child.kill()
    child.wait()
    assert not is_gone(process)


def test_a_process_in_a_container_is_not_proved_gone_from_outside() -> None:
    source = "import json, os; from gaia_sessions.system.processes import *; print(json.dumps(describe(os.getpid())))"
    inside = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", source]
    done = subprocess.run(inside, capture_output=True, check=False, cwd=Path(processes.__file__).parents[2])
    if done.returncode:
        pytest.skip("needs the right to make a pid namespace")
    process = json.loads(done.stdout)
    assert (process["pid"], process["boot_id"]) == (1, described(os.getpid())["boot_id"])
    assert process["pid_ns"] != described(os.getpid())["pid_ns"]
    assert not is_gone(process)


@table(
    "change, where",
    [
        ({}, ""),
        ({"pid": NOBODY, "started": "1"}, ""),
        ({"boot_id": "b"}, "on another machine"),
        ({"boot_id": "b", "pid_ns": "pid:[1]"}, "on another machine"),
        ({"pid_ns": "pid:[1]"}, "in another container"),
    ],
)
def test_a_process_is_elsewhere_if_its_boot_or_its_pid_namespace_is_another(change: HostProcess, where: str) -> None:
    assert elsewhere({**described(os.getpid()), **change}) == where


def test_it_is_unknown_where_a_process_is_that_was_only_given_by_its_pid() -> None:
    assert elsewhere({"pid": os.getpid()}) == ""


def test_an_incomplete_description_does_not_prove_a_process_gone(child: subprocess.Popen[bytes]) -> None:
    process: Any = described(child.pid)
    child.kill()
    child.wait()
    for missing in ("pid", "started", "boot_id", "pid_ns"):
        assert not is_gone({key: value for key, value in process.items() if key != missing})  # type: ignore[arg-type]


def test_if_the_pid_namespace_is_unknown_no_process_is_proved_gone(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = described(child.pid)
    child.kill()
    child.wait()
    monkeypatch.setattr(processes, "_PID_NS", "/nowhere")
    assert not is_gone(process)


@pytest.mark.parametrize("offset", ["0 0", "5 0", "-5 0", "0 1"])
def test_with_a_shifted_boot_clock_no_process_is_described_or_proved_gone(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, offset: str
) -> None:
    process = described(child.pid)
    (tmp_path / "offsets").write_text(f"monotonic           0         0\nboottime  {offset}\n", encoding="utf-8")
    monkeypatch.setattr(processes, "_TIME_OFFSETS", str(tmp_path / "offsets"))
    child.kill()
    child.wait()
    shifted = offset != "0 0"
    assert (is_gone(process), describe(os.getpid()) is None) == (not shifted, shifted)


def test_a_process_is_described_on_a_system_without_time_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_TIME_OFFSETS", "/nowhere")
    assert describe(os.getpid()) is not None


def test_a_process_that_cannot_be_inspected_is_not_proved_gone(child: subprocess.Popen[bytes]) -> None:
    """Like another user if ``/proc`` is mounted with ``hidepid``; a limit on open files simulates this."""
    source = (
        "import json, resource, sys; from gaia_sessions.system import processes as p\n"
        "here = p._local_keys(); p._local_keys = lambda: here; process = json.loads(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); print(p.is_gone(process))"
    )
    command = [sys.executable, "-c", source, json.dumps(described(child.pid))]
    done = subprocess.run(command, capture_output=True, check=True, cwd=Path(processes.__file__).parents[2])
    assert done.stdout == b"False\n"


def record_with(*runs: dict[str, Any]) -> Record:
    record: Any = {**new_record("agent-1", "Explore", "-", {}, datetime(2026, 1, 8, tzinfo=UTC)), "runs": list(runs)}
    return decode(encode(record), "agent-1")


def test_a_process_is_alive_then_gone_and_an_unknown_process_is_neither(child: subprocess.Popen[bytes]) -> None:
    there, elsewhere = described(child.pid), {**described(child.pid), "pid_ns": "pid:[1]"}
    before = [(is_alive(process), is_gone(process)) for process in (there, elsewhere, {})]  # type: ignore[arg-type]
    child.kill()
    child.wait()

    assert before == [(True, False), (False, False), (False, False)]
    assert (is_alive(there), is_gone(there)) == (False, True)


# The process "wanted" starts the process "between", which starts a process that searches its ancestors.
LOOKS = "from gaia_sessions.system.processes import *; print(nearest_ancestor({names}), flush=True)"
FAMILY = """
import os, subprocess, sys
name, *names = sys.argv[2:]
open("/proc/self/comm", "w").write(name)
if not names:
    subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
else:
    print(os.getpid(), flush=True)
    subprocess.run([sys.executable, "-c", sys.orig_argv[2], sys.argv[1], *names], check=True)
"""


def family(wanted: tuple[str, ...], *names: str) -> tuple[list[str], str]:
    """Returns the pids of all ancestors except the last, and the pid that the youngest process found."""
    command = [sys.executable, "-c", FAMILY, LOOKS.format(names=wanted), *names]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(processes.__file__).parents[2]
    ).stdout.split()
    return done[:-1], done[-1]


@pytest.mark.parametrize(
    ("wanted", "names", "generation"),
    [
        pytest.param(("wanted",), ("wanted", "between"), 0, id="above another process"),
        pytest.param(("wanted",), ("wanted", "wanted", "between"), 1, id="the nearest of two"),
        pytest.param(("other", "wanted"), ("other", "wanted", "between"), 1, id="the nearest of either name"),
        pytest.param(("two words)",), ("two words)", "between"), 0, id="a name with blanks and brackets"),
    ],
)
def test_the_nearest_ancestor_with_one_of_the_names_is_found(
    wanted: tuple[str, ...], names: tuple[str, ...], generation: int
) -> None:
    pids, found = family(wanted, *names)
    assert found == pids[generation]


def test_an_ancestor_that_renamed_itself_is_found_by_the_file_it_runs() -> None:
    """Newer versions of Node name their main thread ``MainThread`` or ``node-MainThread``."""
    file = os.path.basename(os.readlink("/proc/self/exe"))
    looks = f"import os; print(os.getppid()); {LOOKS.format(names=(file,))}"
    command = [sys.executable, "-c", FAMILY, looks, "node-MainThread"]
    folder = Path(processes.__file__).parents[2]
    parent, found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout.split()
    assert found == parent


def test_nearest_ancestor_is_none_if_no_ancestor_has_a_wanted_name() -> None:
    assert family(("nobody is called so",), "wanted", "between")[1] == "None"
    assert nearest_ancestor(()) is None


REPORTED = (
    "from gaia_sessions.system.processes import describe_ancestor; "
    "print((describe_ancestor({names!r}, {reported!r}) or {{}}).get('pid'))"
)


def reported_to_a_child(reported: str, names: tuple[str, ...] = ()) -> str:
    command = [sys.executable, "-c", REPORTED.format(names=names, reported=reported)]
    folder = Path(processes.__file__).parents[2]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout.strip()


def test_a_pid_that_a_client_reports_is_used_only_if_it_is_an_ancestor(child: subprocess.Popen[bytes]) -> None:
    assert reported_to_a_child(str(os.getpid())) == str(os.getpid())
    assert reported_to_a_child(str(os.getppid())) == str(os.getppid())
    assert reported_to_a_child("1") == "1"
    own = text("/proc/self/comm")
    assert reported_to_a_child(str(child.pid), (own,)) == "None"
    assert reported_to_a_child("", (own,)) == reported_to_a_child("no pid", (own,)) == str(os.getpid())


def test_a_process_is_not_its_own_ancestor() -> None:
    own = text("/proc/self/comm")
    found = nearest_ancestor((own,))
    assert found != os.getpid()


LOCKS = """
import fcntl, json, sys
from gaia_sessions.system.processes import describe_holder
with open(sys.argv[1], "ab") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print(json.dumps(describe_holder(sys.argv[1])), flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("knows", ["its pid", "another namespace", "no processes"])
def test_a_process_that_held_a_lock_is_gone_once_the_lock_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rebooted: Callable[[], None], knows: str
) -> None:
    lock = tmp_path / "its.lock"
    with subprocess.Popen(
        [sys.executable, "-c", LOCKS, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        process: HostProcess = json.loads(holder.stdout.readline())
        if knows != "its pid":
            process["pid_ns"] = "pid:[1]"
        if knows == "no processes":
            monkeypatch.setattr(processes, "_PID_NS", "/nowhere")
        assert (is_gone(process), is_alive(process)) == (False, True)
        holder.kill()
        holder.wait()
    assert (is_gone(process), is_alive(process)) == (True, False)
    lock.unlink()
    assert is_gone(process)
    for other in ({"lock": "/nowhere/its.lock"}, {"lock_folder": "1:2"}):  # like in another container
        assert is_gone({**process, **other}) == (knows == "its pid")  # type: ignore[typeddict-item]  # its keys
    rebooted()
    assert not is_gone({**process, "pid_ns": "pid:[1]", "machine": "another"})


def test_a_running_process_that_released_its_lock_counts_as_gone(tmp_path: Path) -> None:
    """For example a lost asynchronous task. A removed lock file proves nothing."""
    lock = tmp_path / "its.lock"
    process: HostProcess = processes.describe_holder(str(lock))
    assert (is_gone(process), is_alive(process)) == (False, True)
    lock.touch()
    assert (is_gone(process), is_alive(process)) == (True, False)
