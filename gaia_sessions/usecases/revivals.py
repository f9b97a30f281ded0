"""Which sessions may go on again after something stopped them from outside, in which order, and how.

Owns which they are: those that the policy lets resume, or only until a limit is reset not yet, and that stopped without
having wanted to. Work that waits for an answer is not among them.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionsError
from gaia_sessions.hosts import revival as by_its_host
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.ids import resume_line
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.record import has_newer_schema, parent_id_of
from gaia_sessions.session.runs import conversation_of, has_ended, has_started, host_outlives_conversation
from gaia_sessions.session.schema import DENIED, ENDED_WITH_HOST, LOST, STOPPED_BY_USER
from gaia_sessions.store.above import Above
from gaia_sessions.system.processes import is_alive

from .resume import decide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from typing import NotRequired, TypedDict, final

    from gaia_sessions.hosts import Work
    from gaia_sessions.session.policy import Decision, Limits
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Reader

    @final
    class Revival(TypedDict):
        """One session that may go on again, and how.

        why: the interruption, or the end of the run: ``ended_with_host``, ``lost``. stopped_at: absent for a run that
        has no end. until: when the session expires; None while it waits for a limit, until ``paused_until``.
        means: that of the host, or ``resume_line`` where it has no command, or ``none`` if even that leads nowhere.
        command: None without one, and while the session waits. host_is_alive: the process that ran it still exists.
        """

        agent_id: str
        agent_name: str
        purpose: str
        phase: str
        why: str
        stopped_at: NotRequired[str]
        until: str | None
        paused_until: NotRequired[str]
        host: NotRequired[str]
        host_session_id: NotRequired[str]
        host_agent_id: NotRequired[str]
        host_is_alive: bool
        resume_line: str
        means: str
        command: str | None
        prompt: str | None


MESSAGE, WORKFLOW, DELEGATION, LINE, NONE = MEANS = ("message", "workflow", "delegation", "resume_line", "none")
"""The ways to go on, the cheapest first."""

_WAITING = "waiting_for_limit"
_ENDS = (ENDED_WITH_HOST, LOST)


class Rule:
    """By what sessions are judged: the time, the limits of the policy, and the project's folder."""

    __slots__ = ("limits", "now", "project")

    def __init__(self, now: datetime, limits: Limits, project: str | None) -> None:
        self.now = now
        self.limits = limits
        self.project = project


def revivals(sessions: Reader, rule: Rule, host_session_id: str | None = None) -> list[Revival]:
    """What may go on now, the cheapest first; then what waits for a limit; last what the user stopped.

    host_session_id: only what belongs to this conversation of a host.
    """
    found = sorted(_candidates(sessions, rule, host_session_id), key=_order)
    return list(_once_for_each_workflow(found))


def _candidates(sessions: Reader, rule: Rule, host_session_id: str | None) -> Iterator[tuple[Revival, Run]]:
    above = Above(sessions)
    for agent_id, record in sessions.scan(active_only=True, host_session_id=host_session_id):
        if isinstance(record, SessionsError) or has_newer_schema(record):
            continue
        run = _stopped_run(record)
        if run is None or host_session_id not in (None, conversation_of(run), run.get("host_session_id")):
            continue
        decision = decide(above.cancellation, agent_id, record, rule.now, rule.limits)
        may_go_on = decision["should_resume"] or decision["reason"] == _WAITING
        if may_go_on and not _goes_on_with_its_workflow(sessions, record, run):
            yield _revival(record, run, decision, rule), run


def _stopped_run(record: Record) -> Run | None:
    """The latest run that started, if something stopped it from outside; without an end its host is gone by then."""
    started = [run for run in record.get("runs", ()) if has_started(run) and run.get("end") != DENIED]
    for run in started[-1:]:
        is_stopped = "interruption" in run or run.get("end") in _ENDS or not has_ended(run)
        return run if is_stopped and not host_outlives_conversation(run, is_alive) else None
    return None


def _goes_on_with_its_workflow(sessions: Reader, record: Record, run: Run) -> bool:
    """Whether the session of the workflow stands for this agent of it, because it is open."""
    parent_id = parent_id_of(record)
    if "key" not in run.get("workflow", {}) or parent_id is None:
        return False
    try:
        return not is_final(sessions.read(parent_id)["phase"])
    except SessionsError:
        return False


def _revival(record: Record, run: Run, decision: Decision, rule: Rule) -> Revival:
    is_waiting = "paused_until" in decision
    work: Work = {"agent_id": record["agent_id"], "agent_name": record["agent_name"], "project": rule.project}
    by_host = by_its_host(run, work)
    revival: Revival = {
        "agent_id": record["agent_id"],
        "agent_name": record["agent_name"],
        "purpose": record["purpose"],
        "phase": record["phase"],
        "why": run.get("interruption") or (run["end"] if has_ended(run) else LOST),
        "until": decision["until"],
        "host_is_alive": "host_process" in run and is_alive(run["host_process"]),
        "resume_line": resume_line(record["agent_id"]),
        "means": by_host["means"] if by_host else NONE if "workflow" in run else LINE,
        "command": by_host["command"] if by_host and not is_waiting else None,
        "prompt": by_host["prompt"] if by_host and not is_waiting else None,
    }
    if has_ended(run):
        revival["stopped_at"] = run["ended_at"]
    if is_waiting:
        revival["paused_until"] = decision["paused_until"]
    conversation = conversation_of(run)
    if conversation is not None:
        revival["host_session_id"] = conversation
    for key in ("host", "host_agent_id"):
        if key in run:
            revival[key] = run[key]
    return revival


def _order(candidate: tuple[Revival, Run]) -> tuple[bool, float, int, bool, float, str]:
    revival, run = candidate
    waits_until = parse_time(revival["paused_until"]).timestamp() if "paused_until" in revival else 0.0
    stopped_at = parse_time(revival["stopped_at"]).timestamp() if "stopped_at" in revival else 0.0
    is_agent_of_workflow = "key" in run.get("workflow", {})
    means = MEANS.index(revival["means"])
    by_user = revival["why"] == STOPPED_BY_USER
    return by_user, waits_until, means, is_agent_of_workflow, -stopped_at, revival["agent_id"]


def _once_for_each_workflow(found: Iterable[tuple[Revival, Run]]) -> Iterator[Revival]:
    """One revival for each workflow run: its host resumes it as a whole."""
    seen = set()
    for revival, run in found:
        run_id = run["workflow"]["run_id"] if "workflow" in run else None
        if run_id is None or run_id not in seen:
            yield revival
        seen.add(run_id)
