"""Records for tests of pure changes, and checks for such changes."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from gaia_sessions.config import Config
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import decode, encode, new_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.planned import Plan
    from gaia_sessions.store.port import StoreReader

START = datetime(2026, 1, 8, 18, 0, tzinfo=UTC)
WHEN = "2026-01-08T18:04:00.000000Z"
LIMITS = Config({}).limits


def record_with(*runs: dict[str, Any], phase: str = "investigating", **changed: Any) -> Record:
    record: Any = {**new_record("agent-1", "Explore", "general", {}, START), "phase": phase, **changed}
    if runs:
        record["runs"] = list(runs)
    return decode(encode(record), "agent-1")


def ago(**span: float) -> str:
    """The time that long ago, as a record has it."""
    return format_time(datetime.now(UTC) - timedelta(**span))


def moved(one: str, other: str, at: str = WHEN) -> dict[str, str]:
    return {"from_phase": one, "to_phase": other, "timestamp": at}


def unchanged(change: Callable[[Record], object], record: Record) -> Any:
    """The result of ``change``, which must not change ``record`` itself."""
    before = deepcopy(record)
    after = change(record)
    assert record == before
    return after


def id_found(store: StoreReader | Plan, alias: Alias) -> str | None:
    """The ID of the session that ``store`` finds by ``alias``."""
    record = store.find(alias)
    return None if record is None else record["agent_id"]
