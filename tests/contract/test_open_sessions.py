"""What every store promises of a session that is open for a change: what is read, decided and told is of one moment."""

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


def test_what_is_committed_is_what_stands_there_then(store: Store, new: New) -> None:
    store.create(new())

    with store.open("agent-1") as session:
        assert session.record == new()
        kept = session.commit(Change(noted(session.record), [{"entry": 1}, {"entry": 2}]))
        assert session.record == kept

    assert store.read("agent-1") == kept == new(metadata={"noted": True}, revision=2)
    assert list(store.entries("agent-1", "events.jsonl")) == [{"entry": 1}, {"entry": 2}]


def test_whoever_commits_nothing_changes_nothing(store: Store, new: New) -> None:
    store.create(new())

    with store.open("agent-1") as session:
        assert session.commit(Change(session.record, [{"nothing": "was written"}])) is session.record
    assert (store.read("agent-1"), list(store.entries("agent-1", "events.jsonl"))) == (new(), [])


def test_why_it_is_cancelled_is_known_before_and_after_a_commit(store: Store, new: New) -> None:
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


def test_a_mark_on_a_session_above_that_comes_between_the_question_and_the_commit_counts(
    store: Store, new: New
) -> None:
    store.create(new("above"))
    store.create(new("agent-1", parent_id="above"))

    with store.open("agent-1") as session:
        assert session.cancellation() is None
        store.mark("above", lambda _: BELOW)
        kept = session.commit(noted(session.record))

    assert (kept["phase"], session.cancellation()) == ("abandoned", {"at": AT, "reason": "enough", "by": "above"})


def test_what_is_missing_or_newer_cannot_be_changed(store: Store, new: New) -> None:
    store.create(new("newer", schema=2))

    for agent_id, error in (("missing", SessionNotFound), ("newer", NewerSchema)):
        with pytest.raises(error), store.open(agent_id) as session:
            session.commit(noted(session.record))

    assert store.read("newer") == new("newer", schema=2)
