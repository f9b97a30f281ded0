"""Breaks a line that is too long for a terminal: between words, and never inside text that is there to be copied.

Owns which part of a line is there to be copied, and how far the following lines are indented. Loaded only when a line
is too long.
"""

from __future__ import annotations

import re

from .words import Copyable, Prose

_COMMAND = re.compile(r"(.*?(?:^|: |\b(?:type|see) ))((?:gaia-sessions|export|cd|sudo|unset|rm|python3?) .+)")
"""A line that ends with a command to type: the text before it, and the command."""

_NO_BREAK = re.compile(r"`[^`]*`|'gaia-sessions [^']*'|\[gaia-sessions: [^]]*\]|--root (?:'[^']*'|\S+)")
"""Text in the middle of a line that is there to be copied."""

_START = re.compile(r" *(?:(?:\S+ {2,})+|[A-Za-z]+: +)?")
"""The beginning of a line that gives the indent of the following lines: columns, or one word and a colon."""

_WORD = re.compile(r"(\s*)(\S+)")

_GLUE = "\0"


def wrap_line(line: str, width: int) -> str:
    """``line`` in lines of at most ``width`` cells; a command or a marker gets one of its own, however long it is."""
    if cells(line) <= width:
        return line
    if isinstance(line, Prose):
        return "\n".join(_broken(line, width, min(line.indent, width // 2), breaks_words=True))
    before, copied = _split_copyable(line)
    if not copied:
        return _fill(line, width)
    if not before.strip():
        return line
    return f"{_fill(before.rstrip(), width)}\n{' ' * (_leading_blanks(before) + 2)}{copied}"


def cells(text: str) -> int:
    """How many columns ``text`` takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _split_copyable(line: str) -> tuple[str, str]:
    """The text before the part to copy, and that part; empty if the line does not end with one."""
    if isinstance(line, Copyable):
        return line.before, line[len(line.before) :]
    found = _COMMAND.fullmatch(line)
    return (found[1], found[2]) if found else (line, "")


def _fill(line: str, width: int) -> str:
    glued = _NO_BREAK.sub(lambda found: found[0].replace(" ", _GLUE), line)
    lines = _broken(glued, width, _hanging_indent(line, width), breaks_words=False)
    return "\n".join(lines).replace(_GLUE, " ")


def _broken(text: str, width: int, indent: int, *, breaks_words: bool) -> list[str]:
    """The lines of ``text``, which keep the blanks between words; a word that fits alone is shifted, not broken."""
    lines: list[str] = []
    line = ""
    for blanks, word in _WORD.findall(text):
        if cells(line + blanks + word) <= width:
            line += blanks + word
            continue
        lines += [line] if line else []
        start = " " * indent if lines else blanks[: width // 2]
        if not breaks_words or cells(word) <= width:
            line = start[: max(0, width - cells(word))] + word
            continue
        from rich.cells import chop_cells

        *full, rest = chop_cells(word, width - max(len(start), indent))
        for part in full:
            lines.append(start + part)
            start = " " * indent
        line = start + rest
    return [*lines, line]


def _hanging_indent(line: str, width: int) -> int:
    found = _START.match(line)
    start = found.end() if found else 0
    return start if _leading_blanks(line) < start <= width // 3 else _leading_blanks(line) + 2


def _leading_blanks(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
