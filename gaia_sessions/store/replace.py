"""How a record gives way to the next: marks that lead to it first, then the record, then marks that no longer hold.

Owns that order. Whoever is killed in between leaves a mark too many, never one too few.
"""

from __future__ import annotations

from gaia_sessions.session.record import is_open
from gaia_sessions.session.retention import fitted

from . import atomic, index, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

    from .directory import Directory
    from .index import Mark


def renew(root: Directory, session: Directory, old: Record, new: Record, spare: int, *, durable: bool) -> Record:
    """``session`` holds what is kept of ``new`` in the place of ``old`` and has its marks; under its lock.

    Raises like ``fitted`` and ``atomic.replace``, and ``OSError``.
    """
    new, data = fitted(new, spare, old)
    before, after = index.marks_of(old), index.marks_of(new)
    index.add(root, new["agent_id"], _only_in(after, before))
    if not is_open(new):
        for leftover in atomic.temporaries(session):  # of a writer that was killed: we hold its lock
            atomic.discard(session, leftover)
    if durable and old["revision"] <= 1:
        root.sync()  # whoever created it may have been killed before its name was on the disk
    atomic.replace(session, reading.STATE, data, durable=durable)
    index.remove(root, new["agent_id"], _only_in(before, after))
    return new


def _only_in(marks: list[Mark], others: list[Mark]) -> list[Mark]:
    there = frozenset(others)
    return [mark for mark in marks if mark not in there]
