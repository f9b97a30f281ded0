"""Removes one session with the functions that remove many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.api.removal import remove_each
from gaia_sessions.errors import SessionsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gaia_sessions.api.removal import Leaving
    from gaia_sessions.store.planned import Plan
    from gaia_sessions.store.port import RecordOrError, Store


def remove_if(store: Store, agent_id: str, should_delete: Callable[[RecordOrError], bool], leaving: Leaving) -> bool:
    """Removes the session if ``should_delete`` agrees. Returns whether it was removed, or raises its error."""
    return _or_raised(remove_each(store, [agent_id], lambda _, found: should_delete(found), leaving))


def deleted(
    store: Store | Plan, agent_id: str, should_delete: Callable[[RecordOrError], bool], *, timeout: float | None = 0
) -> bool:
    """Deletes the session if ``should_delete`` agrees. Returns whether it was deleted, or raises its error."""
    return _or_raised(store.delete_each([agent_id], lambda _, found: should_delete(found), timeout=timeout))


def _or_raised(told: Iterable[tuple[str, bool | SessionsError]]) -> bool:
    [(_, outcome)] = told
    if isinstance(outcome, SessionsError):
        raise outcome
    return outcome
