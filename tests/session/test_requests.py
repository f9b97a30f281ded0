"""Requests to create or update a session: which are refused, and how much room they leave in the record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gaia_sessions.errors import InvalidId, InvalidInput, SessionFinal, UnknownPhase
from gaia_sessions.session.requests import (
    NewSession,
    checked_update,
    reserved_for,
    with_update,
)
from gaia_sessions.session.retention import RESERVED_BYTES, ROOM_FOR_ENDS
from tests.records import record_with
from tests.table import table

NOW = datetime(2026, 1, 8, 18, 5, 30, 123456, tzinfo=UTC)


@table(
    ("words", "error"),
    [
        ({"agent_name": 1, "purpose": "test"}, InvalidInput),  # a name that is not text
        ({"agent_name": "x", "purpose": None}, InvalidInput),  # a purpose that is not text
        ({"agent_name": "x", "purpose": "y", "metadata": [1]}, InvalidInput),  # metadata without keys
        ({"agent_name": "x", "purpose": "y", "agent_id": "../x"}, InvalidId),  # an ID that is a path
    ],
)
def test_an_invalid_new_session_is_refused_before_any_store_is_used(words: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        NewSession(**words)


def test_a_new_session_has_the_id_asked_for_or_a_generated_one() -> None:
    asked, generated = NewSession("x", "y", {"k": 1}, "agent-1"), NewSession("x", "y", {"k": 1})
    assert asked.record(NOW, bytes)["agent_id"] == "agent-1"
    assert generated.record(NOW, bytes) == {**asked.record(NOW, bytes), "agent_id": "agent-20260108-180530-00000000"}


def test_a_later_change_of_the_callers_metadata_does_not_change_the_request() -> None:
    metadata = {"found": ["a"]}
    new, update = NewSession("x", "y", metadata), checked_update(metadata=metadata)
    metadata["found"].append("b")
    assert (new.metadata, update["metadata"]) == ({"found": ["a"]}, {"found": ["a"]})


@table(
    ("asked", "reserved"),
    [
        ({"phase": "completed"}, 0),
        ({"phase": "failed", "error": "e" * 4000, "max_tokens": 7}, 0),
        ({}, RESERVED_BYTES),
        ({"phase": "planning", "resume_ready": True}, RESERVED_BYTES),
        ({"phase": "approval", "question": "q" * 4000, "error": "e" * 4000}, RESERVED_BYTES),
        ({"error": "e" * 4001}, ROOM_FOR_ENDS),
        ({"metadata": {}}, ROOM_FOR_ENDS),
        ({"phase": "completed", "metadata": {}}, ROOM_FOR_ENDS),
    ],
)
def test_an_end_reserves_no_room_an_ordinary_update_little_and_data_of_users_more(
    asked: dict[str, Any], reserved: int
) -> None:
    assert reserved_for(checked_update(**asked)) == reserved


def test_an_update_sets_the_token_budget_of_an_open_session_only() -> None:
    given = with_update(record_with(phase="planning", max_tokens=5), checked_update(max_tokens=7), NOW)
    assert (given["max_tokens"], given["phase"]) == (7, "planning")
    ended: Any = checked_update("completed", max_tokens=7)
    with pytest.raises(SessionFinal):
        with_update(record_with(phase="completed"), ended, NOW)
    with pytest.raises(InvalidInput):
        checked_update(max_tokens=0)


def test_an_update_to_an_unknown_phase_is_refused_when_it_is_made() -> None:
    with pytest.raises(UnknownPhase):
        checked_update("sleeping")
