"""Which sessions a reply offers for a resume: sessions that the policy allows, and that nobody else can resume.

It does not offer work of another host, work that the user stopped, agents of a workflow (the host resumes the whole
workflow), and agents that may still be at work (see ``at_work``).
"""

from __future__ import annotations

from itertools import takewhile

from gaia_sessions.hosts.payload import SESSION_VARIABLE
from gaia_sessions.session.runs import conversation_of, has_ended, host_outlives_conversation
from gaia_sessions.session.schema import DENIED, ENDED_WITH_HOST, STOPPED_BY_USER
from gaia_sessions.system import gone_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from gaia_sessions.api.standing import FindCancellation
    from gaia_sessions.hosts.payload import HookPayload
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.policy import Limits
    from gaia_sessions.session.schema import HostProcess, Record
    from gaia_sessions.store.above import Above
    from gaia_sessions.store.port import Store

    from .texts import Resumable

_CONTINUING_SOURCES = ("resume", "compact")
_FORK = "fork"


def unfinished_message(
    store: Store, payload: HookPayload, event: Event, is_late: Callable[[], bool], wake_advice: str | None
) -> str | None:
    """Returns the sessions that the conversation of ``event`` can resume; None if there are none."""
    from gaia_sessions.store.above import Above

    above = Above(store)
    relevant = (record for record in _sessions_of(store, payload, event, is_late, above) if _is_relevant(record, event))
    offered = [one for record in relevant if (one := _resumable(above, record, payload))]
    return _offer(offered, wake_advice) if offered else None


def session_start_message(
    store: Store, payload: HookPayload, event: Event, is_late: Callable[[], bool], wake_advice: str | None
) -> str | None:
    """Returns what a conversation that starts is told of sessions and of agents at work; None for nothing."""
    from gaia_sessions.store.above import Above

    above, offered, at_work = Above(store), [], []
    for record in _sessions_of(store, payload, event, is_late, above):
        offer = _resumable(above, record, payload) if _is_relevant(record, event) else None
        if offer:
            offered.append(offer)
        elif any(not has_ended(run) and "host_process" in run for run in record.get("runs", ())):
            at_work.append(record)
    messages = [_offer(offered, wake_advice)] if offered else []
    if at_work:
        from .at_work import at_work_message

        told = at_work_message(above.cancellation, at_work, payload.now, payload.config.limits)
        messages += [told] if told else []
    return "\n\n".join(messages) or None


def _resumable(above: Above, record: Record, payload: HookPayload) -> Resumable | None:
    return resumable(above.cancellation, record, payload.now, payload.config.limits)


def _offer(offered: list[Resumable], wake_advice: str | None) -> str:
    from .texts import offer_message

    offered.sort(key=lambda offer: (offer[0]["last_updated"], offer[0]["agent_id"]), reverse=True)
    return offer_message(offered, wake_advice)


def _sessions_of(
    store: Store, payload: HookPayload, event: Event, is_late: Callable[[], bool], above: Above
) -> Iterator[Record]:
    """Yields the open sessions that the conversation may know. A continuing conversation knows only its own."""
    from gaia_sessions.api.foresight import open_sessions
    from gaia_sessions.errors import SessionsError

    only_conversation = event["host_session_id"] if event.get("source") in _CONTINUING_SOURCES else None
    found = open_sessions(store, payload.now, payload.config, is_late, only_conversation)
    in_time = takewhile(lambda _: not is_late(), found)
    records = (record for _, record in in_time if not isinstance(record, SessionsError))
    return (record for record in records if is_in_reach(record, payload, above))


def is_in_reach(record: Record, payload: HookPayload, above: Above) -> bool:
    """Returns whether the conversation of ``payload`` may know ``record``."""
    if "app" in record:  # only the app resumes it
        return False
    session_id = payload.variables.get(SESSION_VARIABLE)
    # A conversation that works for a session knows only what is below that session.
    return not session_id or above.is_below(record, session_id)


def is_of_host(record: Record, event: Event) -> bool:
    """Returns whether the host of ``event`` worked on ``record`` last, not another host or a command."""
    return any(run.get("host") == event["host"] for run in record.get("runs", ())[-1:])


def _is_relevant(record: Record, event: Event) -> bool:
    """Returns whether a conversation that starts should know ``record``."""
    if not is_of_host(record, event):
        return False
    source = event.get("source")
    runs = record.get("runs", [])
    if source in _CONTINUING_SOURCES:
        return any(conversation_of(run) == event["host_session_id"] for run in runs[-1:])
    # A fork may take over the agents of the conversation that ended for it, as with Claude Code's "Move to background".
    # Their starts come next. So a session that only the end of that conversation paused is not offered to the fork.
    return source != _FORK or not any(run.get("end") == ENDED_WITH_HOST for run in runs[-1:])


def resumable(find_cancellation: FindCancellation, record: Record, now: datetime, limits: Limits) -> Resumable | None:
    """Returns ``record``, its state, and until when it can be resumed; None if no reply may offer it."""
    from gaia_sessions.session.phases import is_new, is_resumable
    from gaia_sessions.session.record import NOT_APPROVED_REASON, has_newer_schema

    if has_newer_schema(record):
        return None
    has_lost_client = is_new(record["phase"]) and gone_runs(record)
    if not has_lost_client and not is_resumable(record["phase"]):
        return None
    from gaia_sessions.api.standing import standing

    if any("workflow" in run or run.get("interruption") == STOPPED_BY_USER for run in record.get("runs", ())[-1:]):
        return None  # the host resumes the whole workflow; the user wants no resume of stopped work
    undenied = [run for run in record.get("runs", ()) if run.get("end") != DENIED]
    if any(host_outlives_conversation(run, _is_alive) for run in undenied[-1:]):
        return None
    stands = standing(find_cancellation, record, now, limits)
    until, reason = stands.decision["until"], stands.decision["reason"]
    # Without a time, only ``approve`` makes it resumable.
    return (record, stands.state["state"], until) if until or reason == NOT_APPROVED_REASON else None


def _is_alive(process: HostProcess) -> bool:
    from gaia_sessions.system.processes import is_alive  # only a run that ended with its conversation needs it

    return is_alive(process)


def is_waiting_for_limit(record: Record, now: datetime) -> bool:
    """Returns whether the work waits for the reset of a limit."""
    if "paused_until" not in record:
        return False
    from gaia_sessions.session import policy

    return policy.is_waiting_for_limit(record, now)
