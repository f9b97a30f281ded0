"""Which sessions may go on again that stopped before their work was done, in which order, and how.

Owns which they are: those whose state says so and that the policy lets resume, or will once a limit is reset.
What a person has answered is among them; what rests by its own word, or waits for an answer, is not.
"""

from __future__ import annotations

from collections import Counter

from gaia_sessions.errors import SessionsError
from gaia_sessions.hosts import resumption as by_its_host
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.ids import resume_line
from gaia_sessions.session.policy import claimed_runs, live_runs, may_go_on
from gaia_sessions.session.record import parent_id_of
from gaia_sessions.session.runs import conversation_of, has_ended, host_outlives_conversation, was_only_delegated
from gaia_sessions.session.schema import LOST, STOPPED_BY_USER
from gaia_sessions.session.state import ANSWERED, BROKEN_OFF, LIMITED, latest_begun
from gaia_sessions.store.above import Above
from gaia_sessions.system.processes import is_alive

from .resume import standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from typing import NotRequired, TypedDict, final

    from gaia_sessions.hosts import Work
    from gaia_sessions.session.policy import Limits
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Reader

    from .resume import Standing

    @final
    class Resumption(TypedDict):
        """One session that may go on again, and how.

        state, state_since: [how it stands](policy.md#states). why: the interruption, or else the end of the run; the
        state of what was answered, for which means is ``resume_line``: the briefing has the answer.
        detail: what its host said of that end. stopped_at: absent for a run that has no end. until: when the session
        expires; None while it waits for a limit, until ``paused_until``. means: that of the host, or ``resume_line``
        where it has no command, or ``run`` for work that a command did, or ``none``; then problem says in words why.
        command: None without one, and while the session waits. run_command: as in ``Decision``, in place of the
        resume_line. host_is_alive: the process that ran it still exists. claimed_at: when it was delegated; only there
        if its agent never started.
        """

        agent_id: str
        agent_name: str
        purpose: str
        phase: str
        state: str
        state_since: NotRequired[str]
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
"""The ways to go on, the cheapest first."""

_CLIENT_RUNS = "its client still runs, and its agent may go on there; if not, end that client, and ask again"
_WORKFLOW_RUNS = "its workflow still runs; once that is over, ask again"
_FILES_ARE_GONE = "its files are gone: start the workflow again"


class Rule:
    """By what sessions are judged: the time, the limits of the policy, and the project's folder."""

    __slots__ = ("limits", "now", "project")

    def __init__(self, now: datetime, limits: Limits, project: str | None) -> None:
        self.now = now
        self.limits = limits
        self.project = project


def resumptions(
    sessions: Reader, rule: Rule, host_session_id: str | None = None
) -> tuple[list[Resumption], dict[str, int]]:
    """What may go on now, the cheapest first; then what waits for a limit; last what the user stopped.

    Then how many stopped as well, but may not be resumed, by their states. host_session_id: only what belongs to this
    conversation of a host.
    """
    above, found, left_out = Above(sessions), [], Counter[str]()
    for record, run, stands in _stopped(sessions, above, rule, host_session_id):
        if may_go_on(stands.decision):
            found.append((_resumption(record, run, stands, rule), record, run))
        elif stands.state["state"] in (*BROKEN_OFF, *ANSWERED):
            left_out[stands.state["state"]] += 1
    found.sort(key=_order)
    shown = _once_for_each_workflow(_without_agents_of_shown_workflows(found))
    return [_unless_workflow_runs(sessions, above, candidate, rule) for candidate in shown], {**left_out}


def _stopped(
    sessions: Reader, above: Above, rule: Rule, host_session_id: str | None
) -> Iterator[tuple[Record, Run, Standing]]:
    """The open sessions that stopped, wait for a limit or were answered; with the run that stopped, if there is one
    (an agent may report by command alone), and how each stands.
    """
    for _, record in sessions.scan(active_only=True, host_session_id=host_session_id):
        if isinstance(record, SessionsError) or "app" in record:  # an app goes on with its own
            continue
        stands = standing(above.cancellation, record, rule.now, rule.limits)
        state = stands.state.get("state")
        if state not in (*BROKEN_OFF, LIMITED, *ANSWERED):
            continue
        run = latest_begun(record, stands.dead_runs)
        if run is None and state in ANSWERED:
            run = {}
        if run is not None and host_session_id in (None, conversation_of(run), run.get("host_session_id")):
            yield record, run, stands


def _without_agents_of_shown_workflows(found: list[Candidate]) -> Iterator[Candidate]:
    """Without the agents of workflows whose own session is among ``found`` and stands for them."""
    shown = {record["agent_id"] for _, record, _ in found}
    for resumption, record, run in found:
        if not _is_agent_of_workflow(run) or parent_id_of(record) not in shown:
            yield resumption, record, run


def _unless_workflow_runs(sessions: Reader, above: Above, candidate: Candidate, rule: Rule) -> Resumption:
    """It, without a way to go on if the workflow of the agent is still at work, and so is the host with it."""
    resumption, record, run = candidate
    parent_id = parent_id_of(record)
    if not _is_agent_of_workflow(run) or parent_id is None:
        return resumption
    try:
        parent = sessions.read(parent_id)
    except SessionsError:
        return resumption
    decision = standing(above.cancellation, parent, rule.now, rule.limits).decision
    return _without_way(resumption, _WORKFLOW_RUNS) if live_runs(decision) or claimed_runs(decision) else resumption


def _is_agent_of_workflow(run: Run) -> bool:
    return "key" in run.get("workflow", {})


def _without_way(resumption: Resumption, problem: str) -> Resumption:
    return {**resumption, "means": NONE, "command": None, "prompt": None, "problem": problem}


def _resumption(record: Record, run: Run, stands: Standing, rule: Rule) -> Resumption:
    decision, state = stands.decision, stands.state["state"]
    is_waiting, is_answered = "paused_until" in decision, state in ANSWERED
    work: Work = {"agent_id": record["agent_id"], "agent_name": record["agent_name"], "project": rule.project}
    by_host = None if is_answered and "workflow" not in run else by_its_host(run, work)
    resumption: Resumption = {
        "agent_id": record["agent_id"],
        "agent_name": record["agent_name"],
        "purpose": record["purpose"],
        "phase": record["phase"],
        "state": state,
        "why": state if is_answered else run.get("interruption") or (run["end"] if has_ended(run) else LOST),
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
    if host_outlives_conversation(run, is_alive):
        return _without_way(resumption, _CLIENT_RUNS)
    return _without_way(resumption, _FILES_ARE_GONE) if "workflow" in run and by_host is None else resumption


def _order(candidate: Candidate) -> tuple[bool, float, int, bool, float, str]:
    resumption, _, run = candidate
    waits_until = parse_time(resumption["paused_until"]).timestamp() if "paused_until" in resumption else 0.0
    stopped_at = parse_time(resumption["stopped_at"]).timestamp() if "stopped_at" in resumption else 0.0
    means = MEANS.index(resumption["means"])
    by_user = resumption["why"] == STOPPED_BY_USER
    return by_user, waits_until, means, _is_agent_of_workflow(run), -stopped_at, resumption["agent_id"]


def _once_for_each_workflow(found: Iterable[Candidate]) -> Iterator[Candidate]:
    """One candidate for each workflow run: its host resumes it as a whole."""
    seen = set()
    for resumption, record, run in found:
        run_id = run["workflow"]["run_id"] if "workflow" in run else None
        if run_id is None or run_id not in seen:
            yield resumption, record, run
        seen.add(run_id)
