"""Which sessions count: one that is there beats its line, and of several lines that of the latest revision holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gaia_sessions.api.standing import standing
from gaia_sessions.errors import SessionsError
from gaia_sessions.session.figures import figures_of, read_figures
from gaia_sessions.store.above import Above
from gaia_sessions.system import utc_now
from tests.records import LIMITS

if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.store.port import Reader

    Key = tuple[str, str]


def standing_figures(store: Reader, now: datetime | None = None) -> dict[Key, Any]:
    """What each session that is there would leave."""
    found = {}
    for _, record in store.scan():
        if not isinstance(record, SessionsError):
            stands = standing(Above(store).cancellation, record, now or utc_now(), LIMITS)
            found[record["agent_id"], record["created_at"]] = figures_of(record, stands.decision, stands.state)
    return found


def left(store: Reader) -> dict[Key, Any]:
    """What removed sessions left, by id and time of creation."""
    read = [read_figures(line) if line is not None else None for line in store.figures()]
    figures = sorted((one for one in read if one is not None), key=lambda one: one["revision"])
    return {(one["agent_id"], one["created_at"]): one for one in figures}


def unread(store: Reader) -> int:
    """How many lines are none of ours."""
    return [line is None or read_figures(line) is None for line in store.figures()].count(True)


def counted(store: Reader) -> dict[Key, str]:
    """Each session that counts, and how: as one that is ``there``, or as one that has ``left``."""
    there = [record for _, record in store.scan() if not isinstance(record, SessionsError)]
    return dict.fromkeys(left(store), "left") | {(one["agent_id"], one["created_at"]): "there" for one in there}
