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
    from gaia_sessions.ingest.result import Done
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store

    Payload = dict[str, Json]
    Answer = dict[str, object]

_GOES_ON = ("resume", "compact")
_FORK = "fork"


class Answering:
    """One event that was taken in, and what is needed to answer it."""

    __slots__ = ("config", "done", "event", "is_late", "now", "payload", "store")

    def __init__(  # what one answer may need
        self,
        payload: Payload,
        event: Event,
        done: Done,
        store: Store,
        config: Config,
        now: datetime,
        is_late: Callable[[], bool],
    ) -> None:
        self.payload = payload
        self.event = event
        self.done = done
        self.store = store
        self.config = config
        self.now = now
        self.is_late = is_late


def answer(asked: Answering) -> Answer | None:
    """The JSON for the host, or None for silence."""
    kind = asked.event["kind"]
    find = _ANSWERS.get(kind) if kind in module_of(asked.event["host"]).OBEYS else None
    told = find(asked) if find else None
    if told is None:
        return None
    return {"hookSpecificOutput": {"hookEventName": asked.payload.get("hook_event_name"), **told}}


def _prompted(asked: Answering) -> Answer | None:
    if asked.done.resumed is None:
        return None
    from .prompts import rewritten

    return rewritten(asked, module_of(asked.event["host"]))


def _noted(asked: Answering) -> Answer | None:
    if asked.payload.get("hook_event_name") != "SubagentStart" or asked.config.note != "all":
        return None
    from gaia_sessions.hosts.marker import NOTE

    if not asked.config.report_command:
        return {"additionalContext": NOTE}
    from .prompts import how_to_report

    return {"additionalContext": "\n".join([NOTE, *how_to_report(asked)])}


def _way_back(asked: Answering) -> Answer | None:
    record = asked.done.record
    if record is None:
        return None
    words = []
    if _may_be_resumed(record, asked):
        from .messages import way_back

        words.append(way_back(record, asked.config.limits.idle))
    if any("mentioned" in run for run in record.get("runs", ())):
        words += _of_mentioned(record, asked)
    return {"additionalContext": "\n\n".join(words)} if words else None


def _of_mentioned(record: Record, asked: Answering) -> Iterator[str]:
    """How to resume what the delegation named; what it asked for and does not exist is said, with what there is."""
    from gaia_sessions.hosts.mentions import mentioned

    from .messages import missing, named

    records, unknown = mentioned(asked.store, record, asked.event)
    paused = [found for found in records if _may_be_resumed(found, asked)]
    if paused:
        yield named(paused, asked.config.limits.idle)
    if unknown:
        yield missing(unknown)
        others = _paused(asked)
        if others:
            yield str(others["additionalContext"])


def _paused(asked: Answering) -> Answer | None:
    from gaia_sessions.errors import SessionsError
    from gaia_sessions.usecases.preview import Preview

    only_of = asked.event["host_session_id"] if asked.event.get("source") in _GOES_ON else None
    sessions = Preview(asked.store, asked.now, asked.config, asked.is_late)
    scanned = sessions.scan(active_only=True, host_session_id=only_of)
    found = (record for _, record in scanned if not isinstance(record, SessionsError))
    paused = [record for record in found if _may_be_resumed(record, asked) and _is_of_interest(record, asked.event)]
    if not paused:
        return None
    from .messages import paused as told

    paused.sort(key=lambda record: record["last_updated"], reverse=True)
    return {"additionalContext": told(paused, asked.config.limits.idle)}


def _is_of_interest(record: Record, event: Event) -> bool:
    """What a conversation that begins is told of: all that rests, or if it only goes on what rests of its own.

    A fork may take over the agents of the conversation that ended for it (seen with "Move to background" of Claude
    Code, where their starts come next): what that end alone brought to rest is not offered there.
    """
    source = event.get("source")
    runs = record.get("runs", [])
    if source in _GOES_ON:
        return any(conversation_of(run) == event["host_session_id"] for run in runs[-1:])
    return source != _FORK or not any(run.get("end") == ENDED_WITH_HOST for run in runs[-1:])


def _may_be_resumed(record: Record, asked: Answering) -> bool:
    from gaia_sessions.session.phases import is_resumable
    from gaia_sessions.session.record import has_newer_schema

    if has_newer_schema(record) or not is_resumable(record["phase"]):
        return False
    from gaia_sessions.system.processes import host_outlives_conversation
    from gaia_sessions.usecases.resume import decide

    begun = [run for run in record.get("runs", ()) if run.get("end") != DENIED]
    if any(host_outlives_conversation(run) for run in begun[-1:]):
        return False
    return decide(record["agent_id"], record, asked.now, asked.config.limits)["should_resume"]


_ANSWERS: dict[str, Callable[[Answering], Answer | None]] = {
    events.DELEGATE: _prompted,
    events.START: _noted,
    events.RETURNED: _way_back,
    events.NOTIFICATION: _way_back,
    events.SESSION_START: _paused,
}
