"""Faults at any system call of the writer of a log: the log has the beginning and the end of the output."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from gaia_sessions.store.file_store import FileStore
from tests.faults.conftest import STRACE, leftovers, run, touching

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from _pytest.mark import ParameterSet

    from tests.faults.conftest import Call, Ended

    Write = Callable[..., tuple[str, Ended]]
    FaultAt = Callable[[str, int], dict[str, tuple[str, int, str, int]]]

MIB = 1 << 20
PIECE, PIECES = 500_009, 9
"""With these sizes, the log replaces its file once in between and once at the end."""
WRITTEN = b"".join(b"%015d\n" % number for number in range(PIECE * PIECES // 16 + 1))[: PIECE * PIECES]
LEFT_OUT = re.compile(rb"\n\[gaia-sessions: ([0-9]+) bytes left out\]\n")

PROGRAM = f"""
import sys
from gaia_sessions.store.file_store import FileStore
with open(sys.argv[2], "rb") as file:
    written = file.read()
store = FileStore(sys.argv[1])
output = store.open_output(store.read("agent-1"), 1)
for number in range({PIECES}):
    output.write(written[number * {PIECE}:(number + 1) * {PIECE}])
    print((number + 1) * {PIECE}, flush=True)
output.close()
print("closed", flush=True)
"""


def errors(*names: str) -> list[ParameterSet]:
    """Slow rows: each error at each call."""
    return [pytest.param(name, 1, marks=pytest.mark.slow) for name in names]


def end_of(log: bytes) -> int:
    """The number of written bytes that ``log`` covers; -1 if it is not a correct log."""
    found = LEFT_OUT.search(log)
    if found is None:
        return len(log) if len(log) <= 3 * MIB and WRITTEN.startswith(log) else -1
    tail, first = log[found.end() :], found.start() + int(found[1])
    is_whole = found.start() == MIB and log[:MIB] == WRITTEN[:MIB] and WRITTEN[first:].startswith(tail)
    return first + len(tail) if is_whole and MIB <= len(tail) <= 2 * MIB else -1


@pytest.fixture(name="write")
def write_of(tmp_path: Path) -> Write:
    """Makes a root with one session in a folder, and a process that writes a log there. Returns root and result."""
    told = tmp_path / "told"
    told.write_bytes(WRITTEN)

    def write(folder: Path, *trace: str) -> tuple[str, Ended]:
        root = str(folder / "root")
        gaia_sessions.create_session("worker", agent_id="agent-1", root=root)
        return root, run([sys.executable, "-c", PROGRAM, root, str(told)], trace=trace)

    return write


@pytest.fixture
def calls(write: Write, tmp_path: Path) -> list[Call]:
    """The calls of the writer that change something in its folder."""
    folder = tmp_path / "traced"
    _, ended = write(folder, *STRACE, "-o", f"{folder}.trace")
    assert (ended.returncode, ended.stderr) == (0, "")
    touched = touching(f"{folder}.trace", str(folder))
    return [call for call in touched if call.changes and "write(1<" not in call.line]


@pytest.fixture
def fault_at(write: Write, calls: list[Call], tmp_path: Path) -> FaultAt:
    """Injects a fault at every ``step``-th call. Returns stderr, exit code, acknowledged bytes and bytes in the log."""

    def inject(call: Call, fault: str, folder: Path) -> tuple[str, int, str, int]:
        trace = ["strace", "-f", "-e", f"trace={call.name}", "-e", "signal=none", "-o", f"{folder}.trace"]
        root, ended = write(folder, *trace, "-e", f"inject={call.name}:{fault}".replace("@", str(call.ordinal)))
        told, store = ended.stdout.split(), FileStore(root)
        log = end_of(store.output(store.read("agent-1"), 1))
        return ended.stderr, ended.returncode, told[-1] if told else "0", log

    return lambda fault, step: {
        str(call): inject(call, fault, tmp_path / str(number)) for number, call in [*enumerate(calls)][::step]
    }


pytestmark = pytest.mark.usefixtures("needs_strace", "on_disk")


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_a_log_whose_writer_is_killed_at_any_call_has_all_acknowledged_output(
    calls: list[Call], fault_at: FaultAt, tmp_path: Path, step: int
) -> None:
    assert {call.name.removesuffix("at").removesuffix("at2") for call in calls} >= {"open", "write", "rename", "fsync"}

    told = fault_at("signal=SIGKILL:when=@", step)

    assert {code for _, code, _, _ in told.values()} == {-9}
    assert {call: found for call, found in told.items() if found[3] < int(found[2])} == {}
    logs = [path for path in tmp_path.glob("*/root/agent-1/*") if path.name not in ("state.json", "output-1.log")]
    assert {str(path.relative_to(path.parents[1])) for path in logs} <= {
        left for root in tmp_path.glob("*/root") for left in leftovers(root)
    }


@pytest.mark.parametrize(("error", "step"), [("ENOSPC", 3), *errors("EIO", "ENOSPC")])
def test_a_log_is_correct_in_the_end_after_one_refused_call(
    calls: list[Call], fault_at: FaultAt, error: str, tmp_path: Path, step: int
) -> None:
    told = fault_at(f"error={error}:when=@", step)

    assert {found[:3] for found in told.values()} == {("", 0, "closed")}
    assert min(found[3] for found in told.values()) >= 0
    assert {told[call][3] for call in map(str, calls[:10]) if call in told} == {len(WRITTEN)}
    assert [left for root in tmp_path.glob("*/root") for left in leftovers(root)] == []


@pytest.mark.parametrize(("error", "step"), [("EDQUOT", 3), *errors("EIO", "EDQUOT")])
def test_a_log_keeps_its_earlier_output_if_every_later_call_is_refused(
    fault_at: FaultAt, error: str, step: int
) -> None:
    told = fault_at(f"error={error}:when=@+", step)
    on_the_log = {call: found for call, found in told.items() if not call.startswith("write")}  # stdout is written too

    assert {found[:3] for found in on_the_log.values()} == {("", 0, "closed")}
    assert min(found[3] for found in told.values()) >= 0
