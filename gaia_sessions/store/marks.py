"""The marks of sessions that were cancelled: how one is read and written, and how it is applied to a write.

Owns the bytes of ``cancelled.json``, which is replaced whole, durably, under the lock of its session. Loaded only where
a mark is written or stands already. What a mark means is a rule of the domain.
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
    """The marks of ``agent_ids``, in their order, but of those whose folder or mark is gone meanwhile.

    Raises ``StoreFailure`` for one that cannot be read, which is also one behind a link in place of a session.
    """
    found = []
    for agent_id in agent_ids:
        try:
            with reading.open_session(root, agent_id) as session:
                mark = _read(session)
        except SessionNotFound:
            continue
        except CorruptSession as error:
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
    """The mark with the bytes ``data``, whatever they are: that there is a mark decides."""
    try:
        return read_mark(strict.load_object(data, _MAX_BYTES))
    except InvalidInput:
        return read_mark({})


def change(root: Directory, session: Directory, agent_id: str, rule: MarkRule, *, durable: bool) -> Mark:
    """Applies ``rule`` to the mark of the session, whose lock the caller holds, and returns the mark as it is then."""
    if not reading.has(root, agent_id):
        raise SessionNotFound(agent_id)
    old = _read(session)
    new = rule(old)
    if new is not old:
        atomic.replace(session, reading.CANCELLED, strict.dumps(new, _MAX_BYTES), durable=durable)
    elif durable:
        atomic.sync_folder(session)  # whoever wrote it may have been killed before its name was on the disk
    return new


def applied(
    before: Record, record: Record, entries: Iterable[Entry], cancellation: Cancellation
) -> tuple[Record, Sequence[Entry]]:
    """The result of a write of a cancelled session: the record, and its journal entries with the phase of that."""
    record = with_cancellation(before, record, cancellation)
    return record, [{**entry, "phase": record["phase"]} if "phase" in entry else entry for entry in entries]
