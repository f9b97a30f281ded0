"""What waits for a person, and what was answered: the question, and below it what to type or to say.

Owns that wording.
"""

from __future__ import annotations

from gaia_sessions.session.ids import resume_line

from .plain import update_line
from .words import Copyable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gaia_sessions.session.policy import Decision
    from gaia_sessions.session.schema import Record


def answered_lines(record: Record, decision: Decision, now: datetime) -> Iterator[str]:
    """Where an answered session stands, and how the work goes on."""
    yield update_line(record, decision, now)
    if not decision["should_resume"]:
        yield f"  {decision['advice']}"
        return
    what = "it looks for another way" if "denial" in record else "it goes on"
    yield f"Give this to your agent, and {what}:"
    yield Copyable(resume_line(record["agent_id"]))
