"""Breaks a line that is too long for a terminal: between words, and never inside text to copy.

A long word stays whole on its own line, so that it can be copied; it can only break beside wide characters (Chinese).
Loaded only if a line can be too long.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import chain, pairwise
from textwrap import TextWrapper

from .columns import cells
from .words import Copyable, Prose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_COMMAND = re.compile(r"(.*?(?:^|: |\b(?:type|see) ))((?:gaia-sessions|export|cd|sudo|unset|rm|python3?) .+)")
"""A line that ends with a command to type: the text before the command, and the command."""

_NO_BREAK = re.compile(
    r"`[^`]{0,300}`|'(?:gaia-sessions |/)[^']*'|\[gaia-sessions: [^]]{1,300}\]|--root (?:'[^']*'|\S+)"
    r"|gaia-sessions(?: (?:hooks|skill|todo))? [a-z-]+(?: (?:-\S+|'[^']*'|[A-Z]+\b|latest\b|\S*\d\S*))*"
)
"""Text to copy in the middle of a line."""

_START = re.compile(r" *(?:(?:\S+ {2,})+|[A-Za-z]+: +)?")
"""The beginning of a line, which sets the indent of the next lines: columns, or one word and a colon."""

_GLUE = "\0"

_JOINED = ("Mn", "Me", "Cf", "Sk", "Pe", "Pf", "Po")
"""No line is broken before a character of these categories."""

_JOINER = "\u200d"
"""This joins two emojis."""


def wrap_line(line: str, width: int, *roots: str) -> str:
    """Returns ``line`` in lines of at most ``width`` cells; text to copy, and paths below ``roots``, are not broken."""
    if cells(line) <= width:
        return line
    if isinstance(line, Prose):
        return _fill(line, width, min(line.indent, width // 2), roots)
    before, copied = _split_copyable(line)
    if copied and not before.strip():
        return line
    filled = _fill(before, width, _hanging_indent(before, width), roots)
    return f"{filled}\n{' ' * (_leading_blanks(before) + 2)}{copied}" if copied else filled


def _split_copyable(line: str) -> tuple[str, str]:
    """Returns the text before the part to copy, and the part to copy, which can be empty."""
    if isinstance(line, Copyable):
        return line.before, line[len(line.before) :]
    found = _COMMAND.fullmatch(line)
    return (found[1], found[2]) if found else (line, "")


def _fill(line: str, width: int, indent: int, roots: Iterable[str]) -> str:
    """Returns ``line`` in lines; all except the first begin at ``indent``, and the blanks between words stay."""
    for folder in chain.from_iterable(map(_folders_with_blanks, roots)):
        line = line.replace(folder, folder.replace(" ", _GLUE))
    glued = _NO_BREAK.sub(lambda found: found[0].replace(" ", _GLUE), line)
    first = " " * min(_leading_blanks(line), width // 2)
    lines = _Wrapper(width, first, " " * indent, break_long_words=False).wrap(glued.lstrip(" "))
    return "\n".join(_moved_left(line, width) for line in lines)


def _moved_left(line: str, width: int) -> str:
    """Returns ``line`` without leading blanks that make the line too wide."""
    return line[min(max(0, cells(line) - width), _leading_blanks(line)) :]


def _folders_with_blanks(root: str) -> Iterable[str]:
    """Returns the folders with blanks in their names with which a path in a message can begin, the longest first."""
    folders = {root, os.path.expanduser("~")}
    with suppress(OSError):  # the working directory can be removed
        folders.add(os.getcwd())
    above = {os.path.dirname(folder) for folder in folders}
    return sorted((folder for folder in folders | above if " " in folder), key=len, reverse=True)


class _Wrapper(TextWrapper):
    """Fills lines with the words of a text, and with parts of words that are too long for a line."""

    def _split(self, text: str) -> list[str]:
        room = self.width - len(self.subsequent_indent)
        words = [[word] if cells(word) <= room else _parts(word) for word in re.findall(r"\s+|\S+", text)]
        return [_Unit(part.replace(_GLUE, " ")) for parts in words for part in parts]


class _Unit(str):
    """Text that is not broken; its length is its width on a terminal."""

    __slots__ = ()

    def __len__(self) -> int:
        return cells(str(self))


def _parts(word: str) -> list[str]:
    """Splits ``word`` at its wide characters; signs and closing brackets stay with the character before them."""
    if word.isascii() or word.isspace():
        return [word]
    from unicodedata import category, east_asian_width

    wide = [east_asian_width(char) in "FW" for char in word]
    ends = [
        place
        for place in range(1, len(word))
        if (wide[place - 1] or wide[place]) and category(word[place]) not in _JOINED and word[place - 1] != _JOINER
    ]
    return [word[start:end] for start, end in pairwise([0, *ends, len(word)])]


def _hanging_indent(line: str, width: int) -> int:
    found = _START.match(line)
    start = found.end() if found else 0
    return start if _leading_blanks(line) < start <= width // 3 else _leading_blanks(line) + 2


def _leading_blanks(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
