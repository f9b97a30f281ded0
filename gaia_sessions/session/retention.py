"""How much a record stores of many runs, so that there is always room for the end of the session.

``shortening`` makes records shorter. Few writes need it.
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
"""How many of the newest runs are stored; older runs stay only while an agent may be at work on them."""

MAX_SENDS = 2
"""How many of the newest sends are stored as runs: 60 of them would leave no room for runs of hosts."""

MAX_EARLIER_LENGTH = 200
"""The most characters of a run's last message, detail or answer after a later one exists."""

ROOM_FOR_ENDS = 192 << 10
"""The bytes that data of users must leave free for runs, answers and ends; real records use 145 KiB."""

RESERVED_BYTES = 2 << 10
"""The bytes that any write but an end must leave free, so that an end can be written."""

BYTES_FOR_RUN = 1280
"""The bytes that a new run needs at most, without the figures from its host, which are left out if a record is full."""


def trim_record(record: Record) -> Record:
    """Drops runs and cuts texts of ``record`` beyond the limits that hold for all records."""
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
    """Returns the record as it is stored, and its bytes; a record that is too long loses the least needed parts."""
    # ``spare`` bytes must stay free. If ``reserved`` is not 0, no part is lost, and ``reserved`` more bytes must stay
    # free, unless the record is no larger than ``previous``.
    record = trim_record(record)
    limit = DOCUMENT_LIMIT - spare
    try:
        return record, encode(record, limit - reserved)
    except errors.TooLarge as error:
        if reserved and previous is not None:
            if error.size <= min(len(encode(previous)), limit):
                return record, encode(record, limit)
            shows = f"gaia-sessions show {record['agent_id']} --json"
            hint = f"shorten your text, or remove other parts of the record; to see them, type: {shows}"
            what = f"the record of {record['agent_id']}"
            raise errors.TooLarge(what, error.size, limit - reserved, hint) from None
        if reserved or has_newer_schema(record):
            raise
    from .shortening import shortened

    return shortened(record, limit)


def check_room_for_run(record: Record) -> Record:
    """Returns ``record`` if it has room for the start and the end of its latest run."""
    fit_record(record, spare=BYTES_FOR_RUN)
    return record
