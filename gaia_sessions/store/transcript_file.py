"""How messages come into ``transcript.jsonl``, and how a new file begins, each in one commit with the record.

Owns the order of the steps. Appending: the lines are written behind those that are committed and synced, then the
record says so. Emptying: the file gets a second name, the record says that nothing is committed, then an empty file
gets the first name. What a killed writer left between two steps, the next one finishes or undoes: a file that has two
names must never be cut, and whole lines only when they are in a file of their own. All of it happens under the lock of
the session, which the caller holds.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import count, takewhile

from gaia_sessions.errors import DurabilityUnknown, StoreFailure
from gaia_sessions.session.transcript import (
    committed_bytes,
    current_turn,
    last_seq,
    number_messages,
    with_archived_transcript,
    with_transcript,
)

from . import atomic
from .directory import translate_errors
from .reading import ASIDE, TRANSCRIPT, archived_name, is_archived
from .transcript_reader import CommittedLines, open_committed, open_transcript

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message, NewMessage

    from .directory import Directory

_PIECE = 1 << 20
"""About how many bytes of lines are kept aside at once."""


class Appending:
    """Messages that are added in one commit; ``stored`` has them as they were numbered."""

    def __init__(self, messages: Sequence[NewMessage]) -> None:
        self.stored: list[Message] = []
        self._messages = messages
        self._found = _Found()
        self._lines = b""

    def prepare(self, session: Directory, record: Record, changed: Record) -> Record:
        """``changed``, which a rule made of ``record``, with the size that the file will have."""
        if not self._messages:
            return changed
        _finish_emptying(session, record)
        self._found.look(session, record)
        self.stored, lines = number_messages(self._messages, self._found.last_seq + 1, current_turn(record))
        self._lines = b"\n" + lines if self._found.is_torn else lines
        return with_transcript(changed, self._found.end + len(self._lines), self.stored[-1]["seq"])

    def write(self, session: Directory, *, durable: bool) -> None:
        """Writes the lines, before the record is replaced."""
        if self._lines:
            self._found.cut_and_append(session, self._lines, durable=durable)

    def finish(self, session: Directory, *, durable: bool) -> None:  # noqa: ARG002  # nothing is left to write
        """Says what was kept aside, when the record was replaced."""
        self._found.say(session)


class Emptying:
    """The beginning of a new transcript in one commit; without a message, there is nothing to begin anew."""

    def __init__(self) -> None:
        self._found = _Found()
        self._archived = ""

    def prepare(self, session: Directory, record: Record, changed: Record) -> Record:
        """``changed``, which a rule made of ``record``, with an empty transcript and the number of the last one."""
        _finish_emptying(session, record)
        if not committed_bytes(record):
            return changed
        self._found.look(session, record)
        with translate_errors("open", f"{session.path}/{TRANSCRIPT}"):
            if not session.has(TRANSCRIPT):  # somebody removed it
                return with_transcript(changed, 0, self._found.last_seq)
            first = record.get("transcripts_archived", 0) + 1
            number = next(number for number in count(first) if not session.has(archived_name(number)))
        self._archived = archived_name(number)
        return with_archived_transcript(changed, number, self._found.last_seq)

    def write(self, session: Directory, *, durable: bool) -> None:
        """Gives the file its second name, before the record is replaced."""
        if self._archived:
            self._found.cut_and_append(session, b"", durable=durable)
            atomic.link(session, TRANSCRIPT, self._archived, durable=durable)

    def finish(self, session: Directory, *, durable: bool) -> None:
        """Gives the first name to an empty file. Raises ``DurabilityUnknown``: the transcript is empty in any case."""
        if self._archived:
            try:
                atomic.replace(session, TRANSCRIPT, b"", durable=durable)
            except StoreFailure as error:
                raise DurabilityUnknown(f"{session.path}/{TRANSCRIPT}", str(error)) from error
        self._found.say(session)


class _Found:
    """What a writer finds in the file: where the committed lines end, the last number, and whole lines behind.

    Such lines are of a writer that was killed before the record had them; or the record was restored from an older
    copy, and they were acknowledged. Nothing tells the two apart, so no line is cut that is not kept aside.
    """

    def __init__(self) -> None:
        self.end = self.last_seq = 0
        self.is_torn = False
        self._behind_start = self._behind_end = self._kept = 0

    def look(self, session: Directory, record: Record) -> None:
        """Looks into the file, and at what the ``record`` knows of lines that were lost."""
        with translate_errors("read", f"{session.path}/{TRANSCRIPT}"), open_committed(session, lambda: record) as lines:
            every_line = lines.with_uncommitted()
            self.end, self.is_torn = lines.end, lines.has_torn_end()
            self.last_seq = max(last_seq(record), every_line.last_seq(), *_last_numbers_elsewhere(session, record))
            if every_line.whole_end() > lines.end:
                self._behind_start, self._behind_end = lines.whole_end(), every_line.whole_end()

    def cut_and_append(self, session: Directory, lines: bytes, *, durable: bool) -> None:
        """Writes ``lines`` behind the committed ones, in the place of all that stands there, which is kept aside."""
        if self._behind_end:
            self._keep_aside(session, durable=durable)
        _uncommitted(partial(atomic.append, session, TRANSCRIPT, lines, durable=durable, end=self.end))

    def _keep_aside(self, session: Directory, *, durable: bool) -> None:
        path = f"{session.path}/{TRANSCRIPT}"
        with translate_errors("read", path), CommittedLines(open_transcript(session), path, self._behind_end) as found:
            for piece in _pieces(line for _, line in found.lines_from(self._behind_start)):
                _uncommitted(partial(atomic.append, session, ASIDE, piece, durable=durable))
                self._kept += piece.count(b"\n")

    def say(self, session: Directory) -> None:
        """Warns of what was kept aside, since whoever wrote it may not know."""
        if self._kept:
            import warnings  # few writers ever have to

            from gaia_sessions.errors import MessagesKeptAside

            warnings.warn(MessagesKeptAside(f"{session.path}/{ASIDE}", self._kept), stacklevel=2)


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


def _last_numbers_elsewhere(session: Directory, record: Record) -> Iterator[int]:
    """The last number in each other file that an older ``record`` knows nothing of: kept aside, or archived since."""
    later = map(archived_name, count(record.get("transcripts_archived", 0) + 1))
    for name in (ASIDE, *takewhile(session.has, later)):
        path = f"{session.path}/{name}"
        with translate_errors("read", path), CommittedLines(open_transcript(session, name), path, 0) as found:
            yield found.with_uncommitted().last_seq()


def _finish_emptying(session: Directory, record: Record) -> None:
    """Ends what a killed writer began: nothing is left that has both names.

    If the record says that nothing is committed, an empty file is due; else the second name came too early. A name
    elsewhere is not ours.
    """
    with translate_errors("open", f"{session.path}/{TRANSCRIPT}"):
        try:
            found = os.stat(TRANSCRIPT, dir_fd=session.fd, follow_symlinks=False)
        except FileNotFoundError:
            return
        if found.st_nlink < 2:  # noqa: PLR2004  # one name
            return
        inode = (found.st_dev, found.st_ino)
        for second in [name for name in session.names() if is_archived(name) and session.inode(name) == inode]:
            if not committed_bytes(record):
                _uncommitted(lambda: atomic.replace(session, TRANSCRIPT, b"", durable=True))
                return
            os.unlink(second, dir_fd=session.fd)


def _uncommitted(write: Callable[[], None]) -> None:
    """Calls ``write`` before the record is replaced: if only a sync fails, the old state holds all the same."""
    try:
        write()
    except DurabilityUnknown as error:
        raise StoreFailure("write", error.path, error.reason) from error
