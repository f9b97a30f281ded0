"""What agents used: the figures of a run, and their sum in the record.

Owns that figures are taken as they were told and that each run counts once, however often it is counted, so that the
sum stays right when runs are dropped. Nothing is estimated: a figure that nobody told is absent. Pure.
"""

from __future__ import annotations

from gaia_sessions.jsonio.strict import LARGEST_INTEGER

from .runs import has_ended, run_by_number, updated_run, with_run
from .schema import FIGURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .host_events import Event
    from .schema import Record, Run, Usage

REPORTED_KEYS = ("usage", "model", "worktree")
"""The fields of an event that are kept in the run as they are."""

_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")


def with_reported_usage(record: Record, run: Run, event: Event) -> Record:
    """With what ``event`` tells of ``run``; a later report replaces an earlier one.

    ``record`` itself if it says that already.
    """
    reported: Run = {key: event[key] for key in REPORTED_KEYS if key in event}  # type: ignore[literal-required, assignment]
    run = updated_run(record, run)
    if not reported.items() <= run.items():
        record = with_run(record, {**run, **reported})
    return with_consumed(record, run["run"], {"consumed": event["consumed"]}) if "consumed" in event else record


def with_consumed(record: Record, number: int, counted: Run) -> Record:
    """With ``counted`` as what the run with this ``number`` used in all, and the sum of the record changed by that.

    ``counted`` has ``consumed``, and may have the ``model``, which counts only if the host has told none. ``record``
    itself if it says that already, or has no such run any more.
    """
    run = run_by_number(record, number)
    if run is None or counted["consumed"].items() == run.get("consumed", {}).items():
        return record
    before, after = run.get("consumed", {}), counted["consumed"]
    total = add_usage(record.get("usage", {}), after, before)
    changed = with_run(record, {**counted, **run, "consumed": after})
    return {**changed, "usage": total}


def add_usage(total: Usage, more: Usage, less: Usage) -> Usage:
    """``total`` with ``more`` added and ``less`` taken away; a figure that the first two do not have stays absent.

    A sum ends at what a record can hold: what a host made up must not keep the rest from being written.
    """
    figures: list[dict[str, int]] = [total, more, less]  # type: ignore[list-item]  # all its values are numbers
    first, second, third = figures
    sums = {key: first.get(key, 0) + second.get(key, 0) - third.get(key, 0) for key in FIGURES}
    known = [key for key in FIGURES if key in first or key in second]
    return {key: min(max(sums[key], 0), LARGEST_INTEGER) for key in known}  # type: ignore[return-value]


def sum_of(usages: Iterable[Usage]) -> Usage:
    """The sum of all ``usages``; a figure that none of them has stays absent."""
    sums: dict[str, int] = {}
    for usage in usages:
        figures: dict[str, int] = usage  # type: ignore[assignment]  # all its values are numbers
        for key, figure in figures.items():
            sums[key] = min(sums.get(key, 0) + figure, LARGEST_INTEGER)
    return {key: sums[key] for key in FIGURES if key in sums}  # type: ignore[return-value]


def with_total_tokens(usage: Usage) -> Usage:
    """``usage`` with the sum of its tokens of each kind."""
    tokens = [usage[key] for key in _TOKENS if key in usage]  # type: ignore[literal-required]
    return {**usage, "total_tokens": min(sum(tokens), LARGEST_INTEGER)} if tokens else usage


def uncounted_runs(record: Record) -> list[Run]:
    """The runs that have ended, and of which nobody has counted yet what they used."""
    return [run for run in record.get("runs", ()) if has_ended(run) and "consumed" not in run]


def span_of(record: Record, run: Run) -> tuple[str | None, str | None]:
    """From when to when the requests of ``run`` were made; None for a bound that no other run needs.

    An agent that a message wakes goes on in the same transcript, for another run, or for a session that continues the
    first one. Until then a late start bounds nothing.
    """
    may_share_transcript = run["run"] > 1 or "continues" in record
    return run.get("started_at") if may_share_transcript else None, run.get("ended_at")
