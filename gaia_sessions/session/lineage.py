"""Which sessions are above one: its parent, all its ancestors, the root, and how deep it is.

Owns how these are computed from the parent's record; no caller ever states them. The main agent of a host has no
session, so a session that it started has no parent. Pure. Must never find a parent: whoever needs one is given how to
read it.
"""

from __future__ import annotations

from .record import parent_id_of, stated_ancestors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .schema import Record

    ReadRecord = Callable[[str], Record | None]
    """The record of an id; None if there is none that this version understands."""


def with_parent(record: Record, parent: Record | None) -> Record:
    """With ``parent`` as the parent; the record itself if it has one, or if that would close a circle.

    A record without a parent is the root of all sessions below it, so it is above ``parent`` only if it is its root.
    The limit of depth is inherited: whoever is below may narrow it and never widen it.
    """
    if parent is None or "parent_id" in record:
        return record
    parent_id, root_id = parent["agent_id"], parent.get("root_id", parent["agent_id"])
    if record["agent_id"] in (parent_id, root_id):
        return record
    below: Record = {**record, "parent_id": parent_id, "root_id": root_id, "depth": parent.get("depth", 0) + 1}
    above = stated_ancestors(parent)
    if above is not None:
        below["ancestors"] = [parent_id, *above]
    limits = [limited["max_depth"] for limited in (record, parent) if "max_depth" in limited]
    return {**below, "max_depth": min(limits)} if limits else below


def ancestors_of(record: Record, read: ReadRecord) -> list[str]:
    """The ids of all sessions above ``record``, the parent first; none twice, whatever records say of their parents.

    Records of earlier versions do not state them, so the parents are read one by one, as far as there are any.
    """
    found: dict[str, None] = {}
    current: Record | None = record
    while current is not None:
        above = stated_ancestors(current)
        if above is not None:
            return list(dict.fromkeys([*found, *above]))
        parent_id = parent_id_of(current)
        if parent_id is None or parent_id in found:
            break
        found[parent_id] = None
        current = read(parent_id)
    return list(found)
