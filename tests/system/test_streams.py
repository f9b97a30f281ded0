"""The standard streams of real processes: closed, endless and silent streams, and readers that leave."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Sequence

PATIENCE = 60
"""A process that takes this many seconds counts as hanging."""

FOR_EVER = 1e6

CLOSED = [numbers for length in range(4) for numbers in combinations((0, 1, 2), length)]

# Closes streams like a careless parent, and reports on them through a file that was opened before.
SECURED = """
import json, os, sys
from gaia_sessions.system import streams

report = os.open(sys.argv[1], os.O_WRONLY)
closed = json.loads(sys.argv[2])


def of(number):
    about = os.fstat(number)
    return [about.st_dev, about.st_ino, about.st_rdev]


before = [of(number) for number in (0, 1, 2)]
for number in closed:
    os.close(number)
streams.fill_closed_streams()
streams.fill_closed_streams()
after = [of(number) for number in (0, 1, 2)]
opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(3)]
read = len(os.read(0, 10))
written = [os.write(number, b"said") for number in (1, 2)]
told = {"before": before, "after": after, "opened": opened, "report": report, "read": read, "written": written}
os.write(report, json.dumps(told).encode())
"""

READS = """
import sys
from gaia_sessions.system import streams

sys.stdout.buffer.write(streams.read_input(int(sys.argv[1]), float(sys.argv[2])))
"""

WRITES = """
import sys
from gaia_sessions.system import streams

whole = streams.write_output(b"0123456789abcdef" * (int(sys.argv[1]) // 16), float([*sys.argv, 60][2]))
if len(sys.argv) > 2:
    sys.stderr.write(f"{whole} ")
sys.stderr.write("went on")
"""


def command(script: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", script, *map(str, arguments)]


def pipe_of(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def read_by_child(data: bytes, limit: int, seconds: float = FOR_EVER) -> bytes:
    """Returns what a process reads if its input is ``data``."""
    done = subprocess.run(command(READS, limit, seconds), input=data, capture_output=True, timeout=PATIENCE, check=True)
    assert done.stderr == b""
    return done.stdout


@table("closed", CLOSED)
def test_closed_streams_are_filled_and_open_streams_are_left_alone(tmp_path: Path, closed: Sequence[int]) -> None:
    report = tmp_path / str(closed)
    report.touch()
    done = subprocess.run(
        command(SECURED, report, json.dumps(closed)), input=b"heard", capture_output=True, timeout=PATIENCE, check=True
    )
    told = json.loads(report.read_bytes())
    null = os.stat(os.devnull)
    filled = [null.st_dev, null.st_ino, null.st_rdev]
    assert told["after"] == [filled if number in closed else told["before"][number] for number in (0, 1, 2)]
    assert filled not in told["before"]
    assert all(number > 2 for number in told["opened"])
    assert len(set(told["opened"])) == 3
    assert max(told["opened"]) <= told["report"] + 3  # nothing was opened without need
    assert (told["read"], told["written"]) == (0 if 0 in closed else len("heard"), [len("said"), len("said")])
    assert done.stdout == (b"" if 1 in closed else b"said")
    assert done.stderr == (b"" if 2 in closed else b"said")


@table("closed", CLOSED)
def test_a_process_started_with_closed_streams_reads_and_writes_nothing_there(
    tmp_path: Path, closed: Sequence[int]
) -> None:
    report = tmp_path / str(closed)
    script = (
        "import sys; from gaia_sessions.system import streams; streams.fill_closed_streams(); "
        "data = streams.read_input(100, 60); streams.write_output(b'said', 60); "
        "file = open(sys.argv[1], 'wb'); file.write(data + b' %d' % (file.fileno() > 2)); file.close()"
    )
    closing = " ".join(f"{number}>&-" for number in closed)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", *command(script, report)],
        input=b"heard",
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert report.read_bytes() == (b" 1" if 0 in closed else b"heard 1")
    assert (done.stdout, done.stderr) == (b"" if 1 in closed else b"said", b"")


@table("size", [0, 1, 99, 100, 101, 102, 5000])
def test_input_is_read_to_its_end_or_one_byte_over_the_limit(size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    assert read_by_child(data, 100) == data[:101]


@table("limit", [0, 1, 65_535, 65_536, 65_537, 300_000])
def test_the_input_limit_holds_below_and_above_the_size_of_a_pipe(limit: int) -> None:
    data = os.urandom(1024) * 300
    assert read_by_child(data, limit) == data[: limit + 1]
    assert read_by_child(data[:limit], limit) == data[:limit]


def test_input_that_never_ends_is_read_to_one_byte_over_the_limit() -> None:
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            command(READS, 1 << 20, FOR_EVER), stdin=endless, capture_output=True, timeout=PATIENCE, check=True
        )
    assert (done.stdout, done.stderr) == (bytes((1 << 20) + 1), b"")


def test_a_file_is_read_like_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"from a file")
    with path.open("rb") as file:
        done = subprocess.run(
            command(READS, 100, FOR_EVER), stdin=file, capture_output=True, timeout=PATIENCE, check=True
        )
    assert (done.stdout, done.stderr) == (b"from a file", b"")


def test_input_that_comes_in_pieces_is_read_whole() -> None:
    with subprocess.Popen(command(READS, 100, FOR_EVER), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        for piece in (b"one ", b"two ", b"three"):
            pipe_of(child.stdin).write(piece)
            pipe_of(child.stdin).flush()
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(0.1)  # the process reads on until the input ends
        said, _ = child.communicate(timeout=PATIENCE)
    assert (said, child.returncode) == (b"one two three", 0)


@table("sent", [b"", b"half of"])
@table("seconds", [0, 0.3])
def test_when_the_time_is_up_the_input_so_far_is_returned(sent: bytes, seconds: float) -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, sent)
        done = subprocess.run(  # the pipe stays open, so only the time limit ends the reading
            command(READS, 100, seconds), stdin=reading, capture_output=True, timeout=PATIENCE, check=True
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert (done.stdout, done.stderr) == (sent, b"")


@table("size", [0, 16, 65_536, 1 << 22])
def test_output_smaller_or_larger_than_a_pipe_arrives_whole(size: int) -> None:
    done = subprocess.run(command(WRITES, size), capture_output=True, timeout=PATIENCE, check=True)
    assert (done.stdout, done.stderr) == (b"0123456789abcdef" * (size // 16), b"went on")


@table("size", [16, 1 << 22])
def test_a_reader_that_is_gone_before_the_output_causes_no_error(size: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            command(WRITES, size), stdout=writing, stderr=subprocess.PIPE, timeout=PATIENCE, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"went on")


def test_a_reader_that_leaves_during_the_output_causes_no_error() -> None:
    with subprocess.Popen(command(WRITES, 1 << 22), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert os.read(pipe_of(child.stdout).fileno(), 4) == b"0123"
        pipe_of(child.stdout).close()
        said = pipe_of(child.stderr).read()
    assert (child.returncode, said) == (0, b"went on")


def test_output_into_a_closed_stream_causes_no_error() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command(WRITES, 16)],
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"went on")


def test_a_slow_reader_gets_all_output_even_through_a_nonblocking_pipe() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with (
        open(reading, "rb") as pipe,
        subprocess.Popen(command(WRITES, 1 << 20), stdout=writing, stderr=subprocess.PIPE) as child,
    ):
        os.close(writing)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.3)  # the output is larger than a pipe, and nobody has read yet
        assert pipe.read() == b"0123456789abcdef" * (1 << 16)
        assert pipe_of(child.stderr).read() == b"went on"
    assert child.returncode == 0


@table("blocking", [True, False])
def test_a_reader_that_does_not_read_in_time_gets_only_the_beginning(blocking: bool) -> None:  # noqa: FBT001
    reading, writing = os.pipe()
    os.set_blocking(writing, blocking)
    with open(reading, "rb") as pipe:
        began = time.monotonic()
        done = subprocess.run(
            command(WRITES, 1 << 20, 0.5), stdout=writing, stderr=subprocess.PIPE, timeout=PATIENCE, check=True
        )
        took = time.monotonic() - began
        assert os.get_blocking(writing) is blocking  # others may use the pipe, so its mode must not change
        os.close(writing)
        found = pipe.read()

    assert done.stderr == b"False went on"
    assert 0.5 <= took < 5
    assert 0 < len(found) < 1 << 20
    assert found == (b"0123456789abcdef" * (1 << 16))[: len(found)]


def test_a_full_pipe_is_not_waited_for_when_no_time_is_left() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with open(reading, "rb") as pipe:
        filled = 0
        try:
            while True:
                filled += os.write(writing, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(writing, True)
        done = subprocess.run(
            command(WRITES, 16, -1), stdout=writing, stderr=subprocess.PIPE, timeout=PATIENCE, check=True
        )
        os.close(writing)
        assert (done.stderr, pipe.read()) == (b"False went on", b"x" * filled)


@table("seconds", [-1, 0])
def test_output_that_fits_into_the_pipe_is_written_even_when_no_time_is_left(seconds: int) -> None:
    done = subprocess.run(command(WRITES, 4096, seconds), capture_output=True, timeout=PATIENCE, check=True)
    assert (done.stdout, done.stderr) == (b"0123456789abcdef" * 256, b"True went on")


@pytest.mark.parametrize(("size", "pause"), [(100, 0.01), (500, PATIENCE)], ids=["slow", "stopped"])
def test_a_terminal_with_a_slow_reader_gets_no_output_after_the_time_is_up(size: int, pause: float) -> None:
    """A terminal with room for one byte counts as ready, but then a larger write blocks."""
    reader, terminal = os.openpty()
    found = b""
    with subprocess.Popen(command(WRITES, 1 << 20, 0.5), stdout=terminal, stderr=subprocess.PIPE) as child:
        os.close(terminal)
        select.select([reader], [], [], PATIENCE)
        began = time.monotonic()
        while child.poll() is None and time.monotonic() < began + 5:
            found += os.read(reader, size)
            with suppress(subprocess.TimeoutExpired):
                child.wait(min(pause, 5))
        took = time.monotonic() - began
        child.kill()
        said = pipe_of(child.stderr).read()
    os.close(reader)

    assert (child.returncode, said) == (0, b"False went on")
    assert 0.3 < took < 3
    assert found == (b"0123456789abcdef" * (1 << 16))[: len(found)]


def test_a_terminal_with_a_reader_gets_all_output() -> None:
    reader, terminal = os.openpty()
    found = b""
    with subprocess.Popen(command(WRITES, 1 << 20, 30), stdout=terminal, stderr=subprocess.PIPE) as child:
        os.close(terminal)
        with suppress(OSError):  # the end of a terminal that nobody has open
            while chunk := os.read(reader, 1 << 16):
                found += chunk
        said = pipe_of(child.stderr).read()
    os.close(reader)

    assert (child.returncode, said) == (0, b"True went on")
    assert found == b"0123456789abcdef" * (1 << 16)
