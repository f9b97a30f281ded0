"""What an event says about the agent or workflow that started its agent. Exact keys find the parent's session; nobody
guesses. Nobody removes the parent while a session is put below it.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionNotFound
from gaia_sessions.session import runs
from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.session.lineage import with_parent
from gaia_sessions.session.record import NO_PURPOSE

from .join import newest_of_agent, read_or_none

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import OpenSession, Store


def parent_of(store: Store, event: Event, run: Run | None = None) -> Record | None:
    """Returns the session whose agent or workflow delegated the work of ``event`` or ``run``."""
    if "workflow" in event:
        return session_of_workflow(store, event["host"], event["workflow"]["run_id"])
    agent = event.get("parent_host_agent_id") or (run or {}).get("parent_host_agent_id")
    if agent is None:
        # The main agent of a host is below the session for which the host works, if this store has that session.
        return named_parent(store, event["parent_id"]) if "parent_id" in event else None
    return newest_of_agent(store, event.get("host"), event["host_session_id"], agent)


def named_parent(store: Store, agent_id: str) -> Record | None:
    """Returns the record of a parent; if that cannot be read, a record with its ID alone. None if there is none."""
    found = read_or_none(store, agent_id)
    if found is not None or not is_agent_id(agent_id) or not store.has(agent_id):
        return found
    only_id: Record = {"agent_id": agent_id}  # type: ignore[typeddict-item]  # enough for ``with_parent``
    return only_id  # no limit of the parent may be lost


class KeptParent:
    """A ``with`` block in which nobody removes ``parent``: gives ``parent`` as it is now, None if it is gone."""

    def __init__(self, store: Store, parent: Record | None, timeout: float, agent_id: str | None = None) -> None:
        self._store, self._parent = store, parent
        self._session: OpenSession | None = None
        # Removing a session hands its cancellation to its children, and must not miss a child. The session ``agent_id``
        # changes in the block, so its lock is not taken here.
        if parent is not None and parent["agent_id"] != agent_id:
            self._session = store.open(parent["agent_id"], timeout=timeout)

    def __enter__(self) -> Record | None:
        if self._session is None or self._parent is None:
            return self._parent
        try:
            self._session.__enter__()
        except SessionNotFound:
            self._session = None
            return None
        try:
            return named_parent(self._store, self._parent["agent_id"])
        except BaseException:
            self._session.__exit__(None, None, None)
            raise

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            self._session.__exit__(None, None, None)


def with_parent_known(store: Store, record: Record, parent: Record | None) -> Record:
    """Returns ``record`` below ``parent``, unless ``record`` is above ``parent``."""
    return record if parent is None else with_parent(record, parent, store.ancestors(parent))


def session_of_workflow(store: Store, host: str, run_id: str, key: str | None = None) -> Record | None:
    """Returns the newest session of this workflow, or of the agent with ``key`` in it."""
    return store.find(runs.workflow_alias(host, run_id, key))


def with_purpose(record: Record, event: Event) -> Record:
    """Returns ``record`` with the purpose in ``event``, if no purpose was known before."""
    if record["purpose"] != NO_PURPOSE or event.get("purpose", NO_PURPOSE) == NO_PURPOSE:
        return record
    return {**record, "purpose": event["purpose"]}
