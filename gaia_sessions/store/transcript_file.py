"""Adds messages to a transcript file, in one commit with the record, under the session's lock.

New lines are written and synced after the committed lines; then the record commits the new lines. A record
of a later generation names a new file.
"""

from __future__ import annotations

from gaia_sessions.errors import DurabilityUnknown, StoreFailure
from gaia_sessions.session.transcript import (
    EVENT_LINE_LIMIT,
    committed_bytes,
    current_turn,
    generation_of,
    last_seq,
    number_messages,
    with_next_transcript,
    with_transcript,
)

from . import atomic
from .directory import translate_errors
from .reading import ASIDE, generation_in, transcript_name
from .transcript_reader import open_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message, NewMessage

    from .directory import Directory

_PIECE = 1 << 20
"""About how many bytes of lines are moved aside at once."""


class Uncommitted:
    """What one commit does to the transcript of a session with the record ``before``: it adds ``messages``."""

    def __init__(self, session: Directory, before: Record, messages: Sequence[NewMessage]) -> None:
        self._session = session
        self._before = before
        self._name = self._new_name = ""
        self._end = self._size = self._last_seq = self._last_generation = 0
        self._is_torn = False
        self._behind_start = self._behind_end = self._kept = 0
        self._look()
        self._stored, self._lines = number_messages(messages, self._last_seq + 1, current_turn(before))

    def announced_in(self, record: Record) -> Record:
        """Returns ``record``, which a rule made, with the facts about the file that the commit will store."""
        size = self._end
        if generation_of(record) != generation_of(self._before):
            record, size = with_next_transcript(record, self._last_generation + 1, self._last_seq), 0
            self._new_name = transcript_name(self._last_generation + 1)  # it has no file yet
        elif self._is_torn:  # a power cut took the end of the last line
            self._lines = b"\n" + self._lines
        return with_transcript(record, size + len(self._lines), self._stored[-1]["seq"]) if self._stored else record

    def write(self, *, durable: bool) -> None:
        """Cuts off all uncommitted lines and writes the new lines; the caller replaces the record afterwards."""
        # Whole lines after the committed ones are from a writer that was killed before its record; or the record was
        # restored from an older copy and the lines were acknowledged. Nothing tells the two apart, so they are moved
        # aside and synced before they are cut (except a line that is longer than any message).
        if self._behind_end:
            self._keep_aside(durable=durable)
        behind = b"" if self._new_name else self._lines
        if behind or self._size > self._end:
            self._append(self._name, behind, durable=durable, end=self._end)
        if self._new_name and self._lines:
            self._append(self._new_name, self._lines, durable=durable, end=0)

    def finish(self) -> list[Message]:
        """Returns the messages as stored, and warns of messages that were moved aside: their writer may not know."""
        if self._kept:
            import warnings  # few writers need it

            from gaia_sessions.errors import MessagesKeptAside

            warnings.warn(MessagesKeptAside(f"{self._session.path}/{ASIDE}", self._kept), stacklevel=2)
        return self._stored

    def _look(self) -> None:
        """Reads where the file ends, and the last message number that ever existed."""
        session, generation = self._session, generation_of(self._before)
        self._name = transcript_name(generation)
        with (
            open_lines(session, self._name, committed_bytes(self._before)) as lines,
            translate_errors("read", lines.path),
        ):
            every_line = lines.with_uncommitted()
            self._end, self._size, self._is_torn = lines.end, every_line.end, lines.has_torn_end()
            if every_line.whole_end() > lines.end:
                self._behind_start, self._behind_end = lines.whole_end(), every_line.whole_end()
            last_in_file = every_line.last_seq()
        with translate_errors("list", session.path):
            generations = filter(None, map(generation_in, session.names()))
        # An older copy of a record does not know later files and numbers: no message number is given twice.
        later = [found for found in generations if found > generation]
        others = [_last_number_in(session, name) for name in (ASIDE, *map(transcript_name, later))]
        self._last_seq = max(last_seq(self._before), last_in_file, *others)
        self._last_generation = max([generation, *later])

    def _keep_aside(self, *, durable: bool) -> None:
        with open_lines(self._session, self._name, self._behind_end) as found, translate_errors("read", found.path):
            lines = (line for _, line in found.lines_from(self._behind_start) if len(line) <= EVENT_LINE_LIMIT)
            for piece in _pieces(lines):
                self._append(ASIDE, piece, durable=durable)
                self._kept += piece.count(b"\n")

    def _append(self, name: str, lines: bytes, *, durable: bool, end: int | None = None) -> None:
        """Appends before the record is replaced: if only the sync fails, the old state still holds."""
        try:
            atomic.append(self._session, name, lines, durable=durable, end=end)
        except DurabilityUnknown as error:
            raise StoreFailure("write", error.path, error.reason) from error


def _last_number_in(session: Directory, name: str) -> int:
    with open_lines(session, name, 0) as lines, translate_errors("read", lines.path):
        return lines.with_uncommitted().last_seq()


def _pieces(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yields ``lines`` with their newlines, some at a time."""
    piece = b""
    for line in lines:
        piece += line + b"\n"
        if len(piece) >= _PIECE:
            yield piece
            piece = b""
    if piece:
        yield piece
