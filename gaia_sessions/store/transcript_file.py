"""How messages come into ``transcript.jsonl``, and how a new file begins, each in one commit with the record.

Owns the order of the steps. Appending: the lines are written behind those that are committed and synced, then the
record says so. Emptying: the file gets a second name, the record says that nothing is committed, then an empty file
gets the first name. What a killed writer left between two steps, the next one finishes or undoes: a file that has two
names must never be cut. All of it happens under the lock of the session, which the caller holds.
"""

from __future__ import annotations

import os
from itertools import count

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
from .transcript_reader import TRANSCRIPT, archived_name, open_committed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message, NewMessage

    from .directory import Directory


class Appending:
    """Messages that are added in one commit; ``stored`` has them as they were numbered."""

    def __init__(self, messages: Sequence[NewMessage]) -> None:
        self.stored: list[Message] = []
        self._messages = messages
        self._end = 0
        self._lines = b""

    def prepare(self, session: Directory, record: Record, changed: Record) -> Record:
        """``changed``, which a rule made of ``record``, with the size that the file will have."""
        if not self._messages:
            return changed
        _finish_emptying(session, record)
        with translate_errors("read", f"{session.path}/{TRANSCRIPT}"), open_committed(session, lambda: record) as found:
            self._end, is_torn = found.end, found.has_torn_end()
            first_seq = max(last_seq(record), found.last_seq()) + 1
        self.stored, lines = number_messages(self._messages, first_seq, current_turn(record))
        self._lines = b"\n" + lines if is_torn else lines
        return with_transcript(changed, self._end + len(self._lines), self.stored[-1]["seq"])

    def write(self, session: Directory, *, durable: bool) -> None:
        """Writes the lines, before the record is replaced."""
        if self._lines:
            _uncommitted(lambda: atomic.append(session, TRANSCRIPT, self._lines, durable=durable, end=self._end))

    def finish(self, session: Directory, *, durable: bool) -> None:
        """Nothing is left to do when the record was replaced."""


class Emptying:
    """The beginning of a new transcript in one commit; without a message, there is nothing to begin anew."""

    def __init__(self) -> None:
        self._end = 0
        self._archived = ""

    def prepare(self, session: Directory, record: Record, changed: Record) -> Record:
        """``changed``, which a rule made of ``record``, with an empty transcript and the number of the last one."""
        _finish_emptying(session, record)
        self._end = committed_bytes(record)
        if not self._end:
            return changed
        with translate_errors("open", f"{session.path}/{TRANSCRIPT}"):
            if not session.has(TRANSCRIPT):  # somebody removed it
                return with_transcript(changed, 0, last_seq(record))
            first = record.get("transcripts_archived", 0) + 1
            number = next(number for number in count(first) if not session.has(archived_name(number)))
        self._archived = archived_name(number)
        return with_archived_transcript(changed, number, last_seq(record))

    def write(self, session: Directory, *, durable: bool) -> None:
        """Gives the file its second name, before the record is replaced."""
        if self._archived:
            size = min(self._end, os.stat(TRANSCRIPT, dir_fd=session.fd, follow_symlinks=False).st_size)
            _uncommitted(lambda: atomic.append(session, TRANSCRIPT, b"", durable=durable, end=size))
            atomic.link(session, TRANSCRIPT, self._archived, durable=durable)

    def finish(self, session: Directory, *, durable: bool) -> None:
        """Gives the first name to an empty file. Raises ``DurabilityUnknown``: the transcript is empty in any case."""
        if self._archived:
            try:
                atomic.replace(session, TRANSCRIPT, b"", durable=durable)
            except StoreFailure as error:
                raise DurabilityUnknown(f"{session.path}/{TRANSCRIPT}", str(error)) from error


def _finish_emptying(session: Directory, record: Record) -> None:
    """Ends what a killed writer began: nothing is left that has both names.

    If the record says that nothing is committed, an empty file is due; else the second name came too early.
    """
    with translate_errors("open", f"{session.path}/{TRANSCRIPT}"):
        try:
            found = os.stat(TRANSCRIPT, dir_fd=session.fd, follow_symlinks=False)
        except FileNotFoundError:
            return
        if found.st_nlink < 2:  # noqa: PLR2004  # one name
            return
        if not committed_bytes(record):
            _uncommitted(lambda: atomic.replace(session, TRANSCRIPT, b"", durable=True))
            return
        for number in count(record.get("transcripts_archived", 0) + 1):
            inode = session.inode(archived_name(number))
            if inode is None:
                return
            if inode == (found.st_dev, found.st_ino):
                os.unlink(archived_name(number), dir_fd=session.fd)


def _uncommitted(write: Callable[[], None]) -> None:
    """Calls ``write`` before the record is replaced: if only a sync fails, the old state holds all the same."""
    try:
        write()
    except DurabilityUnknown as error:
        raise StoreFailure("write", error.path, error.reason) from error
