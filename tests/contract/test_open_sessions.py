"""Contract of ``open``: the record, the cancellation and the commit belong to one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import NewerSchema, SessionNotFound
from gaia_sessions.session.updates import Change
from tests.contract.conftest import noted

if TYPE_CHECKING:
    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.store.port import Store
    from tests.contract.conftest import New


AT = "2026-01-09T00:00:00.000000Z"
BELOW: Mark = {"at": AT, "reason": "enough", "below": True}


def test_a_commit_writes_the_record_and_its_journal_entries(store: Store, new: New) -> None:
    store.create(new())

    with store.open("agent-1") as session:
        assert session.record == new()
        kept = session.commit(Change(noted(session.record), [{"entry": 1}, {"entry": 2}]))
        assert session.record == kept

    assert store.read("agent-1") == kept == new(metadata={"noted": True}, revision=2)
    assert list(store.entries("agent-1", "events.jsonl")) == [{"entry": 1}, {"entry": 2}]


def test_committing_the_unchanged_record_writes_nothing(store: Store, new: New) -> None:
    store.create(new())

    with store.open("agent-1") as session:
        assert session.commit(Change(session.record, [{"nothing": "was written"}])) is session.record
    assert (store.read("agent-1"), list(store.entries("agent-1", "events.jsonl"))) == (new(), [])


def test_an_open_session_knows_its_cancellation_before_and_after_a_commit(store: Store, new: New) -> None:
    store.create(new("above"))
    store.create(new("agent-1", parent_id="above"))
    store.create(new("agent-2"))
    store.mark("above", lambda _: BELOW)

    with store.open("agent-1") as session:
        before = session.cancellation()
        phase = session.commit(noted(session.record))["phase"]
        after = session.cancellation()
    with store.open("agent-2") as other:
        other.commit(noted(other.record))
        assert other.cancellation() is None

    assert (before, phase, after) == ({"at": AT, "reason": "enough", "by": "above"}, "abandoned", before)


def test_a_mark_on_a_parent_written_just_before_the_commit_cancels_the_session(store: Store, new: New) -> None:
    store.create(new("above"))
    store.create(new("agent-1", parent_id="above"))

    with store.open("agent-1") as session:
        assert session.cancellation() is None
        store.mark("above", lambda _: BELOW)
        kept = session.commit(noted(session.record))

    assert (kept["phase"], session.cancellation()) == ("abandoned", {"at": AT, "reason": "enough", "by": "above"})


def test_a_missing_session_or_one_with_a_newer_schema_cannot_be_changed(store: Store, new: New) -> None:
    store.create(new("newer", schema=2))

    for agent_id, error in (("missing", SessionNotFound), ("newer", NewerSchema)):
        with pytest.raises(error), store.open(agent_id) as session:
            session.commit(noted(session.record))

    assert store.read("newer") == new("newer", schema=2)
