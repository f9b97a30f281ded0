"""Single changes of a record: each function takes a record and returns a new one.

Runs change in ``runs`` and ``run_ends``. ``requests`` combines the changes of an update.
"""

from __future__ import annotations

from gaia_sessions import errors

from .clock import format_time, is_ahead, parse_time, seconds_between
from .phases import PHASES, check_correction, check_move, is_abandoned, is_final, is_resumable, phase_after
from .record import ANSWER_WORDS, ANSWERED, SCHEMA, answer_of, has_newer_schema, moving_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json

    from .schema import AnswerKey, GivenAnswer, Move, Record

MAX_HISTORY = 200
MAX_ANSWERS = 20
LONGEST_NOTE = 1000
"""The most characters of an answer's message that stay in the record when the session moves on."""


class Change:
    """A new record, and the entries that the session's journal gets with it."""

    __slots__ = ("entries", "record")

    def __init__(self, record: Record, entries: Sequence[dict[str, Json]] = ()) -> None:
        self.record = record
        self.entries = entries


def check_writable(record: Record) -> None:
    """Refuses a record that a later version wrote, or whose session is being moved to another root."""
    if has_newer_schema(record):
        raise why_not_writable(record)


def why_not_writable(record: Record) -> errors.NewerSchema:
    """Returns the error for a record with a newer schema."""
    moving = moving_of(record)
    if moving is not None:
        return errors.SessionMoving(record["agent_id"], moving["source"], moving["target"])
    return errors.NewerSchema(record["agent_id"], record["schema"], SCHEMA)


def check_open(record: Record) -> None:
    """Refuses a session that has ended."""
    if is_final(record["phase"]):
        # An abandoned session is often a cancelled one, which no session can continue.
        raise errors.SessionFinal(record["agent_id"], record["phase"], continuable=not is_abandoned(record["phase"]))


def check_revision(record: Record, expected: int | None) -> None:
    """Refuses a record with another revision than ``expected``; None means any revision."""
    if expected is not None and record["revision"] != expected:
        raise errors.RevisionChanged(record["agent_id"], expected, record["revision"])


def with_next_revision(record: Record) -> Record:
    """Adds 1 to the revision; a store calls this once for every changed record."""
    return {**record, "revision": record["revision"] + 1}


def with_activity(record: Record, now: datetime, active_at: datetime | None = None) -> Record:
    """Notes activity at ``active_at``, by default ``now``."""
    # ``last_updated`` never moves back, unless it is too far in the future.
    active, last = active_at or now, parse_time(record["last_updated"])
    if active < last and not is_ahead(last, now):
        return record
    return {**record, "last_updated": format_time(active)}


def phase_before(record: Record) -> str:
    """Returns the phase before the last move; the first phase if no move is known."""
    return record["history"][-1]["from_phase"] if record["history"] else PHASES[0]


def with_event(record: Record, event: str, now: datetime) -> Record:
    """Sets the phase to which ``event``, one of ``phases.EVENTS``, leads."""
    return with_phase(record, phase_after(event, record["phase"]), now)


def with_phase(record: Record, phase: str, now: datetime, summary: str | None = None) -> Record:
    """Sets ``phase`` from ``now`` on; a final phase ends the session with ``summary``."""
    if phase == record["phase"]:  # a heartbeat
        check_move(phase, phase)
        return record
    return _with_move(record, phase, now, summary, check_move)


def _with_move(
    record: Record, phase: str, now: datetime, summary: str | None, check: Callable[[str, str], None]
) -> Record:
    check(record["phase"], phase)
    record = with_latest_moves(record, MAX_HISTORY - 1)
    changed: Record = {**without_question(record), "phase": phase, "resume_ready": is_resumable(phase)}
    if is_final(phase):
        changed = with_stated_end(changed, summary, now)
    move: Move = {"from_phase": record["phase"], "to_phase": phase, "timestamp": format_time(now)}
    changed["history"] = [*record["history"], move]
    return changed


def with_latest_moves(record: Record, newest: int) -> Record:
    """Drops all moves but the ``newest``, and counts the dropped moves."""
    dropped = len(record["history"]) - newest
    if dropped <= 0:
        return record
    kept = record["history"][dropped:]
    return {**record, "history": kept, "history_dropped": record.get("history_dropped", 0) + dropped}


def with_metadata(record: Record, metadata: dict[str, Json]) -> Record:
    """Merges ``metadata`` one level deep: a new value replaces the old value of the same key."""
    return {**record, "metadata": {**record["metadata"], **metadata}}


def with_error(record: Record, message: str, now: datetime) -> Record:
    """Counts one more error, and notes ``message`` as the last error."""
    return {
        **record,
        "error_count": record["error_count"] + 1,
        "last_error": {"message": message, "timestamp": format_time(now)},
    }


def with_answer(
    record: Record, key: AnswerKey, message: str, now: datetime, by: str, shell: str | None = None
) -> Record:
    """Sets the answer to the question, and replaces an earlier answer; the phase stays."""
    # No agent is told the replaced answer, unless a person gave it and an agent's shell gave the new one.
    given = record.get("answers", [])
    if answer_of(record) is not None and given and (shell is None or "shell" in given[-1]):
        replaced: GivenAnswer = {name: value for name, value in given[-1].items() if name != "after_run"}  # type: ignore[assignment]  # it may be absent
        record = {**record, "answers": [*given[:-1], replaced]}
    answered = without_answer(with_given_answer(record, key, now, by, message, shell, is_told=False))
    return {**answered, key: {"message": message, "timestamp": format_time(now)}}  # type: ignore[misc]  # a key of it


def with_given_answer(
    record: Record,
    key: AnswerKey | None,
    now: datetime,
    by: str,
    message: str = "",
    shell: str | None = None,
    *,
    is_told: bool = True,
) -> Record:
    """Adds an answer to ``answers``; ``key`` is None for a text that was sent to the agent."""
    given: GivenAnswer = {"answer": ANSWER_WORDS[key] if key else ANSWERED, "by": by, "timestamp": format_time(now)}
    if message:
        given["message"] = message[:LONGEST_NOTE]
    if shell is not None:
        given["shell"] = shell
    if not is_told:  # the agent that resumes the session did not give the answer, so it must be told
        given["after_run"] = max((run["run"] for run in record.get("runs", ())), default=0)
    return {**record, "answers": [*record.get("answers", ()), given][-MAX_ANSWERS:]}


def with_question(record: Record, question: str) -> Record:
    """Sets the ``question`` of the agent, and removes the answer to an earlier question."""
    return {**without_answer(record), "question": question}


def without_answer(record: Record) -> Record:
    """Removes the answer: the session changes its phase, asks again, or gets another answer."""
    return record if ANSWER_WORDS.keys().isdisjoint(record) else _without_keys(record, *ANSWER_WORDS)


def without_question(record: Record) -> Record:
    """Removes the question and its answer: the phase changes, or the agent's last message asks a new question."""
    answered = without_answer(record)
    return _without_keys(answered, "question") if "question" in record else answered


def with_resume_ready(record: Record, ready: bool) -> Record:  # noqa: FBT001  # the value itself, not a mode
    """Allows or forbids a resume until the next move; only a resumable phase can allow it."""
    if ready and not is_resumable(record["phase"]):
        raise errors.ResumeNotAllowed(record["agent_id"], record["phase"])
    return {**(without_pause(record) if ready else record), "resume_ready": ready}


def without_pause(record: Record) -> Record:
    """Removes the wait for a usage limit, when the work is resumed or a person allows to resume it."""
    return _without_keys(record, "paused_until") if "paused_until" in record else record


def with_stated_end(record: Record, summary: str | None, now: datetime) -> Record:
    """Notes that the session ended at ``now``; a time after the last move confirms a provisional end."""
    unpaused, duration = without_pause(record), seconds_between(parse_time(record["created_at"]), now)
    ended: Record = {**unpaused, "finalized_at": format_time(now), "duration_seconds": duration}
    if summary:
        ended["summary"] = summary
    return ended


def with_rejudged_end(record: Record, phase: str, now: datetime) -> Record:
    """Replaces a provisional end by ``phase``: this is the only way out of a final phase."""
    reopened = without_end(record)
    if phase != record["phase"]:
        return _with_move(reopened, phase, now, None, check_correction)
    return with_stated_end(reopened, None, now) if is_final(phase) else reopened


def without_end(record: Record) -> Record:
    """Removes the keys that only a record in a final phase has."""
    return _without_keys(record, *_END_KEYS)


_END_KEYS = ("finalized_at", "duration_seconds", "summary")


def _without_keys(record: Record, *keys: str) -> Record:
    return {key: value for key, value in record.items() if key not in keys}  # type: ignore[return-value]  # still a record
