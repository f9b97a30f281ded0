"""Pure changes of a record: old record in, new record out, ``now`` as an argument.

Owns what an update and a finalization do to a session's own keys. What they do to its runs is in
``runs``; which moves are legal is in ``phases``. Must never touch a file or a clock.
"""

from __future__ import annotations

from gaia_sessions.errors import NewerSchema

from .clock import FUTURE_TOLERANCE, format_time, parse_time, seconds_between
from .phases import APPROVAL, OUTCOMES, RESUMABLE, check_move
from .record import SCHEMA, has_newer_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json

    from .schema import Move, Record

MAX_HISTORY = 200


def check_writable(record: Record) -> None:
    """Nothing if this version may rewrite ``record``, else ``NewerSchema``."""
    if has_newer_schema(record):
        raise NewerSchema(record["agent_id"], record["schema"], SCHEMA)


def check_open(record: Record) -> None:
    """Nothing if the work still goes on, else ``SessionFinal``: final is final."""
    if record["phase"] in OUTCOMES:
        from gaia_sessions.errors import SessionFinal

        raise SessionFinal(record["agent_id"], record["phase"])


def check_revision(record: Record, expected: int | None) -> None:
    """Nothing if nobody wrote since revision ``asked`` (or none was asked for), else ``RevisionChanged``."""
    if expected is not None and record["revision"] != expected:
        from gaia_sessions.errors import RevisionChanged

        raise RevisionChanged(record["agent_id"], expected, record["revision"])


def with_next_revision(record: Record) -> Record:
    """``record`` as the next write of it: one revision on. Every changed record passes here exactly once."""
    return {**record, "revision": record["revision"] + 1}


def with_activity(record: Record, now: datetime) -> Record:
    """The work gave a sign of life at ``now``; never moves backwards, unless the old time was plainly wrong."""
    last = parse_time(record["last_updated"])
    if now < last <= now + FUTURE_TOLERANCE:
        return record
    return {**record, "last_updated": format_time(now)}


def with_phase(record: Record, phase: str, now: datetime) -> Record:
    """The work stands in ``phase`` from ``now`` on; staying is a heartbeat and leaves the record as it is."""
    check_move(record["phase"], phase)
    if phase == record["phase"]:
        return record
    return _with_move(record, phase, now)


def _with_move(record: Record, phase: str, now: datetime) -> Record:
    move: Move = {"from_phase": record["phase"], "to_phase": phase, "timestamp": format_time(now)}
    history = [*record["history"], move]
    changed: Record = {
        **without_denial(record),
        "phase": phase,
        "resume_ready": phase in RESUMABLE,
        "history": history[-MAX_HISTORY:],
    }
    dropped = record.get("history_dropped", 0) + len(history) - len(changed["history"])
    if dropped:
        changed["history_dropped"] = dropped
    return changed


def with_metadata(record: Record, metadata: dict[str, Json]) -> Record:
    """``metadata`` merged in, one level deep: equal keys are replaced whole."""
    return {**record, "metadata": {**record["metadata"], **metadata}}


def with_error(record: Record, message: str, now: datetime) -> Record:
    """One more error, the latest kept."""
    return {
        **record,
        "error_count": record["error_count"] + 1,
        "last_error": {"message": message, "timestamp": format_time(now)},
    }


def with_denial(record: Record, message: str, now: datetime) -> Record:
    """What the work waits for was refused, and why; it may be resumed all the same, to go another way."""
    if record["phase"] != APPROVAL:
        from gaia_sessions.errors import NothingToDeny

        raise NothingToDeny(record["agent_id"], record["phase"])
    return {**record, "denial": {"message": message, "timestamp": format_time(now)}}


def without_denial(record: Record) -> Record:
    """Without the answer to what was asked before: the work moved on, or asks again."""
    return _without_keys(record, "denial") if "denial" in record else record


def with_resume_ready(record: Record, ready: bool) -> Record:  # noqa: FBT001  # the value itself, not a mode
    """Resuming switched on or off by hand until the next move; on is refused outside the resumable phases."""
    if ready and record["phase"] not in RESUMABLE:
        from gaia_sessions.errors import ResumeNotAllowed

        raise ResumeNotAllowed(record["agent_id"], record["phase"])
    return {**record, "resume_ready": ready}


def with_outcome(record: Record, outcome: str, summary: str | None, now: datetime) -> Record:
    """The work ended at ``now`` with ``outcome``: the move, the time, how long it took, what came of it."""
    return _with_end(with_phase(record, outcome, now), summary, now)


def with_confirmed_end(record: Record, summary: str | None, now: datetime) -> Record:
    """An end that was only concluded, said by somebody: it is no longer provisional."""
    return _with_end(record, summary, now)


def with_rejudged_end(record: Record, phase: str, now: datetime) -> Record:
    """The one way out of a final phase, for a provisional end: its ending is taken away, the move appended."""
    reopened = _without_keys(record, *_END_KEYS)
    moved = reopened if phase == record["phase"] else _with_move(reopened, phase, now)
    return _with_end(moved, None, now) if phase in OUTCOMES else moved


_END_KEYS = ("finalized_at", "duration_seconds", "summary")


def normalize_imported(record: Record) -> Record:
    """The record of another store or of the users' earlier tool, as we write it: revision one on, times in our form.

    That tool kept the time of an end when it reopened a session; here only what is final has one.
    """
    cleaned = record if record["phase"] in OUTCOMES else _without_keys(record, *_END_KEYS)
    times = {key: _canonical_time(cleaned[key]) for key in _TIME_KEYS if key in cleaned}  # type: ignore[literal-required]
    messages = {key: _with_canonical_timestamp(cleaned[key]) for key in _MESSAGE_KEYS if cleaned.get(key)}  # type: ignore[literal-required]
    moves = [_with_canonical_timestamp(move) for move in cleaned["history"]]
    return with_next_revision({**cleaned, **times, **messages, "history": moves})  # type: ignore[typeddict-item]


_TIME_KEYS = ("created_at", "last_updated", "finalized_at")
_MESSAGE_KEYS = ("last_error", "denial")


def _with_canonical_timestamp(entry: Mapping[str, object]) -> dict[str, object]:
    return {**entry, "timestamp": _canonical_time(entry["timestamp"])}


def _canonical_time(moment: object) -> str:
    return format_time(parse_time(moment))


def _without_keys(record: Record, *keys: str) -> Record:
    return {key: value for key, value in record.items() if key not in keys}  # type: ignore[return-value]


def _with_end(record: Record, summary: str | None, now: datetime) -> Record:
    duration = seconds_between(parse_time(record["created_at"]), now)
    ended: Record = {**record, "finalized_at": format_time(now), "duration_seconds": duration}
    if summary:
        ended["summary"] = summary
    return ended
