"""The sessions next to one: its parent and its children.

Owns in which order they come, and what is said of a parent that is gone.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidId, SessionNotFound, SessionsError
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.record import parent_id_of
from gaia_sessions.store.above import Above

from .listing import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import TypeAlias

    from gaia_sessions.session.policy import Limits
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Reader, RecordOrError

    from .listing import Line

    Relatives: TypeAlias = tuple[Line | None, list[Line]]
    """The parent and the children of a session."""


def relatives(sessions: Reader, record: Record, now: datetime, limits: Limits) -> Relatives:
    """The parent of ``record``, if it has one, and its children, the first that was created first."""
    parent_id = parent_id_of(record)
    parent = None if parent_id is None else line_of(sessions, Above(sessions), parent_id, now, limits)
    return parent, children(sessions, record["agent_id"], now, limits)


def children(sessions: Reader, agent_id: str, now: datetime, limits: Limits) -> list[Line]:
    """The sessions whose parent is ``agent_id``, the first that was created first; those of later versions last."""
    records, above = sessions.children([agent_id]), Above(sessions)
    return sorted((describe(above, record["agent_id"], record, now, limits) for record in records), key=_oldest_first)


def line_of(sessions: Reader, above: Above, agent_id: str, now: datetime, limits: Limits) -> Line:
    """What a list says of ``agent_id``, which stands in a record as a parent: the session may be gone."""
    found: RecordOrError
    try:
        found = sessions.read(agent_id)
    except InvalidId:  # no session can have had it: somebody wrote it by hand
        found = SessionNotFound(agent_id)
    except SessionsError as error:
        found = error
    return describe(above, agent_id, found, now, limits)


def _oldest_first(line: Line) -> tuple[float, str]:
    created_at = line.get("created_at")
    return parse_time(created_at).timestamp() if created_at else float("inf"), line["agent_id"]
