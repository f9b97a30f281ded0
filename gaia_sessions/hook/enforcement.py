"""The limits of agents, checked when a host asks before an agent uses a tool. Imported only with ``--enforce``.

If a record, a mark or a transcript that may limit a known agent cannot be read, every use is denied: what an agent
writes lifts no limit. A busy lock and a full disk deny nothing: they are not the agent's doing.
"""

from __future__ import annotations

from errno import EDQUOT, ENOSPC
from time import monotonic

from gaia_sessions import errors
from gaia_sessions.errors import LockTimeout, SessionNotFound, SessionsError, StoreFailure, shorten
from gaia_sessions.hosts import SECONDS_FOR_LINE, denial
from gaia_sessions.hosts.payload import HookPayload, object_in_bytes
from gaia_sessions.session import agent_limits
from gaia_sessions.session.agent_limits import GO_ON_WITH, GO_ON_WITHOUT, USE_NO_MORE_TOOLS, WorkSoFar
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.host_events import DELEGATE
from gaia_sessions.session.ids import MARKER_OPENING
from gaia_sessions.session.runs import agent_alias, run_of_agent
from gaia_sessions.session.tools import may_use
from gaia_sessions.store.above import Above, all_that_limit
from gaia_sessions.store.directory import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gaia_sessions.hosts import Host
    from gaia_sessions.hosts.payload import Payload
    from gaia_sessions.session.agent_limits import AgentLimits
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

_LONGEST_ERROR = 300

LOCK_TIMEOUT = 0.5
"""Seconds to wait for the lock of a session: a limit is worth no more of the agent's time."""


class Asking:
    """A use of a tool that the agent of ``run`` asks for. ``until``: when to stop waiting for its transcript."""

    __slots__ = ("host", "payload", "record", "run", "store", "until")

    def __init__(self, payload: HookPayload, host: Host, store: Store, record: Record, run: Run, until: float) -> None:
        self.payload = payload
        self.host = host
        self.store = store
        self.record = record
        self.run = run
        self.until = until

    def files(self) -> list[str]:
        """Returns the agent's transcripts, the newest first: after ``/clear`` the agent writes to another one."""
        from gaia_sessions.hosts.agent_files import transcript_of  # most uses are checked without it

        current = transcript_of(self.payload.raw.get("transcript_path"), self.run.get("host_agent_id", ""))
        return [*dict.fromkeys(path for path in (current, self.run.get("transcript_path")) if path)]


class Verdict:
    """What the host is told before a use: ``denied`` with the reason, or a ``warning``, or nothing."""

    __slots__ = ("agent_id", "denied", "unread", "warning")

    def __init__(
        self,
        agent_id: str | None = None,
        denied: str | None = None,
        warning: str | None = None,
        unread: Exception | None = None,
    ) -> None:
        self.agent_id = agent_id
        self.denied = denied
        self.warning = warning
        self.unread = unread  # what could not be checked

    @property
    def word(self) -> str:
        return "denied" if self.denied is not None else "allowed" if self.warning is None else "warned"

    def output(self) -> dict[str, object] | None:
        """Returns the part of the host's reply."""
        if self.denied is not None:
            return denial(self.denied)
        return None if self.warning is None else {"additionalContext": self.warning}


def verdict(
    payload: HookPayload, host: Host, store: Store, events: Iterable[Event], *, has_input: bool = True
) -> Verdict:
    """Returns whether the sender may use the tool. ``has_input``: whether the input of the tool could be read."""
    # A delegation is checked for every sender, other tools only for sub-agents.
    events = [*events]
    if any(event["kind"] == DELEGATE for event in events):
        refused = _refused_task(payload, has_input=has_input)
        if refused is not None:
            return Verdict(denied=refused)
    if payload.raw.get("agent_id") in (None, ""):
        return Verdict()
    agent, unread = payload.key("agent_id"), None
    try:
        record = None
        if agent is not None and payload.host_session_id is not None:
            record = store.find(agent_alias(payload.host_session_id, agent, payload.host), strict=True)
        if record is not None:
            # The reported event may have a reply of its own. If so, the sender is warned at another use.
            return _verdict_on_session(payload, host, store, record, may_warn=not events)
    except SessionsError as error:
        is_of_session = not isinstance(error, StoreFailure) or error.path != store.root
        if is_of_session:
            reason = f"The limits of this agent are unknown: {shorten(str(error), _LONGEST_ERROR)}."
            return Verdict(denied=f"{reason} {USE_NO_MORE_TOOLS}", unread=error)
        unread = error
    unknown: Record = {"agent_id": agent or "", "agent_name": payload.key("agent_type") or host.general}  # type: ignore[typeddict-item]  # these keys are enough for the rule for tools
    return Verdict(denied=_refused_tool(payload, [unknown]), unread=unread)


def _verdict_on_session(payload: HookPayload, host: Host, store: Store, record: Record, *, may_warn: bool) -> Verdict:
    """Returns whether the sender may use the tool; ``record`` is the record of its session."""
    denied = _denied_to_session(payload, store, record)
    run = run_of_agent(record, payload.host_session_id or "", payload.key("agent_id") or "")
    if denied is not None or run is None:
        return Verdict(record["agent_id"], denied)
    # An agent that uses a tool is at work, even if an end of its run is recorded.
    asking = Asking(payload, host, store, record, run, monotonic() + SECONDS_FOR_LINE)
    if payload.config.limits_repeats == "off":
        return _within_limits(asking, may_warn=may_warn)
    loop = _verdict_on_loop(asking)
    if loop.denied is not None:
        return loop
    is_told = may_warn and loop.warning is not None
    found = _within_limits(asking, may_warn=may_warn and not is_told)
    found.unread = found.unread or loop.unread
    return loop if is_told and found.denied is None else found


def _denied_to_session(payload: HookPayload, store: Store, record: Record) -> str | None:
    """Returns why the session may not use the tool: it is cancelled, or the tool is forbidden; else None."""
    cancellation = Above(store).cancellation(record)
    if cancellation is not None:
        return f"{errors.Cancelled(None, cancellation.get('at'), cancellation.get('reason'))}. {USE_NO_MORE_TOOLS}"
    own: Record = {**record, "agent_name": payload.key("agent_type") or record["agent_name"]}
    return _refused_tool(payload, [own, *all_that_limit(store, record)[1:]])


def _verdict_on_loop(asking: Asking) -> Verdict:
    """Returns whether the sender is in a loop, or would be in a loop with its next call."""
    from gaia_sessions.session import repeats

    from .loops import calls_in_row, cancel_around

    agent_id, tool = asking.record["agent_id"], asking.payload.text("tool_name")
    try:
        count = calls_in_row(asking.payload, asking.host, asking.files(), asking.until)
    except OSError as error:
        return Verdict(agent_id, unread=error)
    if count < repeats.REFUSED_AFTER:
        return Verdict(agent_id, warning=repeats.warning(tool) if count == repeats.TOLD_AFTER else None)
    if asking.payload.config.limits_repeats == "deny":
        return Verdict(agent_id, repeats.refusal(tool, cancels=False))
    failed = cancel_around(asking.store, asking.record, asking.payload)
    return Verdict(agent_id, repeats.refusal(tool, cancels=failed is None), unread=failed)


def may_go_on_with(tool: str, payload: HookPayload, host: Host, store: Store, record: Record, run: Run) -> bool:
    """Returns whether the sender of ``payload``, which stops, could use ``tool`` next."""
    raw: Payload = {**payload.raw, "tool_name": tool}
    use = HookPayload(payload.host, raw, payload.config, payload.now, payload.variables)
    if _denied_to_session(use, store, record) is not None:
        return False
    limits: AgentLimits = payload.config.agent_limits
    so_far = WorkSoFar(0, 0, (), has_call=False)
    if limits.tokens_for(record) is not None or limits.rounds is not None:
        call = format_time(payload.now)  # there is no call yet, so this key is in no line
        so_far = _work_so_far(Asking(use, host, store, record, run, monotonic()), call, must_count=True)
    return agent_limits.refusal(record, run, so_far, limits, payload.now) is None


def payload_before(key: bytes, data: bytes) -> Payload:
    """Returns the members of the object ``data`` before ``key``; none if they cannot be read."""
    return object_in_bytes(data.partition(key)[0].rstrip(b", \t\r\n") + b"}", len(data) + 1)


def unjudged(error: Exception) -> Verdict:
    """Returns the verdict on a sub-agent if checking its limits failed with ``error``."""
    why = f"The limits of this agent are unknown: {type(error).__name__}."
    return Verdict(denied=f"{why} {USE_NO_MORE_TOOLS}", unread=error)


def _refused_task(payload: HookPayload, *, has_input: bool) -> str | None:
    if payload.config.guard_mode == "off":
        return None
    if not has_input:
        return "the task cannot be read: it is too long, or has characters that JSON does not allow; reword the task"
    from gaia_sessions.session.guard import guard

    prompt = payload.tool_input.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return None
    lines = [line for line in prompt.splitlines() if not line.startswith(MARKER_OPENING)]  # without our markers
    task = "\n".join(lines)
    return guard(task, payload.config.guard_words)["reason"] if task.strip() else None


def _refused_tool(payload: HookPayload, records: list[Record]) -> str | None:
    answer = may_use(payload.text("tool_name"), records, payload.config.tool_rules)
    if answer["allowed"]:
        return None
    others = answer["usable_tools"]
    with_others = f"{GO_ON_WITH}{', '.join(others)}." if others else USE_NO_MORE_TOOLS
    return f"{answer['reason']}. {GO_ON_WITHOUT if others is None else with_others}"


def _within_limits(asking: Asking, *, may_warn: bool) -> Verdict:
    payload, record, run = asking.payload, asking.record, asking.run
    limits: AgentLimits = payload.config.agent_limits
    agent_id, now, call = record["agent_id"], payload.now, payload.key("tool_use_id") or format_time(payload.now)
    is_search = limits.searches is not None and payload.text("tool_name") in limits.search_tools
    is_counted = limits.tokens_for(record) is not None or limits.rounds is not None
    if not is_counted and limits.seconds is None and not is_search:
        return Verdict(agent_id)
    so_far = _work_so_far(asking, call, must_count=is_counted)
    denied = agent_limits.refusal(record, run, so_far, limits, now)
    if denied is not None:
        return Verdict(agent_id, denied)
    if is_search and limits.searches is not None:
        most = limits.searches
        if not _changed(asking, lambda one, its: agent_limits.with_search(one, its, call, so_far, most)):
            return Verdict(agent_id, agent_limits.search_refusal(most))
    warning = agent_limits.warning(record, run, so_far, limits) if may_warn else None
    if warning:
        try:
            is_first = _changed(asking, lambda one, its: agent_limits.with_warning(one, its, now))
        except SessionsError:  # the agent is warned once more
            is_first = True
        if not is_first:
            warning = None  # the agent was warned just now, at another use
    return Verdict(agent_id, warning=warning)


def _work_so_far(asking: Asking, call: str, *, must_count: bool) -> WorkSoFar:
    """Returns what the agent did, with the round of this ``call`` if the host writes that round in time."""
    from gaia_sessions.hosts.agent_files import looks_until

    found = WorkSoFar(0, 0, (), has_call=False)
    look, files = asking.host.work_so_far, asking.files()
    if look is None or not files:
        return found
    try:
        for _ in looks_until(asking.until):
            found = look(files, asking.run.get("started_at"), call)
            if found.has_call:
                break
    except OSError as error:
        # An agent that has just begun may have no transcript yet.
        if must_count and not isinstance(error, FileNotFoundError):
            raise refusal("read", " and ".join(files), error) from error
    return found


def _changed(asking: Asking, rule: Callable[[Record, Run], Record | None]) -> bool:
    """Returns False if ``rule`` forbids the use. Otherwise writes its change if it can, and returns True."""
    from gaia_sessions.session.retention import RESERVED_BYTES

    # A busy lock and a full disk deny no use: they are not the agent's doing.
    try:
        payload = asking.payload
        with asking.store.open(asking.record["agent_id"], timeout=LOCK_TIMEOUT) as session:
            run = run_of_agent(session.record, payload.host_session_id or "", payload.key("agent_id") or "")
            if run is None:
                return True
            changed = rule(session.record, run)
            if changed is not None:
                session.commit(changed, reserved=RESERVED_BYTES)
            return changed is not None
    except (LockTimeout, SessionNotFound, errors.DurabilityUnknown):
        return True
    except StoreFailure as error:
        if getattr(error.__cause__, "errno", None) in (ENOSPC, EDQUOT):
            return True
        raise
