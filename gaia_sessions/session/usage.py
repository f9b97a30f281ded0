"""What agents used: the figures of a run, and their sum in the record.

Nothing is estimated: a figure that nobody reported is absent. Each run counts once, and dropped runs stay in the sum.
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
"""The fields of an event that a run gets unchanged."""

_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")


def with_reported_usage(record: Record, run: Run, event: Event) -> Record:
    """Adds the figures of ``run`` that ``event`` reports; a later report replaces an earlier report."""
    reported: Run = {key: event[key] for key in REPORTED_KEYS if key in event}  # type: ignore[literal-required, assignment]
    run = updated_run(record, run)
    if not reported.items() <= run.items():
        record = with_run(record, {**run, **reported})
    return with_consumed(record, run["run"], {"consumed": event["consumed"]}) if "consumed" in event else record


def with_consumed(record: Record, number: int, counted: Run) -> Record:
    """Sets ``counted`` as the total use of run ``number``, and changes the record's sum by the difference."""
    run = run_by_number(record, number)
    if run is None or counted["consumed"].items() == run.get("consumed", {}).items():
        return record
    before, after = run.get("consumed", {}), counted["consumed"]
    total = add_usage(record.get("usage", {}), after, before)
    changed = with_run(record, {**counted, **run, "consumed": after})  # the run's own model stays: the host reported it
    return {**changed, "usage": total}


def add_usage(total: Usage, more: Usage, less: Usage) -> Usage:
    """Returns ``total + more - less``; a figure that ``total`` and ``more`` do not have stays absent."""
    figures: list[dict[str, int]] = [total, more, less]  # type: ignore[list-item]  # all its values are numbers
    first, second, third = figures
    sums = {key: first.get(key, 0) + second.get(key, 0) - third.get(key, 0) for key in FIGURES}
    # A sum ends at the largest number that a record can hold: invented figures must not prevent a write.
    known = [key for key in FIGURES if key in first or key in second]
    return {key: min(max(sums[key], 0), LARGEST_INTEGER) for key in known}  # type: ignore[return-value]


def sum_of(usages: Iterable[Usage]) -> Usage:
    """Returns the sum of all ``usages``; a figure that no usage has stays absent."""
    sums: dict[str, int] = {}
    for usage in usages:
        figures: dict[str, int] = usage  # type: ignore[assignment]  # all its values are numbers
        for key, figure in figures.items():
            sums[key] = min(sums.get(key, 0) + figure, LARGEST_INTEGER)
    return {key: sums[key] for key in FIGURES if key in sums}  # type: ignore[return-value]


def with_total_tokens(usage: Usage) -> Usage:
    """Adds ``total_tokens``, the sum of all kinds of tokens in ``usage``."""
    tokens = [usage[key] for key in _TOKENS if key in usage]  # type: ignore[literal-required]
    return {**usage, "total_tokens": min(sum(tokens), LARGEST_INTEGER)} if tokens else usage


def uncounted_runs(record: Record) -> list[Run]:
    """Returns the runs that have ended and whose usage nobody has counted yet."""
    return [run for run in record.get("runs", ()) if has_ended(run) and "consumed" not in run]


def span_of(record: Record, run: Run) -> tuple[str | None, str | None]:
    """Returns the begin and end of the requests of ``run`` in its transcript; None where there is no bound."""
    # An agent that a message wakes writes on in the same transcript, for another run or for a session that continues
    # this one. Without such a wake-up, the start sets no bound: it can be reported late.
    may_share_transcript = run["run"] > 1 or "continues" in record
    return run.get("started_at") if may_share_transcript else None, run.get("ended_at")
