"""Many processes at one log that is full: every line that was there, and every new one, is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Start = Callable[[Sequence[Sequence[object]]], Any]

PROCESSES, ROUNDS, LIMIT = 4, 200, 4096


def test_of_many_writers_that_find_a_log_full_one_makes_it_the_old_file_and_no_line_is_lost(
    tmp_path: Path, race: Start
) -> None:
    before = b"x" * (LIMIT - 1) + b"\n"
    for number in range(ROUNDS):
        (tmp_path / f"{number}.log").write_bytes(before)

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
