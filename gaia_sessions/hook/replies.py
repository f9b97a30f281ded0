"""The replies to a host, and through it to an agent: for most events there is none.

Owns when a reply is due and its shape, as real clients obeyed it; the host's module says which replies it obeys and how
a prompt is rewritten. A stop gets one only to keep its agent at work: see ``holding``. A delegation gets one only when
it continues earlier work: of two hooks that rewrite a prompt, the last to finish wins as a whole. The texts are in
``messages``, which is imported only when there is something to say.
"""

from __future__ import annotations

from gaia_sessions.hosts import EVENT_NAME_KEY
from gaia_sessions.ingest import MAX_MENTIONED, REFUSED
from gaia_sessions.session import events
from gaia_sessions.session.record import is_asking
from gaia_sessions.session.runs import has_ended, times_held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gaia_sessions.api.standing import FindCancellation
    from gaia_sessions.hosts import Host
    from gaia_sessions.hosts.payload import HookPayload
    from gaia_sessions.ingest import EventResult
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.file_store import FileStore
    from gaia_sessions.store.port import Store

    from .texts import Resumable

    Reply = dict[str, object]

_RUN_KEYS = ("tool_use_id", "host_agent_id")
"""The keys by which the run is found that a report ends.

The delegation comes first: the agent may have got other work since.
"""


class ReplyContext:
    """One event that was applied, and what a reply to it may need.

    reports: whether agents are told the command to report with.
    """

    __slots__ = ("config", "event", "host", "is_late", "now", "payload", "reports", "result", "store")

    def __init__(
        self,
        payload: HookPayload,
        event: Event,
        host: Host,
        result: EventResult,
        store: FileStore,
        is_late: Callable[[], bool],
        *,
        reports: bool,
    ) -> None:
        self.payload = payload
        self.event = event
        self.host = host
        self.result = result
        self.store = store
        self.config = payload.config
        self.now = payload.now
        self.is_late = is_late
        self.reports = reports


def build_reply(context: ReplyContext) -> Reply | None:
    """The reply to one event, of a kind to which its host obeys replies; None for none."""
    output = _REPLY_BUILDERS[context.event["kind"]](context)
    if output is None:
        return None
    return {"hookSpecificOutput": {"hookEventName": context.payload.raw.get(EVENT_NAME_KEY), **output}}


def merge_replies(replies: list[Reply]) -> Reply:
    """Merges the replies to a payload that reported several events into one: a host reads no more than one."""
    outputs = [reply.get("hookSpecificOutput") for reply in replies]
    contexts = [
        output["additionalContext"] for output in outputs if isinstance(output, dict) and "additionalContext" in output
    ]
    if len(contexts) < len(replies) or not isinstance(outputs[0], dict):
        return replies[0]
    return {"hookSpecificOutput": {**outputs[0], "additionalContext": "\n\n".join(contexts)}}


def _delegation_reply(context: ReplyContext) -> Reply | None:
    """The delegation with the briefing added to its prompt, and the note where the agent gets it in no other way."""
    if context.result.word == REFUSED and context.host.denies is not None and context.result.record is not None:
        from .texts import refusal_message

        return context.host.denies(
            refusal_message(context.result.record, nested="parent_host_agent_id" in context.event)
        )
    resumed, tool_input = context.result.resumed, context.payload.raw.get("tool_input")
    if resumed is None or not isinstance(tool_input, dict) or context.host.rewrite_prompt is None:
        return None
    from gaia_sessions.api.briefing import briefing
    from gaia_sessions.hosts.marker import NOTE

    note = [NOTE] if _includes_note(context) else []
    told = briefing(resumed, context.result.reason, context.store, context.is_late)
    parts = [told, *note, *_report_instructions(context)]
    return context.host.rewrite_prompt(tool_input, "\n\n".join(parts))


def _includes_note(context: ReplyContext) -> bool:
    """Whether the prompt gets the note, because no reply at the start of the agent can give it."""
    return context.config.note == "resume" or (
        context.config.note == "all" and events.START not in context.host.replies
    )


def _start_reply(context: ReplyContext) -> Reply | None:
    if context.payload.raw.get(EVENT_NAME_KEY) != context.host.start_event:
        return None
    told = [*_answered(context), *_not_approved(context)]
    if context.config.note == "all" and "workflow" not in context.event:  # what an agent of that says goes to a script
        from gaia_sessions.hosts.marker import NOTE

        told += [NOTE, *_report_instructions(context)]
    return {"additionalContext": "\n".join(told)} if told else None


def _answered(context: ReplyContext) -> list[str]:
    """What an agent is told that a message woke, of what was answered since it asked."""
    if context.result.resumed is None:
        return []
    from gaia_sessions.api.briefing import answers_for_woken

    return answers_for_woken(context.result.resumed)


def _not_approved(context: ReplyContext) -> list[str]:
    """What an agent is told that a message woke although only ``approve`` lets its work go on."""
    record = context.result.record
    if context.config.approvals != "explicit" or record is None or not is_asking(record):
        return []
    return ["What you asked an approval for is not approved, whatever you are told: do not carry it out; ask again."]


def _report_instructions(context: ReplyContext) -> list[str]:
    """The command to report with, where it is allowed; a start rarely knows its session, but the agent's own id."""
    if not context.reports or context.config.note == "off":
        return []
    from .texts import report_instructions

    root = context.store.root
    if context.result.agent_id is not None:
        return report_instructions(root, context.result.agent_id)
    return report_instructions(root, "--host-agent", context.event["host_session_id"], context.event["host_agent_id"])


def _return_reply(context: ReplyContext) -> Reply | None:
    record = context.result.record
    if record is None:
        return None
    from . import offers

    messages = []
    if offers.is_waiting_for_limit(record, context.now):
        from .texts import waiting_message

        messages.append(waiting_message(record))
    found = _resumable(record, context)
    if found:
        from .texts import resume_message

        messages.append(resume_message(found, nested="parent_host_agent_id" in context.event))
    if times_held(record) and _is_about_latest_end(context.event, record):
        from gaia_sessions.session.todos import open_todos

        from .holding import left_open_message

        messages += [left_open_message(record)] if open_todos(record) else []
    if any("mentioned" in run for run in record.get("runs", ())):
        messages += _mentioned_messages(record, context)
    return {"additionalContext": "\n\n".join(messages)} if messages else None


def _is_about_latest_end(event: Event, record: Record) -> bool:
    """Whether ``event`` tells of the latest run, and that has ended: a held agent may be at work behind its report."""
    run = _run_of(record, event)
    return run is record["runs"][-1] and has_ended(run)


def _resumable(record: Record, context: ReplyContext) -> Resumable | None:
    from . import offers

    find: FindCancellation
    if record is context.result.record and context.result.is_cancelled is not None:
        if context.result.is_cancelled:
            return None
        find = lambda _: None  # noqa: E731  # known since it was written
    else:
        from gaia_sessions.store.above import Above

        find = Above(context.store).cancellation
    return offers.resumable(find, record, context.now, context.config.limits)


def _mentioned_messages(record: Record, context: ReplyContext) -> Iterator[str]:
    """How to resume the sessions that the delegation named; with one that does not exist, those that do."""
    from .texts import mentioned_message, missing_message

    records, missing_ids = _mentioned_sessions(context.store, record, context.event)
    named = list(filter(None, (_resumable(found, context) for found in records if _may_be_told(found, context))))
    if named:
        yield mentioned_message(named)
    if missing_ids:
        yield missing_message(missing_ids)
        other_sessions = _unfinished_message(context)
        if other_sessions:
            yield other_sessions


def _may_be_told(record: Record, context: ReplyContext) -> bool:
    from gaia_sessions.store.above import Above

    from .offers import is_in_reach, is_of_host

    return is_of_host(record, context.event) and is_in_reach(record, context.payload, Above(context.store))


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
    run = _run_of(record, event)
    return run.get("mentioned", [])[:MAX_MENTIONED] if run else []


def _run_of(record: Record, event: Event) -> Run | None:
    """The latest run with a key of ``event``."""
    for key in _RUN_KEYS:
        value = event.get(key)
        found = [run for run in record["runs"] if value is not None and run.get(key) == value]
        if found:
            return found[-1]
    return None


def _unfinished_message(context: ReplyContext) -> str | None:
    from .offers import unfinished_message

    return unfinished_message(context.store, context.payload, context.event, context.is_late, _wake_advice(context))


def _wake_advice(context: ReplyContext) -> str | None:
    """How the host wakes an agent of a conversation that continues: what is said here must not contradict that."""
    return context.host.wake_advice if context.event.get("source") == "resume" else None


def _session_start_reply(context: ReplyContext) -> Reply | None:
    from .offers import session_start_message

    message = session_start_message(
        context.store, context.payload, context.event, context.is_late, _wake_advice(context)
    )
    return {"additionalContext": message} if message else None


_REPLY_BUILDERS: dict[str, Callable[[ReplyContext], Reply | None]] = {
    events.DELEGATE: _delegation_reply,
    events.START: _start_reply,
    events.RETURNED: _return_reply,
    events.NOTIFICATION: _return_reply,
    events.SESSION_START: _session_start_reply,
}
