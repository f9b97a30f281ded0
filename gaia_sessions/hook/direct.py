"""The direct form: a script of a user sends one JSON object and gets one JSON object.

A fault in a request raises ``InvalidInput`` or ``UsageError``; ``run`` makes an answer of that.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import InvalidInput, SessionNotFound
from gaia_sessions.hosts import PRE_DELEGATE, SUBAGENT_STOP
from gaia_sessions.jsonio import strict
from gaia_sessions.session.checks import check_flag, check_string, is_integer
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.ids import check_agent_id
from gaia_sessions.session.phases import COMPLETED, FAILED, check_outcome, is_success
from gaia_sessions.system import streams

from . import LOCK_TIMEOUT, apply_waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.policy import Decision
    from gaia_sessions.session.schema import Record

    from . import TimeLimits

    Answer = dict[str, object]
    Request = dict[str, Json]

_FINALIZE_TEXTS = ("summary", "error")
_DEFAULTS: dict[str, Answer] = {
    PRE_DELEGATE: {"should_resume": False},
    SUBAGENT_STOP: {"finalized": False, "outcome": None},
}
_LONGEST_ANSWER = 16 << 20
"""Bytes: twice the limit of a request, since an answer contains its request."""


class DirectCall:
    """What a request needs. ``applied`` says what happened to the events of the inbox."""

    __slots__ = ("applied", "config", "now", "store", "time")

    def __init__(self, root: str, config: Config, now: datetime, time: TimeLimits) -> None:
        self.store = time.open_store(root, config)
        self.config = config
        self.now = now
        self.time = time
        self.applied: list[str] = []

    def apply_inbox(self, *before: Event) -> None:
        """Applies the events of the inbox, events about ``before`` first."""
        self.applied += apply_waiting(self.store, self.now, self.config, [*before], self.time.is_late)


def pre_delegate(request: Request, call: DirectCall) -> Answer:
    """Answers whether the session ``agent_id`` may be resumed. If not, ``create`` asks for a new session."""
    agent_id = _optional_text(request, "agent_id")
    agent_name = _optional_text(request, "agent_name")
    check_flag(request.get("create", False), "create")
    answer = _decide(agent_id, call)
    if request.get("create") and not answer["should_resume"]:
        new_id = agent_id if answer.get("detail") == "not_found" else None
        answer["created_agent_id"] = _create(call, agent_name, request.get("metadata"), new_id)
    return answer


def subagent_stop(request: Request, call: DirectCall) -> Answer:
    """Finalizes the session ``agent_id`` with ``outcome``, else by ``exit_code``, else as completed."""
    fields = request.get("task_info", request)
    if not isinstance(fields, dict):
        raise InvalidInput("must be an object", "task_info")
    agent_id = _optional_text(fields, "agent_id")
    if agent_id is None:
        return {"finalized": False, "agent_id": None, "outcome": None, "reason": "no_agent_id"}
    event = _finalize_event(check_agent_id(agent_id), fields, call.now)
    from gaia_sessions.ingest import Terms, dispatch

    call.apply_inbox(event)
    try:
        result = dispatch.handle_event(call.store, event, Terms(call.now, call.config, LOCK_TIMEOUT))
    except SessionNotFound as missing:
        return {"finalized": False, "agent_id": agent_id, "outcome": None, "reason": missing.code}
    is_finalized = result.word == "finalized"
    outcome = result.record["phase"] if is_finalized and result.record else event["outcome"]  # cancelled: abandoned
    is_certain = is_finalized or "outcome_assumed" not in event  # an assumed outcome may change
    return {
        "finalized": is_finalized,
        "agent_id": agent_id,
        "outcome": outcome if is_certain else None,
        "reason": result.word,
    }


def write_answer(hook: str, answer: Answer, request: Request | None, seconds: float) -> None:
    """Prints ``answer`` with the defaults of ``hook``, and with ``request``, which is None if it could not be read."""
    whole = {**_DEFAULTS[hook], **answer}
    try:
        data = strict.dump_line({**whole, "original_context": request}, _LONGEST_ANSWER)
    except InvalidInput:  # an answer contains its request, so it may break a limit that the request just keeps
        data = strict.dump_line({**whole, "agent_id": None, "original_context": None}, _LONGEST_ANSWER)
    streams.write_output(data, seconds)


def disabled_answer(request: Request) -> Answer:
    """Returns the answer while the hooks are off."""
    return {"reason": "disabled", "agent_id": _requested_id(request)}


def error_answer(request: Request, error: BaseException, text: str) -> Answer:
    """Returns the answer to a request that failed with ``error``; ``text`` describes the error."""
    from gaia_sessions.errors import UnknownOutcome

    reason = "invalid_input" if isinstance(error, InvalidInput | UnknownOutcome) else "error"
    return {"reason": reason, "agent_id": _requested_id(request), "error": text}


def _requested_id(request: Request) -> Json:
    """Returns the ID in the request, unchanged."""
    task_info = request.get("task_info")
    return (task_info if isinstance(task_info, dict) else request).get("agent_id")


def _decide(agent_id: str | None, call: DirectCall) -> Answer:
    if agent_id is None:
        return _refusal(None, "no_existing_session")
    from gaia_sessions.api import standing
    from gaia_sessions.api.foresight import foreseen_by_hook

    sessions = foreseen_by_hook(call.store, agent_id, call.now, call.config, call.time.is_late)
    decision, record = standing.read_and_decide(sessions, call.now, agent_id, call.config.limits)
    if not decision["should_resume"] or record is None:
        return {**_refusal(agent_id, "session_not_resumable"), "detail": decision["reason"]}
    return {
        "should_resume": True,
        "reason": decision["reason"],
        "agent_id": agent_id,
        "resume_metadata": _resume_metadata(record, decision),
    }


def _refusal(agent_id: str | None, reason: str) -> Answer:
    return {"should_resume": False, "reason": reason, "agent_id": agent_id}


def _resume_metadata(record: Record, decision: Decision) -> Answer:
    return {
        "previous_phase": record["phase"],
        "created_at": record["created_at"],
        "last_updated": record["last_updated"],
        "history": record["history"],
        "session_metadata": record["metadata"],
        **{key: decision[key] for key in ("approval", "denial") if key in decision},
    }


def _create(call: DirectCall, agent_name: str | None, metadata: Json, agent_id: str | None) -> str:
    from gaia_sessions.api.creating import store_new
    from gaia_sessions.session.requests import NewSession

    call.apply_inbox()
    new = NewSession("unknown" if agent_name is None else agent_name, "general", metadata, agent_id)
    return store_new(call.store, call.now, os.urandom, new)["agent_id"]


def _finalize_event(agent_id: str, fields: Request, now: datetime) -> Event:
    event: Event = {"kind": "finalize", "at": format_time(now), "agent_id": agent_id, "outcome": _outcome(fields)}
    if fields.get("outcome") is None and is_success(event["outcome"]):
        event["outcome_assumed"] = True  # so a session in approval stays open
    for key in _FINALIZE_TEXTS:
        value = _optional_text(fields, key)
        if value is not None:
            event[key] = value  # type: ignore[literal-required]  # a key of events
    return event


def _outcome(fields: Request) -> str:
    """Returns the outcome by ``outcome`` or ``exit_code`` alone: no text is searched for the word "error"."""
    if fields.get("outcome") is not None:
        return check_outcome(fields["outcome"])
    exit_code = fields.get("exit_code", 0)
    if not is_integer(exit_code):
        raise InvalidInput("must be a whole number", "exit_code")
    return FAILED if exit_code else COMPLETED


def _optional_text(fields: Request, key: str) -> str | None:
    value = fields.get(key)
    if value is not None:
        check_string(value, key)
    return value  # type: ignore[return-value]  # just checked


HANDLERS = {PRE_DELEGATE: pre_delegate, SUBAGENT_STOP: subagent_stop}
