"""JSON from untrusted sources is read strictly, and all JSON is written in one form.

Owns what is accepted as a document: strict UTF-8, no duplicate keys, no NaN or Infinity, no number that overflows,
nesting of at most 64, no NUL, no lone surrogate, a size limit. What is refused raises ``InvalidInput``, which names
what is wrong and where; no other error leaves this module.
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
"""The largest number that JSON is written with."""

_MAX_DIGITS = 400
_SHORT_TEXT = 4096
_LONGEST_PLACE = 200

# JSON allows these characters inside strings as they are, and a terminal obeys them when a record is shown.
_CONTROL_CHARACTERS = frozenset(map(chr, (*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))))


def loads(data: bytes, limit: int = DOCUMENT_LIMIT) -> Json:
    """The value of the JSON text ``data``, at most ``limit`` bytes long; raises ``InvalidInput``."""
    if len(data) > limit:
        raise errors.TooLarge("the document", len(data), limit)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise errors.InvalidInput("not UTF-8", f"byte {error.start}") from None
    return _parse(text)


def first_document(data: bytes, limit: int = DOCUMENT_LIMIT) -> tuple[bytes, bytes]:
    """The JSON document with which ``data`` begins, as it stands there, and what is behind it; or ``InvalidInput``."""
    import json

    begun = data[:limit].decode("utf-8", "surrogateescape")
    try:
        _, end = json.JSONDecoder().raw_decode(begun)
    except (ValueError, RecursionError):
        raise errors.InvalidInput("it does not begin with a whole document") from None
    document = begun[:end].encode("utf-8", "surrogateescape")
    return document, data[len(document) :]


def load_object(data: bytes, limit: int = DOCUMENT_LIMIT) -> dict[str, Json]:
    """The object of the JSON text ``data``, as ``loads``; raises ``InvalidInput`` for any other value."""
    value = loads(data, limit)
    if not isinstance(value, dict):
        raise errors.InvalidInput(f"expected a JSON object, not {json_type_of(value)}")
    return value


def dumps(value: object, limit: int = DOCUMENT_LIMIT) -> bytes:
    """The text of ``value``, indented by two, with one newline at the end; refuses what ``loads`` would refuse."""
    text = _encode(value, indent=2)
    data = (text + "\n").encode("utf-8")
    if len(data) > limit:
        raise errors.TooLarge("the document", len(data), limit)
    return data


def dump_line(value: object, limit: int = DOCUMENT_LIMIT) -> bytes:
    """The text of ``value`` on one line, for journals, logs and pipes; refuses what ``loads`` would refuse."""
    data = (_encode(value, indent=None) + "\n").encode("utf-8")
    if len(data) > limit:
        raise errors.TooLarge("the line", len(data), limit)
    return data


def normalize_value(value: object, where: str) -> Json:
    """A deep copy of ``value`` as JSON has it (tuples become arrays); raises ``InvalidInput`` that names ``where``."""
    try:
        return loads(_encode(value, indent=None).encode("utf-8"), limit=DOCUMENT_LIMIT)
    except errors.TooLarge:
        raise
    except errors.InvalidInput as error:
        raise errors.InvalidInput(error.problem, f"{where} {error.where}".rstrip()) from None


def json_type_of(value: object) -> str:
    """The name of the JSON type of ``value``."""
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
    """The value of ``text``, or the ``InvalidInput`` that says what is wrong with it and where."""
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
    """The text of ``value``, which ``loads`` accepts: what Python would write and ``loads`` refuse is refused.

    The text of the short cut is read back only if an escape in it may stand for a NUL.
    """
    try:
        text = fast.try_dumps(value, indent, MAX_DEPTH, LARGEST_INTEGER + 1)
        is_safe = text is not None and "\\u" not in text
        if text is None:
            text = _dumps_by_stdlib(value, indent)
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise errors.InvalidInput("not text in UTF-8: half of a surrogate pair") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.InvalidInput(f"not expressible as JSON: {error}") from None
    if not is_safe:
        _parse(text)
    return text if text.isascii() and "\x7f" not in text else _with_escaped_controls(text)


def _with_escaped_controls(text: str) -> str:
    found = _CONTROL_CHARACTERS.intersection(text)
    return text.translate({ord(char): f"\\u{ord(char):04x}" for char in found}) if found else text


def _dumps_by_stdlib(value: object, indent: int | None) -> str:
    import json

    return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)


def _check_value(value: object, text: str) -> None:
    """Raises ``InvalidInput`` for nesting and strings; looks at each string only if ``text`` has an escape."""
    may_be_invalid = "\\" in text and "\\u" in text  # a search for one character is much faster than for two
    if may_be_invalid or (not _is_surely_shallow(text) and depth_of(value) > MAX_DEPTH):
        for problem, where in _problems(value):
            raise errors.InvalidInput(problem, where)


def _is_surely_shallow(text: str) -> bool:
    """Whether ``text`` has too few brackets to be deep; in a long one, counting them costs more than looking."""
    return len(text) <= _SHORT_TEXT and text.count("{") + text.count("[") <= MAX_DEPTH


_CONTAINERS = frozenset([list, dict])


def depth_of(value: object) -> int:
    """How deep the containers in ``value`` are nested; most are flat, which is found out by functions in C."""
    depth, level = 0, [value] if type(value) in _CONTAINERS else []
    while level and depth <= MAX_DEPTH:
        depth += 1
        members = [member for item in level for member in (item.values() if type(item) is dict else item)]  # type: ignore[attr-defined]  # a dict or a list
        flat = _CONTAINERS.isdisjoint(map(type, members))
        level = [] if flat else [member for member in members if type(member) in _CONTAINERS]
    return depth


_LOOKED_AT = _CONTAINERS | {str}


def _problems(value: object) -> Iterator[tuple[str, str]]:
    """What is wrong in ``value``, and where, in the order of the text."""
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
    """What may be wrong in ``item``, each with where that is: cut, as a key may have many MB, and as many members."""
    where = where[:_LONGEST_PLACE]
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
