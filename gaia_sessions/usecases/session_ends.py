"""When main sessions of hosts ended, as far as the log of the hooks tells.

Owns which lines of the log are evidence for that. The ids in it are shortened, as the log keeps them.
"""

from __future__ import annotations

from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.events import SESSION_END
from gaia_sessions.store.hook_log_reader import LOG_NAMES, read_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    HostSession = tuple[str, str]
    """A main session: the name of its host, and the id that the host gave it."""


def ended_host_sessions(root: str) -> dict[HostSession, datetime]:
    """When each main session ended whose last event was its end; their ids are shortened as in the lines.

    What follows in the same log happened later, whatever its time: clocks are set back.
    """
    last_events: dict[HostSession, tuple[datetime, bool]] = {}
    for name in LOG_NAMES:
        for host_session, event in _last_events(root, name).items():
            last_events[host_session] = max(last_events.get(host_session, event), event)
    return {host_session: at for host_session, (at, is_end) in last_events.items() if is_end}


def _last_events(root: str, name: str) -> dict[HostSession, tuple[datetime, bool]]:
    """When the last event of each main session in the log ``name`` came, and whether that was its end."""
    last: dict[HostSession, tuple[datetime, bool]] = {}
    for line in read_log(root, name):
        host, session, kinds = line.get("host"), line.get("host_session_id", line.get("session_id")), line.get("kinds")
        try:
            event = parse_time(line.get("at")), isinstance(kinds, list) and SESSION_END in kinds
        except ValueError:
            continue
        if isinstance(host, str) and isinstance(session, str):
            last[host, session] = event
    return last
