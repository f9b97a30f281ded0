"""The figures of present and removed sessions. A present session beats its line; a later revision beats an earlier."""

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
    """The figures that each present session would leave."""
    found = {}
    for _, record in store.scan():
        if not isinstance(record, SessionsError):
            stands = standing(Above(store).cancellation, record, now or utc_now(), LIMITS)
            found[record["agent_id"], record["created_at"]] = figures_of(record, stands.decision, stands.state)
    return found


def left(store: Reader) -> dict[Key, Any]:
    """The figures that removed sessions left, by ID and time of creation."""
    read = [read_figures(line) if line is not None else None for line in store.figures()]
    figures = sorted((one for one in read if one is not None), key=lambda one: one["revision"])
    return {(one["agent_id"], one["created_at"]): one for one in figures}


def unread(store: Reader) -> int:
    """The number of lines that are not figures."""
    return [line is None or read_figures(line) is None for line in store.figures()].count(True)


def counted(store: Reader) -> dict[Key, str]:
    """Each session that counts: ``there`` if it is present, ``left`` if it was removed."""
    there = [record for _, record in store.scan() if not isinstance(record, SessionsError)]
    return dict.fromkeys(left(store), "left") | {(one["agent_id"], one["created_at"]): "there" for one in there}
