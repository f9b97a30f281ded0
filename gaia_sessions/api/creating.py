"""Creates sessions: new ones, and sessions that continue others."""

from __future__ import annotations

import os

from gaia_sessions.errors import InvalidInput, SessionNotFound
from gaia_sessions.session.cancellation import abandoned
from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.session.record import has_newer_schema, is_open
from gaia_sessions.session.requests import NewSession
from gaia_sessions.session.retention import ROOM_FOR_ENDS
from gaia_sessions.session.updates import check_writable
from gaia_sessions.store import create_under_new_id
from gaia_sessions.system import gone_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.session.ids import RandomBytes
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Delta, Document, Scope
    from gaia_sessions.store.above import Above
    from gaia_sessions.store.port import Store

    from .at import Writing


def create(  # noqa: PLR0913  # what can be said of a session
    at: Writing,
    agent_name: str = "unknown",
    purpose: str = "general",
    metadata: Mapping[str, object] | None = None,
    *,
    agent_id: str | None = None,
    parent_id: str | None = None,
    max_depth: int | None = None,
    max_tokens: int | None = None,
    tools: Iterable[str] | None = None,
    system_prompt: str | None = None,
    continues: str | None = None,
    app: str | None = None,
    user: str | None = None,
    state: Mapping[str, object] | None = None,
) -> str:
    """Creates a session in the phase ``initializing``.

    Args:
        agent_id: an ID of your choice; without it, an ID is generated.
        parent_id: the session above the new session.
        max_depth: limits the depth of all sessions below, counted from the topmost session. The parent's limit is the
            maximum and the default; without a parent the default is 8.
        max_tokens: [the budget](limits.md#budgets).
        tools: the tools of the agent, filtered as ``choose_tools`` does.
        system_prompt: begins [the transcript](record.md#transcripts); at most 16 KiB.
        continues: a session that has ended. The new session takes its name, purpose, tools, system prompt, app and
            user, unless you give others. The new context begins with what was said in that session.
        app, user: the application and the user whose [state](state.md) the session shares.
        state: the first keys and values of the state.

    Returns:
        The ID of the session.

    Raises:
        SessionExists: a session has this ``agent_id`` already.
        InvalidInput: ``metadata`` is not JSON, or the name, the purpose or the system prompt is blank.
        NoToolsLeft: none of ``tools`` is allowed.
        TooDeep: the session would be deeper than allowed.
        TooManyChildren: 5 children of the parent are at work.
        RunNotAllowed: the session to continue has not ended.
        Cancelled: the session to continue is cancelled.

    Example:
        parent_id = sessions.create("planner", "release 2.0")
        sessions.create("reviewer", "review the plan", {"ticket": "T1"}, parent_id=parent_id)
    """
    allowed_tools = None
    if tools is not None:
        from .permitting import allowed_of

        allowed_tools = allowed_of(at, tools, agent_name, parent_id)
    new = NewSession(
        agent_name,
        purpose,
        metadata,
        agent_id,
        parent_id=parent_id,
        max_depth=max_depth,
        max_tokens=max_tokens,
        allowed_tools=allowed_tools,
        system_prompt=system_prompt,
        continues=continues,
        app=app,
        user=user,
        delta=first_delta(at.config, state),
    )
    return create_new(at, new)


def create_new(at: Writing, new: NewSession) -> str:
    """Creates the session that ``new`` describes, and returns its ID."""
    return store_new(at.store, at.now, os.urandom, new)["agent_id"]


def ensure(
    at: Writing,
    agent_id: str | None = None,
    *,
    agent_name: str = "unknown",
    purpose: str = "general",
    app: str | None = None,
    user: str | None = None,
    state: Mapping[str, object] | None = None,
) -> str:
    """Returns the ID of an open session: ``agent_id`` if that session is open, otherwise a new one.

    If the session ``agent_id`` has ended or is cancelled, the new session ``continues`` it. The other arguments
    describe the new session, as in ``create``. This method also raises the errors of ``create``.

    Raises:
        SessionNotFound: no session has this ``agent_id``. An unknown ID is never used for a new session.
        InvalidInput: the session belongs to another ``app`` or ``user``.
        RunNotAllowed: the session is cancelled, and an agent is still at work on it.
    """
    if agent_id is not None and not is_agent_id(agent_id):
        raise SessionNotFound(agent_id)
    new = NewSession(agent_name, purpose, continues=agent_id, app=app, user=user, delta=first_delta(at.config, state))
    if agent_id is None:
        return create_new(at, new)
    record = at.store.read(agent_id)
    if new.app is not None and (new.app, new.user) != (record.get("app"), record.get("user")):
        raise InvalidInput(
            f"{agent_id} does not belong to this app and user",
            hint="leave out app and user to use this session, or leave out the ID to get a new one",
        )
    if is_open(record):
        with at.store.open(agent_id) as session:
            cancellation = session.cancellation()
            if cancellation is None:
                return agent_id
            session.commit(abandoned(session.record, cancellation) if is_open(session.record) else session.record)
    return store_new(at.store, at.now, os.urandom, new, even_cancelled=True)["agent_id"]


def first_delta(config: Config, values: Mapping[str, object] | None) -> Delta | None:
    """Returns the change that sets the first ``values`` of the state; None if there are none."""
    if values is None:
        return None
    from gaia_sessions.session import shared_keys

    return shared_keys.first_delta(values, config.state_keys)


def store_new(
    store: Store, now: datetime, random_bytes: RandomBytes, new: NewSession, *, even_cancelled: bool = False
) -> Record:
    """Creates the session and returns its record."""
    if new.continues is not None:
        from gaia_sessions.session.transcript import readable, system_prompt
        from gaia_sessions.store.above import continuing

        from .preconditions import ended_session  # few sessions continue another

        earlier = ended_session(store, new.continues, now, even_cancelled=even_cancelled)
        earlier = {**earlier, **continuing(store, earlier)}
        prompt = system_prompt(readable(store.messages(new.continues)))
        new = new.after(earlier, prompt["content"] if prompt else None)
    if new.agent_id is not None and new.app is not None and new.user is not None and new.app_id is None:
        from gaia_sessions.session.app_sessions import agent_id_of  # few sessions belong to an app

        if store.has(agent_id_of(new.app, new.user, new.agent_id)):  # the app calls this session by the same ID
            from gaia_sessions.errors import SessionExists

            raise SessionExists(new.agent_id)
    if new.parent_here is not None and not store.has(new.parent_here):  # nothing is locked for a missing parent
        raise SessionNotFound(new.parent_here)
    return _stored_with_state(store, now, random_bytes, new, new.record(now, random_bytes))


def _stored_with_state(
    store: Store, now: datetime, random_bytes: RandomBytes, new: NewSession, record: Record
) -> Record:
    prompt = None
    if new.system_prompt is not None:
        from gaia_sessions.session.transcript import system_prompt_message  # few sessions have one

        prompt = system_prompt_message(new.system_prompt, now)

    def stored(record: Record, documents: Mapping[Scope, Document] | None = None) -> Record:
        if new.parent_here is None:
            return stored_below(record, documents)
        with store.open(new.parent_here):  # locked after the documents and before the child
            return stored_below(below_parent(store, record, new.parent_here, now), documents)

    def stored_below(record: Record, documents: Mapping[Scope, Document] | None) -> Record:
        if new.agent_id is None:
            return create_under_new_id(
                store,
                record,
                now,
                random_bytes,
                reserved=ROOM_FOR_ENDS,
                system_prompt=prompt,
                documents=documents,
            )
        store.create(record, reserved=ROOM_FOR_ENDS, system_prompt=prompt, documents=documents)
        return record

    if new.delta is None:
        return stored(record)
    from gaia_sessions.session.shared_keys import scopes_of

    from .keys import changed_documents, locked_documents

    parts = new.delta.parts(record)
    if own := parts.get(()):
        record = {**record, "session_state": own.set}
    with locked_documents(store, scopes_of(record), parts) as documents:
        return stored(record, changed_documents(documents, parts))


def below_parent(store: Store, record: Record, parent_id: str, now: datetime) -> Record:
    """Makes ``record`` a child of the locked parent, or raises an error if the parent is not allowed one more."""
    from gaia_sessions.session import lineage, tree_limits  # few sessions have a parent

    parent = store.read(parent_id)
    check_writable(parent)  # the limits in the record of a later version are unknown
    most = tree_limits.check_depth(parent, store.ancestors(parent))
    check_free_place(store, parent_id, record["agent_id"], now)
    if record.get("max_depth", most) > most:
        record = {**record, "max_depth": most}
    return lineage.with_parent(record, parent)


def check_free_place(store: Store, parent_id: str, agent_id: str, now: datetime) -> None:
    """Raises ``TooManyChildren`` unless the parent is allowed one more child at work besides ``agent_id``."""
    from gaia_sessions.session import tree_limits
    from gaia_sessions.store.above import Above

    children = sorted(store.children([parent_id], open_only=True), key=lambda child: child["agent_id"])
    above = Above(store)
    others = [child for child in children if child["agent_id"] != agent_id]
    tree_limits.check_free_place(parent_id, [one["agent_id"] for one in others if _is_at_work(above, one, now)])


def _is_at_work(above: Above, record: Record, now: datetime) -> bool:
    from gaia_sessions.session.tree_limits import is_at_work

    if has_newer_schema(record) or not is_at_work(record, now, dead_runs=gone_runs(record)):
        return False
    return bool(record.get("runs")) or above.proved_cancellation(record) is None
