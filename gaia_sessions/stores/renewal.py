"""How a record gives way to the next: hints that lead to it first, then the record, then hints that no longer hold.

Owns that order. Whoever is killed in between leaves a hint too many, never one too few.
"""

from __future__ import annotations

from gaia_sessions.record import encode, is_open

from . import atomic, index, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gaia_sessions.runs import Alias
    from gaia_sessions.shape import Record

    from .directory import Directory


def renew(
    root: Directory, session: Directory, old: Record, new: Record, aliases: Iterable[Alias], *, durable: bool
) -> None:
    """``session`` holds ``new`` in the place of ``old`` and is found by ``aliases``; under its lock.

    Raises like ``atomic.replace``, and ``OSError``.
    """
    data = encode(new)
    index.name(root, new["agent_id"], aliases)
    if is_open(new) and not is_open(old):
        index.mark(root, new["agent_id"], new["agent_name"])
    if not is_open(new):
        for leftover in atomic.temporaries(session):  # of a writer that was killed: we hold its lock
            atomic.discard(session, leftover)
    if durable and old["revision"] <= 1:
        root.sync()  # whoever created it may have been killed before its name was on the disk
    atomic.replace(session, reading.STATE, data, durable=durable)
    if not is_open(new):
        index.unmark(root, new["agent_id"], new["agent_name"])
