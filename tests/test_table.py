"""``tests.table``: one test walks all rows of a table and reports each failed row."""

from __future__ import annotations

import pytest

from tests.table import table


def test_every_row_is_tested_and_the_report_has_each_failed_row() -> None:
    asked = []

    @table("one, other", [(1, 1), (1, 2), (3, 3), (3, 4)])
    def is_equal(one: int, other: int) -> None:
        asked.append((one, other))
        assert one == other

    with pytest.raises(ExceptionGroup, match="2 of 4 rows failed") as raised:
        is_equal()

    assert asked == [(1, 1), (1, 2), (3, 3), (3, 4)]
    assert [error.__notes__ for error in raised.value.exceptions] == [["row: one=1, other=2"], ["row: one=3, other=4"]]


def test_a_row_that_misses_an_expected_exception_does_not_stop_the_others() -> None:
    @table("value", ["x", "1", "2"])
    def is_no_number(value: str) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            int(value)

    with pytest.raises(ExceptionGroup, match="2 of 3 rows failed") as raised:
        is_no_number()

    assert [error.__notes__ for error in raised.value.exceptions] == [["row: value='1'"], ["row: value='2'"]]


def test_a_row_cannot_be_skipped() -> None:
    @table("value", [1, 2])
    def skips(value: int) -> None:
        if value == 1:
            pytest.skip("not here")

    with pytest.raises(AssertionError, match="Skipped: not here"):
        skips()


def test_one_row_that_fails_raises_its_own_error() -> None:
    @table("value", ["1", "x"])
    def is_number(value: str) -> None:
        int(value)

    with pytest.raises(ValueError, match="invalid literal") as raised:
        is_number()

    assert raised.value.__notes__ == ["row: value='x'"]


def test_several_tables_give_their_product_and_fixtures_are_given_by_name() -> None:
    asked = []

    @table("upper", ["A", "B"])
    @table(("lower", "number"), [("a", 1), ("b", 2)])
    def ask(number: int, upper: str, lower: str, fixture: str) -> None:
        asked.append((fixture, upper, lower, number))

    ask(fixture="given")

    assert asked == [("given", *row) for row in [("A", "a", 1), ("A", "b", 2), ("B", "a", 1), ("B", "b", 2)]]


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(AssertionError, match="the table of value is empty"):
        table("value", [])
