"""How a record gives way to the next: marks that lead to it first, then the record, then marks that no longer hold.

Owns that order. Whoever is killed in between leaves a mark too many, never one too few.
"""

from __future__ import annotations

from gaia_sessions.session.record import is_open
from gaia_sessions.session.retention import fit_record

from . import atomic, index, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

    from .directory import Directory
    from .index import IndexKey


def replace_record(
    root: Directory, session: Directory, old: Record, new: Record, spare: int, *, durable: bool
) -> Record:
    """``session`` holds what is kept of ``new`` in the place of ``old`` and has its marks; under its lock.

    Raises like ``fit_record`` and ``atomic.replace``, and ``OSError``.
    """
    new, data = fit_record(new, spare, old)
    old_keys, new_keys = index.keys_of(old), index.keys_of(new)
    index.add(root, new["agent_id"], _difference(new_keys, old_keys))
    if not is_open(new):
        for leftover in atomic.temporaries(session):  # of a writer that was killed: we hold its lock
            atomic.discard(session, leftover)
    if durable and old["revision"] <= 1:
        root.sync()  # whoever created it may have been killed before its name was on the disk
    atomic.replace(session, reading.STATE, data, durable=durable)
    index.remove(root, new["agent_id"], _difference(old_keys, new_keys))
    return new


def _difference(keys: list[IndexKey], other_keys: list[IndexKey]) -> list[IndexKey]:
    excluded = frozenset(other_keys)
    return [key for key in keys if key not in excluded]
