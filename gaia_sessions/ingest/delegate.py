"""A delegation begins: its session, made once however often the host tells of it, or the one it resumes.

Owns the join of a delegation by its exact key, and the claim. Look-up and creation run under a lock on
that key, so the same delegation told twice, or twice at once, is one session. A delegation is never
refused here: what may not be resumed is begun anew.
"""

from __future__ import annotations

from gaia_sessions.errors import CorruptSession, LockTimeout, NewerSchema, SessionNotFound, TooLarge
from gaia_sessions.session import runs
from gaia_sessions.session.clock import read_time, timedelta
from gaia_sessions.session.ids import is_agent_id, new_agent_id
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.record import new_record
from gaia_sessions.session.retention import check_room
from gaia_sessions.session.schema import DENIED, LOST
from gaia_sessions.store.new_id import create_under_new_id

from .join import LATEST, entry_of, is_of_host, readable
from .result import KNOWN, Done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.policy import Limits
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.new_id import Chance
    from gaia_sessions.store.port import Store

_KEYS_OF_RUN = (
    *("host", "host_session_id", "tool_use_id", "parent_host_agent_id"),
    *("host_process", "background", "unannounced"),
)

CLAIM_YIELDS = timedelta(seconds=10)
"""A claim older than this gives way to a new request of the same main session; younger ones run side by side."""

SEVERAL = "several_requests"

MOST_NAMED = 5
"""At most this many of the sessions that a delegation names are kept with its run, to tell of with its report."""

CONTINUED_FOR = frozenset(["phase_not_resumable", "not_ready", "clock_skew", "expired", "too_many_errors"])
"""Reasons for which work is taken up in a new session; for any other the delegation is an ordinary one."""


def delegate(store: Store, event: Event, now: datetime, chance: Chance, config: Config, timeout: float) -> Done:
    """``created``, ``continued`` or ``claimed``; ``known`` if the host told of this delegation before.

    Raises ``LockTimeout`` after ``timeout`` seconds of somebody else being at it.
    """
    key = (event["host_session_id"], event["tool_use_id"])
    with store.exclusive(("delegation", *key), timeout):
        known = session_of_delegation(store, event)
        if known and not _comes_again(known, event):
            return _known(store, known, key, now, config.limits)
        asked = event.get("resume", [])
        if len(asked) == 1:  # a request is a consent, so it must be the only one
            return _resumed(store, event, now, chance, config.limits, timeout, asked[0])
        return _begun(store, event, now, chance, None, refused=SEVERAL if asked else None)


def session_of_delegation(store: Store, event: Event) -> Record | None:
    """The session that has a run for exactly this delegation: a mark leads to it, its record decides."""
    key = (event["host_session_id"], event["tool_use_id"])
    agent_id = store.find(runs.delegation_alias(*key))
    record = readable(store, agent_id) if agent_id else None
    run = runs.run_of_delegation(record, *key) if record else None
    return record if run and is_of_host(run, event) else None


def _comes_again(record: Record, event: Event) -> bool:
    """Whether ids of this host come again, and what this one meant before is over."""
    run = runs.run_of_delegation(record, event["host_session_id"], event["tool_use_id"])
    return "recurring" in event and run is not None and runs.has_ended(run)


def _known(store: Store, record: Record, key: tuple[str, str], now: datetime, limits: Limits) -> Done:
    """The same answer again."""
    run = runs.run_of_delegation(record, *key)
    if run and run["run"] > 1:
        return Done(KNOWN, record=record, resumed=_before(record, run))
    earlier = readable(store, record["continues"]) if "continues" in record else None
    if earlier is None:
        return Done(KNOWN, record=record)
    from gaia_sessions.usecases.resume import decide

    decision = decide(earlier["agent_id"], earlier, now, limits)
    return Done(KNOWN, record=record, resumed=earlier, reason=decision["reason"])


def _resumed(
    store: Store, event: Event, now: datetime, chance: Chance, limits: Limits, timeout: float, asked: str
) -> Done:
    claim = _Claim(event, now, limits)
    try:
        record = store.change(asked, claim.rule, timeout=timeout, entry=entry_of(event, LATEST))
    except (SessionNotFound, CorruptSession, NewerSchema, LockTimeout, TooLarge) as error:  # it starts now, or never
        return _begun(store, event, now, chance, None, refused=error.code)
    if claim.refused is None:
        return Done("claimed", record=record, resumed=_before(record, record["runs"][-1]))
    continued = record if claim.refused in CONTINUED_FOR else None
    return _begun(store, event, now, chance, continued, refused=claim.refused)


class _Claim:
    """The rule that appends the run of a resume, if the policy allows it; afterwards why it was refused."""

    def __init__(self, event: Event, now: datetime, limits: Limits) -> None:
        self.event = event
        self.now = now
        self.limits = limits
        self.refused: str | None = None

    def rule(self, record: Record) -> Record:
        from gaia_sessions.usecases.resume import decide  # only a resume asks for it

        freed = self._freed(record)
        decision = decide(record["agent_id"], freed, self.now, self.limits)
        if not decision["should_resume"]:
            self.refused = decision["reason"]
            return record
        return check_room(runs.delegated(freed, keys_of_run(self.event), self.now))

    def _freed(self, record: Record) -> Record:
        """Without what no longer stands in the way: runs of a host that is gone, and this main session's old claims."""
        from gaia_sessions.session.run_ends import ended
        from gaia_sessions.system.processes import runs_gone

        gone = runs_gone(record)
        for run in [run for run in record.get("runs", ()) if run["run"] in gone]:
            record = ended(record, run, LOST, {"detail": "its host was gone"}, self.now)
        for run in list(self._old_claims(record)):
            record = ended(record, run, DENIED, {"detail": "gave way to a new request"}, self.now)
        return record

    def _old_claims(self, record: Record) -> Iterator[Run]:
        for run in record.get("runs", ()):
            mine = run["run"] > 1 and run.get("host_session_id") == self.event["host_session_id"]
            if mine and self._is_unheard_of(run) and self.now - read_time(run["claimed_at"]) > CLAIM_YIELDS:
                yield run

    def _is_unheard_of(self, run: Run) -> bool:
        """Whether nothing but the delegation is known of it, and it stands in the way all the same."""
        if not run.get("unannounced"):
            return runs.is_claimed(run, self.now)
        return "claimed_at" in run and not (runs.has_begun(run) or runs.has_ended(run))


def _begun(
    store: Store, event: Event, now: datetime, chance: Chance, earlier: Record | None, refused: str | None = None
) -> Done:
    fresh = new_record(new_agent_id(now, chance(4)), event["agent_name"], event["purpose"], {}, now)
    if earlier:
        fresh["continues"] = earlier["agent_id"]
    record = runs.delegated(fresh, {**keys_of_run(event), **({} if earlier else _named(store, event))}, now)
    kept = create_under_new_id(store, record, now, chance, entry_of(event, 1))
    word = "continued" if earlier else "created"
    return Done(word, record=kept, resumed=earlier, reason=refused if earlier else None, refused=refused)


def keys_of_run(event: Event) -> Run:
    """What a delegation tells of the run it begins."""
    return {name: event[name] for name in _KEYS_OF_RUN if name in event}  # type: ignore[literal-required, return-value]


def _before(record: Record, run: Run) -> Record:
    """The session as it stood when ``run`` was claimed, as far as its runs go."""
    return {**record, "runs": [earlier for earlier in record["runs"] if earlier["run"] < run["run"]]}


def _named(store: Store, event: Event) -> Run:
    """What the run keeps of the sessions that its delegation names: those it asked for, and what else is open."""
    asked, others = event.get("resume", []), event.get("mentioned", [])
    named = [*asked, *(agent_id for agent_id in others if _is_open(store, agent_id))]
    kept = [agent_id for agent_id in dict.fromkeys(named) if is_agent_id(agent_id)][:MOST_NAMED]
    return {"mentioned": kept} if kept else {}


def _is_open(store: Store, agent_id: str) -> bool:
    record = readable(store, agent_id)
    return record is not None and not is_final(record["phase"])
