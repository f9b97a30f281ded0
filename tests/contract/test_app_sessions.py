"""Sessions of an app in every store: their owners, events with shared state in one commit, and stale events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.adk.app_events import app_event
from gaia_sessions.api import app_sessions
from gaia_sessions.errors import InvalidInput, SessionFinal, StateChanged, TooLarge
from gaia_sessions.session.app_sessions import Seen
from gaia_sessions.session.phases import COMPLETED
from gaia_sessions.session.record import new_record
from gaia_sessions.session.shared_keys import Delta
from gaia_sessions.session.transcript import new_message
from gaia_sessions.session.updates import with_phase
from tests.contract.conftest import not_planned
from tests.records import START
from tests.removals import deleted
from tests.transcripts import add_messages, begin_anew

if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store

pytestmark = not_planned

EVENT = '{"author": "%s", "timestamp": 1700000000.5, "content": {"parts": [{"text": "%s"}]}}'


def of_app(agent_id: str, user: str | None = "u1", app: str = "kb", **keys: Any) -> Record:
    owner = {"app": app, "user": user} if user else {}
    return {**new_record(agent_id, "Explore", "general", {}, START), **owner, **keys}  # type: ignore[typeddict-item]  # keys of a record


def append(store: Store, now: datetime, seen: Seen, text: str = "hi", author: str = "user", **delta: Any) -> Seen:
    event, keys = app_event(EVENT % (author, text)), {key.replace("__", ":"): value for key, value in delta.items()}
    return app_sessions.append(store, now, store.read("one"), seen, event, Delta(keys), {})


def seen(store: Store) -> Seen:
    return app_sessions.values_of(store, store.read("one"))[1]


def test_the_open_sessions_of_one_user_of_an_app_are_found(store: Store, now: datetime) -> None:
    for record in (
        of_app("one"),
        of_app("two"),
        of_app("other", "u2"),
        of_app("elsewhere", app="x"),
        of_app("none", None),
    ):
        store.create(record)
    assert sorted(record["agent_id"] for record in store.open_of_app("kb", "u1")) == ["one", "two"]
    store.change("one", lambda record: with_phase(record, COMPLETED, now))
    assert [record["agent_id"] for record in store.open_of_app("kb", "u1")] == ["two"]
    deleted(store, "two", lambda _: True)
    assert [*store.open_of_app("kb", "u1")] == [*store.open_of_app("kb", "nobody")] == []


def test_an_event_is_stored_as_a_message_of_its_turn_with_its_state(store: Store, now: datetime) -> None:
    store.create(of_app("one"))
    after = append(store, now, seen(store), "question", n=1, app__n=1)
    after = append(store, now, after, "answer", "agent", n=2, user__n=1)
    append(store, now, after, "again", n=3)
    record = store.read("one")
    assert (record["turns"], record["session_state"], record["purpose"]) == (2, {"n": 3}, "question")
    told = [(one["turn"], one["role"], one["content"]) for one in app_sessions.messages_of(store, record)]
    assert told == [(1, "user", "question"), (1, "assistant", "answer"), (2, "user", "again")]
    assert app_sessions.values_of(store, record)[0] == {"n": 3, "app:n": 1, "user:n": 1}


def test_an_event_that_missed_a_message_or_a_key_change_is_refused_whole(store: Store, now: datetime) -> None:
    store.create(of_app("one"))
    first = second = seen(store)
    shared = append(store, now, first, n=1, app__n=1)
    with pytest.raises(StateChanged, match="another message was added"):
        append(store, now, second, n=2)
    other = Seen(shared.seq, shared.own, [0, 0])
    with pytest.raises(StateChanged, match="a shared app: key was changed"):
        append(store, now, other, app__n=2, user__n=2)
    append(store, now, other, user__n=3)
    assert app_sessions.values_of(store, store.read("one"))[0] == {"n": 1, "app:n": 1, "user:n": 3}
    assert len(app_sessions.messages_of(store, store.read("one"))) == 2


def test_an_event_that_is_refused_changes_nothing(store: Store, now: datetime) -> None:
    store.create(of_app("one"))
    for refused, error in ((dict.fromkeys(["temp__x"], 1), InvalidInput), ({"n": "x" * (1 << 20)}, TooLarge)):
        with pytest.raises(error):
            append(store, now, seen(store), app__n=1, **refused)
    store.change("one", lambda record: with_phase(record, COMPLETED, now))
    with pytest.raises(SessionFinal):
        append(store, now, seen(store), app__n=1)
    assert (store.document(("kb",)), [*store.messages("one")]) == (None, [])


def test_a_message_that_a_person_adds_is_not_an_event_but_makes_older_events_stale(store: Store, now: datetime) -> None:
    store.create(of_app("one"))
    before = append(store, now, seen(store), "question")
    add_messages(store, "one", [new_message("user", "by a person", now)], dict)  # type: ignore[arg-type]  # a copy
    with pytest.raises(StateChanged):
        append(store, now, before, "answer", "agent")
    append(store, now, seen(store), "answer", "agent")
    assert [one["content"] for one in app_sessions.messages_of(store, store.read("one"), 5)] == ["question", "answer"]


def test_an_event_for_an_emptied_or_recreated_session_is_refused(store: Store, now: datetime) -> None:
    store.create(of_app("one"))
    before = append(store, now, seen(store), "question")
    begin_anew(store, "one")
    with pytest.raises(StateChanged, match="begun again"):
        append(store, now, before, "answer")
    deleted(store, "one", lambda _: True)
    store.create(of_app("one"))
    first = seen(store)
    deleted(store, "one", lambda _: True)
    store.create(of_app("one", created_at="2026-01-09T18:00:00.000000Z"))
    with pytest.raises(StateChanged, match="begun again"):
        append(store, now, first, "answer")


def test_a_seen_state_is_written_as_text_and_read_back(store: Store, now: datetime) -> None:
    store.create(of_app("one", session_state={"k": 1}))
    after = append(store, now, seen(store), app__n=1)
    read = Seen.from_text(after.text())
    assert read is not None
    assert (read.text(), read.text() == seen(store).text()) == (after.text(), True)
    for text in ("", "1", "x.y", "1.abc.-1.0", "1.abc.1", "1.abc.1.1.1", "2026-01-01T00:00:00"):
        assert Seen.from_text(text) is None
