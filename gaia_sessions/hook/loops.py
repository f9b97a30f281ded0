"""Loops of agents, looked for before each use of a tool. Imported only with ``--enforce`` and the setting.

What is late or cannot be read is no loop: an agent that writes into its own transcript could as well change its call by
a blank, so refusing then would stop only those that do not.
"""

from __future__ import annotations

from time import monotonic, sleep

from gaia_sessions.errors import SessionNotFound, SessionsError
from gaia_sessions.hosts.agent_files import transcript_of
from gaia_sessions.session.record import is_open, parent_id_of
from gaia_sessions.session.repeats import reason_to_cancel, row_before

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts import Host
    from gaia_sessions.hosts.payload import HookPayload
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.file_store import FileStore

_SECONDS_BETWEEN_LOOKS = 0.02


def calls_in_row(payload: HookPayload, host: Host, run: Run, until: float) -> int:
    """How often the agent of ``run`` made this same call right before; what is late is waited for ``until`` then."""
    agent, call = payload.key("agent_id") or "", payload.key("tool_use_id")
    named = (transcript_of(payload.raw.get("transcript_path"), agent), run.get("transcript_path"))
    for path in dict.fromkeys(named):  # after /clear an agent writes to another file, which its payload tells
        try:
            while path and call and host.recent_calls:
                count = row_before(call, host.recent_calls(path, agent))
                if count is not None or monotonic() >= until:
                    return count or 0
                sleep(_SECONDS_BETWEEN_LOOKS)
        except FileNotFoundError:
            continue
        except OSError:
            return 0
    return 0


def cancel_around(store: FileStore, record: Record, payload: HookPayload) -> SessionsError | None:
    """Cancels the open session above ``record`` with everything below it, or itself if there is none; durably.

    What kept it from being cancelled is returned: the call is refused in any case.
    """
    from gaia_sessions.usecases.cancellation import cancel

    agent_id = record["agent_id"]
    reason = reason_to_cancel(agent_id, payload.text("tool_name"))
    try:
        cancel(store, payload.now, _open_above(store, record) or agent_id, reason, below=True)
    except SessionsError as error:
        return error
    return None


def _open_above(store: FileStore, record: Record) -> str | None:
    """The session above ``record``; None if it is final, or was removed."""
    above = parent_id_of(record)
    try:
        return above if above and is_open(store.read(above)) else None
    except SessionNotFound:
        return None
