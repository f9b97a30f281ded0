"""What ``stats`` prints: ends, resumes, and the time in each phase. A terminal gets bars, a pipe gets none."""

from __future__ import annotations

from gaia_sessions.session.state import COMPLETED
from gaia_sessions.session.totals import BY_AGENT, BY_PHASE

from .columns import table
from .words import WHY_STOPPED, Hint, Prose, safe, share_text, short_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gaia_sessions.api.figures_of_all import Stats
    from gaia_sessions.session.totals import PhaseTotals, Totals

_BAR, _PART_OF_BAR = 24, "█"
_NARROW = 48
"""In a terminal with fewer columns, a duration has only one unit."""

_OF_PARTS = ["sessions", "ended", "completed", "", "resumed", "open", "errors", "tokens", "removed"]
_BAR_OF_PART = 4
_FIRST_TO_GO = (_BAR_OF_PART, 7, 5, 6, 8, 9, 2)
"""The columns that go first if there is no room: the bar, errors, resumed, open, tokens, removed, ended."""
_OF_PHASES = ["phase", "open", "stays", "median", "", "90%"]
_TEXTS_OF_PHASES, _BAR_OF_PHASE = (3, 4, 5), 4


def lines(stats: Stats, by: str | None, room: int) -> Iterator[str]:
    """Yields all figures, or the parts that ``by`` names; ``room`` is the number of columns, 0 without a terminal."""
    total = stats["total"]
    if by == BY_PHASE:
        yield from _phases(total["phases"], room)
    elif by is None:
        yield from _all(total, room)
    elif "agents" in stats:
        named = [(safe(one["agent_name"]), one["totals"]) for one in stats["agents"]]
        yield from _parts(BY_AGENT, named, total, room)
    else:
        named = [(one["day"] or "not ended", one["totals"]) for one in stats.get("days", ())]
        yield from _parts("day", named, total, room)
    yield from _unknown(stats)


def _all(total: Totals, room: int) -> Iterator[str]:
    removed = [f"{total['removed']:,} removed before the end"] if total["removed"] else []
    counts = ", ".join([f"{total['ended']:,} ended", f"{total['open']:,} open", *removed])
    gone = "all" if total["gone"] == total["sessions"] else f"{total['gone']:,}"
    yield f"{_several(total['sessions'], 'session')}{f' ({gone} removed by now)' * (total['gone'] > 0)}: {counts}"
    if total["ended"]:
        yield from _outcomes(total, room)
    if total["open"]:
        yield f"open: {_counted(total['states'], str)}{_idle(total)}"
    if total["rests"]:
        runs = f"{_several(total['rests'], 'run')} that left the session open"
        yield f"resume rate: {_percent(total['resumed'], total['rests'])}, {total['resumed']:,} of {runs}"
    if total["phases"]:
        yield ""
        yield from _phases(total["phases"], room)
        yield ""
    if total["interruptions"]:
        yield f"interruptions: {_counted(total['interruptions'], lambda kind: WHY_STOPPED.get(kind, kind))}"
    yield f"errors: {total['errors']:,}{_tokens(total)}"


def _tokens(total: Totals) -> str:
    if "tokens" not in total:
        return ""
    unreported = f"; {_several(total['unreported'], 'session')} reported none" if total["unreported"] else ""
    return f"; tokens: {total['tokens']:,}{unreported}"


def _outcomes(total: Totals, room: int) -> Iterator[str]:
    rows = [
        [outcome, f"{count:,}", _percent(count, total["ended"]), _bar(count, total["ended"], room)]
        for outcome, count in total["outcomes"].items()
    ]
    rows[0][3] = f"{rows[0][3]}  (success rate)".lstrip()  # the share of completed sessions
    yield from table(rows, room, left=[3], first_to_go=[3])


def _idle(total: Totals) -> str:
    return f"; {total['expired']:,} of them idle for too long to be resumed" if total["expired"] else ""


def _counted(counts: dict[str, int], named: Callable[[str], str]) -> str:
    return ", ".join(f"{count:,} {named(word)}" for word, count in counts.items())


def _phases(phases: Sequence[PhaseTotals], room: int) -> Iterator[str]:
    longest = max((phase.get("median", 0) for phase in phases), default=0)
    rows = [
        [
            phase["phase"],
            f"{phase['open']:,}",
            f"{phase['stays']:,}",
            _length(phase.get("median"), room),
            _bar(phase.get("median", 0), longest, room),
            _length(phase.get("p90"), room),
        ]
        for phase in phases
    ]
    yield from table([_OF_PHASES, *rows], room, left=_TEXTS_OF_PHASES, first_to_go=[_BAR_OF_PHASE])


def _length(seconds: int | None, room: int) -> str:
    if seconds is None:
        return "-"
    return short_duration(seconds, 1 if 0 < room < _NARROW else 2)


def _parts(heading: str, named: Sequence[tuple[str, Totals]], total: Totals, room: int) -> Iterator[str]:
    several = [(f"all {heading}s", total)] if len(named) > 1 else []
    rows = [[heading, *_OF_PARTS], *([name, *_cells(totals, room)] for name, totals in [*named, *several])]
    shown = [row if total["removed"] else row[:-1] for row in rows]
    first_to_go = [place for place in _FIRST_TO_GO if place < len(shown[0])]
    yield from table(shown, room, left=[_BAR_OF_PART], first_to_go=first_to_go)


def _cells(totals: Totals, room: int) -> list[str]:
    completed = totals["outcomes"][COMPLETED]
    return [
        f"{totals['sessions']:,}",
        f"{totals['ended']:,}",
        _percent(completed, totals["ended"]),
        _bar(completed, totals["ended"], room, _BAR // 3),
        _percent(totals["resumed"], totals["rests"]),
        f"{totals['open']:,}",
        f"{totals['errors']:,}",
        f"{totals['tokens']:,}" if "tokens" in totals else "-",
        f"{totals['removed']:,}",
    ]


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _percent(part: int, whole: int) -> str:
    return share_text(part / whole) if whole else "-"


def _bar(part: int, whole: int, room: int, longest: int = _BAR) -> str:
    """Returns a bar of at least one character if ``part`` is not 0; none in a pipe."""
    return _PART_OF_BAR * max(round(part * longest / whole), 1) if room and part else ""


def _unknown(stats: Stats) -> Iterator[str]:
    """Yields what is not counted, because it is unknown."""
    total = stats["total"]
    dropped = [
        _several(count, noun)
        for count, noun in ((total["runs_dropped"], "run"), (total["history_dropped"], "phase change"))
        if count
    ]
    if dropped:
        yield f"not counted, because dropped from records: {' and '.join(dropped)}"
    if stats["unread"]:
        unread = _several(stats["unread"], "session")
        yield Hint(f"{unread} cannot be read: `gaia-sessions doctor` says why")
    if "removed_unread" in stats:
        yield Prose(f"not all removed sessions are counted: {safe(stats['removed_unread'])}")
        yield Hint("`gaia-sessions doctor` says what to do")
    if count := stats["unread_lines"]:
        yield f"not counted: {_several(count, 'line')} of .stats.jsonl that cannot be read"
