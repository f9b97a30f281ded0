"""Totals of many sessions: how they ended, how often they were resumed, and how long they were in each phase.

There can be millions of stays, so memory has only the number of stays of each length. A rate without cases is absent.
"""

from __future__ import annotations

from collections import Counter

from gaia_sessions.jsonio.strict import LARGEST_INTEGER

from .phases import OPEN
from .state import COMPLETED, ENDED, STATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    from .figures import Figures

    class PhaseTotals(TypedDict):
        """One open phase.

        Keys:
            open: how many sessions are in this phase.
            stays: how many stays in this phase are over.
            median, p90: within how many seconds 50 % or 90 % of these stays were over; absent if there were no stays.
        """

        phase: str
        open: int
        stays: int
        median: NotRequired[int]
        p90: NotRequired[int]

    class Totals(TypedDict):
        """Several sessions together.

        Keys:
            gone: how many were removed by now.
            outcomes: how many have each outcome or are cancelled.
            shares: ``outcomes`` as parts of ``ended``; ``success_rate`` is the part of ``completed``.
            states: how many open sessions are in each state.
            expired: how many open sessions cannot be resumed only because they were idle too long.
            removed: how many were removed while they were open.
            rests: runs that ended while their session stayed open, without sends.
            resumed: how many ``rests`` have a later run; ``resume_rate`` is their share of ``rests``.
            interruptions: interrupted runs, by kind.
            tokens: absent if nobody reported any.
            unreported: sessions that reported no tokens.
            runs_dropped, history_dropped: runs and moves that the records dropped; they are in no other key.
        """

        sessions: int
        gone: int
        ended: int
        outcomes: dict[str, int]
        shares: NotRequired[dict[str, float]]
        success_rate: NotRequired[float]
        open: int
        states: dict[str, int]
        expired: int
        removed: int
        rests: int
        resumed: int
        resume_rate: NotRequired[float]
        phases: list[PhaseTotals]
        errors: int
        interruptions: dict[str, int]
        tokens: NotRequired[int]
        unreported: int
        runs_dropped: int
        history_dropped: int


GROUPINGS = BY_AGENT, BY_DAY, BY_PHASE = ("agent", "day", "phase")
"""How sessions are grouped; phases are part of all totals."""


class Sum:
    """The totals of the sessions that were added so far."""

    __slots__ = ("_counts", "_interruptions", "_open_phases", "_outcomes", "_reported", "_states", "_stays", "_tokens")

    def __init__(self) -> None:
        self._outcomes, self._states = Counter[str](), Counter[str]()
        self._open_phases, self._interruptions = Counter[str](), Counter[str]()
        self._counts = Counter[str]()
        self._stays: dict[str, Counter[int]] = {}
        self._tokens = self._reported = 0

    def add(self, figures: Figures, *, is_removed: bool) -> None:
        """Adds a session; a session that was removed while open is no longer open and has no outcome."""
        self._counts["sessions"] += 1
        self._counts["gone"] += is_removed
        if "ended_at" in figures:
            self._outcomes[figures["state"]] += 1
        elif is_removed:
            self._counts["removed"] += 1
        else:
            self._states[figures["state"]] += 1
            self._open_phases[figures["phase"]] += 1
            self._counts["expired"] += figures.get("expired", False)
        self._counts.update({name: figures[name] for name in _ADDED})  # type: ignore[literal-required]  # keys of it
        self._interruptions.update(figures["interruptions"])
        for phase, seconds in figures["stays"].items():
            self._stays.setdefault(phase, Counter()).update(seconds)
        if "tokens" in figures:
            self._tokens += figures["tokens"]
            self._reported += 1

    def totals(self) -> Totals:
        ended, counts = self._outcomes.total(), self._counts
        totals: Totals = {
            "sessions": counts["sessions"],
            "gone": counts["gone"],
            "ended": ended,
            "outcomes": {outcome: self._outcomes[outcome] for outcome in ENDED},
            "open": self._states.total(),
            "states": {state: self._states[state] for state in STATES if state in self._states},
            "expired": counts["expired"],
            "removed": counts["removed"],
            "rests": _written(counts["rests"]),
            "resumed": _written(counts["resumed"]),
            "phases": [self._of_phase(phase) for phase in OPEN if phase in self._stays or phase in self._open_phases],
            "errors": _written(counts["errors"]),
            "interruptions": {kind: _written(count) for kind, count in sorted(self._interruptions.items())},
            "unreported": counts["sessions"] - self._reported,
            "runs_dropped": _written(counts["runs_dropped"]),
            "history_dropped": _written(counts["history_dropped"]),
        }
        if ended:
            totals["shares"] = {outcome: count / ended for outcome, count in totals["outcomes"].items()}
            totals["success_rate"] = totals["shares"][COMPLETED]
        if counts["rests"]:
            totals["resume_rate"] = counts["resumed"] / counts["rests"]
        if self._reported:
            totals["tokens"] = _written(self._tokens)
        return totals

    def _of_phase(self, phase: str) -> PhaseTotals:
        stays = self._stays.get(phase, Counter())
        known: PhaseTotals = {"phase": phase, "open": self._open_phases[phase], "stays": stays.total()}
        return {**known, "median": nearest_rank(stays, 50), "p90": nearest_rank(stays, 90)} if stays else known


_ADDED = ("rests", "resumed", "errors", "runs_dropped", "history_dropped")


def _written(count: int) -> int:
    """Limits ``count`` to what JSON can hold: anybody can have written large figures."""
    return min(count, LARGEST_INTEGER)


def nearest_rank(lengths: Counter[int], percent: int) -> int:
    """Returns the shortest length that at least ``percent`` of all counted ``lengths`` do not exceed."""
    rank = -(-lengths.total() * percent // 100)
    for length in sorted(lengths):
        rank -= lengths[length]
        if rank <= 0:
            return length
    raise ValueError("no lengths")
