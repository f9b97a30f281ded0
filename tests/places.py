"""What operations are given, without a directory that is searched for: a store and a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gaia_sessions.api.at import Writing
from gaia_sessions.config import Config
from gaia_sessions.store.planned import Plan

if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.store.port import Store


def planned(store: Store) -> Any:
    """A plan above ``store``, which has what a dry run calls of a store."""
    return Plan(store)


def writing(store: Store, now: datetime) -> Writing:
    """What an operation that writes is given by a program without settings."""
    return Writing(store, now, Config({}), "")
