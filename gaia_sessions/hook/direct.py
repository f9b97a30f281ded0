"""The direct form: what the users' own documents show, one JSON object in, one out.

Owns its words: the keys of input and answer and the reasons. Everything it decides is decided elsewhere.
A fault in the input is raised as ``InvalidInput`` or ``UsageError``; the ladder answers for it.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import InvalidInput, SessionNotFound, UnknownOutcome
from gaia_sessions.hosts.protocol import PRE_DELEGATE, SUBAGENT_STOP
from gaia_sessions.jsonio import strict
from gaia_sessions.session.checks import flag, is_integer, text
from gaia_sessions.session.clock import write_time
from gaia_sessions.session.ids import check_agent_id
from gaia_sessions.session.phases import COMPLETED, FAILED, check_outcome
from gaia_sessions.system import streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store

    Answer = dict[str, object]
    Asked = dict[str, Json]

_ENDING_TEXTS = ("summary", "error")
_BLANK: dict[str, Answer] = {
    PRE_DELEGATE: {"should_resume": False},
    SUBAGENT_STOP: {"finalized": False, "outcome": None},
}
_LONGEST_ANSWER = 16 << 20
"""Bytes: twice what may be asked, since an answer has its question in it."""


class Desk:
    """Where a question is answered: the store, the settings, the time, how long to wait, and what was done besides."""

    __slots__ = ("applied", "config", "is_late", "now", "store", "timeout")

    def __init__(
        self, store: Store, config: Config, now: datetime, timeout: float, is_late: Callable[[], bool]
    ) -> None:
        self.store = store
        self.config = config
        self.now = now
        self.timeout = timeout
        self.is_late = is_late
        self.applied: list[str] = []

    def take_in_deferred(self, *before: Event) -> None:
        """Whoever writes first applies what waits in the inbox, above all what concerns the news ``before``."""
        from gaia_sessions.ingest import dispatch

        self.applied += dispatch.apply_deferred(self.store, self.now, self.config, before=[*before])


def pre_delegate(asked: Asked, desk: Desk) -> Answer:
    """May the session ``agent_id`` be resumed? Only checks, unless ``create`` is true and nothing is to be resumed."""
    agent_id = _optional_text(asked, "agent_id")
    agent_name = _optional_text(asked, "agent_name")
    flag(asked.get("create", False), "create")
    answer = _decided(agent_id, desk)
    if asked.get("create") and not answer["should_resume"]:
        wanted = agent_id if answer.get("detail") == "not_found" else None
        answer["created_agent_id"] = _create(desk, agent_name, asked.get("metadata"), wanted)
    return answer


def subagent_stop(asked: Asked, desk: Desk) -> Answer:
    """Finalizes the session ``agent_id``: ``outcome`` if given, else by ``exit_code``, where none means completed.

    One in ``approval`` is finalized only by an outcome or a failing exit code.
    """
    told = asked.get("task_info", asked)
    if not isinstance(told, dict):
        raise InvalidInput("must be an object", "task_info")
    agent_id = _optional_text(told, "agent_id")
    if agent_id is None:
        return {"finalized": False, "agent_id": None, "outcome": None, "reason": "no_agent_id"}
    event = _ending(check_agent_id(agent_id), told, desk.now)
    from gaia_sessions.ingest import dispatch

    desk.take_in_deferred(event)
    try:
        done = dispatch.take_in(desk.store, event, desk.now, desk.config, desk.timeout).word
    except SessionNotFound as missing:
        return {"finalized": False, "agent_id": agent_id, "outcome": None, "reason": missing.code}
    holds = done == "finalized" or "outcome_assumed" not in event  # an assumed one may still be set aside
    return {
        "finalized": done == "finalized",
        "agent_id": agent_id,
        "outcome": event["outcome"] if holds else None,
        "reason": done,
    }


def say(hook: str, answer: Answer, asked: Asked | None, seconds: float) -> None:
    """Prints ``answer``, as that of ``hook`` to what was ``asked`` (None if that could not be read), in ``seconds``."""
    whole = {**_BLANK[hook], **answer}
    try:
        data = strict.dump_line({**whole, "original_context": asked}, _LONGEST_ANSWER)
    except InvalidInput:  # the question was as deep or as long as may be, and the answer around it is more
        data = strict.dump_line({**whole, "agent_id": None, "original_context": None}, _LONGEST_ANSWER)
    streams.write_output(data, seconds)


def disabled(asked: Asked) -> Answer:
    """The hooks are switched off."""
    return {"reason": "disabled", "agent_id": _asked_id(asked)}


def refused(asked: Asked, error: BaseException, told: str) -> Answer:
    """What was ``asked`` could not be done because of ``error``, which is ``told`` in words."""
    reason = "invalid_input" if isinstance(error, InvalidInput | UnknownOutcome) else "error"
    return {"reason": reason, "agent_id": _asked_id(asked), "error": told}


def _asked_id(asked: Asked) -> Json:
    """The id the question was about, said back as it was."""
    told = asked.get("task_info")
    return (told if isinstance(told, dict) else asked).get("agent_id")


def _decided(agent_id: str | None, desk: Desk) -> Answer:
    if agent_id is None:
        return _refusal(None, "no_existing_session")
    from gaia_sessions.usecases import preview, resume

    sessions = preview.Preview(desk.store, desk.now, desk.config, desk.is_late)
    decision, record = resume.consider(sessions, desk.now, agent_id, desk.config.limits)
    if not decision["should_resume"] or record is None:
        return {**_refusal(agent_id, "session_not_resumable"), "detail": decision["reason"]}
    return {
        "should_resume": True,
        "reason": decision["reason"],
        "agent_id": agent_id,
        "resume_metadata": _context(record),
    }


def _refusal(agent_id: str | None, reason: str) -> Answer:
    return {"should_resume": False, "reason": reason, "agent_id": agent_id}


def _context(record: Record) -> Answer:
    denial = {"denial": record["denial"]} if "denial" in record else {}
    return {
        "previous_phase": record["phase"],
        "created_at": record["created_at"],
        "last_updated": record["last_updated"],
        "history": record["history"],
        "session_metadata": record["metadata"],
        **denial,
    }


def _create(desk: Desk, agent_name: str | None, metadata: Json, agent_id: str | None) -> str:
    from gaia_sessions.usecases import sessions

    desk.take_in_deferred()
    name = "unknown" if agent_name is None else agent_name
    return sessions.create(desk.store, desk.now, os.urandom, name, "general", metadata, agent_id)["agent_id"]


def _ending(agent_id: str, told: Asked, now: datetime) -> Event:
    event: Event = {"kind": "finalize", "at": write_time(now), "agent_id": agent_id, "outcome": _outcome(told)}
    if told.get("outcome") is None and event["outcome"] == COMPLETED:
        event["outcome_assumed"] = True
    for key in _ENDING_TEXTS:
        value = _optional_text(told, key)
        if value is not None:
            event[key] = value  # type: ignore[literal-required]
    return event


def _outcome(told: Asked) -> str:
    """Never by searching a text for the word error: only what was said counts."""
    if told.get("outcome") is not None:
        return check_outcome(told["outcome"])
    exit_code = told.get("exit_code", 0)
    if not is_integer(exit_code):
        raise InvalidInput("must be a whole number", "exit_code")
    return FAILED if exit_code else COMPLETED


def _optional_text(asked: Asked, key: str) -> str | None:
    value = asked.get(key)
    if value is not None:
        text(value, key)
    return value  # type: ignore[return-value]  # just checked


ANSWERS = {PRE_DELEGATE: pre_delegate, SUBAGENT_STOP: subagent_stop}
"""What answers, by hook."""
