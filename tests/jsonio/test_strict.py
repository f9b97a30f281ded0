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
    """What was refused: its kind, what and where."""
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
def test_what_is_written_is_plain_json_without_raw_control_characters(value: Any) -> None:
    for data in (dumps(value), dump_line(value)):
        text = data.decode("utf-8")
        assert repr(json.loads(text)) == repr(value)
        assert not [char for char in text.replace("\n", " ") if char < " " or "\x7f" <= char < "\xa0"]
        assert text == text.rstrip("\n") + "\n"


@given(JSON)
def test_a_line_is_one_line(value: Any) -> None:
    assert dump_line(value).count(b"\n") == 1


@given(JSON)
def test_the_canonical_form_of_a_json_value_is_the_value(value: Any) -> None:
    assert repr(normalize_value(value, "metadata")) == repr(value)


def test_documents_are_indented_by_two_keep_their_order_and_end_in_one_newline() -> None:
    value = {"z": 1, "a": [True, None], "o": {}, "text": "años\x7f\x1b\x9f"}
    assert dumps(value) == (
        b'{\n  "z": 1,\n  "a": [\n    true,\n    null\n  ],\n  "o": {},\n'
        b'  "text": "a\xc3\xb1os\\u007f\\u001b\\u009f"\n}\n'
    )
    assert dump_line(value) == (b'{"z": 1, "a": [true, null], "o": {}, "text": "a\xc3\xb1os\\u007f\\u001b\\u009f"}\n')


@pytest.mark.parametrize("code", [*range(0x202A, 0x202F), *range(0x2066, 0x206A)], ids=hex)
def test_what_would_turn_the_direction_of_a_line_round_is_escaped_wherever_it_stands(code: int) -> None:
    value = {f"k{chr(code)}": [chr(code)]}
    for data in (dumps(value), dump_line(value)):
        assert data.count(f"\\u{code:04x}".encode()) == 2
        assert chr(code).encode() not in data
        assert loads(data) == value


ABUSES: list[tuple[str, bytes, str, str]] = [
    ("nothing", b"", "not JSON: the text is empty", ""),
    ("blanks", b" \n ", "not JSON: the text is empty", ""),
    ("cut short", b'{"a": [1,\n 2', "not JSON: this bracket is not closed", "line 1 column 7"),
    ("two documents", b"{}\n{}", "not JSON: more than one value", "line 2 column 1"),
    ("a byte order mark", b"\xef\xbb\xbf{}", "not JSON: a byte order mark", "line 1 column 1"),
    ("a leading zero", b"01", "not JSON: a number that begins with 0", "line 1 column 2"),
    ("a comment", b"{} // why", "not JSON: a comment", "line 1 column 4"),
    ("single quotes", b"{'a': 1}", "not JSON: single quotes, where JSON has double quotes", "line 1 column 2"),
    ("a broken byte", b'{"a": "\xff"}', "not UTF-8", "byte 7"),
    ("an overlong encoding", b'"\xc0\x80"', "not UTF-8", "byte 1"),
    ("a surrogate encoded as UTF-8", b'"\xed\xa0\x80"', "not UTF-8", "byte 1"),
    ("UTF-16", '{"a": 1}'.encode("utf-16"), "not UTF-8", "byte 0"),
    ("a key twice", b'{"a": 1, "b": 2, "a": 1}', "the same key twice in an object", "key 'a'"),
    ("a key twice, once escaped", b'{"a": 1, "\\u0061": 2}', "the same key twice in an object", "key 'a'"),
    (
        "a key twice, deep down",
        b'[{"x": {"\xc3\xa9": 1, "\xc3\xa9": 2}}]',
        "the same key twice in an object",
        r"key '\xe9'",
    ),
    ("an integer above 64 bits", b"[9223372036854775808]", "a number that overflows 64 bits", "9223372036854775808"),
    ("an integer below 64 bits", b"-9223372036854775809", "a number that overflows 64 bits", "-9223372036854775809"),
    ("an endless integer", b"9" * 5000, "a number that overflows 64 bits", "9" * 40),
    ("a float that overflows", b"[1e999]", "a number that overflows", "1e999"),
    ("a negative float that overflows", b"-1e309", "a number that overflows", "-1e309"),
    ("a raw NUL", b'"a\0b"', "not JSON: a line break or another control character within quotes", "line 1 column 3"),
    (
        "a raw newline in a string",
        b'"a\nb"',
        "not JSON: a line break or another control character within quotes",
        "line 1 column 3",
    ),
    ("an escaped NUL", rb'{"a": [1, "x\u0000"]}', "a NUL character in a string", "a[1]"),
    ("a NUL in a key", rb'{"a": {"\u0000": 1}}', "a NUL character in a string", r"key 'a.\x00'"),
    ("half a pair", rb'{"a": {"b": "\ud83d"}}', "half of a surrogate pair in a string", "a.b"),
    ("the wrong half first", rb'["\ude00\ud83d"]', "half of a surrogate pair in a string", "[0]"),
    ("half a pair in a key", rb'{"\ud83d": 1}', "half of a surrogate pair in a string", r"key '\ud83d'"),
    ("65 levels", b"[" * 65 + b"]" * 65, "nested deeper than 64", "[0]" * 26 + "[0"),
    ("65 levels of objects", b'{"k":' * 65 + b"1" + b"}" * 65, "nested deeper than 64", "k." * 40),
    ("two hundred levels", b"[" * 200 + b"]" * 200, "nested deeper than 64", "[0]" * 26 + "[0"),
    ("half a million levels", b"[" * 500_000, "nested deeper than 64", ""),
]


@pytest.mark.parametrize(("data", "problem", "where"), [row[1:] for row in ABUSES], ids=[row[0] for row in ABUSES])
def test_an_abuse_is_refused_with_what_and_where(data: bytes, problem: str, where: str) -> None:
    assert refusal(lambda: loads(data)) == (InvalidInput, problem, where)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_python_takes_for_a_number_and_json_does_not_is_refused(word: str) -> None:
    refused = (InvalidInput, f"not JSON: {word}, a number that JSON does not have", "")
    assert refusal(lambda: loads(word.encode())) == refused
    assert refusal(lambda: loads(f'{{"a": [{word}]}}'.encode())) == refused


@pytest.mark.parametrize(
    ("data", "value"),
    [
        pytest.param(b" [1, 2.0, true, null] \n", [1, 2.0, True, None], id="blanks around"),
        pytest.param(b'"\xf0\x9f\x98\x80"', "\U0001f600", id="raw UTF-8"),
        pytest.param(rb'"\ud83d\ude00"', "\U0001f600", id="a whole surrogate pair"),
        pytest.param(b"-9223372036854775808", -(1 << 63), id="the smallest integer"),
        pytest.param(b"9223372036854775807", (1 << 63) - 1, id="the largest integer"),
        pytest.param(b"1e-999", 0.0, id="a float too small is zero"),
        pytest.param(b"[" * 64 + b"]" * 64, json.loads("[" * 64 + "]" * 64), id="64 levels"),
        pytest.param(
            b"[" * 64 + b'"[[{{"' + b"]" * 64,
            json.loads("[" * 64 + '"[[{{"' + "]" * 64),
            id="64 levels, brackets in a text",
        ),
        pytest.param(b"[" + b"[]," * 200 + b"[]]", [[]] * 201, id="many containers side by side"),
        pytest.param(rb'"\\u0000 is no NUL"', r"\u0000 is no NUL", id="an escaped backslash"),
    ],
)
def test_what_is_not_an_abuse_is_read(data: bytes, value: object) -> None:
    assert repr(loads(data)) == repr(value)


@given(st.one_of(st.binary(), st.text('{}[]",:0123456789.eE+- \\u\0abcdefNaItrulsy', max_size=60).map(str.encode)))
def test_any_bytes_are_read_or_refused_and_nothing_else_happens(data: bytes) -> None:
    try:
        value = loads(data)
    except InvalidInput as error:
        assert error.problem  # noqa: PT017  # most bytes are refused, and that is the point
    else:
        assert repr(loads(dumps(value))) == repr(value)


def test_the_limit_is_one_mebibyte_to_the_byte() -> None:
    fits = b'"' + b"x" * (DOCUMENT_LIMIT - 2) + b'"'
    assert (DOCUMENT_LIMIT, loads(fits)) == (1 << 20, "x" * (DOCUMENT_LIMIT - 2))
    assert refusal(lambda: loads(fits + b" ")) == (
        TooLarge,
        "the document is over the limit of 1048576 bytes",
        "",
    )


def test_size_is_judged_before_the_text_is_looked_at() -> None:
    assert refusal(lambda: loads(b"\xff" * 11, limit=10))[0] is TooLarge


def test_writing_keeps_to_the_limit_in_bytes_not_in_characters() -> None:
    assert len(dumps("é" * 3, limit=9)) == 9
    with pytest.raises(TooLarge) as caught:
        dumps("é" * 3, limit=8)
    assert (caught.value.size, caught.value.limit) == (9, 8)


def test_an_object_is_read_where_one_is_wanted() -> None:
    assert load_object(b'{"a": 1}') == {"a": 1}
    assert refusal(lambda: load_object(b'{"a": 1}', limit=7))[0] is TooLarge


@pytest.mark.parametrize(
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
def test_anything_but_an_object_is_refused_by_its_kind(data: bytes, kind: str) -> None:
    assert refusal(lambda: load_object(data)) == (InvalidInput, f"expected a JSON object, not {kind}", "")


@pytest.mark.parametrize(
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
    ids=repr,
)
def test_a_value_is_called_what_json_calls_it(value: object, kind: str) -> None:
    assert json_type_of(value) == kind


def _circle() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["again"] = [circle]
    return circle


NOT_JSON: list[tuple[str, object, str, str]] = [
    ("a set", {"a": {1}}, "not expressible as JSON: Object of type set is not JSON serializable", ""),
    ("bytes", b"a", "not expressible as JSON: Object of type bytes is not JSON serializable", ""),
    ("NaN", float("nan"), "not expressible as JSON: Out of range float values are not JSON compliant", ""),
    ("infinity", [float("inf")], "not expressible as JSON: Out of range float values are not JSON compliant", ""),
    ("a key that is no text", {(1, 2): 3}, "not expressible as JSON: keys must be str, int, float, bool or None", ""),
    ("itself", _circle(), "not expressible as JSON: Circular reference detected", ""),
    ("half a pair", {"a": "\ud83d"}, "not text in UTF-8: half of a surrogate pair", ""),
    ("half a pair in a key", {"\ud83d": 1}, "not text in UTF-8: half of a surrogate pair", ""),
    ("a NUL", {"a": ["x\0"]}, "a NUL character in a string", "a[0]"),
    ("a NUL in a key", {"\0": 1}, "a NUL character in a string", r"key '\x00'"),
    ("65 levels", nested(65), "nested deeper than 64", ("in[0]." * 14)[:80]),
    ("endless levels", nested(200_000), "not expressible as JSON: ", ""),
]


@pytest.mark.parametrize(("value", "problem", "where"), [row[1:] for row in NOT_JSON], ids=[row[0] for row in NOT_JSON])
@pytest.mark.parametrize("write", [dumps, dump_line])
def test_what_could_not_be_read_back_is_not_written(
    write: Callable[[object], bytes], value: object, problem: str, where: str
) -> None:
    kind, said, place = refusal(lambda: write(value))
    assert (kind, said.startswith(problem), place) == (InvalidInput, True, where), said


@pytest.mark.parametrize(("value", "problem", "where"), [row[1:] for row in NOT_JSON], ids=[row[0] for row in NOT_JSON])
def test_a_callers_value_that_is_not_json_is_refused_under_its_name(value: object, problem: str, where: str) -> None:
    kind, said, place = refusal(lambda: normalize_value(value, "metadata"))
    assert (kind, said.startswith(problem), place) == (InvalidInput, True, f"metadata {where}".strip()), said


@pytest.mark.parametrize(
    ("value", "problem", "where"),
    [
        pytest.param(1 << 63, "a number that overflows 64 bits", "9223372036854775808", id="an integer above 64 bits"),
        pytest.param(("\0",), "a NUL character in a string", "[0]", id="a NUL inside a tuple"),
        pytest.param(
            {1: "a", "1": "b"}, "the same key twice in an object", "key '1'", id="two keys that JSON writes alike"
        ),
        pytest.param(
            ({"in": (nested(MAX_DEPTH),)},),
            "nested deeper than 64",
            ("[0].in[0]" + "[0].in" * 14)[:80],
            id="levels of tuples",
        ),
    ],
)
@pytest.mark.parametrize("write", [dumps, dump_line])
def test_nothing_is_written_that_loads_would_refuse(
    write: Callable[[object], bytes], value: object, problem: str, where: str
) -> None:
    assert refusal(lambda: write(value)) == (InvalidInput, problem, where)


@pytest.mark.parametrize(
    ("value", "as_json"),
    [
        pytest.param((1, (2,)), [1, [2]], id="tuples become arrays"),
        pytest.param({1: "a", None: "b", False: "c"}, {"1": "a", "null": "b", "false": "c"}, id="keys become text"),
    ],
)
def test_a_callers_value_is_taken_as_json_has_it(value: object, as_json: object) -> None:
    assert normalize_value(value, "metadata") == as_json


@pytest.mark.parametrize(
    ("value", "problem", "where"),
    [
        pytest.param(1 << 63, "a number that overflows 64 bits", "metadata 9223372036854775808", id="a large integer"),
        pytest.param(
            {1: "a", "1": "b"}, "the same key twice in an object", "metadata key '1'", id="keys written alike"
        ),
        pytest.param(("\0",), "a NUL character in a string", "metadata [0]", id="a NUL inside a tuple"),
    ],
)
def test_a_callers_value_is_checked_as_it_would_be_read(value: object, problem: str, where: str) -> None:
    assert refusal(lambda: normalize_value(value, "metadata")) == (InvalidInput, problem, where)


def test_a_callers_value_over_the_limit_is_said_to_be_too_large() -> None:
    with pytest.raises(TooLarge) as caught:
        normalize_value("x" * DOCUMENT_LIMIT, "metadata")
    error = caught.value
    assert (error.problem, error.where) == ("the document is over the limit of 1048576 bytes", "")
    assert (error.code, error.size, error.limit) == ("too_large", DOCUMENT_LIMIT + 2, DOCUMENT_LIMIT)
    assert error.hint == "keep long texts in a file and store its name"


def test_changing_a_callers_value_later_changes_no_canonical_copy() -> None:
    value: dict[str, Any] = {"tags": ["a"]}
    copy = normalize_value(value, "metadata")
    value["tags"].append("b")
    assert copy == {"tags": ["a"]}
