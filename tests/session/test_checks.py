from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import InvalidInput
from gaia_sessions.session.checks import (
    array_of,
    check_flag,
    check_object,
    check_seconds,
    check_string,
    check_time,
    integer_from,
    is_integer,
    nullable,
    object_with,
    one_of,
)

if TYPE_CHECKING:
    from gaia_sessions.session.checks import Check

_CASE = object_with({"name": check_string, "tags": array_of(check_string)}, {"age": nullable(integer_from(1))})

SOUND: list[tuple[str, Check, list[object]]] = [
    ("text", check_string, ["", "a"]),
    ("flag", check_flag, [True, False]),
    ("mapping", check_object, [{}, {"a": 1}]),
    ("time", check_time, ["2026-01-08T18:05:30Z", "2026-01-08 18:05"]),
    ("seconds", check_seconds, [0, 0.0, 1.5, 7]),
    ("count", integer_from(2), [2, 3, 1 << 62]),
    ("one of", one_of(("a", "b")), ["a", "b"]),
    ("or null", nullable(check_string), [None, "a"]),
    ("each", array_of(check_flag), [[], [True], [True, False]]),
    (
        "members",
        _CASE,
        [
            {"name": "a", "tags": []},
            {"tags": ["t"], "age": 1, "name": "a"},
            {"name": "a", "tags": [], "age": None, "unknown": object()},
        ],
    ),
]

FAULTY: list[tuple[str, Check, object, str, str]] = [
    ("text: null", check_string, None, "must be a string, not null", "x"),
    ("text: number", check_string, 1, "must be a string, not a number", "x"),
    ("flag: one", check_flag, 1, "must be true or false, not a number", "x"),
    ("flag: word", check_flag, "true", "must be true or false, not a string", "x"),
    ("mapping: array", check_object, [], "must be an object, not an array", "x"),
    ("time: date", check_time, "2026-01-08", "must be an ISO 8601 time", "x"),
    ("time: number", check_time, 1767895530, "must be an ISO 8601 time", "x"),
    ("seconds: negative", check_seconds, -0.001, "must be a number from 0", "x"),
    ("seconds: boolean", check_seconds, True, "must be a number from 0", "x"),
    ("seconds: word", check_seconds, "1", "must be a number from 0", "x"),
    ("count: below", integer_from(2), 1, "must be a whole number from 2", "x"),
    ("count: fraction", integer_from(2), 2.0, "must be a whole number from 2", "x"),
    ("count: boolean", integer_from(0), True, "must be a whole number from 0", "x"),
    ("count: null", integer_from(0), None, "must be a whole number from 0", "x"),
    ("one of: another", one_of(("a", "b")), "c", "must be one of a, b", "x"),
    ("one of: array", one_of(("a", "b")), ["a"], "must be one of a, b", "x"),
    ("or null: neither", nullable(check_string), 1, "must be a string, not a number", "x"),
    ("each: object", array_of(check_flag), {}, "must be an array, not an object", "x"),
    ("each: second", array_of(check_flag), [True, None], "must be true or false, not null", "x[1]"),
    (
        "each: of each",
        array_of(array_of(check_flag)),
        [[], [True, "no"]],
        "must be true or false, not a string",
        "x[1][1]",
    ),
    ("members: array", _CASE, [], "must be an object, not an array", "x"),
    ("members: first missing", _CASE, {"tags": []}, "missing", "x.name"),
    ("members: second missing", _CASE, {"name": "a"}, "missing", "x.tags"),
    ("members: required null", _CASE, {"name": None, "tags": []}, "must be a string, not null", "x.name"),
    ("members: inner", _CASE, {"name": "a", "tags": ["t", 1]}, "must be a string, not a number", "x.tags[1]"),
    ("members: optional", _CASE, {"name": "a", "tags": [], "age": 0}, "must be a whole number from 1", "x.age"),
]


@pytest.mark.parametrize(("check", "values"), [row[1:] for row in SOUND], ids=[row[0] for row in SOUND])
def test_a_sound_value_passes(check: Check, values: list[object]) -> None:
    for value in values:
        check(value, "x")


@pytest.mark.parametrize(
    ("check", "value", "problem", "where"), [row[1:] for row in FAULTY], ids=[row[0] for row in FAULTY]
)
def test_a_fault_is_named_with_its_place(check: Check, value: object, problem: str, where: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(value, "x")
    assert (caught.value.problem, caught.value.where) == (problem, where)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        pytest.param({"tags": []}, "name", id="missing"),
        pytest.param({"name": 1, "tags": []}, "name", id="required"),
        pytest.param({"name": "a", "tags": [], "age": "old"}, "age", id="optional"),
    ],
)
def test_the_place_in_a_whole_document_has_no_leading_dot(value: object, where: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        _CASE(value, "")
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("value", "whole"), [(0, True), (-7, True), (True, False), (1.0, False), ("1", False), (None, False)], ids=repr
)
def test_a_boolean_is_no_whole_number(value: object, whole: bool) -> None:  # noqa: FBT001  # the expected answer
    assert is_integer(value) == whole
