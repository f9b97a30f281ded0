"""One session, by what removes or deletes many."""

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
    """Whether the session was removed, because ``should_delete`` says so of what it found; raises why not."""
    return _or_raised(remove_each(store, [agent_id], lambda _, found: should_delete(found), leaving))


def deleted(
    store: Store | Plan, agent_id: str, should_delete: Callable[[RecordOrError], bool], *, timeout: float | None = 0
) -> bool:
    """Whether ``store`` deleted the session, because ``should_delete`` says so of what it found; raises why not."""
    return _or_raised(store.delete_each([agent_id], lambda _, found: should_delete(found), timeout=timeout))


def _or_raised(told: Iterable[tuple[str, bool | SessionsError]]) -> bool:
    [(_, outcome)] = told
    if isinstance(outcome, SessionsError):
        raise outcome
    return outcome
