"""A stop that is held back because todos of the session are open: when, how often, and what the agent is told.

``held`` of a run has a digest of each such stop, so that one that is told twice counts once. An agent is kept from no
end but an ordinary one: not from a pause, nor from a wait for its own work. Pure.
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
"""Of one run. A client ends an agent without a word that is held more often than this without using a tool."""

_DECIDED_ELSEWHERE = frozenset(["end", "own_work", "workflow"])
"""With one of these a run has ended, waits for its own work, or belongs to a script."""


def may_be_held(record: Record, run: Run) -> bool:
    """Whether the agent of ``run``, which stops, should go on: todos are open, and it was at work and asks nothing."""
    if is_final(record["phase"]) or not open_todos(record) or not is_latest(record, run):
        return False
    if has_ended(run) or not has_started(run) or is_own_run(run) or not _DECIDED_ELSEWHERE.isdisjoint(run):
        return False
    return not (waits_for_approval(run.get("reported")) or holds_question(record))


def with_hold(record: Record, run: Run, stop: str, most: int, now: datetime) -> Record | None:
    """With this ``stop`` of ``run`` held back; the same record if it was before. None if the agent may stop.

    most: how many stops of a run are held back at most.
    """
    held = run.get("held", [])
    if not may_be_held(record, run):
        return None
    if stop in held:
        return record
    if len(held) >= most:
        return None
    heard_of: Run = {**without_keys(run, "waiting"), "held": [*held, stop]}
    return with_activity(with_run(record, heard_of), now)


def open_text(number: int, of: int, reminders: int) -> str:
    """How many todos are left open, and after how many reminders: ``2 of 3, after 8 reminders``."""
    return f"{number} of {of}" + (f", after {plural(reminders, 'reminder')}" if reminders else "")
