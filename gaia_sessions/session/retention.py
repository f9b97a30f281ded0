"""How much a record keeps of many runs, so that the end of the work can always be written.

Owns how many runs and how much of their texts every record keeps, and how many bytes must stay free. How a record gets
shorter is in ``shortening``, which few writes need. Pure: knows records and their size in bytes.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT

from .record import encode, has_newer_schema
from .runs import is_send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .schema import Record

MAX_RUNS = 50
"""How many of the newest runs are kept; earlier runs are kept only while they have no end."""

MAX_SENDS = 2
"""How many of the newest runs that are sends are kept: sixty of them would leave no room for those of hosts."""

MAX_EARLIER_MESSAGE_LENGTH = 200
"""How many characters are kept of the last message of a run, once a later run has one."""

RESERVED_BYTES = 2 << 10
"""How many bytes a write with people's own data must leave free: enough to record the end of the work."""

BYTES_FOR_RUN = 1280
"""How many bytes must be free, or can be freed by shortening, when a run is claimed: its start and end take no more.

What hosts tell of its cost is not in it: those figures are left out of a record that has no room for them.
"""


def trim_record(record: Record) -> Record:
    """``record`` with as many runs and as much of their messages as every record keeps."""
    if has_newer_schema(record):
        return record
    runs = record.get("runs", [])
    messages = [run for run in runs if "last_message" in run]
    sends = [run for run in runs if is_send(run)]
    if len(runs) <= MAX_RUNS and len(messages) <= 1 and len(sends) <= MAX_SENDS:
        return record
    from .shortening import cut_text, without_earlier_sends, without_ended_runs

    record = without_earlier_sends(record, MAX_SENDS)
    return cut_text(without_ended_runs(record, MAX_RUNS), "last_message", MAX_EARLIER_MESSAGE_LENGTH, keep_latest=True)


def fit_record(record: Record, reserved: int = 0, previous: Record | None = None) -> tuple[Record, bytes]:
    """The record as it is stored, and its bytes; a record that does not fit is shortened.

    With ``reserved`` it is not: so many bytes must stay free, unless the record is no larger than ``previous``.
    Raises ``TooLarge``, and ``InvalidInput`` like ``encode``.
    """
    record = trim_record(record)
    try:
        return record, encode(record, DOCUMENT_LIMIT - reserved)
    except errors.TooLarge as error:
        if reserved and previous is not None and error.size <= min(len(encode(previous)), DOCUMENT_LIMIT):
            return record, encode(record, DOCUMENT_LIMIT)
        if reserved or has_newer_schema(record):
            raise
        from .shortening import shorten

        record = shorten(record, error.size - DOCUMENT_LIMIT)
    return record, encode(record, DOCUMENT_LIMIT)


def check_room_for_run(record: Record) -> Record:
    """Returns ``record``; raises ``TooLarge`` if the start and the end of its latest run would not fit."""
    limit = DOCUMENT_LIMIT - BYTES_FOR_RUN
    record_as_kept = trim_record(record)
    try:
        encode(record_as_kept, limit)
    except errors.TooLarge as error:
        from .shortening import shorten

        encode(shorten(record_as_kept, error.size - limit), limit)
    return record
