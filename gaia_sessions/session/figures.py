"""What one session adds to sums: its state, how long it stayed in each phase, and how often it was resumed.

Figures stay when their session is removed, so they have no purpose, no words of agents or people, and no path.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio.strict import LARGEST_INTEGER

from . import schema
from .budget import reported_tokens
from .cancellation import abandoned
from .checks import check_flag, check_integer, check_object, check_string, check_time, object_with, one_of
from .clock import parse_time, seconds_between
from .concluded_ends import UNSTOPPED_DETAIL
from .ids import is_agent_id
from .phases import OPEN, PHASES, is_final
from .record import is_open
from .runs import has_ended, is_send, is_work
from .state import CANCELLED, ENDED, STATES
from .updates import MAX_HISTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import NotRequired, TypedDict

    from .checks import Check
    from .policy import Decision
    from .schema import Record, Run
    from .state import State

    class RunFigures(TypedDict):
        """What the runs of a session count: those that began and have an end, without sends."""

        rests: int  # runs that ended while the session stayed open
        resumed: int  # rests with a later run
        interruptions: dict[str, int]  # by kind

    class Figures(RunFigures):
        """What one session counts."""

        agent_id: str
        created_at: str
        revision: int  # of several figures of a session, those with the highest revision count
        agent_name: str
        state: str  # one of ``STATES``; ``cancelled`` or the outcome if the session has ended
        phase: str
        last_activity: str
        ended_at: NotRequired[str]  # present if it has ended
        expired: NotRequired[bool]  # present and true if idle time alone prevents a resume
        stays: dict[str, list[int]]  # whole seconds of each stay in an open phase that is over
        runs_dropped: int
        history_dropped: int
        errors: int
        tokens: NotRequired[int]  # absent if nobody reported any


LONGEST_NAME = 200
"""The most characters of an agent's name that figures contain."""

LONGEST_STAY = 10**12
"""Seconds: more than between any two times that a record can have."""


def figures_of(record: Record, decision: Decision, state: State) -> Figures:
    """Returns what the session of ``record`` counts."""
    word = state["state"]
    if word == CANCELLED and is_open(record):
        record = abandoned(record, decision["cancellation"])  # as the next write of the record will do
    moves, dropped = _known_moves(record)
    figures: Figures = {
        "agent_id": record["agent_id"],
        "created_at": record["created_at"],
        "revision": min(record["revision"], LARGEST_INTEGER),
        "agent_name": record["agent_name"][:LONGEST_NAME],
        "state": word,
        "phase": record["phase"],
        "last_activity": decision.get("last_activity", record["last_updated"]),
        "stays": _stays(moves, None if dropped else record["created_at"]),
        **_figures_of_runs(record),  # type: ignore[typeddict-item]  # they have no other keys
        "runs_dropped": min(record.get("runs_dropped", 0), LARGEST_INTEGER),
        "history_dropped": dropped,
        "errors": min(record["error_count"], LARGEST_INTEGER),
    }
    if word in ENDED:
        figures["ended_at"] = record.get("finalized_at", moves[-1]["timestamp"] if moves else record["last_updated"])
    elif decision["reason"] == "expired" and sum(not check["ok"] for check in decision["checks"]) == 1:
        figures["expired"] = True
    if (tokens := reported_tokens(record)) is not None:
        figures["tokens"] = tokens
    return figures


def _known_moves(record: Record) -> tuple[Sequence[schema.Move], int]:
    """Returns the moves that count, and how many came before; other programs may write more moves."""
    moves = record["history"][-MAX_HISTORY:]
    dropped = record.get("history_dropped", 0) + len(record["history"]) - len(moves)
    return moves, min(dropped, LARGEST_INTEGER)


def _stays(moves: Sequence[schema.Move], created_at: str | None) -> dict[str, list[int]]:
    """Returns the stays that ``moves`` ended; without ``created_at`` the first stay is unknown."""
    stays: dict[str, list[int]] = {}
    began = parse_time(created_at) if created_at else None
    for move in moves:
        ended = parse_time(move["timestamp"])
        if began is not None and not is_final(move["from_phase"]):
            stays.setdefault(move["from_phase"], []).append(int(seconds_between(began, ended)))
        began = ended
    return stays


def _figures_of_runs(record: Record) -> RunFigures:
    runs = [run for run in record.get("runs", ()) if not is_send(run) and is_work(run)]
    kinds = [run["interruption"] for run in runs if has_ended(run) and "interruption" in run]
    resumed = sum(has_ended(run) for run in runs[:-1])
    rests_at_last = bool(runs) and has_ended(runs[-1]) and not _ended_the_work(record, runs[-1])
    return {
        "rests": resumed + rests_at_last,
        "resumed": resumed,
        "interruptions": {kind: kinds.count(kind) for kind in schema.INTERRUPTIONS if kind in kinds},
    }


def _ended_the_work(record: Record, run: Run) -> bool:
    """Whether the session became final at the end of ``run``, the latest."""
    if is_final(record["phase"]) and is_final(run.get("reported", "")):  # whatever the clocks say
        return True
    # A return without a stop is concluded later, at the end of the turn.
    return is_final(_phase_at(record, parse_time(run["ended_at"]))) or run.get("detail") == UNSTOPPED_DETAIL


def _phase_at(record: Record, moment: datetime) -> str:
    for move in reversed(record["history"]):
        if parse_time(move["timestamp"]) <= moment:
            return move["to_phase"]
    return record["history"][0]["from_phase"] if record["history"] else record["phase"]


def read_figures(value: object) -> Figures | None:
    """Reads figures that anybody may have written; None if they cannot be a session's."""
    try:
        _check_keys(value, "")
    except InvalidInput:
        return None
    keys: dict[str, object] = value  # type: ignore[assignment]  # just checked
    figures: Figures = {key: keys[key] for key in _KEYS if key in keys}  # type: ignore[assignment]  # see above
    is_sound = (figures["state"] in ENDED) == ("ended_at" in figures) and figures["resumed"] <= figures["rests"]
    return figures if is_sound and sum(map(len, figures["stays"].values())) <= MAX_HISTORY else None


def _check_id(value: object, where: str) -> None:
    if not is_agent_id(value):
        raise InvalidInput("must be the ID of a session", where)


def _check_name(value: object, where: str) -> None:
    check_string(value, where)
    if len(str(value)) > LONGEST_NAME:
        raise InvalidInput(f"must have at most {LONGEST_NAME} characters", where)


def _count_to(most: int) -> Check:
    def check(value: object, where: str) -> None:
        check_integer(value, where)
        if not 0 <= value <= most:  # type: ignore[operator]  # just checked
            raise InvalidInput(f"must be a number from 0 to {most}", where)

    return check


def _check_stays(value: object, where: str) -> None:
    check_object(value, where)
    for phase, seconds in value.items():  # type: ignore[attr-defined]  # just checked
        _check_open_phase(phase, where)
        if not isinstance(seconds, list):
            raise InvalidInput("must be an array", where)
        for one in seconds:
            _check_seconds(one, where)


def _check_interruptions(value: object, where: str) -> None:
    check_object(value, where)
    for kind, count in value.items():  # type: ignore[attr-defined]  # just checked
        _check_kind(kind, where)
        _check_count(count, where)


_check_open_phase = one_of(OPEN)
_check_kind = one_of(schema.INTERRUPTIONS)
_check_seconds = _count_to(LONGEST_STAY)
_check_count = _count_to(LARGEST_INTEGER)

_REQUIRED: dict[str, Check] = {
    "agent_id": _check_id,
    "created_at": check_time,
    "revision": _check_count,
    "agent_name": _check_name,
    "state": one_of(STATES),
    "phase": one_of(PHASES),
    "last_activity": check_time,
    "stays": _check_stays,
    "rests": _check_count,
    "resumed": _check_count,
    "interruptions": _check_interruptions,
    "runs_dropped": _check_count,
    "history_dropped": _check_count,
    "errors": _check_count,
}
_OPTIONAL: dict[str, Check] = {"ended_at": check_time, "expired": check_flag, "tokens": _check_count}
_KEYS = (*_REQUIRED, *_OPTIONAL)
_check_keys = object_with(_REQUIRED, _OPTIONAL)
