"""Finds the session and the run of an event by exact keys: the agent's own ID, its delegation, the ID in the marker,
the ID in the agent's first message. Nothing is guessed, and keys that disagree change nothing.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.session import runs
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.host_events import START
from gaia_sessions.session.record import has_newer_schema
from gaia_sessions.session.updates import Change
from gaia_sessions.store.journal import answer_entries, event_entry
from gaia_sessions.store.reading import EVENTS

from . import KEYS_DISAGREE, KNOWN, NO_KEY, NOT_JOINED, EventResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Entry, Store

    RunRule = Callable[[Record, Run], Record]
    """Makes the new record from a record and the run of the event."""
    JoinedRun = tuple[Record, Run]
    """A record, and the run of the event in it."""

_RUN_KEYS = ("host_agent_id", "tool_use_id")
_FIGURE_KEYS = frozenset(["usage", "consumed", "model", "worktree"])
_EVIDENCE_FIELDS = (
    *("host", "host_session_id", "host_agent_id", "tool_use_id", "tool_name", "call"),
    *("outcome", "interrupted", "background", "after_block"),
)


def change_joined_run(
    store: Store, event: Event, timeout: float, rule: RunRule, word_for: Callable[[Record], str]
) -> EventResult:
    """Applies ``rule`` to the record and the run of ``event`` under the session's lock; ``known`` if unchanged."""
    joined = find_run(store, event)
    return joined if isinstance(joined, EventResult) else change_run(store, event, joined, timeout, rule, word_for)


def change_run(
    store: Store, event: Event, joined: JoinedRun, timeout: float, rule: RunRule, word_for: Callable[[Record], str]
) -> EventResult:
    """Applies ``rule`` like ``change_joined_run``, to the state under the lock of a run that was found before."""
    with store.open(joined[0]["agent_id"], timeout=timeout) as session:
        record = session.record
        run = runs.run_by_number(record, joined[1]["run"])
        if run is None or runs.is_own_run(run):  # dropped since it was found, or a run of ours
            return EventResult(not_joined_result(event).word, record=record)
        if not may_be_of_agent(run, event):  # another agent has joined it since it was found
            return EventResult(KEYS_DISAGREE, record=record)
        changed = rule(*_in_conversation_of_event(record, run, event))
        if not _FIGURE_KEYS.isdisjoint(event):
            from gaia_sessions.session.usage import with_reported_usage

            changed = with_reported_usage(changed, run, event)
        if changed is record:
            return EventResult(KNOWN, record=record)
        entries = [*answer_entries(record, changed), changed_run_entry(event, changed, run)]
        record = session.commit(Change(changed, entries))
        return EventResult(word_for(record), record=record, is_cancelled=session.cancellation() is not None)


def _in_conversation_of_event(record: Record, run: Run, event: Event) -> tuple[Record, Run]:
    """Returns the record and the run, with the agent alive in the conversation of ``event`` if that is another one."""
    # In the run's own conversation, the event itself decides about an end that came with the conversation's end.
    # A start decides for itself, because it may belong to another run.
    if "host_agent_id" not in event or event["kind"] == START or runs.conversation_of(run) == event["host_session_id"]:
        return record, run
    return alive_in_conversation(record, run, event["host_session_id"], parse_time(event["at"]))


def alive_in_conversation(record: Record, run: Run, host_session_id: str, now: datetime) -> tuple[Record, Run]:
    """Returns the record and the run with the agent alive in this conversation, without a process that is gone."""
    from gaia_sessions.session.concluded_ends import with_agent_in_conversation  # few agents outlive their conversation

    changed = with_agent_in_conversation(record, run, host_session_id, now)
    changed_run = runs.updated_run(changed, run)
    if changed is record or "host_process" not in changed_run:
        return changed, changed_run
    from gaia_sessions.system.processes import is_gone

    # After "Move to background", another process continues the agent, and its start there may be reported later.
    if not is_gone(changed_run["host_process"]):
        return changed, changed_run
    changed_run = runs.without_keys(changed_run, "host_process")
    return runs.with_run(changed, changed_run), changed_run


def find_run(store: Store, event: Event) -> JoinedRun | EventResult:
    """Returns the record and the run of ``event``, read without a lock, or the result that says why there is none."""
    joined = list(_runs_by_key(store, event))
    if not joined:
        return not_joined_result(event)
    # If a message woke an agent for a new session, its delegation still leads to the first session. Both runs are of
    # the same agent, so the keys do not disagree, and the session found by the agent's own ID comes first.
    of_other_agents = [run for _, run in joined if not _is_of_agent(run, event)]
    if (len(joined) > 1 and of_other_agents) or any(_is_of_other_delegation(run, event) for run in of_other_agents):
        return EventResult(KEYS_DISAGREE)
    return joined[0]


def not_joined_result(event: Event) -> EventResult:
    """Returns the result for an event whose run does not exist, or no longer exists."""
    return EventResult(NOT_JOINED if "tool_use_id" in event else NO_KEY)


def newest_of_agent(store: Store, host: str | None, host_session_id: str, host_agent_id: str) -> Record | None:
    """Returns the newest session of this agent: an agent that wakes after its end begins another session."""
    return store.find(runs.agent_alias(host_session_id, host_agent_id, host))


def find_run_by_both_keys(store: Store, event: Event) -> JoinedRun | None:
    """Returns the run of exactly this agent for exactly this delegation, in any conversation."""
    if "host_agent_id" not in event or "tool_use_id" not in event:
        return None
    record = newest_of_agent(store, event.get("host"), event["host_session_id"], event["host_agent_id"])
    if not record:
        return None
    keys = {"host_agent_id": event["host_agent_id"], "tool_use_id": event["tool_use_id"]}
    found = [run for run in record.get("runs", ()) if keys.items() <= run.items()]
    return (record, found[-1]) if found else None


def session_of_agent(store: Store, host_session_id: str, host_agent_id: str) -> Record:
    """Returns the session that exactly this agent of a host works on, or worked on last."""
    hosts = (None, *runs.HOSTS_WITH_UNIQUE_AGENTS)
    records = (newest_of_agent(store, host, host_session_id, host_agent_id) for host in hosts)
    record = next(filter(None, records), None)
    if record is None or not runs.run_of_agent(record, host_session_id, host_agent_id):
        raise errors.SessionNotFound.of_agent(host_session_id, host_agent_id)
    return record


def read_or_none(store: Store, agent_id: str) -> Record | None:
    """Returns the session's record; None if it is missing, corrupt or of a newer schema, or if the ID is impossible."""
    try:
        record = store.read(agent_id)
    except (errors.SessionNotFound, errors.CorruptSession, errors.InvalidId):
        return None
    return None if has_newer_schema(record) else record


def entry_of_event(event: Event, record: Record, run: Run, revision: int) -> Entry:
    """Returns the journal entry of ``event``, which concerns ``run`` and led to ``record``, stored as ``revision``."""
    return event_entry(event["at"], event["kind"], run, record, revision, _evidence_of(event))


def changed_run_entry(event: Event, changed: Record, run: Run) -> Entry:
    """Returns the journal entry of a change that made ``changed``, which has ``run`` or a later state of it."""
    evidence, revision = _evidence_of(event), changed["revision"] + 1
    return event_entry(event["at"], event["kind"], runs.updated_run(changed, run), changed, revision, evidence)


def _evidence_of(event: Event) -> Entry:
    return {key: event[key] for key in _EVIDENCE_FIELDS if key in event}  # type: ignore[literal-required]


def _runs_by_key(store: Store, event: Event) -> Iterator[JoinedRun]:
    """Yields the record and the run that each key of ``event`` leads to, each record once."""
    for record in _candidates(store, event):
        run = _run_of_event(store, record, event)
        if run and may_be_of_host(run, event):
            yield record, run


def _run_of_event(store: Store, record: Record, event: Event) -> Run | None:
    host_session_id = event["host_session_id"]
    run = None
    if "host_agent_id" in event:
        run = runs.run_of_agent(record, host_session_id, event["host_agent_id"])
    if run is None and "tool_use_id" in event:
        run = runs.run_of_delegation(record, host_session_id, event["tool_use_id"])
    is_named = record["agent_id"] in (event.get("marker_id"), event.get("briefed_id"))
    if run is None and is_named and not is_of_dropped_run(store, record, event, *_RUN_KEYS):
        run = runs.unended_run_in_conversation(record, host_session_id)
    return run


def is_of_dropped_run(store: Store, record: Record, event: Event, *keys: str) -> bool:
    """Returns whether a key of ``event`` belongs to a run that ``record`` has dropped, by the session's journal."""
    # An event of a dropped run says nothing about the runs that are left, even if another key leads to them.
    if "runs_dropped" not in record:
        return False
    event_keys = {(key, event[key]) for key in keys if key in event}  # type: ignore[literal-required]
    kept_numbers = {run["run"] for run in record.get("runs", ())}
    for entry in store.entries(record["agent_id"], EVENTS):
        evidence = entry.get("evidence") if isinstance(entry, dict) and entry.get("run") not in kept_numbers else None
        if isinstance(evidence, dict) and any(evidence.get(key) == value for key, value in event_keys):
            return True
    return False


def _is_of_agent(run: Run, event: Event) -> bool:
    """Returns whether ``run`` is known to be of the agent that ``event`` names."""
    return "host_agent_id" in event and run.get("host_agent_id") == event["host_agent_id"]


def _is_of_other_delegation(run: Run, event: Event) -> bool:
    """Returns whether ``run``, which another key found, is known to belong to another delegation."""
    tool_use_id = run.get("tool_use_id")
    return tool_use_id is not None and event.get("tool_use_id", tool_use_id) != tool_use_id


def _candidates(store: Store, event: Event) -> Iterable[Record]:
    aliases = []
    if "host_agent_id" in event:
        aliases.append(runs.agent_alias(event["host_session_id"], event["host_agent_id"], event.get("host")))
    if "tool_use_id" in event:
        aliases.append(runs.delegation_alias(event["host_session_id"], event["tool_use_id"]))
    records = {record["agent_id"]: record for record in map(store.find, aliases) if record}
    for agent_id in (event.get("marker_id"), event.get("briefed_id")):
        if agent_id and agent_id not in records and (named := read_or_none(store, agent_id)):
            records[agent_id] = named
    return records.values()


def may_be_of_host(run: Run, event: Event) -> bool:
    """Returns whether both can be of one host: IDs are unique only within a host, and no host reports runs of ours."""
    return not runs.is_own_run(run) and ("host" not in run or event.get("host", run["host"]) == run["host"])


def may_be_of_agent(run: Run, event: Event) -> bool:
    """Returns whether ``run`` can be of the agent that ``event`` names. If ``event`` names no agent, it can."""
    if "host_agent_id" not in event:
        return True
    return run.get("host_agent_id", event["host_agent_id"]) == event["host_agent_id"]
