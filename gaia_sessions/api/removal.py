"""Removes sessions that somebody names, or that ``cleanup`` finds. A session stays if an open session is below it.

Figures are written before a session is removed. If the process is killed in between, the session counts, and not the
line with its figures.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from gaia_sessions import errors
from gaia_sessions.errors import CorruptSession, FiguresLost, SessionsError, StoreFailure
from gaia_sessions.session.figures import figures_of
from gaia_sessions.session.phases import is_abandoned
from gaia_sessions.session.record import has_newer_schema, is_open, is_stand_in, moving_of, parent_id_of
from gaia_sessions.session.runs import has_ended, is_own_run, started_or_claimed_at
from gaia_sessions.session.updates import check_writable
from gaia_sessions.store import read_or_corrupt
from gaia_sessions.store.above import Above, all_below
from gaia_sessions.store.reading import unless_refused
from gaia_sessions.system import gone_runs
from gaia_sessions.system.processes import is_alive

from .standing import standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import NotRequired, Protocol, TypedDict

    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.figures import Figures
    from gaia_sessions.session.policy import Limits
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Reader, RecordOrError, Store

    from .at import Writing

    class Rule(Protocol):
        """What differs between ``cleanup`` and ``rm``; ``by_age`` and ``by_work`` say why a session must stay."""

        named: Collection[str]  # also removed, so a session above them need not stay
        corrupt: bool  # whether unreadable sessions are removed
        fenced: bool  # whether sessions that are being moved are removed
        keeps_continued: bool  # whether a session stays if an open session continues it

        def by_age(self, record: Record) -> str | None: ...

        def by_work(self, record: Record, above: Above) -> str | None: ...

    class RemovedSession(TypedDict):
        """A session that was removed. If its record could not be read, only the ID is known."""

        agent_id: str
        agent_name: NotRequired[str]
        purpose: NotRequired[str]


_UNKNOWN_RUN_LIFETIME = timedelta(hours=24)

_MOST_WRITTEN = 1000
"""The most sessions whose figures are written in one step."""


def remove(at: Writing, agent_ids: Iterable[str], *, force: bool = False) -> Sequence[RemovedSession]:
    """Removes sessions for good, with all their files.

    If a session must stay, nothing is removed. A session must stay if an open session that you do not name is below it.
    Without ``force``, it must also stay if it is open, an agent is perhaps at work on it, an open session continues it,
    it is being moved, or it cannot be read. Sessions below a cancelled session stay cancelled.

    If one session turns out to be locked or changed during the removal, the other sessions are removed, and then the
    error is raised.

    Returns:
        The removed sessions in the order of ``agent_ids``.

    Raises:
        NotRemovable: some sessions must stay; the error names them and says why.
        BadArgument: ``agent_ids`` is a text and not a sequence.
    """
    removed, failed = remove_named(at, agent_ids, force=force)
    for error in failed:
        raise error
    return removed


class Judge:
    """Judges the sessions by a rule, after it has looked through all of them."""

    def __init__(self, rule: Rule, sessions: Reader) -> None:
        self.rule = rule
        self.above = Above(sessions)
        self.children: dict[str, list[str]] = {}  # found by reading all: a session copied by hand is in no index
        self.unread: StoreFailure | None = None
        self._sessions = sessions
        self._above_open = set[str]()
        self._continued = set[str]()
        self._looked_below = set[str]()

    def look_through(self) -> Iterator[tuple[str, RecordOrError]]:
        """Yields every session; after the last one, the relations between sessions are known."""
        continues: dict[str, str] = {}
        going_on: list[str] = []
        parents_of_open: list[str] = []
        for agent_id, found in self._sessions.scan():
            if not isinstance(found, SessionsError):
                is_at_stake = is_open(found) and agent_id not in self.rule.named
                parent_id = self.above.know_parent(found)
                if parent_id is not None:
                    self.children.setdefault(parent_id, []).append(agent_id)
                    parents_of_open += [parent_id] if is_at_stake else []
                if "continues" in found:
                    continues[agent_id] = found["continues"]
                    going_on += [agent_id] if is_at_stake else []
            elif isinstance(found, StoreFailure):
                self.unread = found
            yield agent_id, found
        for parent_id in parents_of_open:
            self._know_above_open(parent_id)
        while going_on:
            earlier = continues.get(going_on.pop())
            if earlier is not None and earlier not in self._continued:
                self._continued.add(earlier)
                going_on.append(earlier)

    def _know_above_open(self, agent_id: str | None) -> None:
        """Notes that an open session is below this session, and so below all sessions above."""
        with suppress(StoreFailure):  # above an unreadable session nothing is known
            while agent_id is not None and agent_id not in self._above_open:
                self._above_open.add(agent_id)
                agent_id = self.above.parent_of(agent_id)

    def look_below(self, children: Sequence[Record]) -> None:
        """Notes which of ``children``, and of the sessions below them, are open now."""
        while children:
            for child in children:
                if is_open(child):
                    self._know_above_open(parent_id_of(child))
            new = {child["agent_id"] for child in children} - self._looked_below
            self._looked_below |= new
            children = self._sessions.children(new) if new else ()

    def reason_to_keep(self, agent_id: str, found: RecordOrError) -> str | None:
        """Returns the code of why the session must stay; None if it may go."""
        return self.by_itself(found) or self.by_tree(agent_id, found, self.by_work(found))

    def by_itself(self, found: RecordOrError) -> str | None:
        """Returns the code of why the session must stay, apart from its work: it is unreadable, or not old enough."""
        if isinstance(found, SessionsError):
            return None if self.rule.corrupt and isinstance(found, CorruptSession) else found.code
        if has_newer_schema(found):
            return None if self.rule.fenced and moving_of(found) is not None else "newer_schema"
        return self.rule.by_age(found)

    def by_work(self, found: RecordOrError) -> str | None:
        """Returns the code of why the session's work is not over; None if the work is over."""
        return None if isinstance(found, SessionsError) else self.rule.by_work(found, self.above)

    def by_tree(self, agent_id: str, found: RecordOrError | None, by_work: str | None) -> str | None:
        """Returns the code of why the session must stay: ``by_work``, or what other sessions require."""
        if agent_id in self._above_open:
            return "above_open"
        if isinstance(found, SessionsError):
            return None
        if self.unread and self.above.handed_down(agent_id):
            return "above_open"
        return by_work or ("continued" if self.rule.keeps_continued and agent_id in self._continued else None)

    def deepest_first(self, agent_ids: Iterable[str]) -> list[str]:
        """Returns the sessions from the lowest up, so that most need no mark from the session above."""
        return sorted(agent_ids, key=lambda agent_id: (self.above.depth(agent_id), agent_id), reverse=True)


def may_run(record: Record, now: datetime, age: timedelta = timedelta()) -> bool:
    """Returns whether an agent may be at work: an open run began within ``age`` or a day, and its host may live."""
    gone, longest = gone_runs(record), max(age, _UNKNOWN_RUN_LIFETIME)
    for run in record.get("runs", ()):
        if not has_ended(run) and is_own_run(run) and is_alive(run["wrapper"]):  # for as long as its wrapper lives
            return True
        began = started_or_claimed_at(run)
        if run["run"] not in gone and not has_ended(run) and began is not None and now - began < longest:
            return True
    return False


class Leaving:
    """The figures that removed sessions leave in the ``store``. A failed write only warns, once."""

    __slots__ = ("_can_write", "_has_warned", "_limits", "_noted", "_now", "_store", "_unwritten")

    def __init__(self, store: Store, now: datetime, limits: Limits) -> None:
        self._store = store
        self._now = now
        self._limits = limits
        self._noted: dict[str, tuple[str, int, Cancellation | None]] = {}
        self._unwritten: dict[str, Figures] = {}
        self._can_write = True
        self._has_warned = False

    def note(self, record: RecordOrError, above: Above) -> None:
        """Notes the figures of a session for ``write``, unless they have not changed since the last time."""
        if isinstance(record, SessionsError) or has_newer_schema(record) or is_stand_in(record):
            return
        may_be_cancelled = is_open(record) or is_abandoned(record["phase"])  # a look costs time
        mark = above.cancellation(record) if may_be_cancelled else None
        stood = record["created_at"], record["revision"], mark  # a mark does not change the revision
        if self._noted.get(record["agent_id"]) != stood:
            self._noted[record["agent_id"]] = stood
            stands = standing(lambda _: mark, record, self._now, self._limits)
            self._unwritten[record["agent_id"]] = figures_of(record, stands.decision, stands.state)

    def forget(self, agent_id: str) -> None:
        """Drops the figures of a session that stays, or whose removal is repeated."""
        self._unwritten.pop(agent_id, None)
        self._noted.pop(agent_id, None)

    def write(self) -> None:
        """Writes all noted figures, many in one step."""
        figures, self._unwritten = [*self._unwritten.values()], {}
        for start in range(0, len(figures), _MOST_WRITTEN):
            self._write(figures[start : start + _MOST_WRITTEN])

    def _write(self, figures: Sequence[Figures]) -> None:
        if not self._can_write:
            return
        try:
            self._store.add_figures(figures)
        except errors.NotWritten:  # then the removal is not written either
            raise
        except SessionsError as error:
            import warnings

            self._can_write = isinstance(error, errors.DurabilityUnknown)
            if not self._has_warned:
                warnings.warn(FiguresLost(error), stacklevel=2)
            self._has_warned = True


def remove_each(
    store: Store,
    agent_ids: Iterable[str],
    should_delete: Callable[[str, RecordOrError], bool],
    leaving: Leaving,
    timeout: float | None = 0,
    judge: Judge | None = None,
) -> Iterator[tuple[str, bool | SessionsError]]:
    """Deletes each session if ``should_delete`` allows it; yields whether it did, or the error.

    Its children are marked first, and none is added meanwhile.
    """
    from .cancelling import hand_on

    with suppress(StoreFailure):
        store.ensure_index()  # without it, finding children reads all sessions

    tried = set[str]()

    def should_delete_first_handing_on(agent_id: str, found: RecordOrError) -> bool:
        if agent_id in tried:  # a lost connection took the first try back
            leaving.forget(agent_id)
        tried.add(agent_id)
        children = store.children([agent_id])
        if judge:
            judge.look_below(children)
        if not should_delete(agent_id, found):
            return False
        known = judge.children.get(agent_id, ()) if judge else ()
        hand_on(store, agent_id, dict.fromkeys([*known, *(child["agent_id"] for child in children)]), timeout)
        leaving.note(found, Above(store))  # it may have been cancelled meanwhile
        leaving.write()
        return True

    ordered = judge.deepest_first(agent_ids) if judge else agent_ids
    return store.delete_each(ordered, should_delete_first_handing_on, timeout=timeout)


class NamedRule:
    """The rule for sessions that somebody names: open work goes only with ``force``."""

    __slots__ = ("corrupt", "fenced", "keeps_continued", "named", "now")

    def __init__(self, agent_ids: Iterable[str], now: datetime, *, force: bool) -> None:
        self.named: Collection[str] = dict.fromkeys(agent_ids)
        self.now = now
        self.corrupt = self.fenced = force  # an unreadable session may be open
        self.keeps_continued = not force

    def by_age(self, _record: Record) -> None:
        return None

    def by_work(self, record: Record, above: Above) -> str | None:
        if self.corrupt:
            return None
        if is_open(record) and above.cancellation(record) is None:
            return "open"
        return "running" if may_run(record, self.now) else None


def remove_named(
    at: Writing, agent_ids: Iterable[str], *, force: bool
) -> tuple[Sequence[RemovedSession], Sequence[SessionsError]]:
    """Removes the named sessions; returns them, and the errors of those that stay, ``DurabilityUnknown`` first."""
    if isinstance(agent_ids, str | bytes):  # each letter of a text would be an ID
        raise errors.BadArgument("agent_ids", agent_ids, "a list of IDs")
    store, rule = at.store, NamedRule(agent_ids, at.now, force=force)
    judge, leaving = Judge(rule, store), Leaving(store, at.now, at.config.limits)
    there = {agent_id: unless_refused(found) for agent_id, found in judge.look_through() if agent_id in rule.named}
    records = {one: there[one] if one in there else read_or_corrupt(store, one) for one in rule.named}
    _check(store, judge, records)

    def check_again(agent_id: str, now_found: RecordOrError) -> bool:
        _check(store, judge, {agent_id: now_found})
        return True

    for record in records.values():
        leaving.note(record, judge.above)
    leaving.write()
    failed: dict[str, SessionsError] = {}
    unsure: list[SessionsError] = []
    try:
        for agent_id, outcome in remove_each(store, records, check_again, leaving, None, judge):
            failed |= {agent_id: outcome} if isinstance(outcome, SessionsError) else {}
    except (StoreFailure, errors.DurabilityUnknown) as error:
        unsure = [errors.DurabilityUnknown(error.path, error.reason)]
    removed = [_removed(agent_id, records[agent_id]) for agent_id in records if agent_id not in failed]
    return removed, [*unsure, *failed.values()]


def _removed(agent_id: str, record: RecordOrError) -> RemovedSession:
    if isinstance(record, SessionsError):
        return {"agent_id": agent_id}
    return {"agent_id": agent_id, "agent_name": record["agent_name"], "purpose": record["purpose"]}


def _check(store: Store, judge: Judge, records: Mapping[str, RecordOrError]) -> None:
    """Raises the error that says why sessions must stay, if one of ``records`` must."""
    reasons: dict[str, str] = {}
    for agent_id, record in records.items():
        reason = judge.reason_to_keep(agent_id, record)
        if reason is None:
            continue
        if not isinstance(record, SessionsError):
            check_writable(record)
        elif reason == record.code:
            record.hint = "nothing was removed; add --force to remove it anyway"
            raise record
        reasons[agent_id] = reason
    if reasons:
        if judge.unread and "above_open" in reasons.values():
            raise judge.unread
        above_open = [agent_id for agent_id, code in reasons.items() if code == "above_open"]
        below = {one["agent_id"] for agent_id in above_open for one in all_below(store, agent_id) if is_open(one)}
        raise errors.NotRemovable(reasons, [*judge.rule.named], sorted(below - {*judge.rule.named}))
