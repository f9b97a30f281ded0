"""Breaks a line that is too long for a terminal: between words, and never inside text that is there to be copied.

Owns which part of a line is there to be copied, and how far the following lines are indented. Loaded only when a line
is too long.
"""

from __future__ import annotations

import re
from textwrap import TextWrapper

from .words import Copyable

_COMMAND = re.compile(r"(.*?(?:^|: |\b(?:type|see) ))((?:gaia-sessions|export|cd|sudo|unset|rm|python3?) .+)")
"""A line that ends with a command to type: the text before it, and the command."""

_NO_BREAK = re.compile(r"`[^`]*`|'gaia-sessions [^']*'|\[gaia-sessions: [^]]*\]|--root (?:'[^']*'|\S+)")
"""Text in the middle of a line that is there to be copied."""

_START = re.compile(r" *(?:(?:\S+ {2,})+|[A-Za-z]+: +)?")
"""The beginning of a line that gives the indent of the following lines: columns, or one word and a colon."""

_GLUE = "\0"


def wrap_line(line: str, width: int) -> str:
    """``line`` in lines of at most ``width``; a command or a marker gets a line of its own, however long it is."""
    if len(line) <= width:
        return line
    before, copied = _split_copyable(line)
    if not copied:
        return _fill(line, width)
    if not before.strip():
        return line
    return f"{_fill(before.rstrip(), width)}\n{' ' * (_leading_blanks(before) + 2)}{copied}"


def _split_copyable(line: str) -> tuple[str, str]:
    """The text before the part to copy, and that part; empty if the line does not end with one."""
    if isinstance(line, Copyable):
        return line.before, line[len(line.before) :]
    found = _COMMAND.fullmatch(line)
    return (found[1], found[2]) if found else (line, "")


def _fill(line: str, width: int) -> str:
    glued = _NO_BREAK.sub(lambda found: found[0].replace(" ", _GLUE), line)
    wrapper = TextWrapper(
        width, subsequent_indent=" " * _hanging_indent(line, width), break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(_shift_left(filled, width) for filled in wrapper.wrap(glued)).replace(_GLUE, " ")


def _shift_left(line: str, width: int) -> str:
    """``line`` with its indent reduced until it fits, for a path that is too long."""
    return line if len(line) <= width else line.lstrip(" ").rjust(width)


def _hanging_indent(line: str, width: int) -> int:
    found = _START.match(line)
    start = found.end() if found else 0
    return start if _leading_blanks(line) < start <= width // 3 else _leading_blanks(line) + 2


def _leading_blanks(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
