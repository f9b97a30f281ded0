"""Begins and ends runs of ours (the run of a command, or a send), with one commit for each beginning and each end.

No run begins for a cancelled session, or below one.
"""

from __future__ import annotations

import os
from contextlib import suppress

from gaia_sessions.errors import DurabilityUnknown, LockTimeout, RunGone, RunNotAllowed, SessionExists, SessionsError
from gaia_sessions.hosts.marker import read_marker
from gaia_sessions.session.client_conversation import with_figures
from gaia_sessions.session.own_runs import (
    CANCELLED,
    SIGNALLED,
    at_work,
    check_may_begin,
    is_over,
    is_superseded,
    with_run_begun,
    with_run_ended,
)
from gaia_sessions.session.phases import is_new
from gaia_sessions.session.record import has_newer_schema, parent_id_of
from gaia_sessions.session.retention import RESERVED_BYTES, ROOM_FOR_ENDS, check_room_for_run
from gaia_sessions.session.runs import has_ended, is_send, process_of, updated_run
from gaia_sessions.session.updates import Change
from gaia_sessions.store import subagent_events
from gaia_sessions.store.above import Above, all_below, continuing
from gaia_sessions.store.journal import answer_entries
from gaia_sessions.system import gone_runs
from gaia_sessions.system.project_root import is_on_server

from .briefing import ENDED, briefing
from .preconditions import ended_session, own_run, refuse_if_cancelled, with_lost_runs
from .standing import decide_on_known, standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.client_conversation import Told
    from gaia_sessions.session.own_runs import RunEnd
    from gaia_sessions.session.report import Report
    from gaia_sessions.session.requests import Start
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.session.transcript import Message
    from gaia_sessions.store.port import Entry, Lease, OpenSession, Reader, Store

    from .at import Reading, Writing

    Namespace = tuple[str | None, str | None]
    """A pid namespace: the ID of its boot, and its number in that boot."""

_SHORT_WAIT = 1.0
"""Seconds that the end of a run waits for the lock of each session below it."""


class Begun:
    """A run that has begun: its record, and the ``earlier`` record whose work it resumes or continues, if any."""

    __slots__ = ("approves", "earlier", "noted", "reason", "record", "run")

    def __init__(
        self, record: Record, earlier: Record | None, noted: Sequence[Entry], *, approves: bool = True
    ) -> None:
        self.approves = approves  # starting the run approves what the work waits for; not in an agent's shell
        self.record = record
        self.run: Run = record["runs"][-1]
        self.earlier = earlier
        self.noted = noted
        self.reason = ENDED if "continues" in record and self.run["run"] == 1 else None


def begin(at: Writing, start: Start, fields: Run, lease: Lease | None = None) -> Begun:
    """Begins a run with ``fields`` in a new or an existing session; with a ``lease`` the run is a send."""
    if start.agent_id is None:
        return _begin_new(at, start, fields)
    parent_id = parent_id_of(at.store.read(start.agent_id)) if lease is None else None  # a send takes no child's place
    if parent_id in (None, start.agent_id) or not at.store.has(parent_id):
        return _begin_again(at, start.agent_id, fields, lease=lease)
    with at.store.open(parent_id):
        return _begin_again(at, start.agent_id, fields, parent_id)


def _begin_again(
    at: Writing, agent_id: str, fields: Run, parent_id: str | None = None, lease: Lease | None = None
) -> Begun:
    """Begins a run in an existing session; with ``parent_id`` (locked), the session takes the place of a child."""
    store, now, shell, sends = at.store, at.now, at.shell(), lease is not None
    with store.open(agent_id) as session:
        before = session.record
        refuse_if_cancelled(store, before)
        settled = with_lost_runs(store, before, gone_runs(before), now)
        try:
            decision = decide_on_known(settled.record, None, now, at.config.limits)
            check_may_begin(settled.record, decision, sends=sends)
        except RunNotAllowed:
            session.commit(settled)
            raise
        _check_place(store, settled.record, fields, parent_id, now)
        begun = _with_run(store, with_run_begun(settled.record, fields, now, shell, sends=sends))
        noted = subagent_events.started(store, settled.record, begun)
        change = Change(begun, [*settled.entries, *answer_entries(settled.record, begun), *noted])
        record = session.commit(change) if lease is None else _commit_with_lease(lease, session, change)
        earlier = None if is_new(before["phase"]) else settled.record
        return Begun(record, earlier, noted, approves=shell is None)


def _check_place(store: Store, record: Record, fields: Run, parent_id: str | None, now: datetime) -> None:
    """Raises ``TooManyChildren``, and ``TooDeep`` if the caller says at which depth it works."""
    if parent_id is not None:
        from .creating import check_free_place  # a send takes no place

        check_free_place(store, parent_id, record["agent_id"], now)
    if "depth" in fields:
        from gaia_sessions.session.tree_limits import check_depth_of_work  # few callers say their depth

        check_depth_of_work(record, store.ancestors(record), fields["depth"])


def _commit_with_lease(lease: Lease, session: OpenSession, change: Change) -> Record:
    """Commits the beginning of a send; the ``lease`` stays held unless nothing was written."""
    try:
        lease.__enter__()  # a process that only checks the lock holds it for a moment
    except LockTimeout as error:  # somebody works on an earlier session with this ID
        raise at_work(change.record["agent_id"], sends=True) from error
    try:
        return session.commit(change)
    except DurabilityUnknown:  # it is written
        raise
    except Exception:  # an interruption is no ``Exception``: the lease stays, because the run may be written
        lease.__exit__(None, None, None)
        raise


def _begin_new(at: Writing, start: Start, fields: Run) -> Begun:
    from .creating import below_parent  # most sends and many commands resume

    store, now = at.store, at.now
    earlier = None if start.continues is None else ended_session(store, start.continues, now)
    new = start.new_session(earlier and {**earlier, **continuing(store, earlier)})

    def created() -> Begun:
        record = new.record(now, os.urandom)
        if new.parent_here is not None:
            record = below_parent(store, record, new.parent_here, now)
        begun = _with_run(store, with_run_begun(record, fields, now))
        try:
            noted = subagent_events.started(store, {**record, "revision": record["revision"] - 1}, begun)
            store.create(begun, *noted, reserved=ROOM_FOR_ENDS)
        except SessionExists:
            if new.agent_id is not None:
                raise
            return created()  # another id is generated
        return Begun(begun, earlier, noted)

    if new.parent_here is None:
        return created()
    with store.open(new.parent_here):
        refuse_if_cancelled(store, store.read(new.parent_here))
        return created()


def _with_run(store: Reader, begun: Record) -> Record:
    """Returns ``begun`` with the path of the output of its new run; raises ``TooLarge`` if it has no room."""
    run = begun["runs"][-1]
    path = None if is_send(run) else store.output_path(begun["agent_id"], run["run"])
    if path is not None:
        run["output_path"] = path
    return check_room_for_run(begun)


def briefing_of(at: Reading, begun: Begun) -> str:
    """Returns what the command of a ``begun`` run is told of earlier work; empty if there is none."""
    if begun.earlier is None:
        return ""
    return briefing(begun.earlier, begun.reason, at.store, approves=begun.approves)


def note_figures(at: Writing, agent_id: str, run: Run, told: Told) -> Record:
    """Stores what the client says that the ``run`` used so far."""
    return at.change(agent_id, lambda record, _: with_figures(record, own_run(record, run), told)[0], RESERVED_BYTES)


def end(at: Writing, agent_id: str, run: Run, ended: RunEnd) -> tuple[Record, Sequence[Message], Sequence[Entry]]:
    """Stores the end of ``run`` and its turn in one commit; returns record, stored messages and new events."""
    marked = read_marker(ended.message)[0]
    if ended.detail and is_on_server(at.root):  # no record has a URL
        ended.detail = ended.detail.replace(at.root, "the server")
    with at.store.open(agent_id) as session:
        record = session.record
        stored = own_run(record, run)
        if is_superseded(record, stored):
            raise RunGone.superseded(agent_id, run["run"])
        if is_over(stored):
            if is_send(stored):
                raise RunGone(agent_id, run["run"])
            return session.commit({**record}), [], []  # a wrapper that asks again makes the end durable
        closed, turn = with_run_ended(record, stored, ended, marked, at.now)
        noted = [_ended_entry(at.store, record, closed, stored, ended, at.now)]
        reserved = RESERVED_BYTES if turn is not None and is_send(stored) else 0
        committed = session.commit(Change(closed, noted), reserved=reserved, messages=turn or [])
        return committed, session.added, noted


def _ended_entry(store: Reader, before: Record, closed: Record, run: Run, ended: RunEnd, now: datetime) -> Entry:
    kind = subagent_events.SUBAGENT_COMPLETED if ended.is_success else subagent_events.SUBAGENT_FAILED
    if ended.cause in (CANCELLED, SIGNALLED):
        kind = subagent_events.SUBAGENT_CANCELLED
    facts: Entry = {}
    if not is_send(run):
        facts["cause"] = ended.cause
        if ended.exit_code is not None:
            facts["exit_code"] = ended.exit_code
    if kind == subagent_events.SUBAGENT_FAILED or (is_send(run) and not ended.is_success):
        facts["error"] = updated_run(closed, run).get("detail", ended.cause)
    return subagent_events.ended(store, before, closed, run, kind, now, evidence=facts)


def report_as_ended(at: Reading, begun: Begun, ended: RunEnd, *, asks: bool = True) -> Report:
    """Returns the report as if the end of the run were stored, for an end that cannot be written.

    Without ``asks``, nothing is read: the server does not answer.
    """
    from gaia_sessions.session.report import Findings, report  # almost every end can be written

    from .reporting import as_recent, latest_messages, why_failed

    record, run, messages = begun.record, begun.run, []
    if asks:
        with suppress(SessionsError):
            stored = at.store.read(record["agent_id"])
            run = own_run(stored, run)
            record = stored
            messages = latest_messages(at.store, record)
    if not is_over(run):
        record, turn = with_run_ended(record, run, ended, read_marker(ended.message)[0], at.now)
        messages += map(as_recent, turn or ())
    above = Above(at.store)
    known: Cancellation | None = {} if ended.cause == CANCELLED else None
    stands = standing(above.cancellation if asks else lambda _: known, record, at.now, at.config.limits)
    findings = Findings(messages, stands.decision.get("cancellation"), stands.dead_runs, why_failed(record))
    told: Report = {**report(record, findings, at.now, at.config.limits_tokens), **stands.state}
    return {**told, **above.trace(record)} if asks or parent_id_of(record) is None else told


def end_runs_of_gone_hosts_below(at: Writing, agent_id: str, run: Run, pid_ns: str | None) -> Sequence[str]:
    """Ends lost runs below a session, counts what later runs than ``run`` used, and returns the changed IDs."""
    from gaia_sessions.ingest.consumption import count_run  # few commands start agents

    changed: list[str] = []
    # Namespaces of different machines often have the same number.
    ended = (run["wrapper"].get("boot_id"), pid_ns) if pid_ns else None
    with suppress(SessionsError):  # ``reconcile`` finds what is missed here
        for record in all_below(at.store, agent_id):
            if has_newer_schema(record):
                continue
            with suppress(SessionsError):
                changed += _ended_as_lost(at.store, record, ended, at.now)
                for other in at.store.read(record["agent_id"]).get("runs", ()):
                    if has_ended(other) and other.get("started_at", "") >= run["started_at"]:
                        count_run(at.store, record, other, _SHORT_WAIT)
    return changed


def _ended_as_lost(store: Store, record: Record, ended: Namespace | None, now: datetime) -> list[str]:
    """Ends lost runs of one session; returns its ID in a list, or an empty list if there were none."""
    if not _lost_runs(record, ended):
        return []
    with store.open(record["agent_id"], timeout=_SHORT_WAIT) as session:
        before = session.record
        after = session.commit(with_lost_runs(store, before, _lost_runs(before, ended), now))
    return [] if after is before else [after["agent_id"]]


def _lost_runs(record: Record, ended: Namespace | None) -> frozenset[int]:
    """Returns the numbers of open runs whose processes are gone, or lived in the pid namespace that has ``ended``."""
    open_runs = [run for run in record.get("runs", ()) if not has_ended(run)]
    return gone_runs(record) | {run["run"] for run in open_runs if ended and _namespace_of(run) == ended}


def _namespace_of(run: Run) -> Namespace:
    process = process_of(run) or {}
    return process.get("boot_id"), process.get("pid_ns")
