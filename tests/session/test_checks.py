"""The checks of values in documents: what they accept, and the problem and place of each fault."""

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
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.checks import Check

_CASE = object_with({"name": check_string, "tags": array_of(check_string)}, {"age": nullable(integer_from(1))})

SOUND: list[tuple[Check, list[object]]] = [
    (check_string, ["", "a"]),
    (check_flag, [True, False]),
    (check_object, [{}, {"a": 1}]),
    (check_time, ["2026-01-08T18:05:30Z", "2026-01-08 18:05"]),
    (check_seconds, [0, 0.0, 1.5, 7]),
    (integer_from(2), [2, 3, 1 << 62]),
    (one_of(("a", "b")), ["a", "b"]),
    (nullable(check_string), [None, "a"]),
    (array_of(check_flag), [[], [True], [True, False]]),
    (
        _CASE,
        [
            {"name": "a", "tags": []},
            {"tags": ["t"], "age": 1, "name": "a"},
            {"name": "a", "tags": [], "age": None, "unknown": object()},
        ],
    ),
]

FAULTY: list[tuple[Check, object, str, str]] = [
    (check_string, None, "must be a string, not null", "x"),
    (check_string, 1, "must be a string, not a number", "x"),
    (check_flag, 1, "must be true or false, not a number", "x"),
    (check_flag, "true", "must be true or false, not a string", "x"),
    (check_object, [], "must be an object, not an array", "x"),
    (check_time, "2026-01-08", "must be an ISO 8601 time", "x"),
    (check_time, 1767895530, "must be an ISO 8601 time", "x"),
    (check_seconds, -0.001, "must be a number from 0", "x"),
    (check_seconds, True, "must be a number from 0", "x"),
    (check_seconds, "1", "must be a number from 0", "x"),
    (integer_from(2), 1, "must be a whole number from 2", "x"),
    (integer_from(2), 2.0, "must be a whole number from 2", "x"),
    (integer_from(0), True, "must be a whole number from 0", "x"),
    (integer_from(0), None, "must be a whole number from 0", "x"),
    (one_of(("a", "b")), "c", "must be one of a, b", "x"),
    (one_of(("a", "b")), ["a"], "must be one of a, b", "x"),
    (nullable(check_string), 1, "must be a string, not a number", "x"),
    (array_of(check_flag), {}, "must be an array, not an object", "x"),
    (array_of(check_flag), [True, None], "must be true or false, not null", "x[1]"),
    (array_of(array_of(check_flag)), [[], [True, "no"]], "must be true or false, not a string", "x[1][1]"),
    (_CASE, [], "must be an object, not an array", "x"),
    (_CASE, {"tags": []}, "missing", "x.name"),
    (_CASE, {"name": "a"}, "missing", "x.tags"),
    (_CASE, {"name": None, "tags": []}, "must be a string, not null", "x.name"),
    (_CASE, {"name": "a", "tags": ["t", 1]}, "must be a string, not a number", "x.tags[1]"),
    (_CASE, {"name": "a", "tags": [], "age": 0}, "must be a whole number from 1", "x.age"),
]


@table(("check", "values"), SOUND)
def test_a_sound_value_passes(check: Check, values: list[object]) -> None:
    for value in values:
        check(value, "x")


@table(("check", "value", "problem", "where"), FAULTY)
def test_an_invalid_value_is_refused_with_its_problem_and_place(
    check: Check, value: object, problem: str, where: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(value, "x")
    assert (caught.value.problem, caught.value.where) == (problem, where)


@table(
    ("value", "where"),
    [
        ({"tags": []}, "name"),  # missing
        ({"name": 1, "tags": []}, "name"),  # required
        ({"name": "a", "tags": [], "age": "old"}, "age"),  # optional
    ],
)
def test_the_place_in_a_whole_document_has_no_leading_dot(value: object, where: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        _CASE(value, "")
    assert caught.value.where == where


@table(("value", "whole"), [(0, True), (-7, True), (True, False), (1.0, False), ("1", False), (None, False)])
def test_a_boolean_a_float_or_a_string_is_not_a_whole_number(value: object, whole: bool) -> None:  # noqa: FBT001  # the expected answer
    assert is_integer(value) == whole
