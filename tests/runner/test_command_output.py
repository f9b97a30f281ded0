"""The output of a command: its end as the message, and readers that are slow or closed."""

from __future__ import annotations

import os
import threading
from select import PIPE_BUF
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.runner.command_output import MESSAGE_BYTES, Live, Outputs, Tail, _pieces
from gaia_sessions.store.output_file import Kept
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MIB = 1 << 20


def tail_of(data: bytes, piece: int) -> str:
    tail = Tail()
    for start in range(0, len(data), piece):
        tail.add(data[start : start + piece])
    return tail.text()


def nothing() -> None:
    return


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for fd in ends:
        try:
            os.close(fd)
        except OSError:
            continue


@table("piece", [1, 7, 65536, 1 << 20])
@table("length", [0, 1, MESSAGE_BYTES - 1, MESSAGE_BYTES, MESSAGE_BYTES + 1, 3 * MESSAGE_BYTES + 5])
def test_the_message_is_the_last_64_kib_of_the_output(length: int, piece: int) -> None:
    text = "".join(map(str, range(length)))[:length]
    assert tail_of(text.encode(), piece) == text[-MESSAGE_BYTES:]


@table("character", ["é", "€", "𝄞"])
@table("shift", range(4))
def test_a_message_that_is_cut_begins_with_a_whole_character(character: str, shift: int) -> None:
    data = (character * MESSAGE_BYTES).encode() + b"x" * shift

    text = tail_of(data, 1000)

    size = len(character.encode())
    assert text == character * ((MESSAGE_BYTES - shift) // size) + "x" * shift


@table(
    ("data", "text"),
    [
        (b"a\xffb", "a\ufffdb"),
        (b"\x80\x81begins in the middle of nothing", "\ufffd\ufffdbegins in the middle of nothing"),
        (b"ends in the middle \xe2\x82", "ends in the middle \ufffd"),
        (b"\xed\xa0\x80 half a pair", "\ufffd\ufffd\ufffd half a pair"),
        (b"\x1b[31mred\x1b[0m\r\n", "\x1b[31mred\x1b[0m\r\n"),
    ],
)
def test_bytes_that_are_not_utf_8_are_replaced_and_all_others_stay(data: bytes, text: str) -> None:
    assert tail_of(data, 3) == text


def test_binary_output_becomes_a_message_without_nul() -> None:
    assert tail_of(b"a\0b", 1) == "ab"
    for data in (bytes(range(256)) * 1024, b"\x80" * (3 * MESSAGE_BYTES), b"\xf0\x9f" * MESSAGE_BYTES):
        text = tail_of(data, 4096)
        assert "\0" not in text
        assert len(text) > MESSAGE_BYTES // 4
        text.encode()


def test_a_slow_reader_gets_all_output_in_order(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    live = Live(writes, nothing)
    written = b"".join(b"%07d\n" % number for number in range(60_000))  # more than the pipe and the buffer hold
    for start in range(0, len(written), 1000):
        live.write(written[start : start + 1000])
    assert live.is_full

    got: list[bytes] = []
    while sum(map(len, got)) < len(written):
        got.append(os.read(reads, 3001))
    live.finish()

    assert b"".join(got) == written
    assert not live.is_full


def test_a_non_blocking_stream_gets_all_output(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    os.set_blocking(writes, False)
    live = Live(writes, nothing)
    live.write(b"x" * MIB)

    got = 0
    while got < MIB:
        got += len(os.read(reads, 1 << 16))
    live.finish()

    assert got == MIB


def test_the_callback_is_called_once_the_stream_has_room_again(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    has_room = threading.Event()
    live = Live(writes, has_room.set)
    live.write(b"x" * MIB)
    assert live.is_full
    assert not has_room.is_set()

    for _ in range(MIB >> 12):
        os.read(reads, 1 << 12)

    assert has_room.wait(30)
    assert not live.is_full
    live.finish()


GIVEN = [
    [b"one\ntw", b"o\nthree"],
    [b"dots", b".", b".\n"],
    [b"x" * 40_000, b"x" * 40_000, b"x", b"\n\n", b"y"],
    [b"%d\n" % number for number in range(5_000)],
]


@table("given", GIVEN)
def test_only_whole_lines_are_shown_before_the_end(pipe: tuple[int, int], given: list[bytes]) -> None:
    live = Live(pipe[1], nothing)
    for data in given:
        live.write(data)
    got = b""
    whole = b"".join(given).rpartition(b"\n")[0]
    while len(got) < len(whole):
        got += os.read(pipe[0], 1 << 16)
    assert got == whole + b"\n"
    live.finish()
    rest = b"".join(given).removeprefix(got)
    assert not rest or os.read(pipe[0], 1 << 16) == rest


def test_a_very_long_line_is_shown_before_it_ends(pipe: tuple[int, int]) -> None:
    live = Live(pipe[1], nothing)
    for _ in range(3):
        live.write(b"x" * 30_000)
    assert os.read(pipe[0], 9) == b"x" * 9  # blocks if nothing is shown
    os.close(pipe[0])
    live.finish()


@table("length", [1, 7, PIPE_BUF - 1, PIPE_BUF, PIPE_BUF + 1, 3 * PIPE_BUF])
def test_whole_lines_are_split_into_pieces_that_a_pipe_takes_at_once(length: int) -> None:
    lines = (b"x" * (length - 1) + b"\n") * (4 * PIPE_BUF // length + 3) + b"rest"
    pieces = [*_pieces(lines)]
    assert b"".join(pieces) == lines
    assert {piece[-1:] for piece in pieces[:-1]} == {b"\n"}
    assert max(len(piece) for piece in pieces if piece.count(b"\n") != 1) <= PIPE_BUF


@pytest.mark.parametrize("closed", ["before", "while it is full"])
def test_a_closed_reader_blocks_nothing(pipe: tuple[int, int], closed: str) -> None:
    reads, writes = pipe
    has_room = threading.Event()
    if closed == "before":
        os.close(reads)
    live = Live(writes, has_room.set)
    live.write(b"x" * MIB)
    if closed != "before":
        os.close(reads)

    assert has_room.wait(30)
    live.write(b"more")
    live.finish()
    assert not live.is_full


def test_the_log_has_both_streams_in_order_and_the_message_only_stdout(
    pipe: tuple[int, int], drained: Callable[[int], bytes]
) -> None:
    log = Kept()
    outputs = Outputs(log, {1: pipe[1]}, nothing)
    for number, data in [(1, b"one "), (2, b"two "), (1, b"three")]:
        outputs.add(number, data)
    outputs.close()
    outputs.finish()

    assert (bytes(log), outputs.message()) == (b"one two three", "one three")
    os.close(pipe[1])
    assert drained(pipe[0]) == b"one three"


@pytest.fixture
def drained() -> Callable[[int], bytes]:
    def drain(fd: int) -> bytes:
        return b"".join(iter(lambda: os.read(fd, 1 << 16), b""))

    return drain
