"""Makes a text safe to show, whoever wrote it: without characters that a terminal obeys, and without invisible ones.

An agent reads, and can obey, characters that no person sees. Stored texts and JSON are never changed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Ranges = tuple[tuple[int, int], ...]

_LONGEST_LINE = 200

# Control characters except tab and line feed, and the line ends of Unicode.
_BLANKS = dict.fromkeys((*range(9), *range(0xB, 0x20), *range(0x7F, 0xA0), 0x2028, 0x2029), " ")

_UNSEEN: Ranges = (
    (0xAD, 0xAD),  # the soft hyphen
    (0x34F, 0x34F),
    (0x61C, 0x61C),
    (0x115F, 0x1160),  # fillers
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),  # zero width, joiners, direction marks
    (0x202A, 0x202E),  # changes of the writing direction
    (0x2060, 0x206F),
    (0x3164, 0x3164),  # a filler
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),  # a filler
    (0xFFF0, 0xFFFB),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),  # tags, and more variation selectors
)
"""Characters that Unicode shows as nothing, and format characters, except signs that enclose Arabic digits."""

_JOINING_SCRIPTS: Ranges = (
    (0x600, 0xDFF),  # Arabic to Sinhala
    (0x1780, 0x18AF),
    (0xA8E0, 0xA8FF),
    (0xFB50, 0xFDFF),
    (0xFE70, 0xFEFE),
    (0x11000, 0x11FFF),
)
"""Scripts in which a joiner beside a letter changes what people see."""

_EMOJI: Ranges = (
    (0xA9, 0xA9),
    (0xAE, 0xAE),
    (0x203C, 0x203C),
    (0x2049, 0x2049),
    (0x2122, 0x2122),
    (0x2139, 0x2139),
    (0x2190, 0x21FF),
    (0x2300, 0x23FF),
    (0x2460, 0x24FF),
    (0x25A0, 0x27BF),
    (0x2900, 0x297F),
    (0x2B00, 0x2BFF),
    (0x3030, 0x303D),
    (0x3297, 0x3299),
    (0x1F000, 0x1FAFF),
)
"""The blocks with emoji."""

_NON_JOINER, _JOINER, _AS_EMOJI, _KEYCAP = "\u200c\u200d\ufe0f\u20e3"
_KEYS = frozenset("0123456789#*")


def visible(text: str) -> str:
    """Replaces control characters in ``text``, except tab and line feed, by blanks; drops invisible characters."""
    # A joiner or a variation selector stays inside an emoji, and a joiner beside a letter that needs it. The tags of a
    # flag do not stay.
    text = text.translate(_BLANKS)
    if text.isascii():
        return text
    unseen = frozenset(char for char in set(text) if _is_in(_UNSEEN, char))
    if not unseen:
        return text
    return "".join(char for place, char in enumerate(text) if char not in unseen or _is_needed(text, place, unseen))


def visible_line(text: str, longest: int = _LONGEST_LINE) -> str:
    """Returns ``text`` as ``visible`` does, on one line, cut to ``longest`` characters."""
    return " ".join(visible(text).split())[:longest]


def _is_needed(text: str, place: int, unseen: frozenset[str]) -> bool:
    """Whether people see a difference without the character at ``place``, which is one of ``unseen``."""
    char, before, after = text[place], text[place - 1 : place], text[place + 1 : place + 2]
    if char == _AS_EMOJI:
        return _is_in(_EMOJI, before) or (before in _KEYS and after == _KEYCAP)
    if char == _JOINER and _is_in(_EMOJI, after):
        return _is_in(_EMOJI, text[place - 2 : place - 1] if before == _AS_EMOJI else before)
    if char not in (_NON_JOINER, _JOINER) or not unseen.isdisjoint((before, after)):
        return False
    return _is_in(_JOINING_SCRIPTS, before) or _is_in(_JOINING_SCRIPTS, after)


def _is_in(ranges: Ranges, char: str) -> bool:
    """Whether ``char`` is in one of the ascending ``ranges``; an empty string is in none."""
    code = ord(char) if char else 0
    for first, last in ranges:
        if code <= last:
            return first <= code
    return False
