"""Whether an agent at work waits for a person, is heard of, or has become quiet.

``waiting`` in a run says that somebody was asked; whether the agent still waits is judged here, when somebody looks: by
the time of its transcript, since no event says that a permission was refused. Hooks may be heard in any order, so only
news that is later than a request answers it. Pure: ``now`` and the time of the transcript are arguments.
"""

from __future__ import annotations

from .clock import format_time, is_ahead, parse_time, timedelta
from .phases import is_final
from .runs import is_live, started_or_claimed_at, with_run, without_keys
from .schema import QUIET, WAITING, WORKING
from .updates import with_activity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import NotRequired, TypedDict

    from .schema import Record, Run

    Liveness = TypedDict(
        "Liveness", {"state": str, "since": NotRequired[str], "for": NotRequired[str], "awaits": NotRequired[str]}
    )
    """One of ``AGENT_STATES``. since: when the wait began, or the last sign of life. for: the tool it waits for.

    awaits: what its agent began itself and waits for: ``command``, ``agent`` or ``work``.
    """

FLUSH_TIME = timedelta(seconds=1)
"""How long after a request a client may still write down what led to it; then nothing more until it is answered.

Seen in Claude Code 2.1.330: the last line before the dialog was written 0.1 to 0.4 seconds before the request.
"""


def with_request(record: Record, run: Run, tool: str, transcript: str | None, now: datetime) -> Record:
    """The host asks a person whether the agent of ``run`` may use ``tool``. Of several requests the latest counts.

    ``transcript`` is where the agent writes by now: to another file once its conversation has become another one. Those
    of a workflow keep theirs, which is among the files of the workflow.
    """
    has_stopped = not is_live(run) or "end" in run or "own_work" in run
    if has_stopped or _waits_since_later(run, now):
        return record
    renewed: Run = {**run, "transcript_path": transcript} if transcript and "workflow" not in run else run
    return _with_sign_of_life(record, {**renewed, "waiting": {"since": format_time(now), "for": tool}}, now)


def with_answer(record: Record, run: Run, now: datetime) -> Record:
    """The agent of ``run`` goes on at ``now``: what it had asked for before was permitted or refused."""
    if "waiting" not in run or _waits_since_later(run, now):
        return record
    return _with_sign_of_life(record, without_keys(run, "waiting"), now)


def _waits_since_later(run: Run, now: datetime) -> bool:
    """Whether ``run`` waits since a later time, unless that is so far ahead that a clock was wrong."""
    since = parse_time(run["waiting"]["since"]) if "waiting" in run else None
    return since is not None and now <= since and not is_ahead(since, now)


def _with_sign_of_life(record: Record, run: Run, now: datetime) -> Record:
    changed = with_run(record, run)
    return changed if is_final(record["phase"]) else with_activity(changed, now)


def liveness(
    record: Record, run: Run, now: datetime, quiet_after: timedelta, written_at: datetime | None
) -> Liveness | None:
    """What is known of the agent of ``run``, which is live; None if all that is known are times in the future.

    written_at: when its transcript was last written to.
    """
    waiting = run.get("waiting")
    if waiting and not _has_written_since(parse_time(waiting["since"]), now, written_at):
        return {"state": WAITING, "since": waiting["since"], "for": waiting["for"]}
    if "own_work" in run:  # it is woken when that is over; until then it has nothing to write
        return {"state": WORKING, "since": run["own_work"]["since"], "awaits": run["own_work"]["kind"]}
    signs = (parse_time(record["last_updated"]), started_or_claimed_at(run), written_at)
    known = [sign for sign in signs if sign and not is_ahead(sign, now)]
    if not known:
        return None
    last = max(known)
    return {"state": QUIET, "since": format_time(last)} if now - last > quiet_after else {"state": WORKING}


def _has_written_since(since: datetime, now: datetime, written_at: datetime | None) -> bool:
    return written_at is not None and since + FLUSH_TIME < written_at and not is_ahead(written_at, now)
