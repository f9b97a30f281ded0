"""Repairs a file that has something behind the record, as after a writer that overwrote a longer file.

The record must be a whole and valid record of this session, and the only one in the file.
"""

from __future__ import annotations

from gaia_sessions.errors import CorruptSession, InvalidInput, NewerSchema, SessionsError
from gaia_sessions.jsonio.strict import first_document
from gaia_sessions.session import index_keys
from gaia_sessions.session.record import decode
from gaia_sessions.session.updates import check_writable

from . import atomic, index, reading
from .directory import NotAFile, TooBig, refusal, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

    from .directory import Directory
    from .open_session import OpenSession

_LARGEST_FILE = 16 << 20
"""The size of the largest file that is repaired, in bytes."""

_WHITE_SPACE = b" \t\r\n"


def repair(session: OpenSession) -> str | None:
    """Replaces the damaged file with its record; returns where the old bytes are, or None if nothing was wrong."""
    folder, agent_id = session.directory, session.agent_id
    try:
        reading.load(folder, agent_id)
    except CorruptSession as error:
        problem = error
    else:
        return None
    try:
        data = _content(folder)
        whole, record = _whole_record(data, agent_id)
    except (InvalidInput, NewerSchema) as error:
        raise CorruptSession(agent_id, problem.path, f"{problem.problem}; it cannot be repaired: {error}") from None
    with translate_errors("repair", problem.path):
        aside = reading.damaged_name(folder.names())
        session.lock.check_held()
        # First all bytes are stored aside, next the index gets its entries, last the record replaces the damaged file.
        atomic.write_new(folder, aside, data, durable=session.durable)
        index.add(session.root, agent_id, index_keys.keys_of(record))
        atomic.replace(folder, reading.RECORD, whole, durable=session.durable)
    return f"{folder.path}/{aside}"


def is_repairable(root: Directory, agent_id: str) -> bool:
    """Returns whether ``repair`` would save the record of a session that cannot be read; takes no lock."""
    try:
        with reading.open_session(root, agent_id) as folder:
            _whole_record(_content(folder), agent_id)
    except SessionsError:
        return False
    return True


def _content(folder: Directory) -> bytes:
    try:
        return folder.read(reading.RECORD, _LARGEST_FILE)
    except (NotAFile, TooBig) as error:
        raise InvalidInput(str(error)) from None
    except OSError as error:
        raise refusal("read", f"{folder.path}/{reading.RECORD}", error) from error


def _whole_record(data: bytes, agent_id: str) -> tuple[bytes, Record]:
    """Returns the bytes of the record with which ``data`` begins, and the record."""
    whole, rest = first_document(data.lstrip(_WHITE_SPACE))
    record = decode(whole, agent_id)
    check_writable(record)
    if _is_record(rest.strip(_WHITE_SPACE + b"\0"), agent_id):
        raise InvalidInput("it has two records of this session; keep the right one and remove the other")
    return whole + b"\n", record


def _is_record(data: bytes, agent_id: str) -> bool:
    try:
        decode(data, agent_id)
    except InvalidInput:
        return False
    return True
