"""The records of sessions, as they will be once the events that wait in the inbox are applied."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gaia_sessions.session.schema import Record

    from .at import Reading


def ids(at: Reading) -> Sequence[str]:
    """The ids of all sessions, readable or not, in no order; those that waiting events begin too."""
    return at.sessions.ids()


def record(at: Reading, agent_id: str) -> Record:
    """The record as it will be once the waiting events are applied. Raises ``SessionNotFound``, ``CorruptSession``."""
    return at.sessions.read(agent_id)
