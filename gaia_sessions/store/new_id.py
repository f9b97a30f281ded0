"""A record gets its made id: until one is free, which is at once but for the rarest chance.

Owns nothing but that; creating by hand and creating for a delegation both end here.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionExists
from gaia_sessions.session.ids import new_agent_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.session.schema import Record

    from .port import Entry, Store

    Chance = Callable[[int], bytes]
    """So many random bytes."""


def create_under_new_id(
    store: Store,
    record: Record,
    now: datetime,
    chance: Chance,
    entry: Entry | None = None,
    spare: int = 0,
) -> Record:
    """Keeps ``record``, under another made id should its own be taken by chance."""
    while True:
        try:
            store.create(record, entry, spare=spare)
        except SessionExists:
            record = {**record, "agent_id": new_agent_id(now, chance(4))}
        else:
            return record
