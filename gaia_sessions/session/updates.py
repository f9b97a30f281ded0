"""Pure changes of a record: old record in, new record out, ``now`` as an argument.

Owns what an update and a finalization do to a session's own keys. What they do to its runs is in
``runs``; which moves are legal is in ``phases``. Must never touch a file or a clock.
"""

from __future__ import annotations

from gaia_sessions.errors import NewerSchema, SessionFinal

from .clock import FUTURE_TOLERANCE, read_time, seconds_between, write_time
from .phases import APPROVAL, check_move, is_final, is_resumable
from .record import SCHEMA, has_newer_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json

    from .schema import Move, Record

LONGEST_HISTORY = 200


def check_writable(record: Record) -> None:
    """Nothing if this version may rewrite ``record``, else ``NewerSchema``."""
    if has_newer_schema(record):
        raise NewerSchema(record["agent_id"], record["schema"], SCHEMA)


def check_open(record: Record) -> None:
    """Nothing if the work still goes on, else ``SessionFinal``: final is final."""
    if is_final(record["phase"]):
        raise SessionFinal(record["agent_id"], record["phase"])


def check_revision(record: Record, asked: int | None) -> None:
    """Nothing if nobody wrote since revision ``asked`` (or none was asked for), else ``RevisionChanged``."""
    if asked is not None and record["revision"] != asked:
        from gaia_sessions.errors import RevisionChanged

        raise RevisionChanged(record["agent_id"], asked, record["revision"])


def written(record: Record) -> Record:
    """``record`` as the next write of it: one revision on. Every changed record passes here exactly once."""
    return {**record, "revision": record["revision"] + 1}


def active_at(record: Record, now: datetime) -> Record:
    """The work gave a sign of life at ``now``; never moves backwards, unless the old time was plainly wrong."""
    last = read_time(record["last_updated"])
    if now < last <= now + FUTURE_TOLERANCE:
        return record
    return {**record, "last_updated": write_time(now)}


def in_phase(record: Record, phase: str, now: datetime) -> Record:
    """The work stands in ``phase`` from ``now`` on; staying is a heartbeat and leaves the record as it is."""
    check_move(record["phase"], phase)
    if phase == record["phase"]:
        return record
    return _moved(record, phase, now)


def _moved(record: Record, phase: str, now: datetime) -> Record:
    step: Move = {"from_phase": record["phase"], "to_phase": phase, "timestamp": write_time(now)}
    history = [*record["history"], step]
    changed: Record = {
        **undecided(record),
        "phase": phase,
        "resume_ready": is_resumable(phase),
        "history": history[-LONGEST_HISTORY:],
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
        "last_error": {"message": message, "timestamp": write_time(now)},
    }


def with_denial(record: Record, message: str, now: datetime) -> Record:
    """What the work waits for was refused, and why; it may be resumed all the same, to go another way."""
    if record["phase"] != APPROVAL:
        from gaia_sessions.errors import NothingToDeny

        raise NothingToDeny(record["agent_id"], record["phase"])
    return {**record, "denial": {"message": message, "timestamp": write_time(now)}}


def undecided(record: Record) -> Record:
    """Without the answer to what was asked before: the work moved on, or asks again."""
    return _without(record, "denial") if "denial" in record else record


def with_resume_ready(record: Record, ready: bool) -> Record:  # noqa: FBT001  # the value itself, not a mode
    """Resuming switched on or off by hand until the next move; on is refused outside the resumable phases."""
    if ready and not is_resumable(record["phase"]):
        from gaia_sessions.errors import ResumeNotAllowed

        raise ResumeNotAllowed(record["agent_id"], record["phase"])
    return {**record, "resume_ready": ready}


def finalized(record: Record, outcome: str, summary: str | None, now: datetime) -> Record:
    """The work ended at ``now`` with ``outcome``: the move, the time, how long it took, what came of it."""
    return _with_ending(in_phase(record, outcome, now), summary, now)


def confirmed(record: Record, summary: str | None, now: datetime) -> Record:
    """An end that was only concluded, said by somebody: it is no longer provisional."""
    return _with_ending(record, summary, now)


def rejudged(record: Record, phase: str, now: datetime) -> Record:
    """The one way out of a final phase, for a provisional end: its ending is taken away, the move appended."""
    reopened = _without(record, *_ENDING)
    settled = reopened if phase == record["phase"] else _moved(reopened, phase, now)
    return _with_ending(settled, None, now) if is_final(phase) else settled


_ENDING = ("finalized_at", "duration_seconds", "summary")


def imported(record: Record) -> Record:
    """The record of another store or of the users' earlier tool, as we write it: revision one on, times in our form.

    That tool kept the time of an end when it reopened a session; here only what is final has one.
    """
    own = record if is_final(record["phase"]) else _without(record, *_ENDING)
    times = {key: _in_our_form(own[key]) for key in _TIMES if key in own}  # type: ignore[literal-required]
    told = {key: _timed(own[key]) for key in _TOLD if own.get(key)}  # type: ignore[literal-required]
    moves = [_timed(move) for move in own["history"]]
    return written({**own, **times, **told, "history": moves})  # type: ignore[typeddict-item]


_TIMES = ("created_at", "last_updated", "finalized_at")
_TOLD = ("last_error", "denial")


def _timed(told: Mapping[str, object]) -> dict[str, object]:
    return {**told, "timestamp": _in_our_form(told["timestamp"])}


def _in_our_form(moment: object) -> str:
    return write_time(read_time(moment))


def _without(record: Record, *keys: str) -> Record:
    return {key: value for key, value in record.items() if key not in keys}  # type: ignore[return-value]


def _with_ending(record: Record, summary: str | None, now: datetime) -> Record:
    took = seconds_between(read_time(record["created_at"]), now)
    ended: Record = {**record, "finalized_at": write_time(now), "duration_seconds": took}
    if summary:
        ended["summary"] = summary
    return ended
