"""When a session worked, and how much of a span of time it worked.

Time that is unknown does not count as work: after an agent's last activity, and in dropped runs.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

from .clock import parse_time, timedelta
from .phases import waits_for_approval
from .runs import has_ended, is_work, started_or_claimed_at
from .schema import LOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime
    from typing import NotRequired, TypeAlias, TypedDict

    from .schema import Record, Run

    Span: TypeAlias = tuple[datetime, datetime]
    """The beginning and the end of a time; the end is not in the span. A span without length has its one moment."""

    class Overlap(TypedDict):
        """How much of a span of time a session worked.

        Keys:
            share: the share of the span, from 0 to 1. For a span of 0 seconds, it is 1.
            at_least: true if the session perhaps worked longer, because its record dropped runs or phase changes.
        """

        seconds: float
        share: float
        at_least: NotRequired[bool]


def may_overlap(record: Record, window: Span, now: datetime) -> bool:
    """Whether the session can have worked in ``window``, if each run lasted as long as possible."""
    dropped = _dropped(record, now)
    return any(_meet(span, window) for span, _ in _spans(record, now)) or (
        dropped is not None and _meet(dropped, window)
    )


def overlap_of(
    record: Record,
    window: Span,
    now: datetime,
    at_work: Mapping[int, datetime],
    written_at: Callable[[Run], datetime | None],
) -> Overlap | None:
    """Returns how much of ``window`` the session worked; None if it did not work then."""
    # ``at_work``: until when the agents of these runs are known to be at work. ``written_at``: when the agent of a run
    # last wrote, asked only if nobody saw the run end.
    spans = list(_known_spans(record, window, now, at_work, written_at))
    dropped, length = _dropped(record, now), window[1] - window[0]
    is_unsure = dropped is not None and _meet(dropped, window)
    if not spans and not is_unsure:
        return None
    worked = _length_within(window, spans)
    overlap: Overlap = {
        "seconds": worked.total_seconds(),
        "share": worked / length if length else float(bool(spans)),
    }
    return {**overlap, "at_least": True} if is_unsure and overlap["share"] < 1 else overlap


def _known_spans(
    record: Record,
    window: Span,
    now: datetime,
    at_work: Mapping[int, datetime],
    written_at: Callable[[Run], datetime | None],
) -> Iterator[Span]:
    """Yields the spans that overlap ``window``; a run whose end nobody saw lasts to its last activity."""
    signs: list[datetime] = []
    for span, run in _spans(record, now):
        known = span
        if run is not None and _meet(span, window) and (not has_ended(run) or run.get("end") == LOST):
            signs = signs or _signs_of_life(record)
            known = (span[0], at_work.get(run["run"]) or _last_sign(span, signs, written_at(run)))
        if _meet(known, window):
            yield known


def _signs_of_life(record: Record) -> list[datetime]:
    return sorted(map(parse_time, [record["last_updated"], *(move["timestamp"] for move in record["history"])]))


def _last_sign(span: Span, signs: list[datetime], written_at: datetime | None) -> datetime:
    """Returns the last activity in ``span``, which ends when somebody noticed that the agent was gone."""
    before_end = bisect_left(signs, span[1])
    latest = [*signs[max(before_end - 1, 0) : before_end], *filter(None, [written_at])]
    return max([span[0], *(moment for moment in latest if moment < span[1])])


def _spans(record: Record, now: datetime) -> Iterator[tuple[Span, Run | None]]:
    """Yields each run with its longest possible span; without runs, the spans of work by hand."""
    if not record.get("runs"):
        yield from ((span, None) for span in _spans_by_hand(record))
    for run in record.get("runs", ()):
        begun = started_or_claimed_at(run)
        if begun is not None and is_work(run):
            yield (begun, max(begun, parse_time(run["ended_at"]) if has_ended(run) else now)), run


def _spans_by_hand(record: Record) -> list[Span]:
    """Returns the spans from the creation (or first known move) to the last activity, without ``approval``."""
    end = parse_time(record.get("finalized_at", record["last_updated"]))
    moves = [(move["from_phase"], parse_time(move["timestamp"])) for move in record["history"]]
    begun = moves.pop(0)[1] if record.get("history_dropped") and moves else parse_time(record["created_at"])
    phases = [*(phase for phase, _ in moves), record["phase"]]
    pieces = zip(phases, pairwise([begun, *(at for _, at in moves), end]), strict=True)
    worked = [piece for phase, piece in pieces if piece[0] < piece[1] and not waits_for_approval(phase)]
    return worked or [(begun, begun)]


def _dropped(record: Record, now: datetime) -> Span | None:
    """Returns the span of the work that the record dropped; None if it dropped nothing."""
    runs = record.get("runs", [])
    numbers = [0, *(run["run"] for run in runs)]
    behind_gaps = [run for before, run in zip(numbers, runs, strict=False) if run["run"] > before + 1]
    if behind_gaps:
        kept = started_or_claimed_at(behind_gaps[-1]) or now
    elif not runs and record.get("history_dropped") and record["history"]:
        kept = parse_time(record["history"][0]["timestamp"])
    else:
        return None
    created = parse_time(record["created_at"])
    return created, max(created, kept)


def _meet(one: Span, other: Span) -> bool:
    """Whether both spans share a moment; if they do, they share the later beginning."""
    moment = max(one[0], other[0])
    return _has(one, moment) and _has(other, moment)


def _has(span: Span, moment: datetime) -> bool:
    begun, end = span
    return begun <= moment < end or begun == moment == end


def _length_within(window: Span, spans: Iterable[Span]) -> timedelta:
    """Returns how much of ``window`` the ``spans`` cover together."""
    worked, reached = timedelta(), window[0]
    for begun, end in sorted(spans):
        since, until = max(begun, reached), min(end, window[1])
        if since < until:
            worked, reached = worked + (until - since), until
    return worked
