"""Ends that somebody states: the outcome and the texts that are accepted, and a repeated end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gaia_sessions.errors import InvalidInput, SessionFinal, UnknownOutcome
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.stated_ends import check_ending, reserved_for_texts, with_ending
from tests.records import record_with
from tests.table import table

NOW = datetime(2026, 1, 8, 18, 5, 30, 123456, tzinfo=UTC)


@table("outcome", ["approval", "done", "", None])
def test_an_ending_refuses_an_outcome_other_than_the_three(outcome: Any) -> None:
    with pytest.raises(UnknownOutcome):
        check_ending(outcome, None, None)


@table("words", [{"summary": 1}, {"error": ["no"]}])
def test_an_ending_refuses_a_summary_or_error_that_is_not_text(words: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        check_ending("failed", **{"summary": None, "error": None, **words})


def test_an_end_reserves_room_only_if_its_texts_are_long() -> None:
    assert reserved_for_texts("it broke", "no such host") == reserved_for_texts(None, None) == 0
    assert reserved_for_texts("it broke" * 1000, None) == RESERVED_BYTES


def test_repeating_an_end_changes_nothing_and_another_outcome_is_refused() -> None:
    completed = with_ending(record_with(phase="executing"), "completed", NOW, "done")
    assert with_ending(completed, "completed", NOW, "again") is completed
    with pytest.raises(SessionFinal):
        with_ending(completed, "failed", NOW)
