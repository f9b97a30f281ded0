"""Strict JSON: what is read, what is written, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gaia_sessions.errors import InvalidInput, TooLarge
from gaia_sessions.jsonio.strict import (
    DOCUMENT_LIMIT,
    MAX_DEPTH,
    dump_line,
    dumps,
    json_type_of,
    load_object,
    loads,
    normalize_value,
)
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    _TEXT,
)
JSON: st.SearchStrategy[Any] = st.recursive(
    _SCALARS, lambda inner: st.one_of(st.lists(inner), st.dictionaries(_TEXT, inner)), max_leaves=20
)


def nested(depth: int) -> Any:
    value: Any = []
    for level in range(1, depth):
        value = [value] if level % 2 else {"in": value}
    return value


def refusal(call: Callable[[], object]) -> tuple[type[InvalidInput], str, str]:
    """Returns the type of the error, the problem and its place."""
    with pytest.raises(InvalidInput) as caught:
        call()
    return type(caught.value), caught.value.problem, caught.value.where


@given(JSON)
@example(nested(MAX_DEPTH))
@example({"\u2028": "\x1b[2J \x7f \x9f \u202e \U0001f600"})
@example([-0.0, 5e-324, 1.7976931348623157e308, -(1 << 63), (1 << 63) - 1])
def test_every_json_value_is_read_back_as_it_was_written(value: Any) -> None:
    for data in (dumps(value), dump_line(value)):
        assert repr(loads(data)) == repr(value)  # repr: 1, 1.0 and true are equal but not the same


@given(JSON)
def test_written_values_are_plain_json_without_raw_control_characters(value: Any) -> None:
    for data in (dumps(value), dump_line(value)):
        text = data.decode("utf-8")
        assert repr(json.loads(text)) == repr(value)
        assert not [char for char in text.replace("\n", " ") if char < " " or "\x7f" <= char < "\xa0"]
        assert text == text.rstrip("\n") + "\n"


@given(JSON)
def test_dump_line_writes_exactly_one_line(value: Any) -> None:
    assert dump_line(value).count(b"\n") == 1


@given(JSON)
def test_normalize_value_leaves_a_json_value_unchanged(value: Any) -> None:
    assert repr(normalize_value(value, "metadata")) == repr(value)


def test_documents_are_indented_by_two_keep_their_order_and_end_in_one_newline() -> None:
    value = {"z": 1, "a": [True, None], "o": {}, "text": "años\x7f\x1b\x9f"}
    assert dumps(value) == (
        b'{\n  "z": 1,\n  "a": [\n    true,\n    null\n  ],\n  "o": {},\n'
        b'  "text": "a\xc3\xb1os\\u007f\\u001b\\u009f"\n}\n'
    )
    assert dump_line(value) == (b'{"z": 1, "a": [true, null], "o": {}, "text": "a\xc3\xb1os\\u007f\\u001b\\u009f"}\n')


@table("code", [*range(0x202A, 0x202F), *range(0x2066, 0x206A)])
def test_characters_that_change_the_text_direction_are_escaped_in_keys_and_values(code: int) -> None:
    value = {f"k{chr(code)}": [chr(code)]}
    for data in (dumps(value), dump_line(value)):
        assert data.count(f"\\u{code:04x}".encode()) == 2
        assert chr(code).encode() not in data
        assert loads(data) == value


ABUSES: list[tuple[bytes, str, str]] = [
    (b"", "not JSON: the text is empty", ""),  # nothing
    (b" \n ", "not JSON: the text is empty", ""),  # blanks
    (b'{"a": [1,\n 2', "not JSON: this bracket is not closed", "line 1 column 7"),  # cut short
    (b"{}\n{}", "not JSON: more than one value", "line 2 column 1"),  # two documents
    (b"\xef\xbb\xbf{}", "not JSON: a byte order mark", "line 1 column 1"),  # a byte order mark
    (b"01", "not JSON: a number that begins with 0", "line 1 column 2"),  # a leading zero
    (b"{} // why", "not JSON: a comment", "line 1 column 4"),  # a comment
    (b"{'a': 1}", "not JSON: single quotes instead of double quotes", "line 1 column 2"),  # single quotes
    (b'{"a": "\xff"}', "not UTF-8", "byte 7"),  # an invalid byte
    (b'"\xc0\x80"', "not UTF-8", "byte 1"),  # an overlong encoding
    (b'"\xed\xa0\x80"', "not UTF-8", "byte 1"),  # a surrogate encoded as UTF-8
    ('{"a": 1}'.encode("utf-16"), "not UTF-8", "byte 0"),  # UTF-16
    (b'{"a": 1, "b": 2, "a": 1}', "the same key twice in an object", "key 'a'"),  # a key twice
    (b'{"a": 1, "\\u0061": 2}', "the same key twice in an object", "key 'a'"),  # a key twice, once escaped
    (
        b'[{"x": {"\xc3\xa9": 1, "\xc3\xa9": 2}}]',
        "the same key twice in an object",
        r"key '\xe9'",
    ),  # a key twice, deep down
    (b"[9223372036854775808]", "a number that overflows 64 bits", "9223372036854775808"),  # an integer above 64 bits
    (b"-9223372036854775809", "a number that overflows 64 bits", "-9223372036854775809"),  # an integer below 64 bits
    (b"9" * 5000, "a number that overflows 64 bits", "9" * 40),  # an endless integer
    (b"[1e999]", "a number that overflows", "1e999"),  # a float that overflows
    (b"-1e309", "a number that overflows", "-1e309"),  # a negative float that overflows
    (b'"a\0b"', "not JSON: a line break or another control character within quotes", "line 1 column 3"),  # a raw NUL
    (
        b'"a\nb"',
        "not JSON: a line break or another control character within quotes",
        "line 1 column 3",
    ),  # a raw newline in a string
    (rb'{"a": [1, "x\u0000"]}', "a NUL character in a string", "a[1]"),  # an escaped NUL
    (rb'{"a": {"\u0000": 1}}', "a NUL character in a string", r"key 'a.\x00'"),  # a NUL in a key
    (rb'{"a": {"b": "\ud83d"}}', "half of a surrogate pair in a string", "a.b"),  # half a pair
    (rb'["\ude00\ud83d"]', "half of a surrogate pair in a string", "[0]"),  # the wrong half first
    (rb'{"\ud83d": 1}', "half of a surrogate pair in a string", r"key '\ud83d'"),  # half a pair in a key
    (b"[" * 65 + b"]" * 65, "nested deeper than 64", "[0]" * 26 + "[0"),  # 65 levels
    (b'{"k":' * 65 + b"1" + b"}" * 65, "nested deeper than 64", "k." * 40),  # 65 levels of objects
    (b"[" * 200 + b"]" * 200, "nested deeper than 64", "[0]" * 26 + "[0"),  # two hundred levels
    (b"[" * 500_000, "nested deeper than 64", ""),  # half a million levels
]


@table(("data", "problem", "where"), ABUSES)
def test_invalid_json_is_refused_with_the_problem_and_its_place(data: bytes, problem: str, where: str) -> None:
    assert refusal(lambda: loads(data)) == (InvalidInput, problem, where)


@table("word", ["NaN", "Infinity", "-Infinity"])
def test_nan_and_infinity_are_refused(word: str) -> None:
    refused = (InvalidInput, f"not JSON: JSON has no {word}", "")
    assert refusal(lambda: loads(word.encode())) == refused
    assert refusal(lambda: loads(f'{{"a": [{word}]}}'.encode())) == refused


@table(
    ("data", "value"),
    [
        (b" [1, 2.0, true, null] \n", [1, 2.0, True, None]),  # blanks around
        (b'"\xf0\x9f\x98\x80"', "\U0001f600"),  # raw UTF-8
        (rb'"\ud83d\ude00"', "\U0001f600"),  # a whole surrogate pair
        (b"-9223372036854775808", -(1 << 63)),  # the smallest integer
        (b"9223372036854775807", (1 << 63) - 1),  # the largest integer
        (b"1e-999", 0.0),  # a float too small is zero
        (b"[" * 64 + b"]" * 64, json.loads("[" * 64 + "]" * 64)),  # 64 levels
        (
            b"[" * 64 + b'"[[{{"' + b"]" * 64,
            json.loads("[" * 64 + '"[[{{"' + "]" * 64),
        ),  # 64 levels, brackets in a text
        (b"[" + b"[]," * 200 + b"[]]", [[]] * 201),  # many containers side by side
        (rb'"\\u0000 is no NUL"', r"\u0000 is no NUL"),  # an escaped backslash
    ],
)
def test_unusual_but_valid_json_is_read(data: bytes, value: object) -> None:
    assert repr(loads(data)) == repr(value)


@given(st.one_of(st.binary(), st.text('{}[]",:0123456789.eE+- \\u\0abcdefNaItrulsy', max_size=60).map(str.encode)))
def test_any_bytes_are_read_or_refused_as_invalid_input(data: bytes) -> None:
    try:
        value = loads(data)
    except InvalidInput as error:
        assert error.problem  # noqa: PT017  # most bytes are refused, and that is the point
    else:
        assert repr(loads(dumps(value))) == repr(value)


def test_the_document_limit_is_exactly_one_mebibyte() -> None:
    fits = b'"' + b"x" * (DOCUMENT_LIMIT - 2) + b'"'
    assert (DOCUMENT_LIMIT, loads(fits)) == (1 << 20, "x" * (DOCUMENT_LIMIT - 2))
    assert refusal(lambda: loads(fits + b" ")) == (TooLarge, "the document is over the limit of 1048576 bytes", "")


def test_the_size_is_checked_before_the_text() -> None:
    assert refusal(lambda: loads(b"\xff" * 11, limit=10))[0] is TooLarge


def test_the_limit_for_writing_counts_bytes_and_not_characters() -> None:
    assert len(dumps("é" * 3, limit=9)) == 9
    with pytest.raises(TooLarge) as caught:
        dumps("é" * 3, limit=8)
    assert (caught.value.size, caught.value.limit) == (9, 8)


def test_load_object_reads_an_object_within_the_limit() -> None:
    assert load_object(b'{"a": 1}') == {"a": 1}
    assert refusal(lambda: load_object(b'{"a": 1}', limit=7))[0] is TooLarge


@table(
    ("data", "kind"),
    [
        (b"[]", "an array"),
        (b"null", "null"),
        (b"true", "a boolean"),
        (b"1", "a number"),
        (b"1.5", "a number"),
        (b'""', "a string"),
    ],
)
def test_load_object_refuses_any_other_value_and_names_its_type(data: bytes, kind: str) -> None:
    assert refusal(lambda: load_object(data)) == (InvalidInput, f"expected a JSON object, not {kind}", "")


@table(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "a boolean"),
        (1, "a number"),
        (1.5, "a number"),
        ("", "a string"),
        ([], "an array"),
        ({}, "an object"),
        (b"", "bytes"),
        ((), "tuple"),
    ],
)
def test_json_type_of_names_a_value_by_its_json_type(value: object, kind: str) -> None:
    assert json_type_of(value) == kind


def _circle() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["again"] = [circle]
    return circle


NOT_JSON: list[tuple[object, str, str]] = [
    ({"a": {1}}, "cannot be written as JSON: Object of type set is not JSON serializable", ""),  # a set
    (b"a", "cannot be written as JSON: Object of type bytes is not JSON serializable", ""),  # bytes
    (float("nan"), "cannot be written as JSON: Out of range float values are not JSON compliant", ""),  # NaN
    ([float("inf")], "cannot be written as JSON: Out of range float values are not JSON compliant", ""),  # infinity
    (
        {(1, 2): 3},
        "cannot be written as JSON: keys must be str, int, float, bool or None",
        "",
    ),  # a key that is not text
    (_circle(), "cannot be written as JSON: Circular reference detected", ""),  # a value that contains itself
    ({"a": "\ud83d"}, "not valid Unicode: half of a surrogate pair", ""),  # half a pair
    ({"\ud83d": 1}, "not valid Unicode: half of a surrogate pair", ""),  # half a pair in a key
    ({"a": ["x\0"]}, "a NUL character in a string", "a[0]"),  # a NUL
    ({"\0": 1}, "a NUL character in a string", r"key '\x00'"),  # a NUL in a key
    (nested(65), "nested deeper than 64", ("in[0]." * 14)[:80]),  # 65 levels
    (nested(200_000), "cannot be written as JSON: ", ""),  # 200,000 levels
]


@table(("value", "problem", "where"), NOT_JSON)
@table("write", [dumps, dump_line])
def test_a_value_that_could_not_be_read_back_is_not_written(
    write: Callable[[object], bytes], value: object, problem: str, where: str
) -> None:
    kind, said, place = refusal(lambda: write(value))
    assert (kind, said.startswith(problem), place) == (InvalidInput, True, where), said


@table(("value", "problem", "where"), NOT_JSON)
def test_normalize_value_refuses_a_value_that_is_not_json_and_names_the_parameter(
    value: object, problem: str, where: str
) -> None:
    kind, said, place = refusal(lambda: normalize_value(value, "metadata"))
    assert (kind, said.startswith(problem), place) == (InvalidInput, True, f"metadata {where}".strip()), said


@table(
    ("value", "problem", "where"),
    [
        (1 << 63, "a number that overflows 64 bits", "9223372036854775808"),  # an integer above 64 bits
        (("\0",), "a NUL character in a string", "[0]"),  # a NUL inside a tuple
        ({1: "a", "1": "b"}, "the same key twice in an object", "key '1'"),  # two keys that JSON writes alike
        (
            ({"in": (nested(MAX_DEPTH),)},),
            "nested deeper than 64",
            ("[0].in[0]" + "[0].in" * 14)[:80],
        ),  # levels of tuples
    ],
)
@table("write", [dumps, dump_line])
def test_a_value_that_loads_would_refuse_is_not_written(
    write: Callable[[object], bytes], value: object, problem: str, where: str
) -> None:
    assert refusal(lambda: write(value)) == (InvalidInput, problem, where)


@table(
    ("value", "as_json"),
    [
        ((1, (2,)), [1, [2]]),  # tuples become arrays
        ({1: "a", None: "b", False: "c"}, {"1": "a", "null": "b", "false": "c"}),  # keys become text
    ],
)
def test_normalize_value_converts_tuples_and_keys_as_json_does(value: object, as_json: object) -> None:
    assert normalize_value(value, "metadata") == as_json


@table(
    ("value", "problem", "where"),
    [
        (1 << 63, "a number that overflows 64 bits", "metadata 9223372036854775808"),  # a large integer
        ({1: "a", "1": "b"}, "the same key twice in an object", "metadata key '1'"),  # keys written alike
        (("\0",), "a NUL character in a string", "metadata [0]"),  # a NUL inside a tuple
    ],
)
def test_normalize_value_refuses_a_value_that_loads_would_refuse(value: object, problem: str, where: str) -> None:
    assert refusal(lambda: normalize_value(value, "metadata")) == (InvalidInput, problem, where)


def test_normalize_value_refuses_a_value_over_the_limit_as_too_large() -> None:
    with pytest.raises(TooLarge) as caught:
        normalize_value("x" * DOCUMENT_LIMIT, "metadata")
    error = caught.value
    assert (error.problem, error.where) == ("the document is over the limit of 1048576 bytes", "")
    assert (error.code, error.size, error.limit) == ("too_large", DOCUMENT_LIMIT + 2, DOCUMENT_LIMIT)
    assert error.hint == "put long texts into a file, and store its name"


def test_changing_a_value_later_does_not_change_its_normalized_copy() -> None:
    value: dict[str, Any] = {"tags": ["a"]}
    copy = normalize_value(value, "metadata")
    value["tags"].append("b")
    assert copy == {"tags": ["a"]}
