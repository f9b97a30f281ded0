"""Changes to a JSON text that keep every other byte.

Owns how a value is added, removed and replaced: in the style of its neighbours, and so that removing is the exact
inverse of adding wherever there were neighbours. Comments stay in place.
"""

from __future__ import annotations

import json

from .json_text import BLANKS, JsonText

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.jsonio.strict import Json

    from .json_text import Element

_UNIT = "  "


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


def replace_value(text: JsonText, element: Element, value: Json) -> JsonText:
    """``text`` with ``value`` in the place of the value of ``element``."""
    old = text.text[element.value_start : element.end]
    indent = _indent(text, element.start) if _has_newline(old) else None
    rendered = _render(text, value, indent, None, spaced=": " in old or ", " in old)
    return _changed_text(text, text.text[: element.value_start] + rendered + text.text[element.end :])


def _changed_text(text: JsonText, changed: str) -> JsonText:
    return JsonText(changed, comments=text.comments)


def _fill_empty(text: JsonText, start: int, close: int, value: Json, key: str | None) -> JsonText:
    """``text`` with the first value in an empty object or array, on a line of its own unless the text is one line."""
    inner = text.text[start + 1 : close].rstrip(BLANKS)
    spot = start + 1 + len(inner)
    if not inner and start != text.start and not _has_newline(text.text[text.start :].rstrip(BLANKS)):
        rendered = _render(text, value, None, key, spaced=_is_text_spaced(text))
        return _changed_text(text, text.text[:spot] + rendered + text.text[close:])
    newline, outer = newline_of(text.text), _indent(text, start)
    indent = outer + _unit(text)
    rendered = _render(text, value, indent, key, spaced=True)
    return _changed_text(text, f"{text.text[:spot]}{newline}{indent}{rendered}{newline}{outer}{text.text[close:]}")


def _gap(text: JsonText, start: int, elements: list[Element], *, apart: bool) -> str:
    """The blanks between two elements, as they are before the last one."""
    last = elements[-1]
    begins = start + 1 if len(elements) == 1 else text.plain.rindex(",", 0, last.start) + 1
    before = text.text[begins : last.start]
    if apart or _has_newline(before):
        return newline_of(text.text) + _indent(text, last.start)
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
        rendered = rendered.replace("\n", newline_of(text.text) + indent)
    return rendered if key is None else json.dumps(key) + (": " if spaced or indent is not None else ":") + rendered


def newline_of(text: str) -> str:
    """The line ending of ``text``, as its first line has it."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _join(text: JsonText, comments: str, rest: str) -> str:
    """``rest`` after ``comments``, on a new line if the last comment would extend over it."""
    needs_newline = "//" in comments.rpartition("\n")[2] and not rest.lstrip(" \t\r").startswith("\n")
    return comments + (newline_of(text.text) if needs_newline else "") + rest


def _has_newline(text: str) -> bool:
    return "\n" in text


def _unit(text: JsonText) -> str:
    """One step of indentation: that of the first member."""
    if text.plain[text.start] != "{":
        return _UNIT
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
