"""The short part of an ID that a list shows and that commands accept: no other ID has this part."""

from __future__ import annotations

from collections import Counter

from gaia_sessions.session.ids import RANDOM_DIGITS, SHORTEST_ABBREVIATION, abbreviations, is_agent_id, is_generated_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_CALLER_ID_LENGTH = 12
"""Characters to show of an ID that a caller chose, if they are unique."""


def shorten_ids(ids: Sequence[str], others: Iterable[str] = ()) -> list[str]:
    """Returns a short part of each ID that is in no other ID and not in ``others``, or else the whole ID."""
    # a record can name a parent that is not an ID: such a name stays whole
    parts = _PartCounts(filter(is_agent_id, [*ids, *others]))
    return [next(filter(parts.is_unique, _candidates(agent_id)), agent_id) for agent_id in ids]


def _candidates(agent_id: str) -> Iterator[str]:
    """Yields the parts to try that a command accepts as an ID, the best first."""
    if not is_agent_id(agent_id):
        return iter(())
    parts = _parts_of_generated(agent_id) if is_generated_id(agent_id) else _parts_of_caller_id(agent_id)
    return filter(is_agent_id, parts)


def _parts_of_generated(agent_id: str) -> Iterator[str]:
    return (agent_id[-length:] for length in range(RANDOM_DIGITS, len(agent_id)))


def _parts_of_caller_id(agent_id: str) -> Iterator[str]:
    """Yields the beginning of the ID, its last whole words, then longer parts."""
    if len(agent_id) <= _CALLER_ID_LENGTH:
        return
    yield agent_id[:_CALLER_ID_LENGTH]
    yield from (
        agent_id[-length:]
        for length in range(_CALLER_ID_LENGTH, SHORTEST_ABBREVIATION - 1, -1)
        if agent_id[-length - 1] in "-._"
    )
    for length in range(_CALLER_ID_LENGTH + 1, len(agent_id)):
        yield from (agent_id[:length], agent_id[-length:])


class _PartCounts:
    """How many IDs have a text as a part, counted once per length."""

    __slots__ = ("_counts_by_length", "_ids")

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = set(ids)
        self._counts_by_length: dict[int, Counter[str]] = {}

    def is_unique(self, part: str) -> bool:
        length = len(part)
        if length not in self._counts_by_length:
            self._counts_by_length[length] = Counter(form for one in self._ids for form in abbreviations(one, length))
        return self._counts_by_length[length][part] == 1
