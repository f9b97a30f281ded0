"""A JSON text with the positions of its values: a part can be changed while the rest stays.

For hosts that allow comments, a copy of the text has blanks instead of comments: positions are equal in both.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio.strict import MAX_DEPTH, depth_of
from gaia_sessions.jsonio.syntax_errors import explain, place, refuse_constant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gaia_sessions.jsonio.strict import Json

BLANKS = " \t\r\n"
LINE_ENDS = ("\r", "\n")
BYTE_ORDER_MARK = "\ufeff"
"""Some editors write this mark at the beginning of a file."""

_BLANK = re.compile(f"[{BLANKS}]*")
_TEXT_OR_COMMENT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|//[^\n\r]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_MOST_DIGITS = 300


class Element(NamedTuple):
    """An element of an array, or a member of an object, which begins with its ``key`` at ``start``."""

    key: str | None
    start: int
    value_start: int
    end: int
    value: Json


class JsonText:
    """A JSON text that parses; immutable. ``plain`` is the text with blanks instead of comments."""

    __slots__ = ("comments", "plain", "start", "text", "value")

    def __init__(self, text: str, *, comments: bool) -> None:
        self.text = text
        self.comments = comments
        self.plain = _TEXT_OR_COMMENT.sub(_blank_comment, text) if comments else text
        self.start = self._past_blanks(1 if text.startswith(BYTE_ORDER_MARK) else 0)
        self.value, end = self._value_at(self.start)
        if self._past_blanks(end) != len(text):
            raise explain(json.JSONDecodeError("Extra data", self.plain, self._past_blanks(end)), text)

    def elements(self, start: int) -> tuple[list[Element], int]:
        """Returns the elements of the object or array at ``start``, and the position of its closing bracket."""
        at = self._past_blanks(start + 1)
        found: list[Element] = []
        while self.plain[at] not in "]}":
            element = self._element_at(at, keyed=self.plain[start] == "{")
            found.append(element)
            at = self._past_blanks(element.end)
            if self.plain[at] == ",":
                at = self._past_blanks(at + 1)
        return found, at

    def member(self, start: int, key: str) -> Element | None:
        """Returns the member ``key`` of the object at ``start``."""
        found = [element for element in self.elements(start)[0] if element.key == key]
        if len(found) > 1:  # perhaps a host reads the other value
            raise InvalidInput(f"the same key twice in an object: {key!a}", place(self.text, found[1].start))
        return found[0] if found else None

    def way_to(self, path: Sequence[str | int]) -> list[tuple[int, int]]:
        """Returns for each step of ``path`` where the container begins, and the number of the element in it."""
        way: list[tuple[int, int]] = []
        start = self.start
        for step in path:
            elements, _ = self.elements(start)
            number = step if isinstance(step, int) else [element.key for element in elements].index(step)
            way.append((start, number))
            start = elements[number].value_start
        return way

    def has_comments(self, start: int) -> bool:
        """Returns whether the object or array at ``start`` contains a comment outside its elements."""
        elements, close = self.elements(start)
        begins = [start, *(element.end for element in elements)]
        ends = [*(element.start for element in elements), close]
        return any(self.text[at:end] != self.plain[at:end] for at, end in zip(begins, ends, strict=True))

    def _element_at(self, at: int, *, keyed: bool) -> Element:
        if not keyed:
            value, end = self._value_at(at)
            return Element(None, at, at, end, value)
        key, colon = self._value_at(at)
        value_start = self._past_blanks(self._past_blanks(colon) + 1)
        value, end = self._value_at(value_start)
        return Element(str(key), at, value_start, end, value)

    def _value_at(self, at: int) -> tuple[Json, int]:
        try:
            return _DECODER.raw_decode(self.plain, at)
        except json.JSONDecodeError as error:
            raise explain(error, self.text) from None
        except RecursionError:
            raise InvalidInput(f"nested deeper than {MAX_DEPTH}") from None

    def _past_blanks(self, at: int) -> int:
        found = _BLANK.match(self.plain, at)
        return found.end() if found else at


def parse(data: bytes, *, comments: bool) -> JsonText:
    """Returns the parsed ``data``; a file of only blanks counts as an empty object."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput("not UTF-8", f"byte {error.start}") from None
    if not text.strip(BLANKS + BYTE_ORDER_MARK):
        text = BYTE_ORDER_MARK * text.startswith(BYTE_ORDER_MARK) + "{}\n"
    found = JsonText(text, comments=comments)
    if depth_of(found.value) > MAX_DEPTH:
        raise InvalidInput(f"nested deeper than {MAX_DEPTH}")
    return found


def as_object(value: Json) -> dict[str, Json]:
    """Returns ``value`` if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def ends_in_line_comment(text: str) -> bool:
    """Returns whether ``text`` ends inside a comment, so that appended text would belong to the comment."""
    return any(found.end() == len(text) and found[0].startswith("//") for found in _TEXT_OR_COMMENT.finditer(text))


def _blank_comment(found: re.Match[str]) -> str:
    """Returns blanks for a comment; returns a string, or a comment that is not closed, unchanged."""
    is_closed = found[0].startswith("//") or (found[0].startswith("/*") and found[0][2:].endswith("*/"))
    return re.sub(r"[^\n\r]", " ", found[0]) if is_closed else found[0]


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


_DECODER = json.JSONDecoder(parse_int=_integer, parse_constant=refuse_constant)
