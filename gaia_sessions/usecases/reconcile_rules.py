"""What became of a run that nobody ended: the rules, and what they may be judged by.

Owns the order of the evidence: the host's own word first, then its process, then silence, which proves
nothing. That word was only heard, and a process is seen: while that is there, nothing is closed. Pure: who
gathers the evidence is next door, and ``now`` is an argument.
"""

from __future__ import annotations

from datetime import timedelta

from gaia_sessions.session.clock import FUTURE_TOLERANCE, format_time
from gaia_sessions.session.runs import is_claimed, may_be_at_work, started_or_claimed_at
from gaia_sessions.session.schema import DENIED, ENDED_WITH_HOST, LOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.schema import Run

    Judged = tuple[str, str]
    """A verdict, and in words what it rests on."""

RUNNING = "running"
"""Known to be at work, or heard of too lately to doubt it."""

UNSURE = "unsure"
"""Nothing proves that it is at work, and nothing that it is not: it is left alone."""

CLOSING_VERDICTS = frozenset([LOST, ENDED_WITH_HOST, DENIED])
"""The verdicts that are an end of the run, by the same names."""

SILENCE = timedelta(minutes=10)
"""A transcript that nobody wrote to for so long is silent."""

_JUST_BEGUN = timedelta(minutes=1)
_LATE_WRITE_TOLERANCE = timedelta(minutes=1)


class Evidence:
    """What can be found out about one run from here.

    host_gone: whether the process of its host has ended, None if that cannot be told; host: what says so.
    over_at: when its main session of the host was heard to end, if nothing was heard of that since.
    written_at: when its transcript was last written to, None if it has none that can be looked at.
    """

    __slots__ = ("host", "host_gone", "over_at", "written_at")

    def __init__(
        self,
        host: str = "its host's process is not known",
        *,
        host_gone: bool | None = None,
        over_at: datetime | None = None,
        written_at: datetime | None = None,
    ) -> None:
        self.host_gone = host_gone
        self.host = host
        self.over_at = over_at
        self.written_at = written_at


def judge(run: Run, evidence: Evidence, now: datetime) -> Judged:
    """What became of ``run``, which has no end, and what says so."""
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
    """That the host's main session ended while it had the run, unless its agent was at work after that."""
    began, ended_at, written = started_or_claimed_at(run), evidence.over_at, evidence.written_at
    if began is None or ended_at is None or not began <= ended_at <= now + FUTURE_TOLERANCE:
        return None
    if written is not None and written - ended_at > _LATE_WRITE_TOLERANCE:
        return None
    return f"the host's session ended at {format_time(ended_at)}"


def _judge_claim(run: Run, evidence: Evidence, host_end: str | None, now: datetime) -> Judged:
    """A delegation whose agent was never heard of: its start may be on its way for as long as the claim holds."""
    claimed = started_or_claimed_at(run)
    if claimed is None:
        return UNSURE, f"nothing is known of its beginning; {evidence.host}"
    delegated = f"delegated at {format_time(claimed)}"
    proof = host_end or (evidence.host if evidence.host_gone else None)
    if is_claimed(run, now):
        return (UNSURE, f"{delegated}, and the claim still holds; {proof}") if proof else (RUNNING, delegated)
    if proof and claimed <= now:
        return DENIED, f"never started; {proof}"
    return UNSURE, f"{delegated} and never started; {evidence.host}"


def _judge_silence(run: Run, evidence: Evidence, now: datetime) -> Judged:
    """Nothing is known of the host: whoever wrote a moment ago is there, and whoever did not may be."""
    began = started_or_claimed_at(run)
    since = "its beginning is not known" if began is None else f"it began at {format_time(began)}"
    if _is_within(began, _JUST_BEGUN, now):
        return RUNNING, since
    if evidence.written_at is not None:
        written = f"its transcript was last written to at {format_time(evidence.written_at)}"
        is_recent = _is_within(evidence.written_at, SILENCE, now)
        return (RUNNING, written) if is_recent else (UNSURE, f"{evidence.host}; {written}")
    if _is_within(began, SILENCE, now):
        return RUNNING, since
    return UNSURE, f"{evidence.host}; {since}, and there is no transcript to look at"


def _is_within(moment: datetime | None, span: timedelta, now: datetime) -> bool:
    return moment is not None and -FUTURE_TOLERANCE <= now - moment < span
