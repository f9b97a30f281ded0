"""What the tools of an agent show about its work: how often each is used, that the agent is alive, and its phase.

Owns how tool calls are counted, and which phase is inferred from them while the agent reports none. An inferred phase
is stored apart from a reported one (``inferred`` of a run); once the agent reports a phase, nothing is inferred in that
run any more. Pure.
"""

from __future__ import annotations

from .ids import quick_digest
from .phases import AGENT_AT_WORK, TOOL_ASKED, TOOL_WROTE, is_final, phase_after, waits_for_approval
from .runs import is_latest, is_live, with_run
from .updates import phase_before, with_activity, with_phase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from .schema import Record, Run, Tools

MAX_TOOL_NAME_LENGTH = 64
MAX_TOOL_NAMES = 100
MAX_RECENT_CALLS = 200
OTHER_TOOLS = "other"
"""Tools beyond ``MAX_TOOL_NAMES`` are counted together under this name.

``MAX_RECENT_CALLS`` digests of eight characters are kept so that no call is counted twice: as many as may be reported
at once.
"""


def with_permission_request(record: Record, run: Run, now: datetime) -> Record:
    """The host asks a person to permit what the agent of ``run`` wants, which counts unless the agent reports."""
    if not _is_at_work(record, run) or "reported" in run or waits_for_approval(record["phase"]):
        return record
    return _with_inferred_phase(with_activity(record, now), run, phase_after(TOOL_ASKED, record["phase"]), now)


def with_tool_use(record: Record, run: Run, call: str, name: str, now: datetime, *, writes: bool) -> Record:
    """The agent of ``run`` has used the tool ``name``; ``call`` is the host's key of this use, which counts once.

    writes: the tool edited something. Once all that was asked for before is answered, the phase is again that before
    the question. If the answer was a denial, only the agent itself can report how the work
    continues.
    """
    tools, key = record.get("tools", _NO_TOOLS), quick_digest(call)
    if not _is_at_work(record, run) or key in tools["recent"]:
        return record
    counted: Record = {**with_activity(record, now), "tools": _with_counted_call(tools, key, name)}
    return _with_inferred_phase(counted, run, _phase_after_use(record, run, writes=writes), now)


_NO_TOOLS: Tools = {"counts": {}, "recent": []}


def _is_at_work(record: Record, run: Run) -> bool:
    return is_live(run) and is_latest(record, run) and not is_final(record["phase"])


def _with_counted_call(tools: Tools, key: str, name: str) -> Tools:
    counts, recent = tools["counts"], [*tools["recent"], key]
    name = name if name in counts or len(counts) < MAX_TOOL_NAMES - 1 else OTHER_TOOLS
    return {**tools, "counts": {**counts, name: counts.get(name, 0) + 1}, "recent": recent[-MAX_RECENT_CALLS:]}


def _phase_after_use(record: Record, run: Run, *, writes: bool) -> str:
    phase = record["phase"]
    is_waiting = waits_for_approval(phase)
    is_inferred = run.get("inferred") == phase and "denial" not in record
    if "reported" in run or (is_waiting and not is_inferred):
        return phase
    if writes:
        return phase_after(TOOL_WROTE, phase)
    is_answered = is_waiting and "waiting" not in run
    return phase_after(AGENT_AT_WORK, phase_before(record)) if is_answered else phase


def _with_inferred_phase(record: Record, run: Run, phase: str, now: datetime) -> Record:
    if phase == record["phase"]:
        return record
    return with_run(with_phase(record, phase, now), {**run, "inferred": phase})
