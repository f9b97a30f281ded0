"""What became of a run without an end: the rules, and the evidence they use.

Owns the order of the evidence: first that the host reported the end of its session, then its process, then silence,
which proves nothing. While the process of the host exists nothing is closed, whatever was reported. Pure: ``now`` is an
argument.
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
    """A verdict, and the evidence for it in words."""

RUNNING = "running"
"""The verdict on a run that is known to be at work, or showed activity a moment ago."""

UNSURE = "unsure"
"""The verdict on a run for which nothing proves whether it is at work: it is left as it is."""

CLOSING_VERDICTS = frozenset(ENDS)
"""The verdicts that close the run; each is the name of its end."""

SILENCE = timedelta(minutes=10)
"""How long after the last write a transcript counts as silent."""

_JUST_BEGUN = timedelta(minutes=1)
_LATE_WRITE_TOLERANCE = timedelta(minutes=1)


class Evidence:
    """What could be found out about one run.

    host_gone: whether the process of its host has ended; None if that cannot be determined.
    host: the same in words.
    over_at: when the main session of its host ended; None if the log does not say so, or if the session has continued.
    written_at: when its transcript was last written to; None if it has none that can be examined.
    reported: its end as the files of its host have it; None if they do not say.
    """

    __slots__ = ("host", "host_gone", "over_at", "reported", "written_at")

    def __init__(
        self,
        host: str = "the process of its client is not known",
        *,
        host_gone: bool | None = None,
        over_at: datetime | None = None,
        written_at: datetime | None = None,
        reported: ReportedEnd | None = None,
    ) -> None:
        self.host_gone = host_gone
        self.host = host
        self.over_at = over_at
        self.written_at = written_at
        self.reported = reported


def judge(run: Run, evidence: Evidence, now: datetime) -> Judged:
    """The verdict on ``run``, which has no end, and the evidence for it in words."""
    if evidence.reported:
        return evidence.reported[0], "the files of its client say how it ended"
    host_end = _host_ended_run(run, evidence, now)
    if host_end and evidence.host_gone is False:
        return UNSURE, f"{host_end}, and yet {evidence.host}"
    if not may_be_at_work(run):
        return _judge_claim(run, evidence, host_end, now)
    if host_end:
        return ENDED_WITH_HOST, host_end
    if evidence.host_gone is None:
        return _judge_silence(run, evidence, now)
    return (LOST if evidence.host_gone else RUNNING), evidence.host


def _host_ended_run(run: Run, evidence: Evidence, now: datetime) -> str | None:
    """The statement that the host's main session ended during the run; None if not, or if the agent worked on."""
    began, ended_at, written = started_or_claimed_at(run), evidence.over_at, evidence.written_at
    if began is None or ended_at is None or ended_at < began or is_ahead(ended_at, now):
        return None
    if written is not None and written - ended_at > _LATE_WRITE_TOLERANCE:
        return None
    return f"its conversation ended at {format_time(ended_at)}"


def _judge_claim(run: Run, evidence: Evidence, host_end: str | None, now: datetime) -> Judged:
    """The verdict on a delegation without a start, which may still come while the claim holds."""
    claimed = started_or_claimed_at(run)
    if claimed is None:
        return UNSURE, f"nothing is known of its beginning; {evidence.host}"
    delegated = f"delegated at {format_time(claimed)}"
    proof = host_end or (evidence.host if evidence.host_gone else None)
    if is_claimed(run, now):
        return (UNSURE, f"{delegated}, and the claim still holds; {proof}") if proof else (RUNNING, delegated)
    if proof and claimed <= now:
        was_refused = host_end or run["run"] > 1  # an end that was told comes after what was refused
        return (DENIED if was_refused else LOST), f"never started; {proof}"
    return UNSURE, f"{delegated} and never started; {evidence.host}"


def _judge_silence(run: Run, evidence: Evidence, now: datetime) -> Judged:
    """The verdict where nothing is known of the host: a recent write shows that the run is at work."""
    began = started_or_claimed_at(run)
    since = "its beginning is not known" if began is None else f"it began at {format_time(began)}"
    if began is not None and is_within(_JUST_BEGUN, began, now):
        return RUNNING, since
    if evidence.written_at is not None:
        written = f"its transcript was last written to at {format_time(evidence.written_at)}"
        is_recent = is_within(SILENCE, evidence.written_at, now)
        return (RUNNING, written) if is_recent else (UNSURE, f"{evidence.host}; {written}")
    if began is not None and is_within(SILENCE, began, now):
        return RUNNING, since
    return UNSURE, f"{evidence.host}; {since}, and there is no transcript to look at"
