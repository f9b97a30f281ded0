"""Many processes write to one full log: no old line and no new line is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Start = Callable[[Sequence[Sequence[object]]], Any]

PROCESSES, ROUNDS, LIMIT = 4, 60, 4096


@table("why", ["it is full", "it has a second name"])
def test_one_of_many_writers_rotates_a_log_and_no_line_is_lost(tmp_path: Path, race: Start, why: str) -> None:
    logs = tmp_path / why
    before = b"x" * (LIMIT - 1) + b"\n" if why == "it is full" else b"one\n"
    (logs / "snapshot").mkdir(parents=True)
    for number in range(ROUNDS):
        (logs / f"{number}.log").write_bytes(before)
        if why == "it has a second name":
            (logs / "snapshot" / f"{number}.log").hardlink_to(logs / f"{number}.log")

    (logs / "turn").touch()
    running = race([("logs", logs, f"w{number}", ROUNDS, LIMIT) for number in range(PROCESSES)])

    assert running.results() == [ROUNDS] * PROCESSES
    lost = {}
    for number in range(ROUNDS):
        old, new = (logs / f"{number}.log.old").read_bytes(), (logs / f"{number}.log").read_bytes()
        lines = sorted((old + new).splitlines(keepends=True))
        wanted = [b'{"by": "w%d", "number": %d}\n' % (writer, number) for writer in range(PROCESSES)]
        if (old.startswith(before), lines) != (True, sorted([before, *wanted])):
            lost[number] = (len(old), new)
    assert lost == {}
    assert {path.read_bytes() for path in (logs / "snapshot").iterdir()} <= {before}
