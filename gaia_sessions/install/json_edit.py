"""Changes to a JSON text that keep every other byte.

A value is added in the style of its neighbours, and taking it out again gives the same bytes wherever it had neighbours
or a comment beside it. Comments stay in place.
"""

from __future__ import annotations

import json

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio.strict import json_type_of

from .json_text import BLANKS, JsonText

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.jsonio.strict import Json

    from .json_text import Element, Path

_UNIT = "  "


def with_member(text: JsonText, start: int, key: str, empty: Json) -> tuple[JsonText, int]:
    """``text`` with a member ``key`` in the object at ``start``, ``empty`` if it is new; the position of its value.

    Raises ``InvalidInput`` if the member has a value of another type.
    """
    found = text.member(start, key)
    if found is None:
        text = append_value(text, start, empty, key)
        return text, text.elements(start)[0][-1].value_start
    if type(found.value) is not type(empty):
        raise InvalidInput(f"{key!a} is {json_type_of(found.value)}, not {json_type_of(empty)}")
    return text, found.value_start


def append_value(text: JsonText, start: int, value: Json, key: str | None = None) -> JsonText:
    """``text`` with ``value`` as the last element of the array at ``start``, or member ``key`` of the object there."""
    elements, close = text.elements(start)
    if not elements:
        return _fill_empty(text, start, close, value, key)
    last = elements[-1]
    spot = last.end + len(
        text.text[last.end : close].rstrip(BLANKS)
    )  # after the comments that belong to the last element
    gap = _gap(text, start, elements, apart=spot > last.end)
    indent = _indent(text, last.start) if _has_newline(gap) else None
    rendered = _render(text, value, indent, key, spaced=_is_spaced(text, last))
    return _changed_text(text, f"{text.text[: last.end]},{text.text[last.end : spot]}{gap}{rendered}{text.text[spot:]}")


def without_value(text: JsonText, path: Path) -> JsonText:
    """``text`` without the value at ``path``, nor the containers above it that hold nothing else."""
    while len(path) > 1 and _holds_one_value(text, text.value_at(path[:-1])):
        path = path[:-1]
    last = path[-1]
    start = text.value_at(path[:-1])
    keys = [element.key for element in text.elements(start)[0]]
    return remove_element(text, start, keys.index(last) if isinstance(last, str) else last)


def remove_element(text: JsonText, start: int, number: int) -> JsonText:
    """``text`` without the element ``number`` of the object or array at ``start``."""
    elements, close = text.elements(start)
    element, whole = elements[number], text.text
    if len(elements) == 1:
        comments, rest = whole[start + 1 : element.start].rstrip(BLANKS), whole[element.end : close]
        inner = _join(text, comments, rest + whole[close])[:-1]
        return _changed_text(text, whole[: start + 1] + (inner if inner.strip(BLANKS) else "") + whole[close:])
    if number < len(elements) - 1:
        after = text.plain.index(",", element.end) + 1
        comments = whole[element.end : after - 1].strip(BLANKS)  # comments between the value and its comma
        return _changed_text(text, whole[: element.start] + _join(text, comments, whole[after:].lstrip(BLANKS)))
    comma = text.plain.rindex(",", 0, element.start)
    comments = whole[comma + 1 : element.start].rstrip(BLANKS)
    return _changed_text(text, whole[:comma] + _join(text, comments, whole[element.end :]))


def _holds_one_value(text: JsonText, start: int) -> bool:
    return len(text.elements(start)[0]) == 1 and not text.has_comments(start)


def _changed_text(text: JsonText, changed: str) -> JsonText:
    return JsonText(changed, comments=text.comments)


def _fill_empty(text: JsonText, start: int, close: int, value: Json, key: str | None) -> JsonText:
    """``text`` with the first value in an empty object or array, on a line of its own unless the text is one line.

    If there are comments, the blanks behind them stay behind the value, where they are found again.
    """
    inner = text.text[start + 1 : close].rstrip(BLANKS)
    spot = start + 1 + len(inner)
    newline, outer, blanks = _newline_of(text.text), _indent(text, start), text.text[spot:close]
    is_one_line = start != text.start and not _has_newline(text.text[text.start :].rstrip(BLANKS))
    if is_one_line or (inner and not _has_newline(blanks)):
        rendered = _render(text, value, None, key, spaced=_is_text_spaced(text))
        before, after = (" ", blanks) if inner else ("", "")
    else:
        rendered = _render(text, value, outer + _unit(text), key, spaced=True)
        before, after = f"{newline}{outer}{_unit(text)}", blanks if inner else f"{newline}{outer}"
    return _changed_text(text, f"{text.text[:spot]}{before}{rendered}{after}{text.text[close:]}")


def _gap(text: JsonText, start: int, elements: list[Element], *, apart: bool) -> str:
    """The blanks between two elements, as they are before the last one."""
    last = elements[-1]
    begins = start + 1 if len(elements) == 1 else text.plain.rindex(",", 0, last.start) + 1
    before = text.text[begins : last.start]
    if apart or _has_newline(before):
        return _newline_of(text.text) + _indent(text, last.start)
    if len(elements) > 1:
        return before if not before.strip(BLANKS) else " "
    return " " if _is_spaced(text, last) else ""


def _render(text: JsonText, value: Json, indent: str | None, key: str | None, *, spaced: bool) -> str:
    """The JSON of ``value``, after its ``key`` if it has one; on one line if ``indent`` is None."""
    separators = (", ", ": ") if spaced else (",", ":")
    if indent is None:
        rendered = json.dumps(value, ensure_ascii=False, separators=separators)
    else:
        rendered = json.dumps(value, ensure_ascii=False, indent=_unit(text))
        rendered = rendered.replace("\n", _newline_of(text.text) + indent)
    return rendered if key is None else json.dumps(key) + (": " if spaced or indent is not None else ":") + rendered


def _newline_of(text: str) -> str:
    """The line ending of ``text``, as its first line has it."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _join(text: JsonText, comments: str, rest: str) -> str:
    """``rest`` after ``comments``, on a new line if the last comment would extend over it."""
    needs_newline = "//" in comments.rpartition("\n")[2] and not rest.lstrip(" \t\r").startswith("\n")
    return comments + (_newline_of(text.text) if needs_newline else "") + rest


def _has_newline(text: str) -> bool:
    return "\n" in text


def _unit(text: JsonText) -> str:
    """One step of indentation: that of the first member."""
    elements, _ = text.elements(text.start)
    on_own_line = bool(elements) and _has_newline(text.text[text.start : elements[0].start])
    return (_indent(text, elements[0].start) if on_own_line else "") or _UNIT


def _indent(text: JsonText, at: int) -> str:
    """The indentation of the line at the position ``at``."""
    line = text.text[text.text.rfind("\n", 0, at) + 1 : at]
    line = line.lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _is_spaced(text: JsonText, element: Element) -> bool:
    """Whether a blank follows the colon of ``element``; in an array, the colons of the whole text."""
    if element.key is None:
        return _is_text_spaced(text)
    return text.text[element.value_start - 1] in BLANKS


def _is_text_spaced(text: JsonText) -> bool:
    elements, _ = text.elements(text.start)
    return not elements or elements[0].key is None or _is_spaced(text, elements[0])
