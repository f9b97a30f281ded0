"""Changes to a JSON text that leave every other byte as it is.

Owns how a value is put in, taken out and exchanged: in the style of its neighbours, and so that taking out is the
exact inverse of putting in wherever there were neighbours. Comments stay where they stood. Knows no host.
"""

from __future__ import annotations

import json

from .json_text import BLANKS, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.jsonio.strict import Json

    from .json_text import Element

_UNIT = "  "


def appended(text: Text, start: int, value: Json, key: str | None = None) -> Text:
    """``text`` with ``value`` as the last one in the object or array at ``start``, under ``key`` in an object."""
    elements, close = text.elements(start)
    if not elements:
        return _filled(text, start, close, value, key)
    last = elements[-1]
    spot = last.end + len(text.text[last.end : close].rstrip(BLANKS))  # past the comments that belong to the last
    gap = _gap(text, start, elements, apart=spot > last.end)
    indent = _indent(text, last.start) if _breaks(gap) else None
    told = _rendered(text, value, indent, key, spaced=_is_spaced(text, last))
    return _with(text, f"{text.text[: last.end]},{text.text[last.end : spot]}{gap}{told}{text.text[spot:]}")


def removed(text: Text, start: int, number: int) -> Text:
    """``text`` without the element ``number`` of the object or array at ``start``."""
    elements, close = text.elements(start)
    gone, whole = elements[number], text.text
    if len(elements) == 1:
        kept, rest = whole[start + 1 : gone.start].rstrip(BLANKS), whole[gone.end : close]
        left = _joined(text, kept, rest + whole[close])[:-1]
        return _with(text, whole[: start + 1] + (left if left.strip(BLANKS) else "") + whole[close:])
    if number < len(elements) - 1:
        after = text.plain.index(",", gone.end) + 1
        kept = whole[gone.end : after - 1].strip(BLANKS)  # a comment of somebody's between value and comma
        return _with(text, whole[: gone.start] + _joined(text, kept, whole[after:].lstrip(BLANKS)))
    comma = text.plain.rindex(",", 0, gone.start)
    kept = whole[comma + 1 : gone.start].rstrip(BLANKS)
    return _with(text, whole[:comma] + _joined(text, kept, whole[gone.end :]))


def replaced(text: Text, element: Element, value: Json) -> Text:
    """``text`` with ``value`` where ``element`` has its own."""
    old = text.text[element.value_start : element.end]
    indent = _indent(text, element.start) if _breaks(old) else None
    told = _rendered(text, value, indent, None, spaced=": " in old or ", " in old)
    return _with(text, text.text[: element.value_start] + told + text.text[element.end :])


def _with(text: Text, changed: str) -> Text:
    return Text(changed, comments=text.comments)


def _filled(text: Text, start: int, close: int, value: Json, key: str | None) -> Text:
    """The first value of an empty object or array; on a line of its own unless the whole text is on one."""
    inner = text.text[start + 1 : close].rstrip(BLANKS)
    spot = start + 1 + len(inner)
    if not inner and start != text.start and not _breaks(text.text[text.start :].rstrip(BLANKS)):
        told = _rendered(text, value, None, key, spaced=_is_text_spaced(text))
        return _with(text, text.text[:spot] + told + text.text[close:])
    newline, outer = newline_of(text.text), _indent(text, start)
    indent = outer + _unit(text)
    told = _rendered(text, value, indent, key, spaced=True)
    return _with(text, f"{text.text[:spot]}{newline}{indent}{told}{newline}{outer}{text.text[close:]}")


def _gap(text: Text, start: int, elements: list[Element], *, apart: bool) -> str:
    """What stands between an element and the next: as it is before the last one."""
    last = elements[-1]
    begins = start + 1 if len(elements) == 1 else text.plain.rindex(",", 0, last.start) + 1
    before = text.text[begins : last.start]
    if apart or _breaks(before):
        return newline_of(text.text) + _indent(text, last.start)
    if len(elements) > 1:
        return before if not before.strip(BLANKS) else " "
    return " " if _is_spaced(text, last) else ""


def _rendered(text: Text, value: Json, indent: str | None, key: str | None, *, spaced: bool) -> str:
    """``value``, and ``key`` before it, on lines indented by ``indent``; on one line if that is None."""
    separators = (", ", ": ") if spaced else (",", ":")
    if indent is None:
        told = json.dumps(value, ensure_ascii=False, separators=separators)
    else:
        told = json.dumps(value, ensure_ascii=False, indent=_unit(text))
        told = told.replace("\n", newline_of(text.text) + indent)
    return told if key is None else json.dumps(key) + (": " if spaced or indent is not None else ":") + told


def newline_of(text: str) -> str:
    """How lines end in ``text``, by the first of them."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _joined(text: Text, comments: str, rest: str) -> str:
    """``rest`` after ``comments``, on a new line if the last of them would swallow it."""
    swallows = "//" in comments.rpartition("\n")[2] and not rest.lstrip(" \t\r").startswith("\n")
    return comments + (newline_of(text.text) if swallows else "") + rest


def _breaks(text: str) -> bool:
    return "\n" in text


def _unit(text: Text) -> str:
    """One step of indentation: how far the first member stands from the margin."""
    if text.plain[text.start] != "{":
        return _UNIT
    elements, _ = text.elements(text.start)
    on_own_line = bool(elements) and _breaks(text.text[text.start : elements[0].start])
    return (_indent(text, elements[0].start) if on_own_line else "") or _UNIT


def _indent(text: Text, at: int) -> str:
    """The blanks with which the line of ``at`` begins."""
    line = text.text[text.text.rfind("\n", 0, at) + 1 : at]
    line = line.lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _is_spaced(text: Text, element: Element) -> bool:
    """Whether a blank follows the colons (in an array: those of the whole text)."""
    if element.key is None:
        return _is_text_spaced(text)
    return text.text[element.value_start - 1] in BLANKS


def _is_text_spaced(text: Text) -> bool:
    elements, _ = text.elements(text.start)
    return not elements or elements[0].key is None or _is_spaced(text, elements[0])
