"""Lists sessions as summaries. All summaries are in memory, but never all records."""

from __future__ import annotations

import heapq
from collections import Counter
from contextlib import suppress
from itertools import islice

from gaia_sessions.errors import BadArgument, CorruptSession, NewerSchema, SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.session.budget import held_max_tokens, reported_tokens
from gaia_sessions.session.checks import is_integer
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.ids import check_agent_id
from gaia_sessions.session.phases import check_phase, is_final
from gaia_sessions.session.policy import is_running, live_runs, resume_summary
from gaia_sessions.session.record import check_readable, has_newer_schema, is_stand_in, moving_of
from gaia_sessions.session.runs import is_conversation
from gaia_sessions.session.state import are_open, check_state
from gaia_sessions.store.above import Above

from .standing import standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Final, NotRequired, TypeAlias, TypedDict, Unpack, final

    from gaia_sessions.session.liveness import Liveness
    from gaia_sessions.session.policy import Limits, ResumeSummary
    from gaia_sessions.session.schema import Record, Usage, Worktree
    from gaia_sessions.session.work_spans import Overlap, Span
    from gaia_sessions.store.port import Reader, RecordOrError

    from .at import Reading
    from .standing import Standing

    class BudgetUse(TypedDict):
        """The sessions whose budget is enforced and for which tokens were reported.

        Keys:
            tokens, max_tokens: the sum of the used tokens, and the sum of the budgets.
            limit_reached: how many have used up their budget.
        """

        sessions: int
        tokens: int
        max_tokens: int
        limit_reached: int

    class Sums(TypedDict):
        """Several sessions together.

        Keys:
            states: how many are in each state; sessions without a state are counted by ``status``.
            tokens: the tokens that count against the budgets; absent if nobody reported any.
            unreported: how many reported no tokens or cannot be read.
        """

        sessions: int
        states: dict[str, int]
        tokens: NotRequired[int]
        unreported: int
        budgets: NotRequired[BudgetUse]

    @final
    class Summary(TypedDict):
        """One session in a list.

        Keys:
            state, state_since: [the state](phases.md#states), and since when; absent in a record of a later version.
            status: ``active``, ``final``, ``newer`` if a later version wrote the record, or ``moving`` while a
                [copy](many-machines.md#move-a-project-to-the-server-and-back) moves the session.
            last_activity: as in ``Decision``.
            running: whether an agent is at work on the session, as far as known.
            liveness: what is known of that agent, ``{state, since?, for?, awaits?}``; absent if no agent is at work.
            cancelled: present, and true, if the session is cancelled, by itself or with a session above.
            denied: present, and true, if a person denied what the agent asked for.
            depth: how many sessions are above; absent if the parents form a circle.
            root_id: the topmost session above, or the session itself.
            trace_id: [what all sessions of a tree share](state.md#traces).
            parent_status: only in a tree, if the session is not shown below its parent: the parent is ``excluded`` by
                the options, ``gone``, or ``circle`` if the session is itself above that parent.
            stand_in: only in a tree, and true, if the session is on a server, and the line is that of its stand-in.
            selected: only in a tree, and false, if the session is shown only for its children.
            tokens: the tokens that count against the budget; absent if nobody reported any.
            max_tokens: the budget in the record, if it is enforced.
            usage: what all runs used, as far as known.
            model, worktree: of the latest run.
            turns: how many turns of a conversation are complete.
            sums: only in a tree: the session and all lines below it together, without lines that are not selected.
            overlap: only with ``around``: how much of that span the session worked.
        """

        agent_id: str
        agent_name: str
        purpose: str
        phase: str
        state: NotRequired[str]
        state_since: NotRequired[str]
        status: str
        created_at: str
        last_updated: str
        last_activity: NotRequired[str]
        resume_ready: bool
        error_count: int
        resume: ResumeSummary
        running: bool
        liveness: NotRequired[Liveness]
        cancelled: NotRequired[bool]
        denied: NotRequired[bool]
        parent_id: NotRequired[str]
        root_id: NotRequired[str]
        trace_id: NotRequired[str]
        depth: NotRequired[int]
        parent_status: NotRequired[str]
        stand_in: NotRequired[bool]
        selected: NotRequired[bool]
        app: NotRequired[str]
        turns: NotRequired[int]
        tokens: NotRequired[int]
        max_tokens: NotRequired[int]
        usage: NotRequired[Usage]
        model: NotRequired[str]
        worktree: NotRequired[Worktree]
        sums: NotRequired[Sums]
        overlap: NotRequired[Overlap]

    @final
    class CorruptSummary(TypedDict):
        """A session whose record cannot be used.

        Keys:
            status: ``corrupt``; ``unreadable`` if the system refuses to read the record; ``newer`` if a later version
                wrote the record; ``gone`` if a parent does not exist.
            selected, sums: as in ``Summary``.
        """

        agent_id: str
        status: str
        problem: str
        selected: NotRequired[bool]
        sums: NotRequired[Sums]

    Line: TypeAlias = Summary | CorruptSummary

    class Wanted(TypedDict, total=False):
        """Which sessions you want.

        Keys:
            active_only: neither final nor cancelled.
            phases, states: in one of these phases, or [states](phases.md#states).
            grep: with this text in the purpose or the agent name; upper and lower case are equal.
            since, until: last active between these times, both included.
            created_since: created at this time or later.
            around: a time and a number of seconds: [who worked](figures.md#who-worked-when) in that span.
            app: of this app; without it, sessions without an app.
            every_app: of any app or none.
        """

        active_only: bool
        agent_name: str | None
        phases: Iterable[str]
        states: Iterable[str]
        parent_id: str | None
        grep: str | None
        since: datetime | str | None
        until: datetime | str | None
        created_since: datetime | str | None
        around: tuple[datetime | str, float] | None
        app: str | None
        every_app: bool
        limit: int | None


_AT_ONCE = 20
"""How many records, of up to 1 MiB each, may be in memory at a time."""


_TIMES: Final = ("since", "until", "created_since")
"""The keys of ``Wanted`` that are times."""


def summaries(at: Reading, **wanted: Unpack[Wanted]) -> Iterator[Line]:
    """Returns an iterator of summaries of sessions, the latest activity first.

    With ``around``, the session with the largest share of that time comes first. Waiting events are shown as applied.

    A session that cannot be read has a ``problem`` and few other keys, and comes last. Such a session is left out if
    you give any key except ``active_only``, ``every_app`` and ``limit``.

    Args:
        wanted: the keys of [`Wanted`](#shapes); a session must match all keys that you give.

    Raises:
        UnknownPhase, UnknownState: a phase or a state is unknown.
        BadArgument: another value is not acceptable.

    Example:
        sessions.create("reviewer")
        for one in sessions.list(active_only=True, since="yesterday"):
            print(one["agent_id"], one["agent_name"], one["state"])
    """
    return iter(listed(at, **wanted)[0])


def listed(at: Reading, **wanted: Unpack[Wanted]) -> tuple[Sequence[Line], Mapping[str, int]]:
    """Returns what ``summaries`` finds, and how many sessions of each app it left out."""
    asked = filter_of(wanted, at.now)
    return [*list_sessions(at.preview(), asked, at.now, at.config.limits)], asked.left_out


class Filter:
    """Which sessions are ``Wanted``, with times as datetimes; ``left_out`` counts the omitted sessions of each app."""

    def __init__(  # noqa: PLR0913  # the keys of ``Wanted``
        self,
        *,
        active_only: bool = False,
        agent_name: str | None = None,
        phases: Iterable[str] = (),
        states: Iterable[str] = (),
        parent_id: str | None = None,
        grep: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        created_since: datetime | None = None,
        around: Span | None = None,
        app: str | None = None,
        every_app: bool = False,
        limit: int | None = None,
    ) -> None:
        self.states = frozenset(map(check_state, _words(states, "states")))
        self.active_only = active_only
        self.open_only = active_only or (bool(self.states) and are_open(self.states))  # that is cheaper
        self.agent_name = _text(agent_name, "agent_name")
        self.phases = frozenset(map(check_phase, _words(phases, "phases")))
        self.parent_id = None if parent_id is None else check_agent_id(parent_id)
        self.grep = (_text(grep, "grep") or "").casefold()
        self.since = since
        self.until = until
        self.created_since = created_since
        self.around = around
        self.app = _text(app, "app")
        self.every_app = every_app
        if limit is not None and (not is_integer(limit) or limit < 0):
            raise BadArgument("limit", limit, "a whole number from 0")
        self.limit = limit
        asked = (agent_name, parent_id, grep, since, until, created_since, around, app)
        self.is_broad = not (self.phases or self.states) and all(value is None for value in asked)
        self._asks_of_line = bool(active_only or self.states or since or until or around)
        self.left_out = Counter[str]()

    def accepts(self, record: RecordOrError, now: datetime) -> bool:
        """Returns whether the record may pass, before its line is made; unreadable ones pass only a broad filter."""
        if isinstance(record, SessionsError) or not _is_readable(record):
            return self.is_broad
        return (
            not (self.open_only and is_final(record["phase"]))
            and self.agent_name in (None, record["agent_name"])
            and (not self.phases or record["phase"] in self.phases)
            and self.parent_id in (None, record.get("parent_id"))
            and (not self.grep or any(self.grep in record[key].casefold() for key in ("purpose", "agent_name")))
            and (self.created_since is None or parse_time(record["created_at"]) >= self.created_since)
            and (self.around is None or _may_overlap(record, self.around, now))
            and (self._asks_of_line or self._is_of_app(record.get("app")))  # saves making the line
        )

    def accepts_line(self, line: Line) -> bool:
        """Returns whether the line of an accepted record passes."""
        if "problem" in line:
            return True
        if (self.states and line.get("state") not in self.states) or (self.active_only and "cancelled" in line):
            return False
        if self.around and "overlap" not in line:
            return False
        moment = parse_time(line.get("last_activity", line["last_updated"]))
        if (self.since and moment < self.since) or (self.until and moment > self.until):
            return False
        return not self._asks_of_line or self._is_of_app(line.get("app"))

    def _is_of_app(self, app: str | None) -> bool:
        """Returns whether a session of ``app`` is wanted; without a wanted app, counts the sessions that are not."""
        if self.every_app or app == self.app:
            return True
        if self.app is None and app is not None:
            self.left_out[app] += 1
        return False


def filter_of(wanted: Wanted, now: datetime) -> Filter:
    """Returns the filter for ``wanted``, with its times as datetimes."""
    times: dict[str, datetime | Span] = {**given_moments({name: wanted.get(name) for name in _TIMES}, now)}
    if wanted.get("around") is not None:
        from .times import span_of

        times["around"] = span_of(wanted["around"], "around", now)
    return Filter(**{**wanted, **times})  # type: ignore[arg-type]  # both have the same keys


def given_moments(times: Mapping[str, object], now: datetime) -> dict[str, datetime]:
    """Returns the given ``times`` by their names."""
    given = {name: value for name, value in times.items() if value is not None}
    if not given:
        return {}
    from .times import moment_of

    return {name: moment_of(value, name, now) for name, value in given.items()}


def _words(value: Iterable[str], name: str) -> Iterable[str]:
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):  # each letter of a text would count
        raise BadArgument(name, value, f"a list of {name}")
    return value


def _text(value: str | None, name: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise BadArgument(name, value, "a text")
    return value


def list_sessions(sessions: Reader, wanted: Filter, now: datetime, limits: Limits) -> Iterator[Line]:
    """Yields the summaries of ``wanted`` sessions in the order of a list; unreadable sessions come last."""
    records: Iterable[tuple[str, RecordOrError]]
    if wanted.parent_id is None:
        records = sessions.scan(active_only=wanted.open_only, agent_name=wanted.agent_name)
    else:
        children = sessions.children([wanted.parent_id], open_only=wanted.open_only)
        records = ((record["agent_id"], record) for record in children)
    accepted = (pair for pair in without_stand_ins(records) if wanted.accepts(pair[1], now))
    lines = filter(wanted.accepts_line, lines_of(accepted, Above(sessions), now, limits, wanted.around))
    first = _largest_share_first if wanted.around else newest_first
    yield from sorted(lines, key=first) if wanted.limit is None else heapq.nsmallest(wanted.limit, lines, key=first)


def summarize(record: Record, stands: Standing) -> Summary:
    """Returns the summary of ``record``."""
    decision = stands.decision
    line: Summary = {
        "agent_id": record["agent_id"],
        "agent_name": record["agent_name"],
        "purpose": record["purpose"],
        "phase": record["phase"],
        "status": "final" if is_final(record["phase"]) else "active",
        "created_at": record["created_at"],
        "last_updated": record["last_updated"],
        "resume_ready": record["resume_ready"],
        "error_count": record["error_count"],
        "resume": resume_summary(decision),
        "running": is_running(decision),
    }
    line.update(stands.state)  # type: ignore[typeddict-item]  # a summary has these keys
    if stands.alive:
        line["liveness"] = stands.alive
    if "last_activity" in decision:
        line["last_activity"] = decision["last_activity"]
    if "cancellation" in decision:
        line["cancelled"] = True
    if "denial" in decision:
        line["denied"] = True
    line.update(_told_by(record))
    return line


def _told_by(record: Record) -> Summary:
    """Returns the keys of a summary that only some records have."""
    line: Summary = {key: record[key] for key in ("parent_id", "app", "usage", "stand_in") if key in record}  # type: ignore[assignment]  # both have these
    if is_conversation(record):
        line["turns"] = record.get("turns", 0)
    if (most := held_max_tokens(record, None)) is not None:
        line["max_tokens"] = most
    if (tokens := reported_tokens(record)) is not None:
        line["tokens"] = tokens
    for run in record.get("runs", [])[-1:]:
        line |= {key: run[key] for key in ("model", "worktree") if key in run}  # type: ignore[typeddict-item]  # so has a summary
    return line


def describe(
    above: Above, agent_id: str, record: RecordOrError, now: datetime, limits: Limits, around: Span | None = None
) -> Line:
    """Returns the line of a session: its summary, or why there is none."""
    if isinstance(record, SessionNotFound):
        return {"agent_id": agent_id, "status": "gone", "problem": "no such session in this root"}
    if isinstance(record, SessionsError):
        status = "corrupt" if isinstance(record, CorruptSession) else "unreadable"
        return {"agent_id": agent_id, "status": status, "problem": str(record)}
    if not _is_readable(record):
        return {"agent_id": agent_id, "status": "newer", "problem": "written by a later version"}
    stands = standing(above.cancellation, record, now, limits)
    line = summarize(record, stands)
    if around and (overlap := _overlap(record, stands, around, now)):
        line["overlap"] = overlap
    line.update(above.trace(record))  # type: ignore[typeddict-item]  # a summary has these keys
    if place := above.place(record):
        line["depth"] = place[1]
    if not has_newer_schema(record):
        return line
    return {**line, "status": "newer" if moving_of(record) is None else "moving"}


def lines_of(
    records: Iterable[tuple[str, RecordOrError]],
    above: Above,
    now: datetime,
    limits: Limits,
    around: Span | None = None,
) -> Iterator[Line]:
    """Yields the line of each session, in the same order."""
    for agent_id, record in with_marks_known(records, above):
        yield describe(above, agent_id, record, now, limits, around)


def with_marks_known(records: Iterable[tuple[str, RecordOrError]], above: Above) -> Iterator[tuple[str, RecordOrError]]:
    """Yields ``records``; ``above`` looks for the marks of a few at once."""
    pairs = iter(records)
    while few := list(islice(pairs, _AT_ONCE)):
        with suppress(StoreFailure):
            above.know(record for _, record in few if not isinstance(record, SessionsError))
        yield from few


def without_stand_ins(records: Iterable[tuple[str, RecordOrError]]) -> Iterator[tuple[str, RecordOrError]]:
    """Yields those of ``records`` that are of sessions."""
    return (pair for pair in records if isinstance(pair[1], SessionsError) or not is_stand_in(pair[1]))


def _may_overlap(record: Record, around: Span, now: datetime) -> bool:
    from gaia_sessions.session.work_spans import may_overlap  # few lists need it

    return may_overlap(record, around, now)


def _overlap(record: Record, stands: Standing, around: Span, now: datetime) -> Overlap | None:
    """Returns how much of ``around`` the session worked; a quiet agent counts until its last sign."""
    from gaia_sessions.hosts.evidence import written_at
    from gaia_sessions.session.schema import QUIET
    from gaia_sessions.session.work_spans import overlap_of

    alive = stands.alive
    until = parse_time(alive["since"]) if alive and alive["state"] == QUIET else now
    return overlap_of(record, around, now, dict.fromkeys(live_runs(stands.decision), until), written_at)


def _is_readable(record: Record) -> bool:
    """Returns whether this version understands the record, even if a later version wrote it."""
    try:
        check_readable(record)
    except NewerSchema:
        return False
    return True


def newest_first(line: Line) -> tuple[float, str]:
    """Returns a sort key: the latest activity comes first, unreadable sessions come last."""
    active = line.get("last_activity", line.get("last_updated"))
    return -parse_time(active).timestamp() if active else float("inf"), line["agent_id"]


def _largest_share_first(line: Line) -> tuple[float, bool, tuple[float, str]]:
    """Returns a sort key for lines with an ``overlap``; if shares are equal, one that may be larger comes first."""
    overlap: Overlap = line["overlap"]  # type: ignore[typeddict-item]  # unreadable lines did not pass
    return -overlap["share"], "at_least" not in overlap, newest_first(line)
