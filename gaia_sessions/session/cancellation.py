"""Cancellation: what the marks on a session and above it mean, and what they make of a write.

Owns that a mark is latched (its first time and reason stay, its scope only grows), which mark cancels a session, and
that a cancelled session ends as ``abandoned`` when nobody is at work on it any more, whatever its run or somebody says.
Pure.
"""

from __future__ import annotations

from gaia_sessions.jsonio import strict

from .checks import check_string
from .clock import format_time, parse_time
from .phases import WORK_GIVEN_UP, phase_after
from .record import is_open
from .runs import has_ended
from .updates import with_event, without_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from typing import NotRequired, TypedDict

    from .schema import Record

    class Mark(TypedDict):
        """What stands beside the record of a session that was cancelled.

        at: when; absent if what stands there cannot be read. below: whether all that is below it is cancelled too.
        by: the session above it that this was the mark of, and that was removed since.
        """

        at: NotRequired[str]
        reason: NotRequired[str]
        below: bool
        by: NotRequired[str]

    class Cancellation(TypedDict):
        """Why a session is cancelled.

        Keys:
            by: the cancelled session above, if the session itself was not cancelled.
        """

        at: NotRequired[str]
        reason: NotRequired[str]
        by: NotRequired[str]

    MarkOf = tuple[str, Mark]
    """The id of a session, and its mark."""


_OUTCOME_KEYS = ("phase", "resume_ready", "history", "history_dropped", "finalized_at", "duration_seconds", "summary")


def check_reason(reason: object) -> None:
    """Raises ``InvalidInput`` unless ``reason`` is None, or a text that JSON can hold."""
    if reason is not None:
        check_string(reason, "reason")
        strict.normalize_value(reason, "reason")


def with_mark(mark: Mark | None, now: datetime, reason: str | None, *, below: bool) -> Mark:
    """The mark of a session that is cancelled now; ``mark`` itself, if it can be read and says no less already."""
    if mark is None or "at" not in mark:
        new: Mark = {"at": format_time(now), "below": below or mark is not None}
        return {**new, "reason": reason} if reason else new
    return _for_all_below(mark) if below else mark


def handed_mark(mark: Mark | None, handed: MarkOf) -> Mark:
    """What ``mark``, that of a session, becomes before the session above it is removed that ``handed`` it on.

    The first of the two stays, for all that is below, so that nobody's cancellation changes by the removal.
    """
    marked_id, first = min([("", mark), handed] if mark else [handed], key=_time_of)
    return {**first, "by": first.get("by", marked_id)} if marked_id else _for_all_below(first)


def _for_all_below(mark: Mark) -> Mark:
    return mark if mark["below"] else {**mark, "below": True}


def read_mark(value: Mapping[str, object]) -> Mark:
    """The mark in ``value``, an object that anybody may have written; what cannot be read counts as the widest mark."""
    at, below = value.get("at"), value.get("below")
    texts = {key: value[key] for key in ("reason", "by") if value.get(key) is not None}
    if not isinstance(below, bool) or not _is_time(at) or not all(isinstance(text, str) for text in texts.values()):
        return {"below": True}
    return {"at": str(at), "below": below, **texts}  # type: ignore[typeddict-item]  # just checked


def _is_time(value: object) -> bool:
    try:
        return bool(parse_time(value))
    except ValueError:
        return False


def cancellation_of(agent_id: str, marks: Iterable[MarkOf]) -> Cancellation | None:
    """Why the session is cancelled, by the ``marks`` on it and on those above it; the first of several counts."""
    found = _first(marked for marked in marks if marked[0] == agent_id or marked[1]["below"])
    if found is None:
        return None
    marked_id, mark = found
    cancellation: Cancellation = {key: mark[key] for key in ("at", "reason") if key in mark}  # type: ignore[assignment]
    by = mark.get("by", marked_id)
    return cancellation if by == agent_id else {**cancellation, "by": by}


def first_mark(marks: Iterable[MarkOf]) -> MarkOf | None:
    """The first of those that cancel all that is below their session; None if none does."""
    return _first(marked for marked in marks if marked[1]["below"])


def _first(marks: Iterable[MarkOf]) -> MarkOf | None:
    return min(marks, key=_time_of, default=None)


def _time_of(marked: MarkOf) -> float:
    _, mark = marked
    return parse_time(mark["at"]).timestamp() if "at" in mark else 0.0


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
    outcome = phase_after(WORK_GIVEN_UP, before["phase"])
    if changed["phase"] == outcome:
        return changed
    if not is_open(changed):
        return _with_outcome_replaced(changed, outcome)
    if any(not has_ended(run) for run in changed.get("runs", ())):
        return changed
    return abandoned(changed, cancellation)


def abandoned(record: Record, cancellation: Cancellation) -> Record:
    """``record``, which is open, ended as ``abandoned`` because it is cancelled: at its last activity, or since then
    at its cancellation or the end of its last run.
    """
    moments = [record["last_updated"], cancellation.get("at"), *(run.get("ended_at") for run in record.get("runs", ()))]
    return with_event(record, WORK_GIVEN_UP, max(parse_time(moment) for moment in moments if moment))


def _with_outcome_replaced(record: Record, outcome: str) -> Record:
    """``record``, which has just ended, with ``outcome`` instead."""
    history = record["history"][:-1]
    for last in record["history"][-1:]:
        history.append({**last, "to_phase": outcome})
    return {**record, "phase": outcome, "history": history}


def _with_end_of(before: Record, changed: Record) -> Record:
    """``changed`` with the end that ``before`` has."""
    end = {key: before[key] for key in _OUTCOME_KEYS if key in before}  # type: ignore[literal-required]
    return {**without_end(changed), **end}  # type: ignore[typeddict-item]  # of the same types as before
