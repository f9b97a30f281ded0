"""How messages come into the file of a transcript, and how a new file begins, each in one commit with the record.

Appending: the lines are written behind those that are committed and synced, then the record says so. Emptying: the
record says that the messages are in a file of a later generation, which begins with the system prompt if there is one.
What a killed writer left behind the committed lines is cut by the next one, whole lines only when they are in a file
of their own. All of it happens under the lock of the session, which the caller holds.
"""

from __future__ import annotations

from functools import partial

from gaia_sessions.errors import DurabilityUnknown, StoreFailure
from gaia_sessions.session.transcript import (
    EVENT_LINE_LIMIT,
    beginning_with,
    committed_bytes,
    current_turn,
    generation_of,
    last_seq,
    number_messages,
    system_prompt,
    with_next_transcript,
    with_transcript,
)

from . import atomic
from .directory import translate_errors
from .reading import ASIDE, generation_in, transcript_name
from .transcript_reader import open_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message, NewMessage

    from .directory import Directory

_PIECE = 1 << 20
"""About how many bytes of lines are kept aside at once."""


class _Commit:
    """What happens to the transcript in one commit: what its file holds, and the lines that come behind what counts.

    Whole lines that stand there are of a writer that was killed before the record had them; or the record was restored
    from an older copy, and they were acknowledged. Nothing tells the two apart, so none is cut that is not kept aside,
    but for what is longer than any message.
    """

    def __init__(self) -> None:
        self._name = ""
        self._lines = b""
        self._end = self._size = self._last_seq = self._last_generation = 0
        self._is_torn = False
        self._behind_start = self._behind_end = self._kept = 0

    def write(self, session: Directory, *, durable: bool) -> None:
        """Writes the lines in the place of all that does not count, before the record is replaced."""
        if self._behind_end:
            self._keep_aside(session, durable=durable)
        if self._lines or self._size > self._end:
            _uncommitted(partial(atomic.append, session, self._name, self._lines, durable=durable, end=self._end))

    def finish(self, session: Directory) -> None:
        """Warns of what was kept aside, when the record was replaced, since whoever wrote it may not know."""
        if self._kept:
            import warnings  # few writers ever have to

            from gaia_sessions.errors import MessagesKeptAside

            warnings.warn(MessagesKeptAside(f"{session.path}/{ASIDE}", self._kept), stacklevel=2)

    def _look(self, session: Directory, record: Record) -> None:
        """Looks into the file, and into others for numbers that the ``record`` does not know if it is an older one."""
        generation = generation_of(record)
        self._name = transcript_name(generation)
        with open_lines(session, self._name, committed_bytes(record)) as lines, translate_errors("read", lines.path):
            every_line = lines.with_uncommitted()
            self._end, self._size, self._is_torn = lines.end, every_line.end, lines.has_torn_end()
            if every_line.whole_end() > lines.end:
                self._behind_start, self._behind_end = lines.whole_end(), every_line.whole_end()
            last_in_file = every_line.last_seq()
        with translate_errors("list", session.path):
            generations = filter(None, map(generation_in, session.names()))
        later = [found for found in generations if found > generation]
        others = [_last_number_in(session, name) for name in (ASIDE, *map(transcript_name, later))]
        self._last_seq = max(last_seq(record), last_in_file, *others)
        self._last_generation = max([generation, *later])

    def _keep_aside(self, session: Directory, *, durable: bool) -> None:
        with open_lines(session, self._name, self._behind_end) as found, translate_errors("read", found.path):
            lines = (line for _, line in found.lines_from(self._behind_start) if len(line) <= EVENT_LINE_LIMIT)
            for piece in _pieces(lines):
                _uncommitted(partial(atomic.append, session, ASIDE, piece, durable=durable))
                self._kept += piece.count(b"\n")


class Appending(_Commit):
    """Messages that are added in one commit; ``stored`` has them as they were numbered."""

    def __init__(self, messages: Sequence[NewMessage]) -> None:
        super().__init__()
        self.stored: list[Message] = []
        self._messages = messages

    def prepare(self, session: Directory, record: Record, changed: Record) -> Record:
        """``changed``, which a rule made of ``record``, with the size that the file will have."""
        if not self._messages:
            return changed
        self._look(session, record)
        self.stored, lines = number_messages(self._messages, self._last_seq + 1, current_turn(record))
        self._lines = b"\n" + lines if self._is_torn else lines
        return with_transcript(changed, self._end + len(self._lines), self.stored[-1]["seq"])


class Emptying(_Commit):
    """The beginning of a new transcript in one commit; with no message of a turn, there is nothing to begin anew.

    Its file is only made here if it begins with the system prompt.
    """

    def __init__(self) -> None:
        super().__init__()
        self._new_name = ""
        self._first_line = b""

    def prepare(self, session: Directory, record: Record, changed: Record) -> Record:
        """``changed``, which a rule made of ``record``, with an empty transcript of a generation that no file has."""
        if not committed_bytes(record):
            return changed
        self._look(session, record)
        with open_lines(session, self._name, self._end) as lines, translate_errors("read", lines.path):
            prompt = system_prompt(lines.in_order(None))
        generation = self._last_generation + 1
        emptied = with_next_transcript(changed, generation, self._last_seq)
        if prompt is None:
            return emptied
        if prompt["seq"] == last_seq(record):
            return changed
        self._new_name = transcript_name(generation)
        committed, self._first_line = beginning_with(prompt, self._last_seq + 1)
        return {**emptied, **committed}

    def write(self, session: Directory, *, durable: bool) -> None:
        super().write(session, durable=durable)
        if self._first_line:
            _uncommitted(partial(atomic.append, session, self._new_name, self._first_line, durable=durable, end=0))


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


def _uncommitted(write: Callable[[], None]) -> None:
    """Calls ``write`` before the record is replaced: if only a sync fails, the old state holds all the same."""
    try:
        write()
    except DurabilityUnknown as error:
        raise StoreFailure("write", error.path, error.reason) from error
