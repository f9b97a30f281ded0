"""Ids short enough for a column, which commands take in place of the whole ones.

Owns which part of an id is shown. Knows neither widths nor terminals.
"""

from __future__ import annotations

from collections import Counter

from gaia_sessions.session.ids import RANDOM_DIGITS, SHORTEST_PART, is_agent_id, is_generated, parts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_OWN = 12
"""Characters of a caller's own id that are shown where they suffice."""


def shortened(ids: Sequence[str], others: Iterable[str] = ()) -> list[str]:
    """For each of ``ids`` a short part that none of the rest and of ``others`` has, or the whole id.

    Of a generated id that is its random part, of a caller's own one what makes it recognisable.
    """
    parts = _Parts([*ids, *others])
    return [next(filter(parts.is_of_one, _candidates(agent_id)), agent_id) for agent_id in ids]


def _candidates(agent_id: str) -> Iterator[str]:
    """The parts to try, the best first: none that a command line would take for something else."""
    parts = _of_generated(agent_id) if is_generated(agent_id) else _of_own(agent_id)
    return filter(is_agent_id, parts)


def _of_generated(agent_id: str) -> Iterator[str]:
    return (agent_id[-length:] for length in range(RANDOM_DIGITS, len(agent_id)))


def _of_own(agent_id: str) -> Iterator[str]:
    """Its beginning; its last whole words; then whatever is longer."""
    if len(agent_id) <= _OWN:
        return
    yield agent_id[:_OWN]
    yield from (agent_id[-length:] for length in range(_OWN, SHORTEST_PART - 1, -1) if agent_id[-length - 1] in "-._")
    for length in range(_OWN + 1, len(agent_id)):
        yield from (agent_id[:length], agent_id[-length:])


class _Parts:
    """How many of some ids have a text as a part, counted once for each length that is asked for."""

    __slots__ = ("_having", "_ids")

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = set(ids)
        self._having: dict[int, Counter[str]] = {}

    def is_of_one(self, part: str) -> bool:
        """Whether ``part``, which is of one of the ids, is of no other."""
        length = len(part)
        if length not in self._having:
            self._having[length] = Counter(form for one in self._ids for form in parts_of(one, length))
        return self._having[length][part] == 1
