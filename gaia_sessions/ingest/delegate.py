"""A delegation begins: it gets a new session, or claims a run in the session that it asks to resume.
Look-up and creation run under a lock on the delegation's key, so a delegation that is reported twice has one session.
"""

from __future__ import annotations

from itertools import islice

from gaia_sessions import errors
from gaia_sessions.errors import CorruptSession, LockTimeout, SessionNotFound
from gaia_sessions.session import runs
from gaia_sessions.session.clock import parse_time, timedelta
from gaia_sessions.session.ids import is_agent_id, new_agent_id
from gaia_sessions.session.phases import is_final, waits_for_approval
from gaia_sessions.session.record import NOT_APPROVED_REASON, is_asking, is_stand_in, new_record
from gaia_sessions.session.retention import check_room_for_run
from gaia_sessions.session.schema import DENIED
from gaia_sessions.session.updates import Change
from gaia_sessions.store import create_under_new_id
from gaia_sessions.store.journal import answer_entries

from . import KNOWN, MAX_MENTIONED, REFUSED, EventResult, id_bytes
from .join import changed_run_entry, entry_of_event, may_be_of_host, read_or_none

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.policy import Decision, Limits
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Entry, OpenSession, Store

    from . import Terms

_RUN_FIELDS = (
    *("host", "host_session_id", "tool_use_id", "parent_host_agent_id"),
    *("host_process", "background", "unannounced", "enforced", "workflow"),
)

CLAIM_YIELD_AGE = timedelta(seconds=10)
"""An older claim gives way to a new request of the same conversation. A younger claim holds."""

_MOST_LOOKED_AT = 40
"""How many of the sessions that a delegation names are looked at: two texts together can name as many."""

SEVERAL_REQUESTS = "several_requests"

CONTINUE_REASONS = frozenset(["phase_not_resumable", "not_ready", "clock_skew", "expired", "too_many_errors"])
"""For these reasons the work continues in a new session. For any other reason the delegation is an ordinary one."""


def delegate(store: Store, event: Event, terms: Terms) -> EventResult:
    """Returns ``created``, ``continued`` or ``claimed``; ``known`` if this delegation was reported before."""
    key = (event["host_session_id"], event["tool_use_id"])
    with store.lock_key(("delegation", *key), terms.timeout):
        existing = session_of_delegation(store, event)
        if existing and not _is_reused_id(existing, event):
            return _repeated_result(store, _with_late_parent(store, existing, event, terms), key, terms)
        requested_ids = event.get("resume", [])
        if len(requested_ids) == 1:  # a request is consent, so there must be only one
            return _resume(store, event, terms, requested_ids[0])
        return create_session(store, event, terms, refused=SEVERAL_REQUESTS if requested_ids else None)


def session_of_delegation(store: Store, event: Event) -> Record | None:
    """Returns the session with a run for exactly this delegation."""
    key = (event["host_session_id"], event["tool_use_id"])
    # The index may be outdated, so the record decides.
    record = store.find(runs.delegation_alias(*key))
    run = runs.run_of_delegation(record, *key) if record else None
    return record if run and may_be_of_host(run, event) else None


def _is_reused_id(record: Record, event: Event) -> bool:
    """Returns whether the host reuses IDs, and the earlier delegation with this ID is over."""
    run = runs.run_of_delegation(record, event["host_session_id"], event["tool_use_id"])
    return "reused_id" in event and run is not None and runs.has_ended(run)


def _with_late_parent(store: Store, record: Record, event: Event, terms: Terms) -> Record:
    """Puts the session below the delegating agent, if the session's agent was reported before the delegation."""
    if "parent_host_agent_id" not in event:
        return record
    from .parent_session import KeptParent, parent_of, with_parent_known, with_purpose

    agent = event["parent_host_agent_id"]

    def run_without_parent(record: Record) -> Run | None:
        run = runs.run_of_delegation(record, event["host_session_id"], event["tool_use_id"])
        return None if run is None or "parent_host_agent_id" in run else run

    def rule(record: Record) -> Record:
        run = run_without_parent(record)
        if run is None:
            return record
        known = runs.with_run(record, {**run, "parent_host_agent_id": agent})
        return with_purpose(with_parent_known(store, known, parent), event)

    if run_without_parent(record) is None:
        return record
    with KeptParent(store, parent_of(store, event), terms.timeout, record["agent_id"]) as parent:
        return store.change(record["agent_id"], rule, timeout=terms.timeout)


def _repeated_result(store: Store, record: Record, key: tuple[str, str], terms: Terms) -> EventResult:
    """Returns the result of a delegation that was reported before. It is equal to the first result."""
    run = runs.run_of_delegation(record, *key)
    # In a resumed session, the run of the delegation is not the first run.
    if run and run["run"] > 1:
        return EventResult(KNOWN, record=record, resumed=_record_before(record, run))
    earlier = read_or_none(store, record["continues"]) if "continues" in record else None
    if earlier is None:
        return EventResult(KNOWN, record=record)
    from gaia_sessions.store.above import Above

    cancellation = Above(store).proved_cancellation(earlier)
    reason = _decide(earlier, cancellation, terms.now, terms.config.limits)["reason"]
    return EventResult(KNOWN, record=record, resumed=earlier, reason=reason)


def _decide(record: Record, cancellation: Cancellation | None, now: datetime, limits: Limits) -> Decision:
    from gaia_sessions.hosts.evidence import evidence_of
    from gaia_sessions.session import policy  # only a resume needs it

    return policy.decide(record["agent_id"], record, now, limits, cancellation=cancellation, **evidence_of(record))


def _resume(store: Store, event: Event, terms: Terms, requested_id: str) -> EventResult:
    try:
        with store.open(requested_id, timeout=terms.timeout) as session:
            record, reason = _claimed(store, session, event, terms)
    except (SessionNotFound, CorruptSession, LockTimeout, errors.NewerSchema, errors.TooLarge) as error:
        # A delegation cannot wait: it gets a new session.
        return create_session(store, event, terms, refused=error.code)
    if reason == NOT_APPROVED_REASON and terms.may_refuse and terms.config.approvals == "explicit":
        return EventResult(REFUSED, record=record, refused=reason)
    if reason is None:
        return EventResult("claimed", record=record, resumed=_record_before(record, record["runs"][-1]))
    continued = record if reason in CONTINUE_REASONS else None
    result = create_session(store, event, terms, earlier=continued, refused=reason)
    if continued and result.agent_id and "unannounced" in event:  # its start is the delegation
        end_continued(store, continued["agent_id"], result.agent_id, terms)
    return result


def end_continued(store: Store, agent_id: str, new_id: str, terms: Terms) -> None:
    """Ends work that waited for an approval when ``new_id`` continues it: nobody has to answer any more."""
    from gaia_sessions.system import gone_runs

    decides = terms.config.approvals != "explicit"

    def rule(before: Record) -> Change:
        record = runs.with_work_continued(before, new_id, terms.now, gone_runs(before), decides=decides)
        return Change(record, answer_entries(before, record))

    # If this is applied again, it changes nothing.
    earlier = read_or_none(store, agent_id)
    if earlier is not None and waits_for_approval(earlier["phase"]):
        try:
            store.change(agent_id, rule, timeout=terms.timeout)
        except (SessionNotFound, CorruptSession, errors.TooLarge):  # this must not stop the agent
            return


def _claimed(store: Store, session: OpenSession, event: Event, terms: Terms) -> tuple[Record, str | None]:
    """Returns the record, with a run for the resume if the policy allows it; else unchanged, and the reason."""
    now = terms.now
    if is_stand_in(session.record):
        raise SessionNotFound(session.record["agent_id"])
    freed_record, entries = _with_stale_runs_ended(store, session.record, event, now)
    decision = _decide(freed_record, session.cancellation(), now, terms.config.limits)
    reason = None if decision["should_resume"] else decision["reason"]
    goes_on = reason is None or reason in CONTINUE_REASONS
    if goes_on and is_asking(session.record) and not _may_approve(store, event, session.record):
        return session.record, NOT_APPROVED_REASON
    if reason is not None:
        return session.record, reason
    claimed = check_room_for_run(runs.with_claimed_run(freed_record, run_fields_of(event), now))
    return session.commit(Change(claimed, [*entries, changed_run_entry(event, claimed, claimed["runs"][-1])])), None


def _may_approve(store: Store, event: Event, record: Record) -> bool:
    """Returns whether the main agent, or an agent above that work, delegates: only these can resume waiting work."""
    if "parent_host_agent_id" not in event and "parent_id" not in event:
        return True
    from gaia_sessions.store.above import Above

    from .parent_session import parent_of

    parent = parent_of(store, event)
    # A sub-agent approves neither its own work nor work above or beside it.
    return parent is not None and Above(store).is_below(record, parent["agent_id"])


def _with_stale_runs_ended(store: Store, before: Record, event: Event, now: datetime) -> tuple[Record, list[Entry]]:
    """Ends runs of processes that are gone and old claims of this conversation; returns entries for runs of ours."""
    from gaia_sessions.hosts.evidence import written_at
    from gaia_sessions.session.run_ends import with_end, with_end_of_gone_host
    from gaia_sessions.system import gone_runs

    record, gone, entries = before, gone_runs(before), []
    for run in [run for run in record.get("runs", ()) if run["run"] in gone]:
        record = with_end_of_gone_host(record, run, now, written_at(run))
        if runs.is_own_run(run):
            from gaia_sessions.store import subagent_events  # most runs belong to hosts

            entries.append(subagent_events.lost(store, before, record, run, now))
    for run in [run for run in record.get("runs", ()) if _is_old_claim(run, event, now)]:
        record = with_end(record, run, DENIED, {"detail": "gave way to a new request"}, now)
    return record, entries


def _is_old_claim(run: Run, event: Event, now: datetime) -> bool:
    is_same_conversation = run["run"] > 1 and run.get("host_session_id") == event["host_session_id"]
    return is_same_conversation and _is_only_claimed(run, now) and now - parse_time(run["claimed_at"]) > CLAIM_YIELD_AGE


def _is_only_claimed(run: Run, now: datetime) -> bool:
    """Returns whether only the delegation of ``run`` is known, and its claim would prevent a resume."""
    if not run.get("unannounced"):
        return runs.is_claimed(run, now)
    return "claimed_at" in run and not (runs.has_started(run) or runs.has_ended(run))


def create_session(
    store: Store, event: Event, terms: Terms, *, earlier: Record | None = None, refused: str | None = None
) -> EventResult:
    """Creates a new session for the delegation; ``earlier`` is the session that the new session continues."""
    fields: Run = {**run_fields_of(event), **({} if earlier else _mentioned_fields(store, event))}
    above = None
    if "parent_host_agent_id" in event or "parent_id" in event:  # rare: a main agent has no session
        from .parent_session import parent_of

        above = parent_of(store, event)
    kept = begin_session(
        store, event, terms, lambda new: runs.with_claimed_run(new, fields, terms.now), above=above, earlier=earlier
    )
    word = "continued" if earlier else "created"
    return EventResult(word, record=kept, resumed=earlier, reason=refused if earlier else None, refused=refused)


def begin_session(
    store: Store,
    event: Event,
    terms: Terms,
    with_first_run: Callable[[Record], Record],
    *,
    above: Record | None = None,
    earlier: Record | None = None,
) -> Record:
    """Stores a new session for ``event`` with its first run, below ``above`` and continuing ``earlier``."""
    new = new_record(new_agent_id(terms.now, id_bytes(event)), event["agent_name"], event["purpose"], {}, terms.now)
    if earlier:
        from gaia_sessions.store.above import continuing_anyway  # most agents continue nothing

        new |= continuing_anyway(store, earlier)
    if above is None:
        return _create(store, event, terms, with_first_run(new))
    from gaia_sessions.session.lineage import with_parent

    from .parent_session import KeptParent

    with KeptParent(store, above, terms.timeout) as parent:
        return _create(store, event, terms, with_first_run(with_parent(new, parent)))


def _create(store: Store, event: Event, terms: Terms, record: Record) -> Record:
    entry = entry_of_event(event, record, record["runs"][0], record["revision"])
    return create_under_new_id(store, record, terms.now, id_bytes(event), entry)


def run_fields_of(event: Event) -> Run:
    """Returns the fields of a run that its delegation gives."""
    return {name: event[name] for name in _RUN_FIELDS if name in event}  # type: ignore[literal-required, return-value]


def _record_before(record: Record, run: Run) -> Record:
    """Returns the session with the runs that it had when ``run`` was claimed."""
    return {**record, "runs": [earlier for earlier in record["runs"] if earlier["run"] < run["run"]]}


def _mentioned_fields(store: Store, event: Event) -> Run:
    """Returns the sessions that the delegation names and its run stores: requested and other open sessions."""
    requested_ids, other_ids = event.get("resume", []), event.get("mentioned", [])
    named = islice(filter(is_agent_id, dict.fromkeys([*requested_ids, *other_ids])), _MOST_LOOKED_AT)
    asked_or_open = (agent_id for agent_id in named if agent_id in requested_ids or _is_open(store, agent_id))
    kept = list(islice(asked_or_open, MAX_MENTIONED))
    return {"mentioned": kept} if kept else {}


def _is_open(store: Store, agent_id: str) -> bool:
    record = read_or_none(store, agent_id)
    return record is not None and not is_final(record["phase"])
