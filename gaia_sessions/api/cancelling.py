"""Cancels sessions, and ends cancelled sessions on which nobody is at work.

The mark is written before anything else. The mark alone decides whether a session is cancelled.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from gaia_sessions.errors import CorruptSession, InvalidId, SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.session.cancellation import (
    abandoned,
    cancellation_of,
    check_reason,
    handed_mark,
    unread_cancellation,
    with_mark,
)
from gaia_sessions.session.record import has_newer_schema, is_open
from gaia_sessions.session.runs import conversation_of, has_agent
from gaia_sessions.store.above import Above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from datetime import datetime
    from typing import NotRequired, TypedDict

    from gaia_sessions.session.cancellation import Cancellation, Mark
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store

    from .at import Reading, Writing

    class CancelledSession(TypedDict):
        """One cancelled session.

        Keys:
            at, reason: time and reason of the first cancellation; ``at`` is absent if `cancelled.json` cannot be read.
            below: whether everything below is cancelled too.
            by: the session above that was cancelled first; only if this session got its mark in a removal.
            new: whether this call changed anything.
        """

        agent_id: str
        at: NotRequired[str]
        reason: NotRequired[str]
        below: bool
        by: NotRequired[str]
        new: bool


def cancel(at: Writing, agent_id: str, reason: str | None = None, *, only: bool = False) -> CancelledSession:
    """[Cancels](phases.md#cancellation) a session and all sessions below it, also those created later.

    If the session was cancelled before, the time and the reason of that cancellation stay. The session ends as
    ``abandoned`` when nobody is at work on it any more.

    Args:
        only: cancels the session alone.

    Raises:
        InvalidInput: ``reason`` is not a text.

    Example:
        agent_id = sessions.create("reviewer")
        sessions.cancel(agent_id, "no longer needed")
        print(sessions.report(agent_id)["status"])
    """
    return mark_cancelled(at.store, at.now, agent_id, reason, below=not only)


def cancel_conversation(
    at: Writing, host_session_id: str, reason: str | None = None, *, only: bool = False
) -> Sequence[CancelledSession]:
    """Cancels every session that has a run in this conversation of a host, as ``cancel`` does.

    If a session cannot be cancelled, the error is raised after all other sessions are cancelled.

    Raises:
        SessionNotFound: no session has a run in this conversation.
    """
    check_reason(reason)
    cancelled, failed = [], []
    for agent_id in sorted(_ids_of_conversation(at.store, host_session_id)):
        try:
            cancelled.append(cancel(at, agent_id, reason, only=only))
        except SessionNotFound:  # removed meanwhile
            continue
        except SessionsError as error:
            failed.append(error)
    if failed:
        raise failed[0]
    if not cancelled:
        raise SessionNotFound.of_conversation(host_session_id)
    return cancelled


def cancellation(at: Reading, agent_id: str) -> Cancellation | None:
    """Returns why a session is cancelled, by itself or with a session above it; None if it is not cancelled."""
    return cancellation_and_above(at.store, agent_id)[0]


def mark_cancelled(store: Store, now: datetime, agent_id: str, reason: str | None, *, below: bool) -> CancelledSession:
    """Marks the session as cancelled; with ``below``, this cancels everything below it too."""
    check_reason(reason)
    found: list[Mark | None] = []

    def rule(mark: Mark | None) -> Mark:
        found.append(mark)
        return with_mark(mark, now, reason, below=below)

    mark = store.mark(agent_id, rule)
    return {"agent_id": agent_id, **mark, "new": mark is not found[-1]}


def hand_on(store: Store, agent_id: str, children: Collection[str], timeout: float | None) -> None:
    """Durably marks the ``children`` as cancelled before their cancelled parent is removed."""
    # A session that is its own parent goes with this removal, and needs no mark.
    there = [child for child in children if child != agent_id and store.has(child)]
    handed = Above(store).handed_down(agent_id) if there else None
    if handed is None:
        return
    for child in there:
        with suppress(SessionNotFound):  # removed meanwhile
            store.mark(child, partial(handed_mark, handed=handed), timeout=timeout)


def _ids_of_conversation(store: Store, host_session_id: str) -> Iterator[str]:
    for agent_id, record in store.scan():
        if isinstance(record, SessionsError) or has_newer_schema(record):
            continue
        if any(host_session_id in (run.get("host_session_id"), conversation_of(run)) for run in record.get("runs", ())):
            yield agent_id


def cancellation_and_above(
    store: Store, agent_id: str, known_above: Sequence[str] = (), *, are_all: bool = False
) -> tuple[Cancellation | None, Sequence[str]]:
    """Returns why a session is cancelled, or None, and the IDs above it, the parent first."""
    # A parent never changes. Only the topmost of ``known_above`` may have got one, unless ``are_all`` is True.
    path = [agent_id, *known_above]
    try:
        if not store.has(agent_id):
            raise SessionNotFound(agent_id)
        found = cancellation_of(agent_id, store.marks(path)) if known_above or are_all else None
        if found is None and not are_all:
            path = [*dict.fromkeys([*path, *_ids_above_topmost(store, path)])]
            found = cancellation_of(agent_id, store.marks(path))
    except StoreFailure as error:  # if the system refuses to say, the session counts as cancelled
        found = unread_cancellation(error)
    return found, path[1:]


def _ids_above_topmost(store: Store, path: Sequence[str]) -> Iterable[str]:
    try:
        return store.ancestors(store.read(path[-1]))
    except (SessionNotFound, CorruptSession, InvalidId):
        if len(path) == 1 and not store.marks(path):  # its own mark is enough, even if the record is corrupt
            raise
        return ()


def settled(record: Record, cancellation: Cancellation | None, now: datetime, dead_runs: frozenset[int]) -> Record:
    """Returns ``record`` as ``abandoned`` if it is cancelled and nobody is at work on it; else ``record``."""
    if cancellation is None or not is_open(record) or has_agent(record, now, dead_runs):
        return record
    return abandoned(record, cancellation)
