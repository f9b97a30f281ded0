"""Which session started another one: its parent, the root above it, and how deep it is.

Owns how these are computed from the parent's record; no caller ever states them. The main agent of a host has no
session, so a session that it started has no parent. Pure. Must never find a parent.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .schema import Record


def with_parent(record: Record, parent: Record | None) -> Record:
    """With ``parent`` as the parent; the record itself if it has one, or if that would close a circle.

    A record without a parent is the root of all sessions below it, so it is above ``parent`` only if it is its root.
    """
    if parent is None or "parent_id" in record:
        return record
    root_id = parent.get("root_id", parent["agent_id"])
    if record["agent_id"] in (parent["agent_id"], root_id):
        return record
    return {**record, "parent_id": parent["agent_id"], "root_id": root_id, "depth": parent.get("depth", 0) + 1}
