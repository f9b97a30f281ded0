"""What waits for a person: work that waits for approval, and agents that ask for a permission."""

from __future__ import annotations

from datetime import timedelta

from gaia_sessions.errors import SessionsError
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.ids import resume_line
from gaia_sessions.session.phases import waits_for_approval
from gaia_sessions.session.policy import resume_summary
from gaia_sessions.session.record import has_newer_schema, is_asking, is_open, moving_of
from gaia_sessions.session.runs import waits_with_question
from gaia_sessions.session.state import WAITING
from gaia_sessions.store.above import Above

from .questions import what_waits
from .standing import standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import NotRequired, TypedDict, final

    from gaia_sessions.session.policy import Decision, Limits, ResumeSummary
    from gaia_sessions.session.schema import HostProcess, Record
    from gaia_sessions.store.port import Reader

    from .at import Reading
    from .standing import Standing

    @final
    class Pending(TypedDict):
        """One session that waits for a person since ``state_since``.

        Keys:
            question: the whole question, in the agent's own words; absent if the agent gave none.
            last_message: the agent's last message; if no transcript has the whole message, its last 4,000 characters;
                absent if no message is found.
            tool: the tool for which the agent asks a permission in its host; then ``question`` and ``resume_line`` are
                absent.
            run_command: as in ``Decision``, in place of ``resume_line``. If only an app can resume the session, both
                keys are absent.
            awaits: what the agent waits for before it is told the answer, ``command`` or ``monitor``; then
                ``run_command`` and ``resume_line`` are absent.
            expired_at: when the session expired; an answer makes it resumable again.
            host, host_session_id, host_agent_id, host_process: of the latest run.
        """

        agent_id: str
        agent_name: str
        purpose: str
        phase: str
        state: str
        state_since: str
        question: NotRequired[str]
        last_message: NotRequired[str]
        tool: NotRequired[str]
        awaits: NotRequired[str]
        resume: ResumeSummary
        resume_line: NotRequired[str]
        run_command: NotRequired[str]
        app: NotRequired[str]
        expired_at: NotRequired[str]
        host: NotRequired[str]
        host_session_id: NotRequired[str]
        host_agent_id: NotRequired[str]
        host_process: NotRequired[HostProcess]


def pending(at: Reading, app: str | None = None) -> Sequence[Pending]:
    """Returns every session that waits for a person, the longest wait first.

    A session that was approved or denied does not wait any more. An expired session is included: an answer makes it
    resumable again. Nothing calls your program when a session begins to wait: call ``pending`` again, for example every
    minute. The example approves every request: in your program, ask a person first.

    Args:
        app: returns only sessions of this app.

    Example:
        for one in sessions.pending():
            if "question" in one:
                print(one["agent_name"], "asks:", one["question"])
                sessions.approve(one["agent_id"], "only in staging")
    """
    sessions, now, limits = at.preview(), at.now, at.config.limits
    above = Above(sessions)
    found = []
    for _, record in sessions.scan(active_only=True):
        if isinstance(record, SessionsError) or has_newer_schema(record) or not _may_wait(record):
            continue
        if app not in (None, record.get("app")):
            continue
        stands = standing(above.cancellation, record, now, limits)
        if _waits(record, stands):
            found.append(_pending(sessions, record, stands, now, limits))
    return sorted(found, key=lambda one: (parse_time(one["state_since"]), one["agent_id"]))


def open_and_waiting(at: Reading) -> tuple[int, int]:
    """Returns how many sessions `list` shows as open, and how many of them wait for a person."""
    from .listing import with_marks_known  # only a hint at another root counts

    sessions = at.preview()
    above, number, waiting = Above(sessions), 0, 0
    for _, record in with_marks_known(sessions.scan(active_only=True), above):
        if isinstance(record, SessionsError) or not is_open(record) or "app" in record or moving_of(record):
            continue
        stands = standing(above.cancellation, record, at.now, at.config.limits)
        if "cancellation" not in stands.decision:
            number += 1
            waiting += not has_newer_schema(record) and _waits(record, stands)
    return number, waiting


def _waits(record: Record, stands: Standing) -> bool:
    return stands.state.get("state") == WAITING or _asks_while_it_waits(record, stands)


def _may_wait(record: Record) -> bool:
    """Returns whether the session may wait: a cheap check before the full check."""
    return waits_for_approval(record["phase"]) or any("waiting" in run for run in record.get("runs", ()))


def _asks_while_it_waits(record: Record, stands: Standing) -> bool:
    """Returns whether an agent that waits for its background work has a question without an answer."""
    runs = [run for run in record.get("runs", ())[-1:] if run["run"] not in stands.dead_runs]
    return is_asking(record) and any(map(waits_with_question, runs)) and "cancellation" not in stands.decision


def _pending(sessions: Reader, record: Record, stands: Standing, now: datetime, limits: Limits) -> Pending:
    decision = stands.decision
    one: Pending = {
        "agent_id": record["agent_id"],
        "agent_name": record["agent_name"],
        "purpose": record["purpose"],
        "phase": record["phase"],
        "state": stands.state["state"],
        "state_since": stands.state["state_since"],
        "resume": resume_summary(decision),
    }
    alive = stands.alive or {"state": one["state"]}
    if "for" in alive:
        one["tool"] = alive["for"]
    else:
        if "awaits" in alive:
            one |= {"state_since": alive["since"], "awaits": alive["awaits"]}
        else:
            one |= _way_on(decision)
        question = what_waits(sessions, record)
        if question.asked:
            one["question"] = question.asked
        if question.message:
            one["last_message"] = question.message
    if "app" in record:
        one["app"] = record["app"]
    if decision["reason"] == "expired":
        idle = timedelta(seconds=decision["idle_seconds"] or 0)
        one["expired_at"] = format_time(now - idle + limits.idle)
    for run in record.get("runs", ())[-1:]:
        for key in ("host", "host_session_id", "host_agent_id", "host_process"):
            if key in run:
                one[key] = run[key]
    return one


def _way_on(decision: Decision) -> Pending:
    """Returns what resumes the work; empty if only its app can."""
    if "run_command" in decision:
        return {"run_command": decision["run_command"]}  # type: ignore[typeddict-item]  # a key of it
    return {} if "app" in decision else {"resume_line": resume_line(decision["agent_id"])}  # type: ignore[typeddict-item]  # see above
