"""The state of a session: its own keys, and the keys that it shares with sessions of its app and its user.

Locks are taken in this order: documents as in ``scopes_of``, session. Everything is checked before the first write.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

from gaia_sessions.errors import RevisionChanged
from gaia_sessions.session.retention import ROOM_FOR_ENDS
from gaia_sessions.session.shared_keys import (
    Delta,
    merged,
    revision_of,
    scopes_of,
    with_delta,
    with_shared,
)
from gaia_sessions.store import document_lock_key

from .preconditions import refuse_cancelled_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypedDict

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document, Scope, Values
    from gaia_sessions.store.port import Store

    from .at import Reading, Writing

    class SharedKeys(TypedDict):
        """The state that a session sees: its own keys and, with ``app:`` and ``user:``, the shared keys.

        Keys:
            app_revision, user_revision: the revisions of the shared keys; 0 if there are none.
        """

        agent_id: str
        app: str | None
        user: str | None
        revision: int
        app_revision: int
        user_revision: int
        state: Values


def state(at: Reading, agent_id: str) -> SharedKeys:
    """Returns [the state](state.md) that a session sees: its own keys and the shared keys.

    Example:
        agent_id = sessions.create("planner", app="shop", user="u1", state={"app:currency": "EUR", "step": 1})
        print(sessions.state(agent_id)["state"]["step"])
    """
    record = at.store.read(agent_id)
    return _seen(record, {scope: at.store.document(scope) for scope in scopes_of(record)})


def change_state(
    at: Writing,
    agent_id: str,
    set: Mapping[str, object] | None = None,  # noqa: A002  # the name in the documents
    *,
    unset: Iterable[str] = (),
    add: Mapping[str, int] | None = None,
    if_revision: int | None = None,
) -> SharedKeys:
    """Changes [the state](state.md) of a session in one step.

    A refused call changes nothing. If the process is killed during the call, perhaps only the session's own keys have
    changed, and not the shared keys.

    Args:
        set: gives values to keys; None is a value.
        unset: clears keys, whether they exist or not.
        add: adds whole numbers; a missing key counts as 0.
        if_revision: as in ``update``.

    Returns:
        The new state.

    Raises:
        InvalidInput: a key is named twice, or is never stored (``temp:``, ``secret:``), or the settings do not allow
            it; or a value is not JSON.
        RevisionChanged: the record has another revision.
        Cancelled: the session is cancelled.

    Example:
        agent_id = sessions.create("planner", state={"user_id": "u1"})
        sessions.change_state(agent_id, {"intent": "create_domain"}, add={"attempts": 1})
        print(sessions.state(agent_id)["state"])
    """
    delta = Delta(set, [*unset] if not isinstance(unset, str) else unset, add)
    record = at.store.read(agent_id)
    parts, scopes = delta.parts(record), scopes_of(record)
    with locked_documents(at.store, scopes, parts) as documents:
        shared = changed_documents(documents, parts)
        with at.store.open(agent_id) as session:
            if scopes_of(session.record) != scopes:  # the session was removed, and created again for another user
                raise RevisionChanged(agent_id, record["revision"], session.record["revision"])
            refuse_cancelled_work(session)
            changed = with_delta(session.record, parts.get((), Delta()), at.config.state_keys, at.now, if_revision)
            record = session.commit(changed, reserved=ROOM_FOR_ENDS, documents=shared)
    return _seen(record, {**documents, **shared})


def _seen(record: Record, documents: Mapping[Scope, Document | None]) -> SharedKeys:
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


@contextmanager
def locked_documents(
    store: Store, scopes: Iterable[Scope], parts: Mapping[Scope, Delta]
) -> Iterator[dict[Scope, Document | None]]:
    """Yields the documents of ``scopes``; those that ``parts`` change stay locked until the end of the block."""
    with ExitStack() as stack:
        documents = {}
        for scope in scopes:
            if scope in parts:
                stack.enter_context(store.lock_key(document_lock_key(scope)))
            documents[scope] = store.document(scope)
        yield documents


def changed_documents(
    documents: Mapping[Scope, Document | None], parts: Mapping[Scope, Delta]
) -> dict[Scope, Document]:
    """Returns the documents that ``parts`` change, with the changes."""
    return {scope: with_shared(documents[scope], scope, parts[scope]) for scope in documents if scope in parts}
