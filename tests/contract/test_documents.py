"""What sessions share is kept in one document for each scope, changed around a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import DurabilityUnknown, RunGone, TooLarge
from gaia_sessions.store.memory_store import MemoryStore
from tests.records import record_with

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.store.port import Store

RECORD: Record = record_with()
APP: Scope = ("kb",)
USER: Scope = ("kb", "Ärger/..\n" + "u" * 290)


def document(scope: Scope, **state: object) -> Document:
    return {"scope": [*scope], "revision": 1, "state": state}  # type: ignore[typeddict-item]  # is JSON


def test_there_is_none_at_first_and_then_the_one_that_was_stored(store: Store) -> None:
    assert (store.document(APP), store.document(USER)) == (None, None)
    done: list[object] = []

    def commit() -> Record:
        done.append((store.document(APP), store.document(USER)))
        return RECORD

    documents = {APP: document(APP, x=None), USER: document(USER, y=["é"])}
    assert store.change_documents(documents, commit) is RECORD
    assert done == [(None, None)]
    assert (store.document(APP), store.document(USER)) == (documents[APP], documents[USER])
    assert store.document(("kb", "x")) is None


def test_a_commit_that_is_refused_changes_none_and_what_does_not_fit_stops_before_it(store: Store) -> None:
    store.change_documents({APP: document(APP, x=1)}, lambda: RECORD)
    done: list[int] = []

    def refuse() -> Record:
        done.append(1)
        raise RunGone("a", 1)

    with pytest.raises(RunGone):
        store.change_documents({APP: document(APP, x=2), USER: document(USER)}, refuse)
    with pytest.raises(TooLarge):
        store.change_documents({USER: document(USER), APP: document(APP, x="x" * (1 << 21))}, refuse)
    assert (done, store.document(APP), store.document(USER)) == ([1], document(APP, x=1), None)


def test_a_commit_whose_durability_is_unknown_is_followed_by_the_documents(store: Store) -> None:
    if isinstance(store, MemoryStore):
        pytest.skip("nothing in it is durable")

    def commit() -> Record:
        raise DurabilityUnknown("folder", "no space")

    with pytest.raises(DurabilityUnknown):
        store.change_documents({APP: document(APP, x=1)}, commit)
    assert store.document(APP) == document(APP, x=1)
