"""What people and agents do with one session: create, update, finalize.

Owns the order of the rules within one write. Knows a store only by its port; ``now`` is an argument.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio import strict
from gaia_sessions.session import updates
from gaia_sessions.session.checks import check_flag, check_string, integer_from
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.ids import check_agent_id, new_agent_id
from gaia_sessions.session.phases import ABANDONED, APPROVAL, check_outcome, check_phase, is_final
from gaia_sessions.session.record import new_record
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.runs import with_reported_phase
from gaia_sessions.session.schema import MAX_MESSAGE_LENGTH
from gaia_sessions.store.journal import event_entry
from gaia_sessions.store.writes import create_under_new_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Entry, Store
    from gaia_sessions.store.writes import RandomBytes

    RecordRule = Callable[[Record], Record]


class Update:
    """What one update asks for; None is "leave as it is"."""

    __slots__ = ("denial", "error", "if_revision", "metadata", "phase", "resume_ready")

    def __init__(
        self,
        phase: str | None = None,
        metadata: object = None,
        error: str | None = None,
        *,
        resume_ready: bool | None = None,
        if_revision: int | None = None,
        denial: str | None = None,
    ) -> None:
        self.phase = phase if phase is None else check_phase(phase)
        self.metadata = None if metadata is None else check_metadata(metadata)
        self.error = _checked_text(error, "error")
        self.denial = _checked_text(denial, "denial")
        if resume_ready is not None:
            check_flag(resume_ready, "resume_ready")
        if if_revision is not None:
            integer_from(0)(if_revision, "if_revision")
        self.resume_ready = resume_ready
        self.if_revision = if_revision

    def only_moves_to(self, phase: str | None) -> bool:
        """Whether ``phase`` is all that is asked for."""
        others = (self.metadata, self.error, self.resume_ready, self.denial)
        return self.phase == phase and all(other is None for other in others)

    def only_ends(self) -> bool:
        """Whether the end of the work is all that is asked for: there is always room for that."""
        return self.phase is not None and is_final(self.phase) and self.only_moves_to(self.phase)


def check_metadata(metadata: object) -> dict[str, Json]:
    """A copy of ``metadata`` as JSON has it; ``InvalidInput`` for what is no JSON object."""
    copy = strict.normalize_value(metadata, "metadata")
    if not isinstance(copy, dict):
        raise InvalidInput(f"must be an object, not {strict.json_type_of(copy)}", "metadata")
    return copy


def create(
    store: Store,
    now: datetime,
    random_bytes: RandomBytes,
    agent_name: str,
    purpose: str,
    metadata: object = None,
    agent_id: str | None = None,
) -> Record:
    """A new session, under ``agent_id`` or one made from ``now`` and ``chance`` (random bytes, so many).

    Raises ``InvalidInput``, ``InvalidId``, ``SessionExists``.
    """
    check_string(agent_name, "agent_name")
    check_string(purpose, "purpose")
    checked_metadata = {} if metadata is None else check_metadata(metadata)
    if agent_id is not None:
        record = new_record(check_agent_id(agent_id), agent_name, purpose, checked_metadata, now)
        store.create(record, reserved=RESERVED_BYTES)
        return record
    record = new_record(new_agent_id(now, random_bytes(4)), agent_name, purpose, checked_metadata, now)
    return create_under_new_id(store, record, now, random_bytes, reserved=RESERVED_BYTES)


def update(store: Store, now: datetime, agent_id: str, request: Update) -> Record:
    """The new record. A final phase in ``asked`` finalizes; to ask again for the end that holds already is success.

    Raises ``SessionNotFound``, ``CorruptSession``, and the conflicts ``SessionFinal``, ``IllegalMove``,
    ``ResumeNotAllowed``, ``NothingToDeny``, ``RevisionChanged``.
    """
    reserved = 0 if request.only_ends() else RESERVED_BYTES

    def rule(record: Record) -> tuple[Record, Entry | None]:
        changed = _updated(record, request, now)
        return changed, None if request.denial is None else _denial_entry(record, changed, request.denial, now)

    return store.change(agent_id, rule, reserved=reserved)


def _denial_entry(before: Record, record: Record, message: str, now: datetime) -> Entry:
    """What the journal keeps of a denial, which the record itself forgets with the next move."""
    runs = record.get("runs", [])
    run: Run | None = {"run": runs[-1]["run"]} if runs else None
    return event_entry(format_time(now), "denial", run, record, before["revision"] + 1, {"message": message})


def finalize(
    store: Store,
    now: datetime,
    agent_id: str,
    outcome: str,
    summary: str | None = None,
    error: str | None = None,
    *,
    timeout: float | None = None,
) -> Record:
    """The new record. The same outcome again changes nothing; another one raises ``SessionFinal``.

    Raises ``TooLarge`` for ``summary`` and ``error`` that do not fit; without them there is always room.
    """
    return store.change(
        agent_id, _finalize_rule(outcome, summary, error, now), timeout=timeout, reserved=_reserved_for(summary, error)
    )


def finalize_unless_waiting(
    store: Store,
    now: datetime,
    agent_id: str,
    outcome: str,
    summary: str | None,
    error: str | None,
    *,
    timeout: float | None,
) -> Record:
    """The same, but a session in ``approval`` is left as it is."""
    finalize_rule = _finalize_rule(outcome, summary, error, now)

    def rule(record: Record) -> Record:
        return record if record["phase"] == APPROVAL else finalize_rule(record)

    return store.change(agent_id, rule, timeout=timeout, reserved=_reserved_for(summary, error))


def _finalize_rule(outcome: str, summary: str | None, error: str | None, now: datetime) -> RecordRule:
    check_outcome(outcome)
    request = Update(outcome, error=error)
    checked_summary = _checked_text(summary, "summary")

    def rule(record: Record) -> Record:
        if record["phase"] != outcome:
            return _finalized(record, request, checked_summary, now)
        if outcome != ABANDONED or "runs" not in record:
            return record
        from gaia_sessions.session.run_ends import is_abandoned_with_host  # only for what a host may have abandoned

        return updates.with_confirmed_end(record, checked_summary, now) if is_abandoned_with_host(record) else record

    return rule


def _reserved_for(*texts: str | None) -> int:
    """An end in few words always fits."""
    return RESERVED_BYTES if sum(len(text or "") for text in texts) > MAX_MESSAGE_LENGTH else 0


def _updated(record: Record, request: Update, now: datetime) -> Record:
    updates.check_revision(record, request.if_revision)
    if request.only_moves_to(record["phase"]) and is_final(record["phase"]):
        return record
    updates.check_open(record)
    if request.phase is not None and is_final(request.phase):
        return _finalized(record, request, None, now)
    return _with_readiness(_with_changes(record, request, request.phase, now), request)


def _finalized(record: Record, request: Update, summary: str | None, now: datetime) -> Record:
    updates.check_open(record)
    outcome = check_outcome(request.phase)
    changed = _with_changes(record, request, None, now)
    return _with_readiness(updates.with_outcome(with_reported_phase(changed, outcome), outcome, summary, now), request)


def _with_changes(record: Record, request: Update, phase: str | None, now: datetime) -> Record:
    if phase is not None:
        record = with_reported_phase(updates.with_phase(record, phase, now), phase)
    if request.metadata is not None:
        record = updates.with_metadata(record, request.metadata)
    if request.error is not None:
        record = updates.with_error(record, request.error, now)
    if request.denial is not None:
        record = updates.with_denial(record, request.denial, now)
    return updates.with_activity(record, now)


def _with_readiness(record: Record, request: Update) -> Record:
    return record if request.resume_ready is None else updates.with_resume_ready(record, request.resume_ready)


def _checked_text(value: str | None, where: str) -> str | None:
    if value is not None:
        check_string(value, where)
    return value
