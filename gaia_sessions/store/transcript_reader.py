"""The transcript of a session as readers see it, without a lock: the committed lines of its file, from either end.

The record says which file that is, and how much of it counts. A file that was begun anew stays as it was.
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
"""How many bytes are read at once, unless a line is longer: the last 20 messages are seldom more."""
_CUT = EVENT_LINE_LIMIT + 1
"""So much is kept of a line that is longer than any message, which is enough to see that it is."""
_MOST_PASSED = 64 << 20
"""Of one line. What stands beyond a longer one is not read: a sparse file may have more than any disk."""
_FEW = 64 << 10
"""So many bytes of messages may be in memory at once; where more are wanted, they are read again in order."""


def messages(session: Directory, load: Callable[[], Record], take: Callable[[CommittedLines], Messages]) -> Messages:
    """What ``take`` takes of the committed messages; ``load`` reads the record of ``session``."""
    with _open_committed(session, load) as transcript, translate_errors("read", transcript.path):
        yield from take(transcript)


def _open_committed(session: Directory, load: Callable[[], Record]) -> CommittedLines:
    """What counts by the record. Where its file is missing, ``load`` says once more what the record is by now."""
    record, latest = None, load()
    while record != latest:
        record = latest
        lines = open_lines(session, transcript_name(generation_of(record)), committed_bytes(record))
        if lines.fd < 0:
            latest = load()
    return lines


def open_lines(session: Directory, name: str, committed: int) -> CommittedLines:
    """The lines of the file ``name``, of which so many bytes count; none if there is no such file."""
    path = f"{session.path}/{name}"
    with translate_errors("read", path):
        return CommittedLines(_open(session, name), path, committed)


def _open(session: Directory, name: str) -> int:
    try:
        return session.open_file(name)[0]
    except FileNotFoundError:
        return -1


class CommittedLines:
    """The committed lines of the file open as ``fd``, which is closed at the end of the ``with`` block; -1: no file.

    A file is only added to, and never shortened below what is committed: the lines stay the same however long they are
    being read.
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
        """An error if the file is shorter than the record says, as somebody or a power cut may have left it."""
        if self.end < self.committed:
            problem = f"it ends after {self.end} bytes, but {self.committed} were committed: messages are missing"
            yield InvalidInput(problem, self.path)

    def with_uncommitted(self) -> CommittedLines:
        """All lines of the same open file, whoever committed them."""
        return CommittedLines(self.fd, self.path, os.fstat(self.fd).st_size if self.fd >= 0 else 0)

    def whole_end(self) -> int:
        """Where the last line ends that is whole."""
        return next(self.lines_backwards())[0] if self.has_torn_end() else self.end

    def last_seq(self) -> int:
        """The number of the last message that can be read; 0 if there is none."""
        found = map(self.decode, self.lines_backwards())
        return next((message["seq"] for message in found if isinstance(message, dict)), 0)

    def has_torn_end(self) -> bool:
        """Whether the last line is not whole: a power cut took the rest."""
        return self.end > 0 and os.pread(self.fd, 1, self.end - 1) != b"\n"

    def newest_first(self) -> Messages:
        """The messages, the last first."""
        return chain(self.lost(), map(self.decode, self.lines_backwards()))

    def from_turn(self, turn: int) -> Messages:
        """The messages from the first of ``turn`` on that can be read; that is found by halving, since turns follow."""
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
        """The messages from the byte ``start`` on, each with the place where its line begins."""
        return ((line[0], self.decode(line)) for line in self.lines_from(start))

    def in_order(self, is_wanted: IsWanted | None) -> Messages:
        """The messages, the first first; only the newest ones for which ``is_wanted`` says yes."""
        start, newest_first = self._find_wanted(is_wanted) if is_wanted else (0, None)
        if newest_first is not None:
            yield from reversed(newest_first)
            return
        yield from map(self.decode, self.lines_from(start))
        yield from self.lost()

    def _find_wanted(self, is_wanted: IsWanted) -> tuple[int, list[Message | SessionsError] | None]:
        """Where the messages begin that are wanted, and these if they are few: the search begins at the end."""
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
        """The message of a line, or the error that says why there is none."""
        offset, data = line
        try:
            return decode_message(data)
        except InvalidInput as error:
            return InvalidInput(str(error), f"{self.path} byte {offset}")

    def lines_backwards(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Each line without its newline, and where it begins; the last first. The bytes before ``start`` are no part.

        Of a line in which ``start`` lies the rest comes last. One that is too long for a message is cut.
        """
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
        """Each line from the byte ``start`` on, without its newline, and where it begins; cut as above."""
        position = line_start = start
        rest = b""
        while position < self.end and position - line_start <= _MOST_PASSED:
            data = os.pread(self.fd, min(max(_CHUNK, len(rest)), self.end - position), position)
            if not data:  # somebody has just cut the file
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
    """``lines``, of which the first begins at ``start``, each with its place; without those that are empty."""
    for line in lines:
        if line:
            yield start, line
        start += len(line) + 1
