"""What an agent's tools say about its work: how often each was used, that it is alive, where it must stand.

Owns how tool calls are counted, and which phase is inferred from them while the agent reports none. An
inferred phase is kept apart from a reported one (``inferred`` of a run) and gives way to it: as soon as
the agent reports, nothing is inferred in that run any more. Pure, like ``runs``; knows no tool by name.
"""

from __future__ import annotations

from .clock import FUTURE_TOLERANCE, read_time, timedelta
from .phases import APPROVAL, EXECUTING, INITIALIZING, INVESTIGATING, PLANNING, VALIDATING, is_final
from .runs import is_latest, is_live, with_run
from .updates import active_at, in_phase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from .schema import Record, Run, Tools

LONGEST_NAME = 64
MOST_NAMES = 100
MOST_RECENT = 200
OTHERS = "other"
"""Tools are counted under so many names of so many characters; those beyond are counted together.

So many calls are remembered, to count none twice: as many as may be told of at once, by digests of eight characters.
"""

SIGN_OF_LIFE = timedelta(minutes=1)
"""News that changes nothing but the last activity is written only if that is so old."""

_BEFORE_EXECUTING = (INITIALIZING, INVESTIGATING, PLANNING)
_AFTER_ASKING = (PLANNING, EXECUTING, VALIDATING)


def alive(record: Record, run: Run, now: datetime) -> Record:
    """The agent of ``run`` is about to use a tool: it is at work, and no more is known; it may be refused."""
    if not _is_at_work(record, run) or -FUTURE_TOLERANCE <= now - read_time(record["last_updated"]) < SIGN_OF_LIFE:
        return record
    return active_at(record, now)


def asked(record: Record, run: Run, now: datetime) -> Record:
    """The host asks somebody whether the agent of ``run`` may go on: ``approval``, unless it reports for itself."""
    if not _is_at_work(record, run) or "reported" in run or record["phase"] == APPROVAL:
        return alive(record, run, now)
    return _inferred(active_at(record, now), run, APPROVAL, now)


def used(record: Record, run: Run, call: str, name: str, now: datetime, *, writes: bool) -> Record:
    """The agent of ``run`` has used the tool ``name``; ``call`` is the host's key for that, and counts once.

    writes: it edited something, or ran a command that does not only read, so the work is ``executing``. Any
    other tool says that whatever was asked before has been answered, and the work stands where it did. If the answer
    was a denial, only the agent itself can say that it goes another way.
    """
    tools, key = record.get("tools", _NONE), digest(call)
    if not _is_at_work(record, run) or key in tools["recent"]:
        return record
    counted: Record = {**active_at(record, now), "tools": _counted(tools, key, name)}
    return _inferred(counted, run, _phase_after_use(record, run, writes=writes), now)


def digest(call: str) -> str:
    """What is remembered of ``call``. Nobody gains by two that are alike, and a real digest costs a hook an import."""
    return f"{int.from_bytes(call.encode(), 'big') % _PRIME:08x}"


_PRIME = 2**32 - 5

_NONE: Tools = {"counts": {}, "recent": []}


def _is_at_work(record: Record, run: Run) -> bool:
    return is_live(run) and is_latest(record, run) and not is_final(record["phase"])


def _counted(tools: Tools, key: str, name: str) -> Tools:
    counts, recent = tools["counts"], [*tools["recent"], key]
    name = name if name in counts or len(counts) < MOST_NAMES - 1 else OTHERS
    return {**tools, "counts": {**counts, name: counts.get(name, 0) + 1}, "recent": recent[-MOST_RECENT:]}


def _phase_after_use(record: Record, run: Run, *, writes: bool) -> str:
    phase = record["phase"]
    waits = phase == APPROVAL and run.get("inferred") == APPROVAL and "denial" not in record
    if "reported" in run or not (waits or phase in _BEFORE_EXECUTING):
        return phase
    if writes:
        return EXECUTING
    return _phase_before_asking(record) if waits else phase


def _phase_before_asking(record: Record) -> str:
    before = record["history"][-1]["from_phase"] if record["history"] else INVESTIGATING
    return before if before in _AFTER_ASKING else INVESTIGATING


def _inferred(record: Record, run: Run, phase: str, now: datetime) -> Record:
    if phase == record["phase"]:
        return record
    return with_run(in_phase(record, phase, now), {**run, "inferred": phase})
