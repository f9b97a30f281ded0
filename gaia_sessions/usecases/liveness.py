"""Whether the agent of a session is heard of, waits for a person, or has become quiet.

Owns which run is meant, and reads the time of its transcript, which is asked for only where an agent is at work.
"""

from __future__ import annotations

from gaia_sessions.session import liveness
from gaia_sessions.session.policy import live_runs
from gaia_sessions.session.runs import run_by_number
from gaia_sessions.system import written_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.liveness import Liveness
    from gaia_sessions.session.policy import Decision, Limits
    from gaia_sessions.session.schema import Record


def liveness_of(record: Record, decision: Decision, now: datetime, limits: Limits) -> Liveness | None:
    """What is known of the agent at work on ``record``; None if there is none by the ``decision`` about it."""
    numbers = live_runs(decision)
    run = run_by_number(record, numbers[-1]) if numbers else None
    if run is None:
        return None
    return liveness.liveness(record, run, now, limits.quiet, written_at(run.get("transcript_path")))
