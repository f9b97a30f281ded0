"""Cancellation: which mark cancels a session, and how a mark changes what is written.

A mark keeps its first time and reason, and its scope only grows.
A cancelled session becomes ``abandoned`` as soon as no agent works on it, whatever its runs report.
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
        """What ``cancelled.json`` beside a record says."""

        at: NotRequired[str]  # absent if the mark cannot be read
        reason: NotRequired[str]
        below: bool  # all sessions below are cancelled too
        by: NotRequired[str]  # the removed session above that had this mark

    class Cancellation(TypedDict):
        """Why a session is cancelled.

        Keys:
            by: the cancelled session above, if the session itself was not cancelled.
        """

        at: NotRequired[str]
        reason: NotRequired[str]
        by: NotRequired[str]

    MarkOf = tuple[str, Mark]
    """The ID of a session, and its mark."""


_OUTCOME_KEYS = ("phase", "resume_ready", "history", "history_dropped", "finalized_at", "duration_seconds", "summary")


def check_reason(reason: object) -> None:
    """Raises ``InvalidInput`` unless ``reason`` is None or a text that JSON can hold."""
    if reason is not None:
        check_string(reason, "reason")
        strict.normalize_value(reason, "reason")


def with_mark(mark: Mark | None, now: datetime, reason: str | None, *, below: bool) -> Mark:
    """Returns the mark of a session that is cancelled now; ``mark`` itself if it already cancels as many sessions."""
    if mark is None or "at" not in mark:
        new: Mark = {"at": format_time(now), "below": below or mark is not None}
        return {**new, "reason": reason} if reason else new
    return _for_all_below(mark) if below else mark


def handed_mark(mark: Mark | None, handed: MarkOf) -> Mark:
    """Returns the mark of a session when the session above, which has the mark ``handed``, is removed."""
    # The earlier mark stays and cancels all sessions below: a removal must not change which sessions are cancelled.
    marked_id, first = min([("", mark), handed] if mark else [handed], key=_time_of)
    return {**first, "by": first.get("by", marked_id)} if marked_id else _for_all_below(first)


def _for_all_below(mark: Mark) -> Mark:
    return mark if mark["below"] else {**mark, "below": True}


def read_mark(value: Mapping[str, object]) -> Mark:
    """Reads a mark that anybody can have written; an invalid mark counts as a mark that cancels all sessions below."""
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
    """Returns why the session is cancelled, by the ``marks`` on it and above it; the earliest mark counts."""
    found = _first(marked for marked in marks if marked[0] == agent_id or marked[1]["below"])
    if found is None:
        return None
    marked_id, mark = found
    cancellation: Cancellation = {key: mark[key] for key in ("at", "reason") if key in mark}  # type: ignore[assignment]
    by = mark.get("by", marked_id)
    return cancellation if by == agent_id else {**cancellation, "by": by}


def first_mark(marks: Iterable[MarkOf]) -> MarkOf | None:
    """Returns the earliest mark that also cancels all sessions below; None if there is none."""
    return _first(marked for marked in marks if marked[1]["below"])


def _first(marks: Iterable[MarkOf]) -> MarkOf | None:
    return min(marks, key=_time_of, default=None)


def _time_of(marked: MarkOf) -> float:
    _, mark = marked
    return parse_time(mark["at"]).timestamp() if "at" in mark else 0.0


def unread_cancellation(problem: Exception) -> Cancellation:
    """Returns the cancellation that readers see if ``problem`` hides a mark."""
    return {"reason": f"counts as cancelled until this is fixed: {problem}"}


def with_cancellation(before: Record, changed: Record, cancellation: Cancellation) -> Record:
    """Returns ``changed``, which a write made of ``before``, with the changes that a cancellation demands."""
    if not is_open(before):  # the session keeps its outcome
        return changed if changed["phase"] == before["phase"] else _with_end_of(before, changed)
    outcome = phase_after(WORK_GIVEN_UP, before["phase"])
    if changed["phase"] == outcome:
        return changed
    if not is_open(changed):
        return _with_outcome_replaced(changed, outcome)
    if any(not has_ended(run) for run in changed.get("runs", ())):  # the session ends with its last run
        return changed
    return abandoned(changed, cancellation)


def abandoned(record: Record, cancellation: Cancellation) -> Record:
    """Ends the open ``record`` as ``abandoned``, at the latest known time: activity, cancellation or end of a run."""
    moments = [record["last_updated"], cancellation.get("at"), *(run.get("ended_at") for run in record.get("runs", ()))]
    return with_event(record, WORK_GIVEN_UP, max(parse_time(moment) for moment in moments if moment))


def _with_outcome_replaced(record: Record, outcome: str) -> Record:
    """Returns ``record``, which has just ended with another outcome, with ``outcome``."""
    history = record["history"][:-1]
    for last in record["history"][-1:]:
        history.append({**last, "to_phase": outcome})
    return {**record, "phase": outcome, "history": history}


def _with_end_of(before: Record, changed: Record) -> Record:
    """Returns ``changed`` with the end of ``before``."""
    end = {key: before[key] for key in _OUTCOME_KEYS if key in before}  # type: ignore[literal-required]
    return {**without_end(changed), **end}  # type: ignore[typeddict-item]  # of the same types as before
