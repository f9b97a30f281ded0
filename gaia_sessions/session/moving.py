"""The fence of an open session that is being moved to another store. Until the move ends, nobody can change it."""

from __future__ import annotations

from .record import SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .schema import Moving, Record

SCHEMA_WHILE_MOVING = 1_000_000
"""The schema of a fenced record. No version writes records of a schema that is newer than its own."""


def with_moving(record: Record, moving: Moving | None) -> Record:
    """Returns ``record`` with the fence, or with None as it was before the fence; its revision stays."""
    if moving is not None:
        return {**record, "schema": SCHEMA_WHILE_MOVING, "moving": moving}
    kept: Record = {key: value for key, value in record.items() if key != "moving"}  # type: ignore[assignment]  # still a record
    return {**kept, "schema": SCHEMA}


def moving_of(record: Record) -> Moving | None:
    """Returns from where and to where the session is being moved; None for any other session."""
    return record.get("moving") if record["schema"] == SCHEMA_WHILE_MOVING else None
