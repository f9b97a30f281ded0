"""How much a record keeps of many runs, so that the end of the work can always be written.

Owns which runs and texts are dropped with every write, and what is shortened when a record does not fit. What people
and agents store themselves (metadata, summary, errors) is never shortened: it must leave room for the end. Pure: knows
records and their size in bytes; must never know a store.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT

from .record import encode, has_newer_schema
from .runs import has_ended, may_be_at_work, without_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from .schema import Record, Run

    Shortening = Callable[[Record], Record]
    RunTextKey = Literal["last_message", "detail"]

MAX_RUNS = 50
"""How many of the newest runs are kept; earlier runs are kept only while they have no end."""

MAX_EARLIER_MESSAGE_LENGTH = 200
"""How many characters are kept of the last message of a run, once a later run has one."""

RESERVED_BYTES = 2 << 10
"""How many bytes a write with people's own data must leave free: enough to record the end of the work."""

BYTES_FOR_RUN = 1280
"""How many bytes must be free, or can be freed by shortening, when a run is claimed: its start and end take no more.

What hosts tell of its cost is not in it: those figures are left out of a record that has no room for them.
"""

_KEPT_MOVES = 10


def trim_record(record: Record) -> Record:
    """``record`` with as many runs and as much of their messages as every record keeps."""
    if "runs" not in record or has_newer_schema(record):
        return record
    return _cut_text(
        _without_ended_runs(record, MAX_RUNS), "last_message", MAX_EARLIER_MESSAGE_LENGTH, keep_latest=True
    )


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
        record = _shorten(record, error.size - DOCUMENT_LIMIT)
    return record, encode(record, DOCUMENT_LIMIT)


def check_room_for_run(record: Record) -> Record:
    """Returns ``record``; raises ``TooLarge`` if the start and the end of its latest run would not fit."""
    limit = DOCUMENT_LIMIT - BYTES_FOR_RUN
    record_as_kept = trim_record(record)
    try:
        encode(record_as_kept, limit)
    except errors.TooLarge as error:
        encode(_shorten(record_as_kept, error.size - limit), limit)
    return record


def _shorten(record: Record, excess: int) -> Record:
    """Shortens step by step until ``excess`` bytes are saved or nothing is left to shorten."""
    size = _size_but_for_metadata(record)
    target = size - excess
    for shorten in _SHORTENING_STEPS:
        if size > target:
            record = shorten(record)
            size = _size_but_for_metadata(record)
    return record


def _size_but_for_metadata(record: Record) -> int:
    """The encoded size without metadata, which is never shortened and usually the largest part."""
    return len(encode({**record, "metadata": {}}))


def _without_ended_runs(record: Record, newest: int) -> Record:
    """With the ``newest`` runs, and those of the earlier ones that have no end."""
    runs = record.get("runs", [])
    return _with_runs(record, [*(run for run in runs[:-newest] if not has_ended(run)), *runs[-newest:-1]])


def _without_lapsed_claims(record: Record) -> Record:
    """Without earlier runs that were only delegated: they never started, or no start was reported."""
    return _with_runs(record, [run for run in record.get("runs", [])[:-1] if has_ended(run) or may_be_at_work(run)])


def _with_latest_run_only(record: Record) -> Record:
    """With the latest run alone, which shows the present state of the work; its end needs the room."""
    return _with_runs(record, [])


def _with_runs(record: Record, earlier: list[Run]) -> Record:
    """With ``earlier`` and the latest run as the only runs."""
    runs = record.get("runs", [])
    kept = [*earlier, *runs[-1:]]
    dropped = len(runs) - len(kept)
    if not dropped:
        return record
    return {**record, "runs": kept, "runs_dropped": record.get("runs_dropped", 0) + dropped}


def _cut_text(record: Record, key: RunTextKey, longest: int, *, keep_latest: bool = False) -> Record:
    """With at most ``longest`` characters of the text ``key`` in every run; ``keep_latest`` spares the latest text."""
    runs = record.get("runs", [])
    runs_with_text = [run for run in runs if key in run]
    too_long = [run for run in (runs_with_text[:-1] if keep_latest else runs_with_text) if len(run[key]) > longest]
    if not too_long:
        return record
    shorter = {run["run"]: _with_shorter(run, key, longest) for run in too_long}
    return {**record, "runs": [shorter.get(run["run"], run) for run in runs]}


def _with_shorter(run: Run, key: RunTextKey, longest: int) -> Run:
    """Keeps the end of a message and the beginning of any other text, where the point is."""
    if not longest:
        return without_keys(run, key)
    text = run[key]
    return {**run, key: text[-longest:] if key == "last_message" else text[:longest]}  # type: ignore[misc]  # a text key of a run


def _shorten_details(longest: int) -> Shortening:
    """A step that shortens the details of runs, and the last error if it repeats one of them."""

    def shorten(record: Record) -> Record:
        last = record["last_error"]
        is_of_run = last and any(run.get("detail") == last["message"] for run in record.get("runs", ()))
        record = _cut_text(record, "detail", longest)
        if not last or not is_of_run:
            return record
        return {**record, "last_error": {**last, "message": last["message"][:longest]}}

    return shorten


def _without_recent_calls(record: Record) -> Record:
    return {**record, "tools": {**record["tools"], "recent": []}} if "tools" in record else record


def _with_latest_moves(record: Record) -> Record:
    kept = record["history"][-_KEPT_MOVES:]
    dropped = len(record["history"]) - len(kept)
    if not dropped:
        return record
    return {**record, "history": kept, "history_dropped": record.get("history_dropped", 0) + dropped}


def _without_reported_figures(record: Record) -> Record:
    """Without what hosts told of each run; what the runs consumed stays, since the sum of the record stands on it."""
    return {**record, "runs": [without_keys(run, "usage", "model", "worktree") for run in record.get("runs", [])]}


def _without_transcripts(record: Record) -> Record:
    runs = record.get("runs", [])
    if not any("transcript_path" in run for run in runs):
        return record
    return {**record, "runs": [without_keys(run, "transcript_path") for run in runs]}


_SHORTENING_STEPS: tuple[Shortening, ...] = (
    lambda record: _cut_text(record, "last_message", 0, keep_latest=True),
    lambda record: _cut_text(record, "last_message", 1000),
    lambda record: _cut_text(record, "last_message", 200),
    lambda record: _cut_text(record, "last_message", 0),
    _shorten_details(200),
    _shorten_details(40),  # the details that rules compare are shorter
    _without_recent_calls,
    lambda record: _without_ended_runs(record, 1),
    _with_latest_moves,
    _without_reported_figures,
    _without_transcripts,
    _without_lapsed_claims,
    _with_latest_run_only,
)
"""The steps of shortening; what is needed least goes first."""
