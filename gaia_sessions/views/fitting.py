"""Which columns of the list of sessions a terminal has room for, and how wide each may be.

Owns what shrinks and goes first: the purpose, then the agent; the id, the answer, the phase and the age are shown whole
wherever they fit. Knows widths only, no text.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ORDER = ("id", "agent", "phase", "resume", "active", "purpose")
"""The columns as they are shown."""

_FIRST = ("resume", "phase", "active")
_LEAST = 8
_LEAST_OF_ID = 12
_GAP = 2


def fitted(wanted: Mapping[str, int], room: int) -> tuple[dict[str, int], int]:
    """The width of each column that is shown, in their order, and of the gap between them.

    wanted: the width at which a column is whole; 0 if it is empty. The sum is never over ``room``.
    """
    widths = {"id": min(wanted["id"], _LEAST_OF_ID, room)}
    for name in _FIRST:
        if wanted[name] and _total(widths, 1) + 1 + wanted[name] <= room:
            widths[name] = wanted[name]
    widths["id"] = min(wanted["id"], widths["id"] + room - _total(widths, 1))
    gap = _GAP if _total(widths, _GAP) <= room else 1
    for name in ("agent", "purpose"):
        left = room - _total(widths, _GAP) - _GAP
        if not 0 < min(wanted[name], _LEAST) <= left:
            break
        widths[name] = min(wanted[name], left)
    return {name: widths[name] for name in ORDER if name in widths}, gap


def _total(widths: Mapping[str, int], gap: int) -> int:
    return sum(widths.values()) + gap * (len(widths) - 1)
