"""Looks for loops before each use of a tool. Imported only with ``--enforce`` and the setting for it.

A late or unreadable transcript is no loop: an agent that wants to evade this check can add a blank to its call anyway.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionNotFound, SessionsError
from gaia_sessions.hosts.agent_files import looks_until
from gaia_sessions.session.record import is_open, parent_id_of
from gaia_sessions.session.repeats import reason_to_cancel, row_before

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts import Host
    from gaia_sessions.hosts.payload import HookPayload
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store


def calls_in_row(payload: HookPayload, host: Host, files: list[str], until: float) -> int:
    """Returns how often in a row the agent just made this same call. Waits for late lines until the time ``until``."""
    agent, call, look = payload.key("agent_id"), payload.key("tool_use_id"), host.recent_calls
    if not (agent and call and look):
        return 0
    for path in files:
        try:
            for _ in looks_until(until):
                count = row_before(call, look(path, agent))
                if count is not None:
                    return count
        except FileNotFoundError:
            continue
        return 0
    return 0


def cancel_around(store: Store, record: Record, payload: HookPayload) -> SessionsError | None:
    """Cancels the open session above ``record``, else ``record``, with all sessions below it; returns what failed."""
    from gaia_sessions.api.cancelling import mark_cancelled  # most agents are in no loop

    agent_id = record["agent_id"]
    reason = reason_to_cancel(agent_id, payload.text("tool_name"))
    try:
        mark_cancelled(store, payload.now, _open_above(store, record) or agent_id, reason, below=True)
    except SessionsError as error:
        return error
    return None


def _open_above(store: Store, record: Record) -> str | None:
    """Returns the ID of the session above ``record``; None if it has ended or was removed."""
    above = parent_id_of(record)
    try:
        return above if above and is_open(store.read(above)) else None
    except SessionNotFound:
        return None
