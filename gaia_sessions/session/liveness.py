"""Whether an agent at work waits for a person, shows activity, or is quiet.

No event says that a permission was refused, so the transcript decides whether an agent still waits.
"""

from __future__ import annotations

from .clock import format_time, is_ahead, parse_time
from .runs import started_or_claimed_at
from .schema import QUIET, WAITING, WORKING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from typing import NotRequired, TypedDict

    from .permission_requests import SeenCalls
    from .schema import Record, Run

    Liveness = TypedDict(
        "Liveness", {"state": str, "since": NotRequired[str], "for": NotRequired[str], "awaits": NotRequired[str]}
    )
    """``since``: when the wait began, or the last sign of life. ``for``: the tool. ``awaits``: the kind of own work."""


def liveness(
    record: Record,
    run: Run,
    now: datetime,
    quiet_after: timedelta,
    written_at: datetime | None,
    seen: SeenCalls | None = None,
) -> Liveness | None:
    """Returns whether the agent of the live ``run`` works, waits or is quiet; None if all times are in the future."""
    if "waiting" in run:
        from .permission_requests import still_asked  # few agents ask

        for first in still_asked(run, now, written_at, seen)[:1]:
            return {"state": WAITING, "since": first["since"], "for": first["for"]}
    if "own_work" in run:  # an agent that waits writes nothing
        return {"state": WORKING, "since": run["own_work"]["since"], "awaits": run["own_work"]["kind"]}
    signs = (parse_time(record["last_updated"]), started_or_claimed_at(run), written_at)
    known = [sign for sign in signs if sign and not is_ahead(sign, now)]
    if not known:
        return None
    last = max(known)
    return {"state": QUIET, "since": format_time(last)} if now - last > quiet_after else {"state": WORKING}
