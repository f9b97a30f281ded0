"""One process of a storm: ``server_worker.py ROLE URL ME TIMES``. It prints the outcome and the name of each act.

``done`` is acknowledged; ``refused`` is certainly not written; ``unknown`` may be either. Any other error ends it.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from gaia_sessions import Sessions, SubAgentSession
from gaia_sessions.errors import (
    DurabilityUnknown,
    SessionFinal,
    SessionsError,
    TooManyChildren,
)
from gaia_sessions.session.tree_limits import MAX_CHILDREN_AT_WORK
from gaia_sessions.session.updates import Change
from gaia_sessions.store import document_lock_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document

KB = ("kb",)


def told(act: Callable[[], object], name: str) -> str:
    """Does one act, and prints what came of it."""
    try:
        act()
        outcome = "done"
    except DurabilityUnknown:
        outcome = "unknown"
    except SessionsError as error:
        outcome = "refused"
        sys.stderr.write(f"{name}: {error!r}\n")
    sys.stdout.write(f"{outcome} {name}\n")
    sys.stdout.flush()
    return outcome


def counts(sessions: Sessions, me: str, number: int) -> None:
    """Counts in the record that all writers share, with an entry for each count."""

    def rule(record: Record) -> Change:
        counted = {**record["metadata"]}
        counted[me] = counted.get(me, 0) + 1  # type: ignore[operator]  # it is a number
        return Change({**record, "metadata": counted}, [{"by": me, "n": counted[me]}])

    def act() -> None:
        with sessions.store as store:
            store.change("shared", rule)

    told(act, f"{me}.{number}")


def adds(sessions: Sessions, me: str, number: int) -> None:
    """Adds to a key of the session, of its app and of its user."""
    told(lambda: sessions.change_state("shared", add={me: 1, f"app:{me}": 1, f"user:{me}": 1}), f"{me}.{number}")


def writes(sessions: Sessions, me: str, number: int) -> None:
    """Counts in a document, under the lock of its key."""

    def act() -> None:
        with sessions.store as store, store.lock_key(document_lock_key(KB)), store.open("shared") as session:
            document: Document = store.document(KB) or {"scope": [*KB], "revision": 0, "state": {}}
            state = {**document["state"], me: document["state"].get(me, 0) + 1}  # type: ignore[operator]
            changed: Document = {**document, "revision": document["revision"] + 1, "state": state}
            session.commit({**session.record}, documents={KB: changed})

    told(act, f"{me}.{number}")


def creates(sessions: Sessions, me: str, number: int) -> None:
    """Makes a child of the shared session, and ends it; waits while there are too many."""
    agent_id = f"{me}-{number}"

    def act() -> None:
        while True:
            try:
                sessions.create("racer", agent_id=agent_id, parent_id="shared")
            except TooManyChildren:
                time.sleep(0.01)
            else:
                return

    if told(act, agent_id) == "refused":
        return
    with sessions.store as store:
        is_open = len(store.children(["shared"], open_only=True))
    assert is_open <= MAX_CHILDREN_AT_WORK, is_open
    while _is_open(sessions, agent_id):
        time.sleep(0.01)


def _is_open(sessions: Sessions, agent_id: str) -> bool:
    try:
        sessions.finalize(agent_id, "completed")
    except SessionFinal:
        return False
    except SessionsError as error:
        return error.code != "not_found"
    return False


def sends(sessions: Sessions, me: str, number: int) -> None:
    """Sends to the agent of its own session."""
    talk = SubAgentSession(lambda said: f"answer to {said[-1]['content']}", agent_id=f"talk-{me}", root=sessions.root)
    told(lambda: talk.send(f"{me}.{number}", wait=200), f"{me}.{number}")


def reconciles(sessions: Sessions, _me: str, _number: int) -> None:
    """Closes what can be closed, until only one session is open beside the one above; prints whom it ended."""
    ended: list[str] = []
    with sessions.store as store:
        while store.children(["above"], open_only=True):
            if told(lambda: ended.extend(sessions.reconcile()["abandoned"]), "reconcile") == "done":
                for agent_id in ended:
                    told(lambda: None, agent_id)
            ended.clear()


ROLES = {role.__name__: role for role in (counts, adds, writes, creates, sends, reconciles)}


def main(role: str, url: str, me: str, times: str) -> None:
    sessions = Sessions(url)
    for number in range(int(times)):
        ROLES[role](sessions, me, number)


if __name__ == "__main__":
    main(*sys.argv[1:])
