"""Many processes at one log that is full: every line that was there, and every new one, is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Start = Callable[[Sequence[Sequence[object]]], Any]

PROCESSES, ROUNDS, LIMIT = 4, 200, 4096


@pytest.mark.parametrize("why", ["it is full", "it has a second name"])
def test_one_of_many_writers_makes_a_log_the_old_file_and_no_line_is_lost(
    tmp_path: Path, race: Start, why: str
) -> None:
    before = b"x" * (LIMIT - 1) + b"\n" if why == "it is full" else b"one\n"
    (tmp_path / "snapshot").mkdir()
    for number in range(ROUNDS):
        (tmp_path / f"{number}.log").write_bytes(before)
        if why == "it has a second name":
            (tmp_path / "snapshot" / f"{number}.log").hardlink_to(tmp_path / f"{number}.log")

    (tmp_path / "turn").touch()
    running = race([("logs", tmp_path, f"w{number}", ROUNDS, LIMIT) for number in range(PROCESSES)])

    assert running.results() == [ROUNDS] * PROCESSES
    lost = {}
    for number in range(ROUNDS):
        old, new = (tmp_path / f"{number}.log.old").read_bytes(), (tmp_path / f"{number}.log").read_bytes()
        lines = sorted((old + new).splitlines(keepends=True))
        wanted = [b'{"by": "w%d", "number": %d}\n' % (writer, number) for writer in range(PROCESSES)]
        if (old.startswith(before), lines) != (True, sorted([before, *wanted])):
            lost[number] = (len(old), new)
    assert lost == {}
    assert {path.read_bytes() for path in (tmp_path / "snapshot").iterdir()} <= {before}
