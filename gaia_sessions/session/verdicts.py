"""What became of a run without an end: the rules, and their evidence.

The host's report that its conversation ended counts first, then the host's process, then silence, which proves nothing.
While the host's process exists, no run is ended.
"""

from __future__ import annotations

from datetime import timedelta

from .clock import format_time, is_ahead, is_within
from .runs import is_claimed, may_be_at_work, started_or_claimed_at
from .schema import DENIED, ENDED_WITH_HOST, ENDS, LOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from .run_ends import ReportedEnd
    from .schema import Run

    Judged = tuple[str, str]
    """A verdict, and its evidence in words."""

RUNNING = "running"
"""The verdict on a run that is known to be at work, or was active a moment ago."""

UNSURE = "unsure"
"""The verdict if nothing proves whether the run is at work: the run stays as it is."""

CLOSING_VERDICTS = frozenset(ENDS)
"""The verdicts that end the run; each is the name of an end."""

SILENCE = timedelta(minutes=10)
"""How long after the last write a transcript counts as silent."""

_JUST_BEGUN = timedelta(minutes=1)
_LATE_WRITE_TOLERANCE = timedelta(minutes=1)


class Evidence:
    """What is known of one run."""

    __slots__ = ("host", "host_gone", "over_at", "reported", "written_at")

    def __init__(
        self,
        host: str = "the process of its client is unknown",
        *,
        host_gone: bool | None = None,
        over_at: datetime | None = None,
        written_at: datetime | None = None,
        reported: ReportedEnd | None = None,
    ) -> None:
        self.host_gone = host_gone  # whether the host's process has ended; None if unknown
        self.host = host  # ``host_gone`` in words
        self.over_at = over_at  # when the host's conversation ended; None if unknown, or if the conversation goes on
        self.written_at = written_at  # the last write to the agent's transcript; None if no transcript can be read
        self.reported = reported  # the end in the files of the host; None if the files have no end


def judge(run: Run, evidence: Evidence, now: datetime) -> Judged:
    """Returns the verdict on ``run``, which has no end, and the evidence in words."""
    if evidence.reported:
        return evidence.reported[0], "the files of its client say how it ended"
    host_end = _host_ended_run(run, evidence, now)
    if host_end and evidence.host_gone is False:
        return UNSURE, f"{host_end}, but {evidence.host}"
    if not may_be_at_work(run):
        return _judge_claim(run, evidence, host_end, now)
    if host_end:
        return ENDED_WITH_HOST, host_end
    if evidence.host_gone is None:
        return _judge_silence(run, evidence, now)
    return (LOST if evidence.host_gone else RUNNING), evidence.host


def _host_ended_run(run: Run, evidence: Evidence, now: datetime) -> str | None:
    """Says that the host's conversation ended during the run; None if it did not, or if the agent wrote later."""
    began, ended_at, written = started_or_claimed_at(run), evidence.over_at, evidence.written_at
    if began is None or ended_at is None or ended_at < began or is_ahead(ended_at, now):
        return None
    if written is not None and written - ended_at > _LATE_WRITE_TOLERANCE:
        return None
    return f"its conversation ended at {format_time(ended_at)}"


def _judge_claim(run: Run, evidence: Evidence, host_end: str | None, now: datetime) -> Judged:
    """Judges a delegation without a start; the start can still come in the first 10 minutes."""
    claimed = started_or_claimed_at(run)
    if claimed is None:
        return UNSURE, f"its start is unknown; {evidence.host}"
    delegated = f"delegated at {format_time(claimed)}"
    proof = host_end or (evidence.host if evidence.host_gone else None)
    if is_claimed(run, now):
        return (UNSURE, f"{delegated}, and its agent may still start; {proof}") if proof else (RUNNING, delegated)
    if proof and claimed <= now:
        was_refused = host_end or run["run"] > 1  # a host that ended normally has refused this delegation
        return (DENIED if was_refused else LOST), f"never started; {proof}"
    return UNSURE, f"{delegated} and never started; {evidence.host}"


def _judge_silence(run: Run, evidence: Evidence, now: datetime) -> Judged:
    """Judges a run whose host is unknown: a recent write shows that the run is at work."""
    began = started_or_claimed_at(run)
    since = "its start is unknown" if began is None else f"it started at {format_time(began)}"
    if began is not None and is_within(_JUST_BEGUN, began, now):
        return RUNNING, since
    if evidence.written_at is not None:
        written = f"its transcript was last written to at {format_time(evidence.written_at)}"
        is_recent = is_within(SILENCE, evidence.written_at, now)
        return (RUNNING, written) if is_recent else (UNSURE, f"{evidence.host}; {written}")
    if began is not None and is_within(SILENCE, began, now):
        return RUNNING, since
    return UNSURE, f"{evidence.host}; {since}, and it has no readable transcript"
