"""How messages come into the file of a transcript, and how a new file begins, each in one commit with the record.

The lines are written behind those that are committed and synced, then the record says so. A record of a later
generation says that the messages are in a file of that. What a killed writer left behind the committed lines is cut by
the next one, whole lines only when they are in a file of their own. All of it happens under the lock of the session,
which the caller holds.
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
"""About how many bytes of lines are kept aside at once."""


class Uncommitted:
    """What one commit does to the transcript of a session, whose record was ``before``: ``messages`` are added.

    They come into the file of the generation that the new record has, behind what counts. Whole lines that stand there
    are of a writer that was killed before the record had them; or the record was restored from an older copy, and they
    were acknowledged. Nothing tells the two apart, so none is cut that is not kept aside, but for what is longer than
    any message.
    """

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
        """``record``, which a rule made, with what it says of the file then; a new generation has no file yet."""
        size = self._end
        if generation_of(record) != generation_of(self._before):
            record, size = with_next_transcript(record, self._last_generation + 1, self._last_seq), 0
            self._new_name = transcript_name(self._last_generation + 1)
        elif self._is_torn:
            self._lines = b"\n" + self._lines
        return with_transcript(record, size + len(self._lines), self._stored[-1]["seq"]) if self._stored else record

    def write(self, *, durable: bool) -> None:
        """Writes the lines in the place of all that does not count, before the record is replaced."""
        if self._behind_end:
            self._keep_aside(durable=durable)
        behind = b"" if self._new_name else self._lines
        if behind or self._size > self._end:
            self._append(self._name, behind, durable=durable, end=self._end)
        if self._new_name and self._lines:
            self._append(self._new_name, self._lines, durable=durable, end=0)

    def finish(self) -> list[Message]:
        """The messages as they are stored. Warns of what was kept aside, since whoever wrote it may not know."""
        if self._kept:
            import warnings  # few writers ever have to

            from gaia_sessions.errors import MessagesKeptAside

            warnings.warn(MessagesKeptAside(f"{self._session.path}/{ASIDE}", self._kept), stacklevel=2)
        return self._stored

    def _look(self) -> None:
        """Looks into the file, and into others for numbers that the record does not know if it is an older one."""
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
        """Appends before the record is replaced: if only a sync fails, the old state holds all the same."""
        try:
            atomic.append(self._session, name, lines, durable=durable, end=end)
        except DurabilityUnknown as error:
            raise StoreFailure("write", error.path, error.reason) from error


def _last_number_in(session: Directory, name: str) -> int:
    with open_lines(session, name, 0) as lines, translate_errors("read", lines.path):
        return lines.with_uncommitted().last_seq()


def _pieces(lines: Iterator[bytes]) -> Iterator[bytes]:
    """``lines`` with their newlines, some at a time."""
    piece = b""
    for line in lines:
        piece += line + b"\n"
        if len(piece) >= _PIECE:
            yield piece
            piece = b""
    if piece:
        yield piece
