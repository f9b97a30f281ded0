"""Which sessions are above a session. Only ``parent_id`` of a record says that, and a parent never changes.

The main agent of a host has no session, so a session that it starts has no parent.
"""

from __future__ import annotations

from .record import parent_id_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .schema import Record

    ReadRecord = Callable[[str], Record | None]
    """Returns the record of an ID; None if there is none that this version understands."""


def with_parent(record: Record, parent: Record | None, above: Collection[str] = ()) -> Record:
    """Sets the parent; returns ``record`` if it has a parent, or if the session would be above itself."""
    if parent is None or "parent_id" in record or record["agent_id"] in (parent["agent_id"], *above):
        return record
    below: Record = {**record, "parent_id": parent["agent_id"]}
    # A session below may narrow the limit of depth, but never widen it.
    limits = [limited["max_depth"] for limited in (record, parent) if "max_depth" in limited]
    return {**below, "max_depth": min(limits)} if limits else below


def ancestors_of(record: Record, read: ReadRecord) -> dict[str, Record | None]:
    """Returns the sessions above ``record`` with their records, the parent first; safe in a circle."""
    ancestors: dict[str, Record | None] = {}
    current: Record | None = record
    while current is not None:
        parent_id = parent_id_of(current)
        if parent_id is None or parent_id in ancestors:
            break
        ancestors[parent_id] = current = read(parent_id)  # None if the session is gone or unreadable: the search ends
    return ancestors
