"""Which lines of a text are its author's own, and which are quotes or code in Markdown.

Owns the reading of fences, block quotes and indented code. In doubt a line counts as quoted: a request that was missed
can be made again, and one that nobody made cannot be undone. Lines that cannot matter are only searched and not parsed:
a hook has little time, and a text may have millions of lines.
"""

from __future__ import annotations

from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Fence = tuple[str, range]
    """The characters that opened it, and the columns in which the closing ones may begin."""

CODE = 4
"""Columns of indentation that make a line code."""

_BLANKS = " \t"
_FENCES = ("```", "~~~")
_QUOTES = ("\n>", " >", "\t>")
_MOST_LINES = 10_000
"""Lines of a text that are parsed: 8 MiB of hostile lines would take longer than a hook has."""

_BULLETS = ("-", "*", "+")
_BULLET_CHARACTERS = "-*+.)0123456789"
_DEEPEST = 20
"""Nested lists whose markers are read; behind them any text counts as one more marker."""


def unquoted_lines(text: str, opening: str) -> list[str]:
    """The lines of ``text`` that hold ``opening``, in any case, outside fenced code, indented code and quotes.

    A fence that is not closed extends to the end of the text; a quote extends to the next blank line, since only its
    first line need be marked. Empty if more than ``_MOST_LINES`` lines would have to be parsed.
    """
    text = "\n" + text.replace("\r\n", "\n").replace("\r", "\n")
    spans = list(islice(_relevant_lines(_in_lower_case(text), opening), _MOST_LINES + 1))
    return _unquoted(text, spans, opening) if len(spans) <= _MOST_LINES else []


def _relevant_lines(text: str, opening: str) -> Iterator[tuple[int, int]]:
    """The begin and end of each line that holds ``opening``, or that may change how such a line is read."""
    last = text.rfind(opening)
    nearest = dict.fromkeys((opening, *_FENCES, *_QUOTES), -1)
    end = 0
    while end <= last:
        for sign in [sign for sign, place in nearest.items() if place < end]:
            found = text.find(sign, end)
            nearest[sign] = len(text) if found < 0 else found + len(sign) - 1
        place = min(nearest.values())
        begin, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
        end = len(text) if end < 0 else end
        yield begin, end


def _unquoted(text: str, spans: list[tuple[int, int]], opening: str) -> list[str]:
    kept: list[str] = []
    fence: Fence | None = None
    quoted, before = False, 0
    for begin, end in spans:
        line = text[begin:end]
        if fence:
            fence = None if fence[0] in line and _closes(line, fence) else fence
        elif ("```" in line or "~~~" in line) and (fence := _opened_fence(line)):
            quoted = False
        elif ">" in line and _holds_only_bullets(line[: line.index(">")]):
            quoted = True
        else:
            quoted = quoted and not _holds_blank_line(text[before:begin])
            if not quoted and opening in _in_lower_case(line) and _indent(line) < CODE:
                kept.append(line)
        before = end
    return kept


def _in_lower_case(text: str) -> str:
    """``text`` with its ASCII letters in lower case; every character keeps its position."""
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _holds_blank_line(text: str) -> bool:
    return "\n\n" in text.replace(" ", "").replace("\t", "")


def without_bullet(line: str) -> str:
    """``line`` without its indentation and the one list marker that it may begin with."""
    bare = line.lstrip(_BLANKS)
    bullet = bare[:1] if bare.startswith(_BULLETS) else _number(bare)
    rest = bare[len(bullet) :]
    return rest.lstrip(_BLANKS) if bullet and rest[:1] in (" ", "\t") else bare


def _holds_only_bullets(lead: str) -> bool:
    """Whether ``lead`` is empty or consists of list markers, so that the text behind it begins the line or an item."""
    if lead.strip(_BLANKS + _BULLET_CHARACTERS) or lead[-1:] not in ("", " ", "\t"):
        return False
    words = lead.split(None, _DEEPEST)
    return all(_is_bullet(word) for word in words[:_DEEPEST])


def _is_bullet(word: str) -> bool:
    return word in _BULLETS or (word[-1] in ".)" and word[:-1].isdigit())


def _number(bare: str) -> str:
    """The number of a list item at the beginning of ``bare``, with its full stop or bracket."""
    digits = len(bare) - len(bare.lstrip("0123456789"))
    return bare[: digits + 1] if digits and bare[digits : digits + 1] in (".", ")") else ""


def _opened_fence(line: str) -> Fence | None:
    """The fence that ``line`` opens; in an item of a list, nothing further to the left closes it."""
    begins = min(begin for begin in map(line.find, _FENCES) if begin >= 0)
    if not _holds_only_bullets(line[:begins]):
        return None
    rest = line[begins:]
    signs = rest[: len(rest) - len(rest.lstrip(rest[0]))]
    if signs[0] == "`" and "`" in rest[len(signs) :]:  # code within a line
        return None
    column = _columns(line, rest)
    at_the_left = column < CODE and column == _indent(line)
    return signs, range(CODE) if at_the_left else range(column, column + 1)


def _closes(line: str, fence: Fence) -> bool:
    signs, columns = fence
    bare = line.strip(_BLANKS)
    return bare.startswith(signs) and not bare.strip(signs[0]) and _indent(line) in columns


def _indent(line: str) -> int:
    return _columns(line, line.lstrip(_BLANKS)) if line[0] in _BLANKS else 0


def _columns(line: str, rest: str) -> int:
    """The column in which ``rest`` begins, the end of ``line``."""
    return len(line[: len(line) - len(rest)].expandtabs(CODE))
