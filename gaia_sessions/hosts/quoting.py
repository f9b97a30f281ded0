"""Finds the lines of a Markdown text that are neither quotes nor code. In doubt a line counts as quoted:
a missed request can be made again, but a request that nobody made cannot be undone.
"""

from __future__ import annotations

from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Fence = tuple[str, range]
    """The characters of the opening fence, and the columns in which the closing fence can begin."""

CODE = 4
"""Columns of indentation that make a line code."""

_BLANKS = " \t"
_FENCES = ("```", "~~~")
_QUOTES = ("\n>", " >", "\t>")
_MOST_LINES = 10_000
"""How many lines of a text are parsed: 8 MiB of hostile lines would take longer than a hook has."""

_BULLETS = ("-", "*", "+")
_BULLET_CHARACTERS = "-*+.)0123456789"
_DEEPEST = 20
"""How many nested lists have their markers read. After that, any text counts as one more marker."""


def unquoted_lines(text: str, opening: str) -> list[str]:
    """Returns the lines of ``text`` that contain ``opening`` (in any letter case) outside code blocks and quotes."""
    text = "\n" + text.replace("\r\n", "\n").replace("\r", "\n")
    # A text may have millions of lines, so lines that cannot matter are only searched, not parsed.
    # If too many lines would have to be parsed, no line counts.
    spans = list(islice(_relevant_lines(_in_lower_case(text), opening), _MOST_LINES + 1))
    return _unquoted(text, spans, opening) if len(spans) <= _MOST_LINES else []


def _relevant_lines(text: str, opening: str) -> Iterator[tuple[int, int]]:
    """Yields the begin and end of each line that contains ``opening`` or can change how such a line is read."""
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
        # An open fence extends to the end of the text. A quote extends to the next blank line: only its first line
        # needs the ">".
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
    """Returns ``text`` with its ASCII letters in lower case. Each character keeps its position."""
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _holds_blank_line(text: str) -> bool:
    return "\n\n" in text.replace(" ", "").replace("\t", "")


def without_bullet(line: str) -> str:
    """Returns ``line`` without its indentation and its first list marker."""
    bare = line.lstrip(_BLANKS)
    bullet = bare[:1] if bare.startswith(_BULLETS) else _number(bare)
    rest = bare[len(bullet) :]
    return rest.lstrip(_BLANKS) if bullet and rest[:1] in (" ", "\t") else bare


def _holds_only_bullets(lead: str) -> bool:
    """Returns whether ``lead`` has at most list markers: then the text after ``lead`` begins a line or an item."""
    if lead.strip(_BLANKS + _BULLET_CHARACTERS) or lead[-1:] not in ("", " ", "\t"):
        return False
    words = lead.split(None, _DEEPEST)
    return all(_is_bullet(word) for word in words[:_DEEPEST])


def _is_bullet(word: str) -> bool:
    return word in _BULLETS or (word[-1] in ".)" and word[:-1].isdigit())


def _number(bare: str) -> str:
    """Returns the number of a list item at the beginning of ``bare``, with its full stop or bracket."""
    digits = len(bare) - len(bare.lstrip("0123456789"))
    return bare[: digits + 1] if digits and bare[digits : digits + 1] in (".", ")") else ""


def _opened_fence(line: str) -> Fence | None:
    """Returns the fence that ``line`` opens; None if it opens no fence."""
    begins = min(begin for begin in map(line.find, _FENCES) if begin >= 0)
    if not _holds_only_bullets(line[:begins]):
        return None
    rest = line[begins:]
    signs = rest[: len(rest) - len(rest.lstrip(rest[0]))]
    if signs[0] == "`" and "`" in rest[len(signs) :]:  # code within a line
        return None
    column = _columns(line, rest)
    # In a list item, no fence further to the left closes this one.
    at_the_left = column < CODE and column == _indent(line)
    return signs, range(CODE) if at_the_left else range(column, column + 1)


def _closes(line: str, fence: Fence) -> bool:
    signs, columns = fence
    bare = line.strip(_BLANKS)
    return bare.startswith(signs) and not bare.strip(signs[0]) and _indent(line) in columns


def _indent(line: str) -> int:
    return _columns(line, line.lstrip(_BLANKS)) if line[0] in _BLANKS else 0


def _columns(line: str, rest: str) -> int:
    """Returns the column in which ``rest``, the end of ``line``, begins."""
    return len(line[: len(line) - len(rest)].expandtabs(CODE))
