"""What people and agents do with one session: create, update, finalize.

Owns the order of the rules within one write. Knows a store only by its port; ``now`` is an argument.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio import strict
from gaia_sessions.session import updates
from gaia_sessions.session.checks import count_from, flag, text
from gaia_sessions.session.clock import write_time
from gaia_sessions.session.ids import check_agent_id, new_agent_id
from gaia_sessions.session.phases import ABANDONED, APPROVAL, check_outcome, check_phase, is_final
from gaia_sessions.session.record import new_record
from gaia_sessions.session.retention import SPARE
from gaia_sessions.session.runs import reported
from gaia_sessions.session.schema import LONGEST_MESSAGE
from gaia_sessions.store.new_id import create_under_new_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.new_id import Chance
    from gaia_sessions.store.port import Entry, Store

    Rule = Callable[[Record], Record]


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
            flag(resume_ready, "resume_ready")
        if if_revision is not None:
            count_from(0)(if_revision, "if_revision")
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
    copy = strict.canonical(metadata, "metadata")
    if not isinstance(copy, dict):
        raise InvalidInput(f"must be an object, not {strict.kind_of(copy)}", "metadata")
    return copy


def create(
    store: Store,
    now: datetime,
    chance: Chance,
    agent_name: str,
    purpose: str,
    metadata: object = None,
    agent_id: str | None = None,
) -> Record:
    """A new session, under ``agent_id`` or one made from ``now`` and ``chance`` (random bytes, so many).

    Raises ``InvalidInput``, ``InvalidId``, ``SessionExists``.
    """
    text(agent_name, "agent_name")
    text(purpose, "purpose")
    kept = {} if metadata is None else check_metadata(metadata)
    if agent_id is not None:
        record = new_record(check_agent_id(agent_id), agent_name, purpose, kept, now)
        store.create(record, spare=SPARE)
        return record
    record = new_record(new_agent_id(now, chance(4)), agent_name, purpose, kept, now)
    return create_under_new_id(store, record, now, chance, spare=SPARE)


def update(store: Store, now: datetime, agent_id: str, asked: Update) -> Record:
    """The new record. A final phase in ``asked`` finalizes; to ask again for the end that holds already is success.

    Raises ``SessionNotFound``, ``CorruptSession``, and the conflicts ``SessionFinal``, ``IllegalMove``,
    ``ResumeNotAllowed``, ``NothingToDeny``, ``RevisionChanged``.
    """
    entry = None if asked.denial is None else _entry_of_denial(asked.denial, now)
    spare = 0 if asked.only_ends() else SPARE
    return store.change(agent_id, lambda record: _updated(record, asked, now), entry=entry, spare=spare)


def _entry_of_denial(message: str, now: datetime) -> Entry:
    """What the journal keeps of a denial, which the record itself forgets with the next move."""

    def written(record: Record) -> dict[str, Json]:
        runs = record.get("runs", [])
        run: dict[str, Json] = {"run": runs[-1]["run"]} if runs else {}
        stands: dict[str, Json] = {"phase": record["phase"], "revision": record["revision"]}
        return {"at": write_time(now), "kind": "denial", **run, **stands, "evidence": {"message": message}}

    return written


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
        agent_id, _ending(outcome, summary, error, now), timeout=timeout, spare=_spare_for(summary, error)
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
    ending = _ending(outcome, summary, error, now)

    def rule(record: Record) -> Record:
        return record if record["phase"] == APPROVAL else ending(record)

    return store.change(agent_id, rule, timeout=timeout, spare=_spare_for(summary, error))


def _ending(outcome: str, summary: str | None, error: str | None, now: datetime) -> Rule:
    check_outcome(outcome)
    asked = Update(outcome, error=error)
    told = _checked_text(summary, "summary")

    def rule(record: Record) -> Record:
        if record["phase"] != outcome:
            return _finalized(record, asked, told, now)
        if outcome != ABANDONED or "runs" not in record:
            return record
        from gaia_sessions.session.run_ends import is_concluded  # only for what a host may have abandoned

        return updates.confirmed(record, told, now) if is_concluded(record) else record

    return rule


def _spare_for(*texts: str | None) -> int:
    """An end in few words always fits."""
    return SPARE if sum(len(text or "") for text in texts) > LONGEST_MESSAGE else 0


def _updated(record: Record, asked: Update, now: datetime) -> Record:
    updates.check_revision(record, asked.if_revision)
    if asked.only_moves_to(record["phase"]) and is_final(record["phase"]):
        return record
    updates.check_open(record)
    if asked.phase is not None and is_final(asked.phase):
        return _finalized(record, asked, None, now)
    return _with_readiness(_with_news(record, asked, asked.phase, now), asked)


def _finalized(record: Record, asked: Update, summary: str | None, now: datetime) -> Record:
    updates.check_open(record)
    outcome = check_outcome(asked.phase)
    known = _with_news(record, asked, None, now)
    return _with_readiness(updates.finalized(reported(known, outcome), outcome, summary, now), asked)


def _with_news(record: Record, asked: Update, phase: str | None, now: datetime) -> Record:
    if phase is not None:
        record = reported(updates.in_phase(record, phase, now), phase)
    if asked.metadata is not None:
        record = updates.with_metadata(record, asked.metadata)
    if asked.error is not None:
        record = updates.with_error(record, asked.error, now)
    if asked.denial is not None:
        record = updates.with_denial(record, asked.denial, now)
    return updates.active_at(record, now)


def _with_readiness(record: Record, asked: Update) -> Record:
    return record if asked.resume_ready is None else updates.with_resume_ready(record, asked.resume_ready)


def _checked_text(value: str | None, where: str) -> str | None:
    if value is not None:
        text(value, where)
    return value
