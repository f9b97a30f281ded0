"""Changes to a JSON text that keep every other byte, and all comments.

If the array or object had other values or a comment, removing an added value restores all bytes.
"""

from __future__ import annotations

import json

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio.strict import json_type_of

from .json_text import BLANKS, LINE_ENDS, JsonText, ends_in_line_comment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gaia_sessions.jsonio.strict import Json

_UNIT = "  "


def with_value(text: JsonText, path: Sequence[str], value: Json) -> JsonText:
    """Adds ``value`` to ``text`` as the last element of the array at ``path``; also adds missing containers."""
    start, missing = find_place(text, path)
    if not missing:
        return append_value(text, start, value)
    key, *inner = missing
    value = [value]
    for outer in reversed(inner):
        value = {outer: value}
    return append_value(text, start, value, key)


def find_place(text: JsonText, path: Sequence[str]) -> tuple[int, Sequence[str]]:
    """Returns where the array at ``path`` begins, or the last object on the way to it, and the missing keys."""
    start = text.start
    for number, key in enumerate(path, 1):
        found = text.member(start, key)
        if found is None:
            return start, path[number - 1 :]
        wanted = dict if number < len(path) else list
        if not isinstance(found.value, wanted):
            raise InvalidInput(f"{key!a} is {json_type_of(found.value)}, not {json_type_of(wanted())}")
        start = found.value_start
    return start, ()


def append_value(text: JsonText, start: int, value: Json, key: str | None = None) -> JsonText:
    """Adds ``value`` to ``text`` as last element of the array at ``start``, or as member ``key`` of the object."""
    elements, close = text.elements(start)
    whole, unit = text.text, _unit(text)
    outer = " " if unit is None else _newline_of(whole) + _indentation(whole, start)
    line = outer + (unit or "")
    spot = len(whole[:close].rstrip(BLANKS))  # after the comments of the last element
    before, after = whole[:spot], whole[spot:]
    if elements:
        end = elements[-1].end
        before = f"{whole[:end]},{whole[end:spot]}"
    elif spot == start + 1:
        after = outer + whole[close:]
    name = "" if key is None else f"{json.dumps(key)}: "
    rendered = json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", line)
    return _changed(text, f"{before}{line}{name}{rendered}{after}")


def without_value(text: JsonText, path: Sequence[str | int]) -> JsonText:
    """Removes from ``text`` the value at ``path``, and the containers that contain nothing else."""
    way = text.way_to(path)
    while len(way) > 1 and _holds_one_value(text, way[-1][0]):
        way.pop()
    return remove_element(text, *way[-1])


def remove_element(text: JsonText, start: int, number: int) -> JsonText:
    """Removes from ``text`` the element ``number`` of the object or array at ``start``, and one comma."""
    elements, close = text.elements(start)
    element, whole = elements[number], text.text
    if _holds_one_value(text, start):
        return _changed(text, whole[: start + 1] + whole[close:])
    if number < len(elements) - 1:
        comma = text.plain.index(",", element.end)
        rest = whole[element.end : comma] + whole[comma + 1 :]
        return _changed(text, whole[: element.start] + rest.lstrip(BLANKS))
    before, rest = whole[: element.start], whole[element.end :]
    if number:
        comma = text.plain.index(",", elements[number - 1].end)
        before = whole[:comma] + before[comma + 1 :]
    kept = before.rstrip(BLANKS)
    if ends_in_line_comment(kept) and not rest.lstrip(" \t").startswith(LINE_ENDS):
        kept = before  # with its line end
    return _changed(text, kept + rest)


def _holds_one_value(text: JsonText, start: int) -> bool:
    return len(text.elements(start)[0]) == 1 and not text.has_comments(start)


def _changed(text: JsonText, changed: str) -> JsonText:
    return JsonText(changed, comments=text.comments)


def _unit(text: JsonText) -> str | None:
    """Returns one step of indentation, taken from the first member; None if the text is on one line."""
    elements, close = text.elements(text.start)
    if elements and not any(end in text.text[text.start : close] for end in LINE_ENDS):
        return None
    return (_indentation(text.text, elements[0].start) if elements else "") or _UNIT


def _newline_of(whole: str) -> str:
    return "\r\n" if "\r\n" in whole else "\n"


def _indentation(whole: str, at: int) -> str:
    """Returns the indentation of the line at the position ``at``."""
    line = whole[whole.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]
