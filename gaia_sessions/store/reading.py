"""Reads one session from its folder, without a lock: a rename replaces a record, so a reader sees the old or the new.

A folder without a record is no session. If a record names a file of the store, the path is made again from the ID: the
stored path may be a stranger's, or from before the root was moved.
"""

from __future__ import annotations

import errno
import os

from gaia_sessions import errors
from gaia_sessions.errors import CorruptSession, InvalidInput, SessionNotFound, StoreFailure
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT
from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.session.record import SCHEMA, check_readable, decode, has_newer_schema

from . import atomic, send_lock_key
from .directory import NotAFile, TooBig, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gaia_sessions.session.schema import Record

    from .directory import Directory
    from .port import RecordOrError

RECORD = "state.json"
CANCELLED = "cancelled.json"
"""The mark of a cancelled session."""

EVENTS = "events.jsonl"
ASIDE = "transcript-aside.jsonl"
"""Messages that a writer found after the committed messages."""

_FIRST_TRANSCRIPT = "transcript.jsonl"
_LATER_TRANSCRIPT = ("transcript-", ".jsonl")
_OUTPUT = ("output-", ".log")
_DAMAGED = ("state-damaged-", ".json")
_MOST_DIGITS = 18
"""The most digits of a number in a file name; a record must have room for the next number, too."""

_NOT_A_FOLDER_ERRORS = frozenset([errno.ELOOP, errno.ENOTDIR])
_MAX_RECENT_BYTES = 1 << 16
"""Bytes of records that a cache holds besides the last record: an event of a host concerns few sessions."""


def transcript_name(generation: int) -> str:
    """Returns the name of the file of a ``generation`` of the transcript; the first is 0."""
    return f"{generation}".join(_LATER_TRANSCRIPT) if generation else _FIRST_TRANSCRIPT


def generation_in(name: str) -> int | None:
    """Returns the generation of the transcript file with this ``name``; None for any other name."""
    return 0 if name == _FIRST_TRANSCRIPT else _number_in(name, _LATER_TRANSCRIPT)


def _number_in(name: str, around: tuple[str, str]) -> int | None:
    """Returns the number, from 1, between the two parts of ``around`` in ``name``; None for any other name."""
    before, after = around
    number = name[len(before) : -len(after)]
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
    return int(number) if is_number and int(number) and name == f"{int(number)}".join(around) else None


def output_name(number: int) -> str:
    """Returns the name of the output file of run ``number``."""
    return f"{number}".join(_OUTPUT)


def run_of_output(name: str) -> int | None:
    """Returns the run whose output a file with this ``name`` has; None for any other name."""
    return _number_in(name, _OUTPUT)


def is_output_name(name: str) -> bool:
    """Returns whether a file with this ``name`` has the output of a run."""
    return run_of_output(name) is not None


def damaged_name(names: Iterable[str]) -> str:
    """Returns an unused name for a damaged record file that is moved aside."""
    return f"{max((_number_in(name, _DAMAGED) or 0 for name in names), default=0) + 1}".join(_DAMAGED)


def is_damaged_name(name: str) -> bool:
    """Returns whether a damaged record was moved aside to a file with this ``name``."""
    return bool(_number_in(name, _DAMAGED))


def is_file_name(name: str) -> bool:
    """Returns whether the store gives this ``name`` to a file in the directory of a session."""
    is_fixed = name in (RECORD, CANCELLED, EVENTS, ASIDE)
    return is_fixed or generation_in(name) is not None or is_output_name(name) or is_damaged_name(name)


def unfinished(names: Iterable[str]) -> list[str]:
    """Returns those of ``names`` that are temporary files of a session's files."""
    targets = [(name, atomic.target_of(name)) for name in names]
    return [name for name, target in targets if target and is_file_name(target)]


def is_own_name(name: str) -> bool:
    """Returns whether a file with this ``name`` in the directory of a session is the store's, or its temporary file."""
    return is_file_name(name) or is_file_name(atomic.target_of(name))


def session_names(root: Directory) -> list[str]:
    """Returns the IDs in ``root`` that name a directory, or a link to one with a record, in no order."""
    return [entry.name for entry in root.entries() if is_agent_id(entry.name) and _may_be_session(root, entry)]


def _may_be_session(root: Directory, entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and has_record(root, entry.name))


def open_session(root: Directory, agent_id: str) -> Directory:
    """Opens the session's directory; raises ``CorruptSession`` if a link or a file has its name."""
    try:
        return root.below(agent_id)
    except FileNotFoundError:
        raise SessionNotFound(agent_id) from None
    except OSError as error:
        path = f"{root.path}/{agent_id}"
        if error.errno in _NOT_A_FOLDER_ERRORS:
            raise CorruptSession(agent_id, path, "not a folder, but a link or a file") from None
        raise refusal("open", path, error) from error


def has(root: Directory, agent_id: str) -> bool:
    """Returns whether ``read`` would find a record or a corrupt one."""
    if has_record(root, agent_id):
        return True
    try:
        read(root, agent_id)
    except SessionNotFound:
        return False
    except CorruptSession:
        pass
    return True


def has_record(root: Directory, agent_id: str) -> bool:
    """Returns whether a file has the name of the record of ``agent_id``; True if the system forbids to look."""
    try:
        return root.has(f"{agent_id}/{RECORD}")
    except OSError as error:
        return error.errno not in _NOT_A_FOLDER_ERRORS


def marked_ids(root: Directory, agent_ids: Iterable[str]) -> list[str]:
    """Returns those of ``agent_ids`` that have a mark, in their order; raises ``StoreFailure`` if that is uncertain."""
    # The IDs may come from ``parent_id`` in records, so they may be any text.
    return [agent_id for agent_id in agent_ids if is_agent_id(agent_id) and has_mark(root, agent_id)]


def has_mark(root: Directory, agent_id: str) -> bool:
    """Returns whether a session has a mark; raises like ``marked_ids``."""
    path = f"{agent_id}/{CANCELLED}"
    try:
        return root.has(path)
    except OSError as error:
        if error.errno == errno.ENOTDIR:
            return False
        raise refusal("read", f"{root.path}/{path}", error) from error  # what we cannot look at may be a mark


def load(folder: Directory, agent_id: str) -> Record:
    """Returns the record in the session's open ``folder``."""
    return _decoded(folder, agent_id, _read_record(folder, agent_id))


def _decoded(folder: Directory, agent_id: str, data: bytes) -> Record:
    try:
        record = decode(data, agent_id)
    except InvalidInput as error:
        raise CorruptSession(agent_id, f"{folder.path}/{RECORD}", str(error)) from None
    try:
        check_readable(record)
    except errors.NewerSchema:  # its runs may have another form
        return record
    for run in record.get("runs", ()):
        if "output_path" in run:
            run["output_path"] = os.path.join(os.path.abspath(folder.path), output_name(run["run"]))
        if "lock" in run.get("wrapper", ()):
            from . import key_lock  # few records name one

            root = os.path.dirname(os.path.abspath(folder.path))
            run["wrapper"]["lock"] = key_lock.path_of(root, send_lock_key(agent_id))
        if "lease" in run.get("wrapper", ()):  # a copy from a server, where others judged it
            del run["wrapper"]["lease"]
        if "lock" in run.get("host_process", ()):  # no host holds a lock of ours
            del run["host_process"]["lock"]
    return record


def read(root: Directory, agent_id: str) -> Record:
    """Returns the record of ``agent_id``."""
    with open_session(root, agent_id) as folder:
        return load(folder, agent_id)


def unless_refused(record: RecordOrError) -> RecordOrError:
    """Returns ``record``, a record or an error; raises the error if the system refused the read."""
    if isinstance(record, StoreFailure):
        raise record
    return record


def read_existing(
    read: Callable[[Directory, str], Record], root: Directory, agent_ids: Iterable[str], *, strict: bool = False
) -> Iterator[Record]:
    """Yields the records of ``agent_ids`` that exist; ``strict`` also raises for corrupt and newer records."""
    for agent_id in agent_ids:
        try:
            record = read(root, agent_id)
        except SessionNotFound:
            continue
        except CorruptSession:
            if strict:
                raise
            continue
        if strict and has_newer_schema(record):
            raise errors.NewerSchema(agent_id, record["schema"], SCHEMA)
        yield record


class RecordCache:
    """Reads like ``read``, but does not decode and check a record again if it read the same bytes lately.

    The bytes are read again each time and compared, so a record is never older than the call that asks for it. The same
    object may be handed out twice: nobody may change it in place.
    """

    __slots__ = ("_recent",)

    def __init__(self) -> None:
        self._recent: tuple[tuple[bytes, Record], ...] = ()

    def load(self, folder: Directory, agent_id: str) -> Record:
        """Returns the record in the session's open ``folder``, as its bytes are now."""
        data = _read_record(folder, agent_id)
        for recent_data, record in self._recent:
            if recent_data == data and record["agent_id"] == agent_id:
                return record
        record = _decoded(folder, agent_id, data)
        self._recent = ((data, record), *_newest_of(self._recent))
        return record

    def read(self, root: Directory, agent_id: str) -> Record:
        """Returns the record of ``agent_id``, as its bytes are now."""
        with open_session(root, agent_id) as folder:
            return self.load(folder, agent_id)


def _newest_of(recent: tuple[tuple[bytes, Record], ...]) -> Iterator[tuple[bytes, Record]]:
    """Yields as many of the newest records as fit into the cache."""
    size = 0
    for data, record in recent:
        size += len(data)
        if size > _MAX_RECENT_BYTES:
            return
        yield data, record


def _read_record(folder: Directory, agent_id: str) -> bytes:
    try:
        return folder.read(RECORD, DOCUMENT_LIMIT)
    except FileNotFoundError:
        raise SessionNotFound(agent_id) from None
    except OSError as error:
        path = f"{folder.path}/{RECORD}"
        if isinstance(error, NotAFile | TooBig):
            raise CorruptSession(agent_id, path, str(error)) from None
        if error.errno in _NOT_A_FOLDER_ERRORS:
            raise CorruptSession(agent_id, path, "a link, not a file") from None
        raise refusal("read", path, error) from error
