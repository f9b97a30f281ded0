"""How to resume one session, or all sessions that stopped before their work was done.

Sessions with an answer are included. Sessions that wait for an answer, or that an agent paused, are not.
"""

from __future__ import annotations

import os
from collections import Counter

from gaia_sessions.errors import SessionsError
from gaia_sessions.hosts import resumption as by_its_host
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.ids import resume_line
from gaia_sessions.session.policy import claimed_runs, is_only_expired, live_runs, may_go_on
from gaia_sessions.session.record import parent_id_of
from gaia_sessions.session.runs import conversation_of, has_ended, host_outlives_conversation, was_only_delegated
from gaia_sessions.session.schema import LOST, STOPPED_BY_USER
from gaia_sessions.session.state import ANSWERED, BROKEN_OFF, DENIED, LIMITED, WAITING, latest_begun
from gaia_sessions.store.above import Above
from gaia_sessions.system.processes import is_alive
from gaia_sessions.system.project_root import claude_folder

from .at import read, write
from .standing import find, standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import NotRequired, TypedDict, final

    from gaia_sessions.hosts import Work
    from gaia_sessions.session.policy import Decision
    from gaia_sessions.session.schema import Answer, Record, Run
    from gaia_sessions.store.port import Reader

    from .at import Place, Reading
    from .standing import Standing

    @final
    class Resumption(TypedDict):
        """How to resume one session, as `resume --json` prints it.

        A session that you name and that cannot be resumed has the keys of ``Decision`` instead.

        Keys:
            had_expired: true if the session had expired, and this call recorded new activity.
            why: why the session stopped: the interruption, the end of the run, or the state.
            detail: what the host said about the end.
            until: when the session expires; None while the session waits, until ``paused_until``, for a usage limit.
            host_is_alive: whether the process that ran the agent still exists.
            claimed_at: when the work was delegated; only if the new agent never started.
            run_command: as in ``Decision``, instead of ``resume_line``.
            means: ``message``, ``workflow``, ``delegation``, ``resume_line``, ``run`` or ``none``.
            problem: why there is no command, or why the agent must find another way.
            command: what to type; None if there is no command, or the session waits.
            prompt: what the command says to the host.
        """

        agent_id: str
        agent_name: str
        purpose: str
        phase: str
        should_resume: bool
        state: str
        state_since: NotRequired[str]
        had_expired: NotRequired[bool]
        why: str
        detail: NotRequired[str]
        stopped_at: NotRequired[str]
        until: str | None
        paused_until: NotRequired[str]
        host: NotRequired[str]
        host_session_id: NotRequired[str]
        host_agent_id: NotRequired[str]
        host_is_alive: bool
        claimed_at: NotRequired[str]
        resume_line: NotRequired[str]
        run_command: NotRequired[str]
        means: str
        problem: NotRequired[str]
        command: str | None
        prompt: str | None

    Candidate = tuple[Resumption, Record, Run]


MESSAGE, WORKFLOW, DELEGATION, LINE, RUN, NONE = MEANS = (
    "message",
    "workflow",
    "delegation",
    "resume_line",
    "run",
    "none",
)
"""The ways to resume, the cheapest first."""

_CLIENT_RUNS = "its client still runs, so its agent may be at work; if the agent is not, end the client and try again"
_WORKFLOW_RUNS = "its workflow still runs; try again when the workflow has ended"
_FILES_ARE_GONE = "the files of the workflow are gone: start the workflow again"
_APP_GOES_ON = "only the next event of its app can resume the session"
_WAS_DENIED = "what it asked for was denied"


def resumptions(at: Reading, host_session_id: str | None = None) -> tuple[Sequence[Resumption], Mapping[str, int]]:
    """Returns what stopped and can be resumed, the cheapest way first, and how many others stopped, by state."""
    sessions = at.preview()
    above, candidates, left_out = Above(sessions), [], Counter[str]()
    for record, run, stands in _stopped(at, sessions, above, host_session_id):
        if may_go_on(stands.decision):
            candidates.append((_resumption(at, record, run, stands), record, run))
        elif stands.state["state"] in (*BROKEN_OFF, *ANSWERED):
            left_out[stands.state["state"]] += 1
    candidates.sort(key=_order)
    shown = _once_for_each_workflow(_without_agents_of_shown_workflows(candidates))
    return [_unless_workflow_runs(at, sessions, above, candidate) for candidate in shown], {**left_out}


def resumption_after_activity(place: Place, agent_id: str) -> Resumption | Decision:
    """Returns what ``resumption`` returns; first records activity, if only that is missing to resume the session."""
    found = read(place, resumption, agent_id)
    if "means" in found or not _needs_only_activity(found):
        return found
    from .updating import update

    write(place, update, agent_id)
    found = read(place, resumption, agent_id)
    return {**found, "had_expired": True} if "means" in found else found


def resumption(at: Reading, agent_id: str) -> Resumption | Decision:
    """Returns how to resume the session, or the decision that it cannot be resumed."""
    sessions = at.preview()
    above = Above(sessions)
    record, stands = find(sessions, above, at, agent_id)
    if record is None or not stands.decision["should_resume"]:
        return {**stands.decision, **stands.state}
    run = latest_begun(record, stands.dead_runs) or {}
    found = _unless_workflow_runs(at, sessions, above, (_resumption(at, record, run, stands), record, run))
    return _without_way(found, _APP_GOES_ON) if "app" in stands.decision else found


def _needs_only_activity(decision: Decision) -> bool:
    """Returns whether new activity makes the session resumable: it only expired, and nothing was denied."""
    return is_only_expired(decision) and not {"app", "denial"} & decision.keys()


def _stopped(
    at: Reading, sessions: Reader, above: Above, host_session_id: str | None
) -> Iterator[tuple[Record, Run, Standing]]:
    """Yields the open sessions that stopped, wait for a limit or were answered, with the run that stopped."""
    for _, record in sessions.scan(active_only=True, host_session_id=host_session_id):
        if isinstance(record, SessionsError) or "app" in record:  # only its app can resume such a session
            continue
        stands = standing(above.cancellation, record, at.now, at.config.limits)
        state = stands.state.get("state")
        if state not in (*BROKEN_OFF, LIMITED, *ANSWERED):
            continue
        run = latest_begun(record, stands.dead_runs)
        if run is None and state in ANSWERED:  # an agent may report by commands alone, without a run
            run = {}
        if run is not None and host_session_id in (None, conversation_of(run), run.get("host_session_id")):
            yield record, run, stands


def _without_agents_of_shown_workflows(candidates: list[Candidate]) -> Iterator[Candidate]:
    """Yields the candidates without agents whose workflow is among ``candidates``."""
    shown = {record["agent_id"] for _, record, _ in candidates}
    for resumption, record, run in candidates:
        if not _is_agent_of_workflow(run) or parent_id_of(record) not in shown:
            yield resumption, record, run


def _unless_workflow_runs(at: Reading, sessions: Reader, above: Above, candidate: Candidate) -> Resumption:
    """Returns the resumption, without a way to resume if the workflow of the agent still runs."""
    resumption, record, run = candidate
    parent_id = parent_id_of(record)
    if not _is_agent_of_workflow(run) or parent_id is None:
        return resumption
    try:
        parent = sessions.read(parent_id)
    except SessionsError:
        return resumption
    decision = standing(above.cancellation, parent, at.now, at.config.limits).decision
    return _without_way(resumption, _WORKFLOW_RUNS) if live_runs(decision) or claimed_runs(decision) else resumption


def _is_agent_of_workflow(run: Run) -> bool:
    return "key" in run.get("workflow", {})


def _without_way(resumption: Resumption, problem: str) -> Resumption:
    return {**resumption, "means": NONE, "command": None, "prompt": None, "problem": problem}


def _resumption(at: Reading, record: Record, run: Run, stands: Standing) -> Resumption:
    decision, state = stands.decision, stands.state["state"]
    is_waiting, broke_off = "paused_until" in decision, state in (*BROKEN_OFF, LIMITED)
    work: Work = {"agent_id": record["agent_id"], "agent_name": record["agent_name"], "project": _project_of(at.root)}
    is_for_briefing = state in (*ANSWERED, WAITING) and "workflow" not in run
    by_host = None if is_for_briefing or "run_command" in decision else by_its_host(run, work)
    resumption: Resumption = {
        "agent_id": record["agent_id"],
        "agent_name": record["agent_name"],
        "purpose": record["purpose"],
        "phase": record["phase"],
        "should_resume": decision["should_resume"],
        "state": state,
        "why": run.get("interruption") or (run["end"] if has_ended(run) else LOST) if broke_off else state,
        "until": decision["until"],
        "host_is_alive": "host_process" in run and is_alive(run["host_process"]),
        "means": by_host["means"] if by_host else RUN if "run_command" in decision else LINE,
        "command": by_host["command"] if by_host and not is_waiting else None,
        "prompt": by_host["prompt"] if by_host and not is_waiting else None,
    }
    if "run_command" in decision:
        resumption["run_command"] = decision["run_command"]
    else:
        resumption["resume_line"] = resume_line(record["agent_id"])
    if "state_since" in stands.state:
        resumption["state_since"] = stands.state["state_since"]
    if has_ended(run):
        resumption["stopped_at"] = run["ended_at"]
    if is_waiting:
        resumption["paused_until"] = decision["paused_until"]
    conversation = conversation_of(run)
    if conversation is not None:
        resumption["host_session_id"] = conversation
    for key in ("detail", "host", "host_agent_id"):
        if key in run:
            resumption[key] = run[key]
    if was_only_delegated(run):
        resumption["claimed_at"] = run["claimed_at"]
    return _with_problem(resumption, record, run, is_on_disk=by_host is not None)


def _project_of(root: str) -> str | None:
    claude = claude_folder(root)
    return os.path.dirname(claude) if claude else None


def _with_problem(resumption: Resumption, record: Record, run: Run, *, is_on_disk: bool) -> Resumption:
    if host_outlives_conversation(run, is_alive):
        return _without_way(resumption, _CLIENT_RUNS)
    if "workflow" in run and not is_on_disk and "run_command" not in resumption:
        return _without_way(resumption, _FILES_ARE_GONE)
    if resumption["state"] == DENIED:
        return {**resumption, "problem": denial_text(record["denial"])}
    return resumption


def denial_text(denial: Answer) -> str:
    """Says that the request was denied, and why."""
    return _WAS_DENIED + (f": {denial['message']}" if denial["message"] else "")


def _order(candidate: Candidate) -> tuple[bool, float, int, bool, float, str]:
    resumption, _, run = candidate
    waits_until = parse_time(resumption["paused_until"]).timestamp() if "paused_until" in resumption else 0.0
    stopped_at = parse_time(resumption["stopped_at"]).timestamp() if "stopped_at" in resumption else 0.0
    means = MEANS.index(resumption["means"])
    by_user = resumption["why"] == STOPPED_BY_USER
    return by_user, waits_until, means, _is_agent_of_workflow(run), -stopped_at, resumption["agent_id"]


def _once_for_each_workflow(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Yields one candidate for each workflow run: its host resumes the whole workflow."""
    seen = set()
    for resumption, record, run in candidates:
        run_id = run["workflow"]["run_id"] if "workflow" in run else None
        if run_id is None or run_id not in seen:
            yield resumption, record, run
        seen.add(run_id)
