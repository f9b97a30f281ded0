"""Whether the agent of a session is heard of, waits for a person, or has become quiet.

Owns which run is meant, and reads the time of its transcript, which is asked for only where an agent is at work.
"""

from __future__ import annotations

import os
import stat

from gaia_sessions.session import liveness
from gaia_sessions.session.clock import UTC, datetime
from gaia_sessions.session.policy import live_runs
from gaia_sessions.session.runs import run_by_number

TYPE_CHECKING = False
if TYPE_CHECKING:
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


def written_at(path: str | None) -> datetime | None:
    """When the file at ``path`` was last written to; None if it does not exist or may not be examined."""
    if path is None or not os.path.isabs(path):
        return None
    try:
        found = os.stat(path)
        return datetime.fromtimestamp(found.st_mtime, UTC) if stat.S_ISREG(found.st_mode) else None
    except (OSError, ValueError, OverflowError):  # the path comes from a record, so it can be any text
        return None
