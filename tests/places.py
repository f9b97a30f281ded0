"""Arguments of operations, made of a store and a time instead of a searched folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gaia_sessions.api.at import Writing
from gaia_sessions.config import Config
from gaia_sessions.store.planned import Plan

if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.store.port import Store


def planned(store: Store) -> Any:
    """A plan above ``store``, as a dry run uses it."""
    return Plan(store)


def writing(store: Store, now: datetime) -> Writing:
    """The first argument of an operation that writes, for a program without settings."""
    return Writing(store, now, Config({}), "")
