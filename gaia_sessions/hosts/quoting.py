"""Which lines of a text its author says, and which are quoted or code, as Markdown has it.

Owns the reading of fences, block quotes and indented code. In doubt a line counts as quoted: a request that was
missed can be made again, and one that nobody made cannot be undone. Lines that cannot matter are only searched, not
read: a hook has little time, and a text may have millions of them.
"""

from __future__ import annotations

from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Fence = tuple[str, range]
    """The signs that opened it, and the columns in which those that close it may begin."""

CODE = 4
"""Lines that are indented by so many columns are code."""

_BLANKS = " \t"
_FENCES = ("```", "~~~")
_QUOTES = ("\n>", " >", "\t>")
_MOST_LINES = 10_000
"""That are read of a text: 8 MiB of hostile lines would take longer than a hook has."""

_BULLETS = ("-", "*", "+")
_MARKER_CHARACTERS = "-*+.)0123456789"
_DEEPEST = 20
"""Lists within each other whose markers are read; behind more of them anything counts as one more."""


def unquoted_lines(text: str, opening: str) -> list[str]:
    """The lines of ``text`` that hold ``opening``, in any case, outside fenced code, indented code and quotes.

    A fence that is not closed reaches to the end; a quote reaches to the next blank line, since only its first
    line need be marked. None where more lines than `_MOST_LINES` must be read to know.
    """
    text = "\n" + text.replace("\r\n", "\n").replace("\r", "\n")
    spans = list(islice(_relevant_lines(_in_lower_case(text), opening), _MOST_LINES + 1))
    return _unquoted(text, spans, opening) if len(spans) <= _MOST_LINES else []


def _relevant_lines(text: str, opening: str) -> Iterator[tuple[int, int]]:
    """Where the lines begin and end that hold ``opening``, or that may change how such a line is read."""
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
        elif ">" in line and _holds_only_markers(line[: line.index(">")]):
            quoted = True
        else:
            quoted = quoted and not _holds_blank_line(text[before:begin])
            if not quoted and opening in _in_lower_case(line) and _indent(line) < CODE:
                kept.append(line)
        before = end
    return kept


def _in_lower_case(text: str) -> str:
    """``text`` with its ASCII letters in lower case; every sign keeps its place."""
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _holds_blank_line(text: str) -> bool:
    return "\n\n" in text.replace(" ", "").replace("\t", "")


def without_list_marker(line: str) -> str:
    """``line`` without its indent and the one list marker that it may begin with."""
    bare = line.lstrip(_BLANKS)
    marker = bare[:1] if bare.startswith(_BULLETS) else _number(bare)
    rest = bare[len(marker) :]
    return rest.lstrip(_BLANKS) if marker and rest[:1] in (" ", "\t") else bare


def _holds_only_markers(lead: str) -> bool:
    """Whether what follows ``lead`` on its line begins the line, or an item of a list, of a list of a list, ..."""
    if lead.strip(_BLANKS + _MARKER_CHARACTERS) or lead[-1:] not in ("", " ", "\t"):
        return False
    words = lead.split(None, _DEEPEST)
    return all(_is_marker(word) for word in words[:_DEEPEST])


def _is_marker(word: str) -> bool:
    return word in _BULLETS or (word[-1] in ".)" and word[:-1].isdigit())


def _number(bare: str) -> str:
    """The number of an item that ``bare`` begins with, and its full stop or bracket."""
    digits = len(bare) - len(bare.lstrip("0123456789"))
    return bare[: digits + 1] if digits and bare[digits : digits + 1] in (".", ")") else ""


def _opened_fence(line: str) -> Fence | None:
    """The fence that ``line`` opens, maybe as an item of a list: then nothing further to the left closes it."""
    begins = min(begin for begin in map(line.find, _FENCES) if begin >= 0)
    if not _holds_only_markers(line[:begins]):
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
    """How far from the left ``rest`` begins, with which ``line`` ends."""
    return len(line[: len(line) - len(rest)].expandtabs(CODE))
