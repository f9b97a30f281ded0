"""Keeps the records of sessions whose files have something behind them."""

from __future__ import annotations

from gaia_sessions.store import record_repair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .at import Place


def repair(place: Place, agent_id: str) -> str | None:
    """Keeps the record of a session whose `state.json` has [something behind it](store.md#recovery).

    Returns where that file is kept as it was, None if the record can be read. Raises ``CorruptSession`` if the file
    does not begin with a whole and valid record of that session, or has two.
    """
    return record_repair.repair(place.store, agent_id)
