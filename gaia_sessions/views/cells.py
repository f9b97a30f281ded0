"""How many cells of a terminal a text takes, and texts cut to so many.

Owns the width of a character. Counts high where terminals differ: a line may then be a little short, never too long.
"""

from __future__ import annotations

from unicodedata import category, east_asian_width

# Terminals differ in how they draw characters that these join or select; without them each is as wide as it is alone.
_JOINERS = dict.fromkeys((0xAD, 0x61C, *range(0x200B, 0x2010), 0x2060, *range(0xFE00, 0xFE10), 0xFEFF))

_ELLIPSIS = "…"


def width(text: str) -> int:
    """The most cells that ``text`` takes: terminals that know how to join its characters take fewer."""
    return sum(map(_width, text.translate(_JOINERS)))


def _width(char: str) -> int:
    if category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(char) in ("W", "F") else 1


def cut(text: str, room: int) -> str:
    """``text`` in exactly ``room`` cells, with an ellipsis for what does not fit."""
    whole = text.translate(_JOINERS)
    kept = whole if width(whole) <= room else _beginning(whole, room - 1) + _ELLIPSIS
    return kept + " " * (room - width(kept))


def _beginning(text: str, room: int) -> str:
    for place, char in enumerate(text):
        room -= _width(char)
        if room < 0:
            return text[:place].rstrip()
    return text


def cut_inside(agent_id: str, room: int) -> str:
    """``agent_id`` in exactly ``room`` cells; ids that are alike differ at their beginning or at their end."""
    if len(agent_id) <= room:
        return agent_id.ljust(room)
    end = (room - 1) // 2
    return agent_id[: room - 1 - end] + _ELLIPSIS + agent_id[len(agent_id) - end :]
