"""The replies to a host, and through it to an agent: for most events there is none.

Owns when a reply is due and its shape, as real clients obeyed it; the host's module says which replies it obeys and how
a prompt is rewritten. A stop never gets a reply: any output would keep the agent running. A delegation gets one only
when it continues earlier work: of two hooks that rewrite a prompt, the last to finish wins as a whole. The texts are in
``messages``, which is imported only when there is something to say. Must never change a session.
"""

from __future__ import annotations

from gaia_sessions.hosts import CLAUDE_CODE, module_of
from gaia_sessions.session import events
from gaia_sessions.session.runs import conversation_of
from gaia_sessions.session.schema import DENIED, ENDED_WITH_HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.hosts.payload import Payload
    from gaia_sessions.hosts.protocol import HostModule
    from gaia_sessions.ingest import EventResult
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.file_store import FileStore
    from gaia_sessions.store.port import Store

    Reply = dict[str, object]

_CONTINUING_SOURCES = ("resume", "compact")
_FORK = "fork"
_MENTION_KEYS = ("tool_use_id", "host_agent_id")
"""The keys by which the run is found that a report ends.

The delegation comes first: the agent may have got other work since.
"""


class ReplyContext:
    """One event that was applied, and what a reply to it may need."""

    __slots__ = ("config", "event", "is_late", "now", "payload", "result", "store")

    def __init__(
        self,
        payload: Payload,
        event: Event,
        result: EventResult,
        store: FileStore,
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
    """The reply to one event; None for none."""
    kind = context.event["kind"]
    host = module_of(context.event["host"])
    build = _REPLY_BUILDERS.get(kind) if kind in host.SUPPORTED_REPLIES else None
    output = build(context, host) if build else None
    if output is None:
        return None
    return {"hookSpecificOutput": {"hookEventName": context.payload.get("hook_event_name"), **output}}


def merge_replies(replies: list[Reply]) -> Reply:
    """Merges the replies to a payload that reported several events into one: a host reads no more than one."""
    outputs = [reply["hookSpecificOutput"] for reply in replies]
    contexts = [
        output["additionalContext"] for output in outputs if isinstance(output, dict) and "additionalContext" in output
    ]
    if len(contexts) < len(replies) or not isinstance(outputs[0], dict):
        return replies[0]
    return {"hookSpecificOutput": {**outputs[0], "additionalContext": "\n\n".join(contexts)}}


def _delegation_reply(context: ReplyContext, host: HostModule) -> Reply | None:
    """The delegation with the briefing added to its prompt, and the note where the agent gets it in no other way."""
    resumed, tool_input = context.result.resumed, context.payload.get("tool_input")
    if resumed is None or not isinstance(tool_input, dict) or host.rewrite_prompt is None:
        return None
    from gaia_sessions.hosts.marker import NOTE

    from .messages import briefing

    note = [NOTE] if _includes_note(context, host) else []
    parts = [briefing(resumed, context.result.reason), *note, *_report_instructions(context)]
    return host.rewrite_prompt(tool_input, "\n\n".join(parts))


def _includes_note(context: ReplyContext, host: HostModule) -> bool:
    """Whether the prompt gets the note, because no reply at the start of the agent can give it."""
    return context.config.note == "resume" or (
        context.config.note == "all" and events.START not in host.SUPPORTED_REPLIES
    )


def _start_reply(context: ReplyContext, _host: HostModule) -> Reply | None:
    if context.payload.get("hook_event_name") != "SubagentStart" or context.config.note != "all":
        return None
    from gaia_sessions.hosts.marker import NOTE

    return {"additionalContext": "\n".join([NOTE, *_report_instructions(context)])}


def _report_instructions(context: ReplyContext) -> list[str]:
    """The command to report with, where it is allowed; a start rarely knows its session, but the agent's own id."""
    if not context.config.report_command or context.config.note == "off" or context.event["host"] != CLAUDE_CODE:
        return []
    from .messages import report_instructions

    root = context.store.root
    if context.result.agent_id is not None:
        return report_instructions(root, context.result.agent_id)
    return report_instructions(root, "--host-agent", context.event["host_session_id"], context.event["host_agent_id"])


def _return_reply(context: ReplyContext, _host: HostModule) -> Reply | None:
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
    """How to resume the sessions that the delegation named; with one that does not exist, those that do."""
    from .messages import mentioned_message, missing_message

    records, missing_ids = _mentioned_sessions(context.store, record, context.event)
    paused = [found for found in records if _may_be_resumed(found, context)]
    if paused:
        yield mentioned_message(paused, context.config.limits.idle)
    if missing_ids:
        yield missing_message(missing_ids)
        other_sessions = _paused_sessions_message(context)
        if other_sessions:
            yield other_sessions


def _mentioned_sessions(store: Store, record: Record, event: Event) -> tuple[list[Record], list[str]]:
    """The records that the delegation of ``event`` named without resuming one, and the ids that do not exist."""
    from gaia_sessions.errors import CorruptSession, SessionNotFound
    from gaia_sessions.session.ids import is_agent_id

    records: list[Record] = []
    missing: list[str] = []
    for agent_id in filter(is_agent_id, _mentioned_ids(record, event)):
        try:
            records.append(store.read(agent_id))
        except SessionNotFound:
            missing.append(agent_id)
        except CorruptSession:  # ``list`` shows it, and nothing resumes it
            continue
    return records, missing


def _mentioned_ids(record: Record, event: Event) -> list[str]:
    for key in _MENTION_KEYS:
        value = event.get(key)
        found = [run for run in record["runs"] if value is not None and run.get(key) == value]
        if found:
            return found[-1].get("mentioned", [])
    return []


def _session_start_reply(context: ReplyContext, _host: HostModule) -> Reply | None:
    message = _paused_sessions_message(context)
    return {"additionalContext": message} if message else None


def _paused_sessions_message(context: ReplyContext) -> str | None:
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
    return paused_message(paused, context.config.limits.idle)


def _is_relevant(record: Record, event: Event) -> bool:
    """Whether a conversation that starts is to know of ``record``; one that continues knows only its own sessions.

    A fork may take over the agents of the conversation that ended for it (seen with "Move to background" of Claude
    Code, where their starts come next), so a session that only that end paused is not offered there.
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


_REPLY_BUILDERS: dict[str, Callable[[ReplyContext, HostModule], Reply | None]] = {
    events.DELEGATE: _delegation_reply,
    events.START: _start_reply,
    events.RETURNED: _return_reply,
    events.NOTIFICATION: _return_reply,
    events.SESSION_START: _session_start_reply,
}
