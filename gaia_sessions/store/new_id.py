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

    from .port import MakeEntry, Store

    RandomBytes = Callable[[int], bytes]
    """So many random bytes."""


def create_under_new_id(
    store: Store,
    record: Record,
    now: datetime,
    random_bytes: RandomBytes,
    make_entry: MakeEntry | None = None,
    spare: int = 0,
) -> Record:
    """Keeps ``record``, under another made id should its own be taken by chance."""
    while True:
        try:
            store.create(record, make_entry, spare=spare)
        except SessionExists:
            record = {**record, "agent_id": new_agent_id(now, random_bytes(4))}
        else:
            return record
