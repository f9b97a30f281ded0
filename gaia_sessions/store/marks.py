"""The marks of cancelled sessions (``cancelled.json``): how one is read, written and applied to a write.

A mark is replaced whole, durably, under the lock of its session.
"""

from __future__ import annotations

import errno

from gaia_sessions.errors import CorruptSession, InvalidInput, SessionNotFound, StoreFailure
from gaia_sessions.jsonio import strict
from gaia_sessions.session.cancellation import read_mark, with_cancellation

from . import atomic, reading
from .directory import TooBig, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gaia_sessions.session.cancellation import Cancellation, Mark
    from gaia_sessions.session.schema import Record

    from .directory import Directory
    from .port import Entry, MarkRule

_MAX_BYTES = 1 << 16


def read_each(root: Directory, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
    """Returns the marks of ``agent_ids``, in their order; without those whose folder or mark has just gone."""
    found = []
    for agent_id in agent_ids:
        try:
            with reading.open_session(root, agent_id) as session:
                mark = _read(session)
        except SessionNotFound:
            continue
        except CorruptSession as error:  # also for a link named like the session: it is unknown if a mark exists
            raise StoreFailure("read", f"{error.path}/{reading.CANCELLED}", error.problem) from None
        if mark is not None:
            found.append((agent_id, mark))
    return found


def _read(session: Directory) -> Mark | None:
    path = f"{session.path}/{reading.CANCELLED}"
    with translate_errors("read", path):
        try:
            return decode(session.read(reading.CANCELLED, _MAX_BYTES))
        except FileNotFoundError:
            return None
        except TooBig:
            return decode(b"")
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise StoreFailure("read", path, "a link, not a file") from None
            raise


def decode(data: bytes) -> Mark:
    """Returns the mark that ``data`` says; invalid bytes are a mark too, because the existence of the file decides."""
    try:
        return read_mark(strict.load_object(data, _MAX_BYTES))
    except InvalidInput:
        return read_mark({})


def encode(mark: Mark) -> bytes:
    return strict.dumps(mark, _MAX_BYTES)


def change(root: Directory, session: Directory, agent_id: str, rule: MarkRule, *, durable: bool) -> Mark:
    """Applies ``rule`` to the mark of the session and returns the mark; the caller holds the session's lock."""
    if not reading.has(root, agent_id):
        raise SessionNotFound(agent_id)
    old = _read(session)
    new = rule(old)
    if new is not old:
        atomic.replace(session, reading.CANCELLED, encode(new), durable=durable)
    elif durable:
        atomic.sync_folder(session)  # its writer may have been killed before the name was synced
    return new


def applied(
    before: Record, record: Record, entries: Iterable[Entry], cancellation: Cancellation
) -> tuple[Record, Sequence[Entry]]:
    """Returns what a write to a cancelled session stores: the changed record, and the entries with its phase."""
    record = with_cancellation(before, record, cancellation)
    return record, [{**entry, "phase": record["phase"]} if "phase" in entry else entry for entry in entries]
