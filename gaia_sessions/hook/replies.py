"""What the host is answered, and through it an agent: mostly nothing.

Owns when an answer is due and its shape, as real clients obeyed it; which of them a host obeys, and how it
is told to delegate with another prompt, its module says. A stop is never answered: any output would keep the
agent going. A delegation is answered only when it goes on with earlier work.
"""

from __future__ import annotations

from gaia_sessions.hosts.registry import module_of
from gaia_sessions.session import events
from gaia_sessions.session.runs import conversation_of
from gaia_sessions.session.schema import DENIED, ENDED_WITH_HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.ingest.result import EventResult
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store

    Payload = dict[str, Json]
    Reply = dict[str, object]

_CONTINUING_SOURCES = ("resume", "compact")
_FORK = "fork"


class ReplyContext:
    """One event that was taken in, and what is needed to answer it."""

    __slots__ = ("config", "event", "is_late", "now", "payload", "result", "store")

    def __init__(  # what one answer may need
        self,
        payload: Payload,
        event: Event,
        result: EventResult,
        store: Store,
        config: Config,
        now: datetime,
        is_late: Callable[[], bool],
    ) -> None:
        self.payload = payload
        self.event = event
        self.result = result
        self.store = store
        self.config = config
        self.now = now
        self.is_late = is_late


def build_reply(context: ReplyContext) -> Reply | None:
    """The JSON for the host, or None for silence."""
    kind = context.event["kind"]
    build = _REPLY_BUILDERS.get(kind) if kind in module_of(context.event["host"]).SUPPORTED_REPLIES else None
    output = build(context) if build else None
    if output is None:
        return None
    return {"hookSpecificOutput": {"hookEventName": context.payload.get("hook_event_name"), **output}}


def _delegation_reply(context: ReplyContext) -> Reply | None:
    if context.result.resumed is None:
        return None
    from .prompts import rewritten_delegation

    return rewritten_delegation(context, module_of(context.event["host"]))


def _start_reply(context: ReplyContext) -> Reply | None:
    if context.payload.get("hook_event_name") != "SubagentStart" or context.config.note != "all":
        return None
    from gaia_sessions.hosts.marker import NOTE

    if not context.config.report_command:
        return {"additionalContext": NOTE}
    from .prompts import report_instructions

    return {"additionalContext": "\n".join([NOTE, *report_instructions(context)])}


def _return_reply(context: ReplyContext) -> Reply | None:
    record = context.result.record
    if record is None:
        return None
    messages = []
    if _may_be_resumed(record, context):
        from .messages import resume_message

        messages.append(resume_message(record, context.config.limits.idle))
    if any("mentioned" in run for run in record.get("runs", ())):
        messages += _mentioned_messages(record, context)
    return {"additionalContext": "\n\n".join(messages)} if messages else None


def _mentioned_messages(record: Record, context: ReplyContext) -> Iterator[str]:
    """How to resume what the delegation named; what it asked for and does not exist is said, with what there is."""
    from gaia_sessions.hosts.mentions import mentioned_sessions

    from .messages import mentioned_message, missing_message

    records, missing_ids = mentioned_sessions(context.store, record, context.event)
    paused = [found for found in records if _may_be_resumed(found, context)]
    if paused:
        yield mentioned_message(paused, context.config.limits.idle)
    if missing_ids:
        yield missing_message(missing_ids)
        other_sessions = _session_start_reply(context)
        if other_sessions:
            yield str(other_sessions["additionalContext"])


def _session_start_reply(context: ReplyContext) -> Reply | None:
    from gaia_sessions.errors import SessionsError
    from gaia_sessions.usecases.preview import Preview

    only_conversation = context.event["host_session_id"] if context.event.get("source") in _CONTINUING_SOURCES else None
    sessions = Preview(context.store, context.now, context.config, context.is_late)
    scanned = sessions.scan(active_only=True, host_session_id=only_conversation)
    found = (record for _, record in scanned if not isinstance(record, SessionsError))
    paused = [record for record in found if _may_be_resumed(record, context) and _is_relevant(record, context.event)]
    if not paused:
        return None
    from .messages import paused_message

    paused.sort(key=lambda record: record["last_updated"], reverse=True)
    return {"additionalContext": paused_message(paused, context.config.limits.idle)}


def _is_relevant(record: Record, event: Event) -> bool:
    """What a conversation that begins is told of: all that rests, or if it only goes on what rests of its own.

    A fork may take over the agents of the conversation that ended for it (seen with "Move to background" of Claude
    Code, where their starts come next): what that end alone brought to rest is not offered there.
    """
    source = event.get("source")
    runs = record.get("runs", [])
    if source in _CONTINUING_SOURCES:
        return any(conversation_of(run) == event["host_session_id"] for run in runs[-1:])
    return source != _FORK or not any(run.get("end") == ENDED_WITH_HOST for run in runs[-1:])


def _may_be_resumed(record: Record, context: ReplyContext) -> bool:
    from gaia_sessions.session.phases import is_resumable
    from gaia_sessions.session.record import has_newer_schema

    if has_newer_schema(record) or not is_resumable(record["phase"]):
        return False
    from gaia_sessions.system.processes import host_outlives_conversation
    from gaia_sessions.usecases.resume import decide

    undenied = [run for run in record.get("runs", ()) if run.get("end") != DENIED]
    if any(host_outlives_conversation(run) for run in undenied[-1:]):
        return False
    return decide(record["agent_id"], record, context.now, context.config.limits)["should_resume"]


_REPLY_BUILDERS: dict[str, Callable[[ReplyContext], Reply | None]] = {
    events.DELEGATE: _delegation_reply,
    events.START: _start_reply,
    events.RETURNED: _return_reply,
    events.NOTIFICATION: _return_reply,
    events.SESSION_START: _session_start_reply,
}
