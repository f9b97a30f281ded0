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
"""How many of the newest runs are kept; earlier ones are kept only while an agent may be at work on them."""

MAX_SENDS = 2
"""How many of the newest runs that are sends are kept: sixty of them would leave no room for those of hosts."""

MAX_EARLIER_LENGTH = 200
"""How many characters are kept of what a run ended with, or an answer said, once a later one has such a text."""

ROOM_FOR_ENDS = 192 << 10
"""How many bytes people's own data must leave free, for runs, answers and ends: those of real records take 145 KiB."""

RESERVED_BYTES = 2 << 10
"""How many bytes must stay free after every other write but that of an end: enough to record one."""

BYTES_FOR_RUN = 1280
"""How many bytes must be free, or can be freed, when a run is claimed: its start and end take no more.

What hosts tell of its cost is not in it: those figures are left out of a record that has no room for them.
"""


def trim_record(record: Record) -> Record:
    """``record`` with as many runs, and as much of their texts and of answers, as every record keeps."""
    if has_newer_schema(record):
        return record
    runs = record.get("runs", [])
    texts = (
        [run["last_message"] for run in runs if "last_message" in run],
        [run["detail"] for run in runs if "detail" in run],
        [given.get("message", "") for given in record.get("answers", ())],
    )
    is_short = not any(len(text) > MAX_EARLIER_LENGTH for of_kind in texts for text in of_kind[:-1])
    if is_short and len(runs) <= MAX_RUNS and sum(map(is_send, runs)) <= MAX_SENDS:
        return record
    from .shortening import with_short_earlier_texts, without_earlier_runs, without_earlier_sends

    record = without_earlier_runs(without_earlier_sends(record, MAX_SENDS), MAX_RUNS)
    return with_short_earlier_texts(record, MAX_EARLIER_LENGTH)


def fit_record(
    record: Record, reserved: int = 0, previous: Record | None = None, *, spare: int = 0
) -> tuple[Record, bytes]:
    """The record as it is stored, and its bytes; one that does not fit loses the least needed parts.

    spare: bytes that must stay free then. With ``reserved`` nothing is left out: so many bytes must stay free, unless
    the record is no larger than ``previous``.
    Raises ``TooLarge``, and ``InvalidInput`` like ``encode``.
    """
    record = trim_record(record)
    limit = DOCUMENT_LIMIT - spare
    try:
        return record, encode(record, limit - reserved)
    except errors.TooLarge as error:
        if reserved and previous is not None:
            if error.size <= min(len(encode(previous)), limit):
                return record, encode(record, limit)
            hint = f"shorten it, or remove other parts: `gaia-sessions show {record['agent_id']} --json` has them all"
            what = f"what is stored of {record['agent_id']}"
            raise errors.TooLarge(what, error.size, limit - reserved, hint) from None
        if reserved or has_newer_schema(record):
            raise
    from .shortening import shortened

    return shortened(record, limit)


def check_room_for_run(record: Record) -> Record:
    """Returns ``record``; raises ``TooLarge`` if the start and the end of its latest run would not fit."""
    fit_record(record, spare=BYTES_FOR_RUN)
    return record
