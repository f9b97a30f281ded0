"""Which sessions are above one: a record names its parent, and nothing else says who is above whom.

The main agent of a host has no session, so a session that it started has no parent. A parent once set never changes.
Pure: whoever needs a parent's record is given how to read it.
"""

from __future__ import annotations

from .record import parent_id_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .schema import Record

    ReadRecord = Callable[[str], Record | None]
    """The record of an id; None if there is none that this version understands."""


def with_parent(record: Record, parent: Record | None, above: Collection[str] = ()) -> Record:
    """With ``parent`` as the parent, which has ``above`` above it; the record itself if it has one, or is one of them.

    The limit of depth is inherited: whoever is below may narrow it and never widen it.
    """
    if parent is None or "parent_id" in record or record["agent_id"] in (parent["agent_id"], *above):
        return record
    below: Record = {**record, "parent_id": parent["agent_id"]}
    limits = [limited["max_depth"] for limited in (record, parent) if "max_depth" in limited]
    return {**below, "max_depth": min(limits)} if limits else below


def ancestors_of(record: Record, read: ReadRecord) -> dict[str, Record | None]:
    """The ids of all sessions above ``record``, the parent first, each with its record; none twice, even in a circle.

    A session that is gone, or cannot be read, is the last.
    """
    ancestors: dict[str, Record | None] = {}
    current: Record | None = record
    while current is not None:
        parent_id = parent_id_of(current)
        if parent_id is None or parent_id in ancestors:
            break
        ancestors[parent_id] = current = read(parent_id)
    return ancestors
