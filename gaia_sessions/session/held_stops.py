"""A stop that is held back because todos are open: when, how often, and what the agent is told.

Only an ordinary end is held back, never a pause or a wait for own work.
"""

from __future__ import annotations

from gaia_sessions.errors import plural

from .phases import is_final, waits_for_approval
from .runs import has_ended, has_started, holds_question, is_latest, is_own_run, with_run, without_keys
from .todos import open_todos
from .updates import with_activity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from .schema import Record, Run

MOST_HOLDS = 8
"""The most holds of one run. A client silently ends an agent that is held more often without using a tool."""

_DECIDED_ELSEWHERE = frozenset(["end", "own_work", "workflow"])
"""A run with one of these has ended, waits for its own work, or belongs to a script."""


def may_be_held(record: Record, run: Run) -> bool:
    """Whether the agent of ``run`` can be kept from stopping: todos are open, and the agent asks nothing."""
    if is_final(record["phase"]) or not open_todos(record) or not is_latest(record, run):
        return False
    if has_ended(run) or not has_started(run) or is_own_run(run) or not _DECIDED_ELSEWHERE.isdisjoint(run):
        return False
    return not (waits_for_approval(run.get("reported")) or holds_question(record))


def with_hold(record: Record, run: Run, stop: str, most: int, now: datetime) -> Record | None:
    """Holds ``stop`` back; returns ``record`` if ``stop`` was held before, None if the agent is allowed to stop."""
    held = run.get("held", [])
    if not may_be_held(record, run):
        return None
    if stop in held:  # a stop that is reported twice counts as one hold
        return record
    if len(held) >= most:
        return None
    heard_of: Run = {**without_keys(run, "waiting"), "held": [*held, stop]}
    return with_activity(with_run(record, heard_of), now)


def open_text(number: int, of: int, reminders: int) -> str:
    """Returns how many todos are open, and after how many reminders: ``2 of 3, after 8 reminders``."""
    return f"{number} of {of}" + (f", after {plural(reminders, 'reminder')}" if reminders else "")
