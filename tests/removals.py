"""Removing one session by what ``api.removal`` removes many with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.api.removal import remove_each
from gaia_sessions.errors import SessionsError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gaia_sessions.api.removal import Leaving
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import RecordOrError, Store


def remove_if(
    store: Store, agent_id: str, should_delete: Callable[[RecordOrError, Sequence[Record]], bool], leaving: Leaving
) -> bool:
    """Whether the session was removed, because ``should_delete`` says so of it and its children; raises why not."""
    [(_, outcome)] = remove_each(store, [agent_id], lambda _, *found: should_delete(*found), leaving)
    if isinstance(outcome, SessionsError):
        raise outcome
    return outcome
