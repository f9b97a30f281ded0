"""Reads JSON from untrusted sources strictly, and writes all JSON in one form.

Refused: invalid UTF-8, a key twice, NaN, Infinity, numbers that overflow, more than 64 levels, NUL, lone surrogates,
too many bytes. The only error that leaves this module is ``InvalidInput``, which says what is wrong and where.
"""

from __future__ import annotations

from gaia_sessions import errors

from . import fast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

DOCUMENT_LIMIT = 1 << 20
MAX_DEPTH = 64

_TYPE_NAMES = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}

LARGEST_INTEGER = (1 << 63) - 1
"""The largest integer that is written."""

_MAX_DIGITS = 400
_SHORT_TEXT = 4096
_LONGEST_PLACE = 200

# JSON allows these characters inside strings. We escape them, because a terminal obeys them when a record is shown.
_CONTROL_CHARACTERS = frozenset(map(chr, (*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))))


def loads(data: bytes, limit: int = DOCUMENT_LIMIT) -> Json:
    """Returns the value of the JSON text ``data``, at most ``limit`` bytes long."""
    if len(data) > limit:
        raise errors.TooLarge("the document", len(data), limit)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise errors.InvalidInput("not UTF-8", f"byte {error.start}") from None
    return _parse(text)


def first_document(data: bytes, limit: int = DOCUMENT_LIMIT) -> tuple[bytes, bytes]:
    """Returns the bytes of the JSON document at the beginning of ``data``, and the bytes after it."""
    import json

    begun = data[:limit].decode("utf-8", "surrogateescape")
    try:
        _, end = json.JSONDecoder().raw_decode(begun)
    except (ValueError, RecursionError):
        raise errors.InvalidInput("it does not begin with a complete JSON document") from None
    document = begun[:end].encode("utf-8", "surrogateescape")
    return document, data[len(document) :]


def load_object(data: bytes, limit: int = DOCUMENT_LIMIT) -> dict[str, Json]:
    """Returns the object of the JSON text ``data``; refuses any other value."""
    value = loads(data, limit)
    if not isinstance(value, dict):
        raise errors.InvalidInput(f"expected a JSON object, not {json_type_of(value)}")
    return value


def dumps(value: object, limit: int = DOCUMENT_LIMIT) -> bytes:
    """Returns the text of ``value``, indented by two, with a newline at the end; refuses what ``loads`` refuses."""
    text = _encode(value, indent=2)
    data = (text + "\n").encode("utf-8")
    if len(data) > limit:
        raise errors.TooLarge("the document", len(data), limit)
    return data


def dump_line(value: object, limit: int = DOCUMENT_LIMIT) -> bytes:
    """Returns the text of ``value`` on one line; refuses what ``loads`` refuses."""
    data = (_encode(value, indent=None) + "\n").encode("utf-8")
    if len(data) > limit:
        raise errors.TooLarge("the line", len(data), limit)
    return data


def normalize_value(value: object, where: str) -> Json:
    """Returns a deep copy of ``value`` as JSON has it (tuples become arrays); errors name ``where``."""
    try:
        return loads(_encode(value, indent=None).encode("utf-8"), limit=DOCUMENT_LIMIT)
    except errors.TooLarge:
        raise
    except errors.InvalidInput as error:
        raise errors.InvalidInput(error.problem, f"{where} {error.where}".rstrip()) from None


def json_type_of(value: object) -> str:
    """Returns the name of the JSON type of ``value``, with its article."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def _parse(text: str) -> Json:
    try:
        value = _SCANNER.read(text)
        if value is fast.NOT_PARSED:
            value = _parse_or_explain(text)
    except RecursionError:
        raise errors.InvalidInput(f"nested deeper than {MAX_DEPTH}") from None
    _check_value(value, text)
    return value  # type: ignore[return-value]  # a scanner returns JSON values only


def _parse_or_explain(text: str) -> Json:
    """Returns the value of ``text``, or raises the error that says what is wrong and where."""
    import json

    try:
        decoder = json.JSONDecoder(
            object_pairs_hook=_object_of_unique_keys,
            parse_int=_parse_integer,
            parse_float=_parse_float,
            parse_constant=_refuse_constant,
        )
        value: Json = decoder.decode(text)
    except json.JSONDecodeError as error:
        from .syntax_errors import explain

        raise explain(error, text) from None
    return value


def _encode(value: object, indent: int | None) -> str:
    """Returns the text of ``value``; refuses what Python would write and ``loads`` would refuse."""
    try:
        text = fast.try_dumps(value, indent, MAX_DEPTH, LARGEST_INTEGER + 1)
        is_safe = text is not None and "\\u" not in text
        if text is None:
            text = _dumps_by_stdlib(value, indent)
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise errors.InvalidInput("not valid Unicode: half of a surrogate pair") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.InvalidInput(f"cannot be written as JSON: {error}") from None
    if not is_safe:  # an escape may stand for a NUL, or ``json`` wrote what ``loads`` refuses: read the text back
        _parse(text)
    return text if text.isascii() and "\x7f" not in text else _with_escaped_controls(text)


def _with_escaped_controls(text: str) -> str:
    found = _CONTROL_CHARACTERS.intersection(text)
    return text.translate({ord(char): f"\\u{ord(char):04x}" for char in found}) if found else text


def _dumps_by_stdlib(value: object, indent: int | None) -> str:
    import json

    return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)


def _check_value(value: object, text: str) -> None:
    """Raises ``InvalidInput`` for deep nesting and for bad strings."""
    # Without an escape no string can be bad. A search for one character is much faster than for two.
    may_be_invalid = "\\" in text and "\\u" in text
    if may_be_invalid or (not _is_surely_shallow(text) and depth_of(value) > MAX_DEPTH):
        for problem, where in _problems(value):
            raise errors.InvalidInput(problem, where)


def _is_surely_shallow(text: str) -> bool:
    """Returns whether ``text`` has too few brackets to be deep."""
    # In a long text, counting the brackets costs more than looking at the value.
    return len(text) <= _SHORT_TEXT and text.count("{") + text.count("[") <= MAX_DEPTH


_CONTAINERS = frozenset([list, dict])


def depth_of(value: object) -> int:
    """Returns how deep the containers in ``value`` are nested; most are flat, so C functions check that first."""
    depth, level = 0, [value] if type(value) in _CONTAINERS else []
    while level and depth <= MAX_DEPTH:
        depth += 1
        members = [member for item in level for member in (item.values() if type(item) is dict else item)]  # type: ignore[attr-defined]  # a dict or a list
        flat = _CONTAINERS.isdisjoint(map(type, members))
        level = [] if flat else [member for member in members if type(member) in _CONTAINERS]
    return depth


_LOOKED_AT = _CONTAINERS | {str}


def _problems(value: object) -> Iterator[tuple[str, str]]:
    """Yields what is wrong in ``value``, and where, in the order of the text."""
    opened = [iter([(value, "")])]
    while opened:
        for item, where in opened[-1]:
            if isinstance(item, str):
                yield from _text_problems(item, where)
            elif isinstance(item, dict | list):
                if len(opened) > MAX_DEPTH:
                    yield f"nested deeper than {MAX_DEPTH}", where[:80]
                opened.append(_children(item, where))
                break
        else:
            opened.pop()


def _children(item: dict[str, object] | list[object], where: str) -> Iterator[tuple[object, str]]:
    """Yields what may be wrong in ``item``, each with its place."""
    where = where[:_LONGEST_PLACE]  # a key may have many MB, and as many members
    if isinstance(item, list):
        for number, child in enumerate(item):
            if type(child) in _LOOKED_AT:
                yield child, f"{where}[{number}]"
        return
    for key, child in item.items():
        child_where = f"{where}.{key}" if where else str(key)
        yield str(key), f"key {child_where!a}"
        yield child, child_where


def _text_problems(text: str, where: str) -> Iterator[tuple[str, str]]:
    if "\0" in text:
        yield "a NUL character in a string", where
    if any("\ud800" <= char <= "\udfff" for char in text):
        yield "half of a surrogate pair in a string", where


def _object_of_unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        from collections import Counter

        [(duplicate, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise errors.InvalidInput("the same key twice in an object", f"key {duplicate!a}")
    return members


def _parse_integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS or not -LARGEST_INTEGER - 1 <= (number := int(digits)) <= LARGEST_INTEGER:
        raise errors.InvalidInput("a number that overflows 64 bits", digits[:40])
    return number


def _parse_float(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise errors.InvalidInput("a number that overflows", digits[:40])
    return number


def _refuse_constant(name: str) -> float:
    from .syntax_errors import refuse_constant

    return refuse_constant(name)


_SCANNER = fast.Scanner(_object_of_unique_keys, _parse_integer, _parse_float, _refuse_constant)
