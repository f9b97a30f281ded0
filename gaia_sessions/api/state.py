"""What agents hand each other: the state of a session, and what it shares with other sessions of its app and its user.

Owns in which order several documents are changed at once: their locks first, in the order of ``scopes_of``, then the
session's; everything is checked before anything is written, and the session is written before what it shares. The rules
are in ``session.shared_state``.
"""

from __future__ import annotations

from contextlib import ExitStack

from gaia_sessions.errors import RevisionChanged
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.shared_state import (
    Delta,
    merged,
    revision_of,
    scopes_of,
    with_shared,
    with_state,
)
from gaia_sessions.store import document_lock_key

from .claiming import refuse_cancelled_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_state import Document, Scope, Values
    from gaia_sessions.store.port import Store, StoreReader

    class State(TypedDict):
        """The state that a session sees: its own keys, and with ``app:`` and ``user:`` those that it shares.

        revision: that of the record; app_revision, user_revision: those of what it shares, 0 if there is nothing.
        """

        agent_id: str
        app: str | None
        user: str | None
        revision: int
        app_revision: int
        user_revision: int
        state: Values


def read(sessions: StoreReader, agent_id: str) -> State:
    """The state of the session. Raises ``SessionNotFound``, ``CorruptSession``, ``StoreFailure``."""
    record = sessions.read(agent_id)
    return _seen(record, {scope: sessions.document(scope) for scope in scopes_of(record)})


def _seen(record: Record, documents: Mapping[Scope, Document | None]) -> State:
    revisions = [*map(revision_of, documents.values())] or [0, 0]
    return {
        "agent_id": record["agent_id"],
        "app": record.get("app"),
        "user": record.get("user"),
        "revision": record["revision"],
        "app_revision": revisions[0],
        "user_revision": revisions[1],
        "state": merged(record, documents),
    }


def change(
    store: Store, now: datetime, agent_id: str, delta: Delta, types: Mapping[str, str], expected: int | None = None
) -> State:
    """Applies ``delta``, and returns the state then. A delta that is refused changes nothing anywhere.

    Raises ``InvalidInput``, ``SessionFinal``, ``Cancelled``, ``RevisionChanged``, ``TooLarge``, ``SessionNotFound``,
    ``CorruptSession``. Whoever is killed before it has returned may have changed the session and not what it shares.
    """
    record = store.read(agent_id)
    parts, scopes = delta.parts(record), scopes_of(record)

    def commit() -> Record:
        with store.open(agent_id) as session:
            if scopes_of(session.record) != scopes:  # it was removed, and created again for somebody else
                raise RevisionChanged(agent_id, record["revision"], session.record["revision"])
            refuse_cancelled_work(session)
            changed = with_state(session.record, parts.get((), Delta()), types, now, expected)
            return session.commit(changed, reserved=RESERVED_BYTES)

    return _seen(*commit_with_shared(store, scopes, parts, commit))


def commit_with_shared(
    store: Store,
    scopes: Iterable[Scope],
    parts: Mapping[Scope, Delta],
    commit: Callable[[], Record],
    check: Callable[[Mapping[Scope, Document | None]], None] = lambda _: None,
) -> tuple[Record, dict[Scope, Document | None]]:
    """Calls ``commit`` and applies ``parts`` to what is shared; the record then, and the documents of ``scopes``.

    scopes: those of the session, in the order in which they are locked. check: looks at all their documents when those
    that change are locked. Whatever it or ``commit`` raises, and all that is raised before that, changes nothing.
    """
    with ExitStack() as stack:
        documents = {}
        for scope in scopes:
            if scope in parts:
                stack.enter_context(store.lock_key(document_lock_key(scope)))
            documents[scope] = store.document(scope)
        check(documents)
        changed = {scope: with_shared(documents[scope], scope, parts[scope]) for scope in documents if scope in parts}
        record = store.change_documents(changed, commit) if changed else commit()
        return record, {**documents, **changed}


def take_document(store: Store, document: Document) -> None:
    """Takes ``document`` in where there is none of its scope."""
    scope = (*document["scope"],)
    with store.lock_key(document_lock_key(scope)):
        if store.document(scope) is None:
            store.change_documents({scope: document}, lambda: None)
