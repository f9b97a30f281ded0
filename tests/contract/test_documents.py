"""Contract of shared documents: one for each scope, changed in one commit with a session."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import DurabilityUnknown, InvalidInput, SessionExists, TooLarge
from gaia_sessions.session.transcript import LINE_LIMIT, new_message
from gaia_sessions.session.updates import Change
from gaia_sessions.store import atomic, document_lock_key
from gaia_sessions.store.file_store import FileStore
from tests.contract.conftest import not_planned
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.store.port import Store
    from tests.contract.conftest import New

pytestmark = not_planned

NOW = datetime(2026, 1, 8, 19, 0, tzinfo=UTC)
APP: Scope = ("kb",)
USER: Scope = ("kb", "Ärger/..\n" + "u" * 290)


def document(scope: Scope, **state: object) -> Document:
    return {"scope": [*scope], "revision": 1, "state": state}  # type: ignore[typeddict-item]  # is JSON


def shared(store: Store) -> list[Document | None]:
    return [store.document(APP), store.document(USER)]


def test_documents_exist_only_after_a_session_is_created_with_them(store: Store, new: New) -> None:
    assert shared(store) == [None, None]

    documents = {APP: document(APP, x=None), USER: document(USER, y=["é"])}
    store.create(new(), documents=documents)

    assert (shared(store), store.read("agent-1")) == ([*documents.values()], new())
    assert store.document(("kb", "x")) is None


def test_one_commit_writes_the_record_entries_messages_and_documents(store: Store, new: New) -> None:
    store.create(new(), documents={APP: document(APP, x=1)})
    said = new_message("user", "hello", NOW)

    with store.lock_key(document_lock_key(APP)), store.lock_key(document_lock_key(USER)), store.open("agent-1") as one:
        change = Change({**one.record, "purpose": "talk"}, [{"number": 1}])
        record = one.commit(change, messages=[said], documents={APP: document(APP, x=2), USER: document(USER)})
        added = [*one.added]

    assert added == list(store.messages("agent-1")) == [{"seq": 1, "turn": 1, **said}]
    assert record == store.read("agent-1")
    assert record == new(purpose="talk", revision=2, last_seq=1, transcript_bytes=record["transcript_bytes"])
    assert list(store.entries("agent-1", "events.jsonl")) == [{"number": 1}]
    assert shared(store) == [document(APP, x=2), document(USER)]


def test_a_commit_of_documents_alone_raises_the_revision_and_adds_no_message(store: Store, new: New) -> None:
    store.create(new())

    with store.open("agent-1") as session:
        session.commit(session.record, messages=[new_message("user", "before", NOW)])
        added = [len(session.added)]
        record = session.commit(session.record, documents={APP: document(APP)})
        added.append(len(session.added))

    assert (record["revision"], added, shared(store)) == (3, [1, 0], [document(APP), None])


LONG = "x" * LINE_LIMIT


@table(
    ("record", "said", "documents", "error"),
    [
        ({"metadata": {"x": LONG}}, "hello", {USER: {}}, TooLarge),
        ({}, LONG, {USER: {}}, TooLarge),
        ({}, "NUL \0", {USER: {}}, InvalidInput),
        ({}, "hello", {USER: {}, APP: {"x": 2 * LONG}}, TooLarge),
    ],
)
def test_a_refused_commit_changes_no_record_message_or_document(
    store: Store, new: New, record: dict[str, object], said: str, documents: dict[Scope, dict[str, object]], error: type
) -> None:
    agent_id = f"agent-{error.__name__}-{len(documents)}-{len(said)}-{len(record)}"
    store.create(new(agent_id), documents={APP: document(APP, x=1)})

    with store.open(agent_id) as session, pytest.raises(error):
        session.commit(
            {**session.record, "purpose": "talk", **record},  # type: ignore[arg-type]  # a key of a record
            messages=[{**new_message("user", "", NOW), "content": said}],
            documents={scope: document(scope, **state) for scope, state in documents.items()},
        )

    assert shared(store) == [document(APP, x=1), None]
    assert (store.read(agent_id), list(store.messages(agent_id))) == (new(agent_id), [])


def test_a_refused_creation_writes_no_documents(store: Store, new: New) -> None:
    store.create(new())

    with pytest.raises(SessionExists):
        store.create(new(), documents={APP: document(APP)})
    with pytest.raises(TooLarge):
        store.create(new("agent-2"), documents={APP: document(APP, x=2 * LONG)})

    assert (shared(store), store.has("agent-2")) == ([None, None], False)


def test_add_document_writes_only_if_there_is_no_document(store: Store) -> None:
    for value in (1, 2):
        store.add_document(document(APP, x=value))

    assert shared(store) == [document(APP, x=1), None]


def test_documents_are_written_even_if_the_durability_of_the_record_is_unknown(
    store: Store, new: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not isinstance(store, FileStore):
        pytest.skip("this store has nothing durable")
    store.create(new())
    replace = atomic.replace

    def replace_unsynced(*args: object, **options: object) -> None:
        replace(*args, **options)  # type: ignore[arg-type]  # as they were given
        raise DurabilityUnknown("folder", "no space")

    monkeypatch.setattr(atomic, "replace", replace_unsynced)
    with store.open("agent-1") as session, pytest.raises(DurabilityUnknown):
        session.commit({**session.record, "purpose": "talk"}, documents={APP: document(APP, x=1)})

    assert (store.read("agent-1")["purpose"], shared(store)) == ("talk", [document(APP, x=1), None])
