"""The limits of agents, held where the host asks before an agent uses a tool. Imported only with ``--enforce``.

Owns which limits are looked at, and in which order; what each one means is for ``session``. Nothing is remembered
between two calls but the searches that were allowed and that the agent was warned, both in the run: everything else is
the record, the marks and the agent's transcript. What cannot be read, and a session that is locked, limit nothing.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionsError
from gaia_sessions.session.events import DELEGATE
from gaia_sessions.session.record import is_open, parent_id_of
from gaia_sessions.session.runs import agent_alias, has_ended, run_of_agent
from gaia_sessions.session.tools import may_use
from gaia_sessions.store.above import Above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gaia_sessions.hosts import Host
    from gaia_sessions.hosts.payload import HookPayload
    from gaia_sessions.session.agent_limits import AgentLimits, Done
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.file_store import FileStore

_LOCK_TIMEOUT = 0.5
"""Seconds for which the lock of a session is waited for: a limit is worth no more of the agent's time."""

_STOP = "Use no more tools. Say in your last message what you have done so far."


class Verdict:
    """What the host is told before a use: ``denied``, why not and what to do instead, or ``told``, something besides.

    Both are None for nothing. agent_id: the session, if the agent has one.
    """

    __slots__ = ("agent_id", "denied", "told")

    def __init__(self, agent_id: str | None = None, denied: str | None = None, told: str | None = None) -> None:
        self.agent_id = agent_id
        self.denied = denied
        self.told = told

    def output(self) -> dict[str, object] | None:
        """The part of the host's reply."""
        if self.denied is not None:
            return {"permissionDecision": "deny", "permissionDecisionReason": self.denied}
        return None if self.told is None else {"additionalContext": self.told}


def verdict(payload: HookPayload, host: Host, store: FileStore, events: Iterable[Event]) -> Verdict:
    """Whether the sender of ``payload``, which asks to use a tool, may do so; ``events`` are those that it reports.

    A delegation is looked at whoever sends it, anything else if a sub-agent does.
    """
    if any(event["kind"] == DELEGATE for event in events):
        refused = _refused_task(payload)
        if refused is not None:
            return Verdict(denied=refused)
    agent = payload.key("agent_id")
    if agent is None or payload.host_session_id is None:
        return Verdict()
    record = store.find(agent_alias(payload.host_session_id, agent, payload.host))
    if record is None:
        unknown: Record = {"agent_id": agent, "agent_name": payload.key("agent_type") or host.general}  # type: ignore[typeddict-item]  # what the rule for tools asks for
        return Verdict(denied=_refused_tool(payload, [unknown]))
    above = _with_ancestors(store, record)
    cancellation = Above(store).cancellation(record)
    denied = None
    if cancellation is not None:
        from gaia_sessions.errors import Cancelled

        denied = f"{Cancelled(None, cancellation.get('at'), cancellation.get('reason'))}. {_STOP}"
    denied = denied or _refused_tool(payload, above)
    run = run_of_agent(record, payload.host_session_id, agent)
    if denied is None and run is not None and not has_ended(run) and is_open(record):
        return _within_limits(payload, host, store, record, run)
    return Verdict(record["agent_id"], denied)


def _with_ancestors(store: FileStore, record: Record) -> list[Record]:
    if parent_id_of(record) is None:
        return [record]
    from gaia_sessions.store import read_ancestors

    return [record, *filter(None, read_ancestors(store, record).values())]


def _refused_task(payload: HookPayload) -> str | None:
    if payload.config.guard_mode == "off":
        return None
    from gaia_sessions.session.guard import guard

    prompt = payload.tool_input.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return None
    return guard(prompt, payload.config.guard_words)["reason"]


def _refused_tool(payload: HookPayload, records: list[Record]) -> str | None:
    name = payload.text("tool_name")
    answer = may_use(name, records, payload.config.tool_rules)
    if answer["allowed"]:
        return None
    others = answer["allowed_tools"]
    rest = "Go on without it" if others is None else f"Go on with what you may use: {', '.join(others) or 'no tool'}"
    return f"{name} {answer['reason']}. {rest}."


def _within_limits(payload: HookPayload, host: Host, store: FileStore, record: Record, run: Run) -> Verdict:
    limits: AgentLimits = payload.config.agent_limits
    agent_id, now, call = record["agent_id"], payload.now, payload.key("tool_use_id") or ""
    is_search = limits.searches is not None and payload.text("tool_name") in limits.search_tools
    if limits.tokens_for(record) is None and limits.rounds is None and limits.seconds is None and not is_search:
        return Verdict(agent_id)
    from gaia_sessions.session import agent_limits

    done = _done(payload, host, run, call)
    denied = agent_limits.refusal(record, run, done, limits, now)
    if denied is not None:
        return Verdict(agent_id, denied)
    if is_search and limits.searches is not None:
        most = limits.searches
        if not _changed(store, payload, record, lambda one, its: agent_limits.with_search(one, its, call, done, most)):
            return Verdict(agent_id, agent_limits.search_refusal(most))
    told = agent_limits.warning(record, run, done, limits)
    if told is not None:
        _changed(store, payload, record, lambda one, its: agent_limits.with_warning(one, its, now))
    return Verdict(agent_id, told=told)


def _done(payload: HookPayload, host: Host, run: Run, call: str) -> Done:
    from gaia_sessions.hosts.agent_files import transcript_of
    from gaia_sessions.session.agent_limits import Done

    path = run.get("transcript_path") or transcript_of(payload.raw.get("transcript_path"), run.get("host_agent_id", ""))
    try:
        return host.done_in(path, run.get("started_at"), call) if host.done_in and path else Done(0, 0, ())
    except OSError:
        return Done(0, 0, ())


def _changed(
    store: FileStore, payload: HookPayload, record: Record, rule: Callable[[Record, Run], Record | None]
) -> bool:
    """Whether ``rule`` allowed the change, which is written then; a session that cannot be changed allows it."""
    from gaia_sessions.session.retention import RESERVED_BYTES

    try:
        with store.open(record["agent_id"], timeout=_LOCK_TIMEOUT) as session:
            run = run_of_agent(session.record, payload.host_session_id or "", payload.key("agent_id") or "")
            if run is None:
                return True
            changed = rule(session.record, run)
            if changed is not None and changed is not session.record:
                session.commit(changed, reserved=RESERVED_BYTES)
            return changed is not None
    except SessionsError:
        return True
