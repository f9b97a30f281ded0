"""An end that somebody states: its checks, and the record with this end."""

from __future__ import annotations

from . import updates
from .checks import check_string
from .host_events import MAX_MESSAGE_LENGTH
from .phases import check_outcome, is_abandoned
from .retention import RESERVED_BYTES
from .runs import with_stated_phase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from .schema import Record


def check_ending(outcome: object, summary: str | None, error: str | None) -> None:
    """Refuses an outcome or a text that cannot end a session."""
    check_outcome(outcome)
    for where, text in (("summary", summary), ("error", error)):
        if text is not None:
            check_string(text, where)


def reserved_for_texts(*texts: str | None) -> int:
    """Returns how many bytes an end with these texts must leave free; short texts always fit."""
    return RESERVED_BYTES if sum(len(text or "") for text in texts) > MAX_MESSAGE_LENGTH else 0


def with_ending(
    record: Record, outcome: str, now: datetime, summary: str | None = None, error: str | None = None
) -> Record:
    """Ends the record with ``outcome``. The same outcome again changes nothing, but confirms a concluded end."""
    if record["phase"] != outcome:
        updates.check_open(record)
        if error is not None:
            record = updates.with_error(record, error, now)
        return with_stated_phase(updates.with_activity(record, now), outcome, now, summary)
    if not is_abandoned(outcome) or not record.get("runs"):
        return record
    from .concluded_ends import has_concluded_outcome  # few ends need it

    # This confirms an end that was only concluded from the end of the host.
    is_concluded = has_concluded_outcome(record, record["runs"][-1])
    return updates.with_stated_end(record, summary, now) if is_concluded else record
