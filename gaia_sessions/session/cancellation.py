"""Cancellation: what the marks on a session and above it mean, and what they make of a write.

Owns that a mark is latched (its first time and reason stay, its scope only grows), which mark cancels a session, and
that a cancelled session ends as ``abandoned`` when nobody is at work on it any more, whatever its run or somebody says.
Pure. Must never look for a mark: the store does, and hands it in.
"""

from __future__ import annotations

from gaia_sessions.jsonio import strict

from .checks import check_string
from .clock import format_time, parse_time
from .phases import ABANDONED
from .record import is_open
from .runs import has_ended
from .updates import with_outcome, without_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from typing import NotRequired, TypedDict

    from .schema import Record

    class Mark(TypedDict):
        """What stands beside the record of a session that was cancelled.

        at: when; absent if what stands there cannot be read. below: whether all that is below it is cancelled too.
        """

        at: NotRequired[str]
        reason: NotRequired[str]
        below: bool

    class Cancellation(TypedDict):
        """Why a session is cancelled. by: the session whose mark this is, if that is one above it."""

        at: NotRequired[str]
        reason: NotRequired[str]
        by: NotRequired[str]


_OUTCOME_KEYS = ("phase", "resume_ready", "history", "history_dropped", "finalized_at", "duration_seconds", "summary")


def check_reason(reason: object) -> None:
    """Raises ``InvalidInput`` unless ``reason`` is None, or a text that JSON can hold."""
    if reason is not None:
        check_string(reason, "reason")
        strict.normalize_value(reason, "reason")


def with_mark(mark: Mark | None, now: datetime, reason: str | None, *, below: bool) -> Mark:
    """The mark of a session that is cancelled now; ``mark`` itself, if that says no less already."""
    if mark is None:
        new: Mark = {"at": format_time(now), "below": below}
        return {**new, "reason": reason} if reason else new
    return {**mark, "below": True} if below and not mark["below"] else mark


def read_mark(value: Mapping[str, object]) -> Mark:
    """The mark in ``value``, an object that anybody may have written; what cannot be read counts as the widest mark."""
    at, reason, below = value.get("at"), value.get("reason"), value.get("below")
    if not isinstance(below, bool) or not _is_time(at) or not isinstance(reason, str | None):
        return {"below": True}
    mark: Mark = {"at": str(at), "below": below}
    return mark if reason is None else {**mark, "reason": reason}


def _is_time(value: object) -> bool:
    try:
        return bool(parse_time(value))
    except ValueError:
        return False


def cancellation_of(agent_id: str, marks: Iterable[tuple[str, Mark]]) -> Cancellation | None:
    """Why the session is cancelled, by the ``marks`` on it and on those above it; the first of several counts."""
    found = [(marked_id, mark) for marked_id, mark in marks if marked_id == agent_id or mark["below"]]
    if not found:
        return None
    marked_id, mark = min(found, key=lambda one: parse_time(one[1]["at"]).timestamp() if "at" in one[1] else 0.0)
    cancellation: Cancellation = {key: mark[key] for key in ("at", "reason") if key in mark}  # type: ignore[assignment]
    return cancellation if marked_id == agent_id else {**cancellation, "by": marked_id}


def unread_cancellation(problem: Exception) -> Cancellation:
    """What those are told who only look, while ``problem`` hides whether the session is cancelled: that it is."""
    return {"reason": f"it counts as cancelled until this can be read: {problem}"}


def with_cancellation(before: Record, changed: Record, cancellation: Cancellation) -> Record:
    """What becomes of ``changed``, which a write made of ``before``, because the session is cancelled.

    A session that was final keeps its outcome. Any other ends as ``abandoned`` with its last run, however that ended,
    and with the first write if none is without an end. Everything else in ``changed`` stays.
    """
    if not is_open(before):
        return changed if changed["phase"] == before["phase"] else _with_end_of(before, changed)
    if changed["phase"] == ABANDONED:
        return changed
    if not is_open(changed):
        return _with_outcome_replaced(changed)
    if any(not has_ended(run) for run in changed.get("runs", ())):
        return changed
    return abandoned(changed, cancellation)


def abandoned(record: Record, cancellation: Cancellation) -> Record:
    """``record``, which is open, ended as ``abandoned`` because it is cancelled: at its last activity, or since then
    at its cancellation or the end of its last run.
    """
    moments = [record["last_updated"], cancellation.get("at"), *(run.get("ended_at") for run in record.get("runs", ()))]
    return with_outcome(record, ABANDONED, None, max(parse_time(moment) for moment in moments if moment))


def _with_outcome_replaced(record: Record) -> Record:
    """``record``, which has just ended, as ``abandoned`` instead."""
    history = record["history"][:-1]
    for last in record["history"][-1:]:
        history.append({**last, "to_phase": ABANDONED})
    return {**record, "phase": ABANDONED, "history": history}


def _with_end_of(before: Record, changed: Record) -> Record:
    """``changed`` with the end that ``before`` has."""
    end = {key: before[key] for key in _OUTCOME_KEYS if key in before}  # type: ignore[literal-required]
    return {**without_end(changed), **end}  # type: ignore[typeddict-item]  # of the same types as before
