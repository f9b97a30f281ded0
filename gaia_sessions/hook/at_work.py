"""What a conversation that starts is told of sub-agents at work: which wait for the user, which are quiet.

Names and purposes are text of strangers: each is cut and stays on its line.
"""

from __future__ import annotations

from gaia_sessions.api.standing import standing
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.schema import AGENT_STATES, WAITING, WORKING
from gaia_sessions.session.visible import visible_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.api.standing import FindCancellation
    from gaia_sessions.session.liveness import Liveness
    from gaia_sessions.session.policy import Limits
    from gaia_sessions.session.schema import Record

MOST_AGENTS = 4

_HEADING = "Sub-agents that are at work. Do not begin their work again:"
_ORDER = (WAITING, *(state for state in AGENT_STATES if state != WAITING))


def at_work_message(
    find_cancellation: FindCancellation, records: list[Record], now: datetime, limits: Limits
) -> str | None:
    """Returns the agents at work on ``records``, those that wait for the user first; None if there are none."""
    standings = [(standing(find_cancellation, record, now, limits), record) for record in records]
    at_work = [(stands.alive, record) for stands, record in standings if stands.alive]
    if not at_work:
        return None
    at_work.sort(key=lambda pair: _ORDER.index(pair[0]["state"]))
    lines = [_HEADING, *(_line(record, alive, now) for alive, record in at_work[:MOST_AGENTS])]
    if len(at_work) > MOST_AGENTS:
        lines.append(f"and {len(at_work) - MOST_AGENTS} more: gaia-sessions list --active-only")
    return "\n".join(lines)


def _line(record: Record, alive: Liveness, now: datetime) -> str:
    return f"- {visible_line(record['agent_name'], 60)}: {visible_line(record['purpose'], 80)} ({_state(alive, now)})"


def _state(alive: Liveness, now: datetime) -> str:
    if alive["state"] == WORKING:
        awaits = visible_line(alive["awaits"], 60) if "awaits" in alive else ""
        return f"{WORKING}, waits for its own {awaits}" if awaits else WORKING
    since = parse_time(alive["since"])
    if alive["state"] == WAITING:
        tool = visible_line(alive["for"], 60)
        return f"waiting since {since:%Y-%m-%d %H:%M} UTC for the user's permission to use {tool}"
    return f"quiet for {int((now - since).total_seconds() / 60)} min"
