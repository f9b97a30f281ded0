"""The transcript as readers see it, without a lock: the committed lines of its file, from either end.

The record names the file and how much of it is committed. A file of an earlier generation never changes.
"""

from __future__ import annotations

import os
from itertools import chain, dropwhile

from gaia_sessions.errors import InvalidInput
from gaia_sessions.session.transcript import EVENT_LINE_LIMIT, committed_bytes, decode_message, generation_of

from .directory import translate_errors
from .reading import transcript_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message

    from .directory import Directory
    from .port import IsWanted, Messages

_CHUNK = 16 << 10
"""How many bytes are read at once; the last 20 messages are seldom more."""
_CUT = EVENT_LINE_LIMIT + 1
"""How many bytes are read of a line that is longer than any message: enough to see that it is too long."""
_MOST_PASSED = 64 << 20
"""The most bytes of one line that are skipped before reading ends: a sparse file may be larger than any disk."""
_FEW = 64 << 10
"""The most bytes of messages in memory at once; if more are wanted, the messages are read again in order."""


def messages(session: Directory, load: Callable[[], Record], take: Callable[[CommittedLines], Messages]) -> Messages:
    """Yields what ``take`` takes of the committed messages; ``load`` reads the record of ``session``."""
    with _open_committed(session, load) as transcript, translate_errors("read", transcript.path):
        yield from take(transcript)


def _open_committed(session: Directory, load: Callable[[], Record]) -> CommittedLines:
    """Opens what the record commits; if its file is missing, ``load`` reads the record again."""
    record, latest = None, load()
    while record != latest:
        record = latest
        lines = open_lines(session, transcript_name(generation_of(record)), committed_bytes(record))
        if lines.fd < 0:
            latest = load()
    return lines


def open_lines(session: Directory, name: str, committed: int) -> CommittedLines:
    """Opens the lines of the file ``name``, of which ``committed`` bytes count; none if the file is missing."""
    path = f"{session.path}/{name}"
    with translate_errors("read", path):
        return CommittedLines(_open(session, name), path, committed)


def _open(session: Directory, name: str) -> int:
    try:
        return session.open_file(name)[0]
    except FileNotFoundError:
        return -1


class CommittedLines:
    """The committed lines of the open file ``fd`` (-1: no file).

    A file is only added to, and never cut below what is committed: the lines stay the same however long they are read.
    """

    __slots__ = ("committed", "end", "fd", "path")

    def __init__(self, fd: int, path: str, committed: int) -> None:
        self.fd = fd
        self.path = path
        self.committed = committed
        self.end = min(committed, os.fstat(fd).st_size) if fd >= 0 else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def lost(self) -> Iterator[InvalidInput]:
        """Yields an error if the file is shorter than the record says, as after a power cut."""
        if self.end < self.committed:
            problem = f"messages are missing: the file has {self.end} bytes, but {self.committed} were committed"
            yield InvalidInput(problem, self.path)

    def with_uncommitted(self) -> CommittedLines:
        """Returns all lines of the same open file, committed or not."""
        return CommittedLines(self.fd, self.path, os.fstat(self.fd).st_size if self.fd >= 0 else 0)

    def whole_end(self) -> int:
        """Returns where the last whole line ends."""
        return next(self.lines_backwards())[0] if self.has_torn_end() else self.end

    def last_seq(self) -> int:
        """Returns the number of the last readable message; 0 if there is none."""
        found = map(self.decode, self.lines_backwards())
        return next((message["seq"] for message in found if isinstance(message, dict)), 0)

    def has_torn_end(self) -> bool:
        """Returns whether the last line is not whole: a power cut took the rest."""
        return self.end > 0 and os.pread(self.fd, 1, self.end - 1) != b"\n"

    def newest_first(self) -> Messages:
        return chain(self.lost(), map(self.decode, self.lines_backwards()))

    def from_turn(self, turn: int) -> Messages:
        """Yields the messages from the first readable one of ``turn`` on; finds it by halving: turns are in order."""
        low, high = 0, self.end
        while high - low > _CHUNK:
            middle = (low + high) // 2
            found = CommittedLines(self.fd, self.path, high).messages_from(middle)
            readable = ((place, one) for place, one in found if isinstance(one, dict))
            place, message = next(readable, (high, None))
            if message is not None and message["turn"] < turn:
                low = place
            else:
                high = middle
        messages = (message for _, message in self.messages_from(low))
        yield from dropwhile(lambda one: not isinstance(one, dict) or one["turn"] < turn, messages)
        yield from self.lost()

    def messages_from(self, start: int) -> Iterator[tuple[int, Message | SessionsError]]:
        """Yields the messages from the byte ``start`` on, each with the place where its line begins."""
        return ((line[0], self.decode(line)) for line in self.lines_from(start))

    def in_order(self, is_wanted: IsWanted | None) -> Messages:
        """Yields the messages in order, or only the newest ones that ``is_wanted``."""
        start, newest_first = self._find_wanted(is_wanted) if is_wanted else (0, None)
        if newest_first is not None:
            yield from reversed(newest_first)
            return
        yield from map(self.decode, self.lines_from(start))
        yield from self.lost()

    def _find_wanted(self, is_wanted: IsWanted) -> tuple[int, list[Message | SessionsError] | None]:
        """Returns where the wanted messages begin, and the messages if they are few; searches from the end."""
        start, found = self.end, []
        lost = ((self.end, error) for error in self.lost())
        for place, message in chain(lost, ((line[0], self.decode(line)) for line in self.lines_backwards())):
            if not is_wanted(message):
                break
            start = place
            if self.end - start <= _FEW:
                found.append(message)
        return start, found if self.end - start <= _FEW else None

    def decode(self, line: tuple[int, bytes]) -> Message | SessionsError:
        """Returns the message of a line, or the error that says why there is none."""
        offset, data = line
        try:
            return decode_message(data)
        except InvalidInput as error:
            return InvalidInput(str(error), f"{self.path} byte {offset}")

    def lines_backwards(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yields each line after ``start`` and where the line begins, the last first; cuts lines that are too long."""
        position = line_end = self.end
        rest = b""
        while position > start and line_end - position <= _MOST_PASSED:
            size = min(max(_CHUNK, len(rest)), position - start)
            position -= size
            rest, *lines = (os.pread(self.fd, size, position) + rest).split(b"\n")
            yield from reversed(list(_placed(position + len(rest) + 1, lines)))
            if lines:
                line_end = position + len(rest)
            rest = rest[:_CUT]
        yield from _placed(position, [rest])

    def lines_from(self, start: int) -> Iterator[tuple[int, bytes]]:
        """Yields each line from the byte ``start`` on and where it begins; cuts lines that are too long."""
        position = line_start = start
        rest = b""
        while position < self.end and position - line_start <= _MOST_PASSED:
            data = os.pread(self.fd, min(max(_CHUNK, len(rest)), self.end - position), position)
            if not data:  # another process has just cut the file
                return
            position += len(data)
            *lines, rest = (rest + data).split(b"\n")
            if lines:
                yield from _placed(line_start, lines[:1])
                line_start = position - len(rest)
                yield from _placed(line_start - sum(len(line) + 1 for line in lines[1:]), lines[1:])
            rest = rest[:_CUT]
        yield from _placed(line_start, [rest])


def _placed(start: int, lines: list[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yields each of ``lines`` with its place, if the first begins at ``start``; without empty lines."""
    for line in lines:
        if line:
            yield start, line
        start += len(line) + 1
