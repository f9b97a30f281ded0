"""How a record gets shorter: what is dropped if there are many runs, and what if a record is too long.

Data that users and agents store (metadata, summary, errors) is never shortened.
"""

from __future__ import annotations

from gaia_sessions.errors import TooLarge

from .record import encode
from .runs import has_ended, is_send, may_be_at_work, untold_answers, without_keys
from .updates import with_latest_moves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    from .schema import GivenAnswer, Record, Run

    RunTextKey = Literal["last_message", "detail"]

_SHORTEST = 40
"""The fewest characters of a detail that stay; the details that rules compare are shorter."""

_LATEST_MOVES = 10


def without_earlier_runs(record: Record, newest: int) -> Record:
    """Keeps the ``newest`` runs, and earlier runs on which an agent may be at work; drops the others."""
    runs = record.get("runs", [])
    at_work = [run for run in runs[:-newest] if may_be_at_work(run) and not has_ended(run)]
    return _with_runs(record, [*at_work, *runs[-newest:]])


def without_earlier_sends(record: Record, newest: int) -> Record:
    """Drops all sends but the ``newest``; the earlier sends have ended."""
    runs = record.get("runs", [])
    dropped = {run["run"] for run in [run for run in runs if is_send(run)][:-newest]}
    return _with_runs(record, [run for run in runs if run["run"] not in dropped])


def _with_runs(record: Record, kept: list[Run]) -> Record:
    dropped = len(record.get("runs", [])) - len(kept)
    if not dropped:
        return record
    return {**record, "runs": kept, "runs_dropped": record.get("runs_dropped", 0) + dropped}


def with_short_earlier_texts(record: Record, longest: int) -> Record:
    """Cuts texts of runs and answers to ``longest`` characters, except the latest of each kind."""
    for key in ("last_message", "detail"):
        record = _cut(record, key, longest, keep_latest=True)
    # An answer stays whole until an agent was told the answer.
    given, untold = record.get("answers", []), untold_answers(record)
    shorter = [one if one in untold else _with_shorter_message(one, longest) for one in given[:-1]] + given[-1:]
    return record if shorter == given else {**record, "answers": shorter}


def _with_shorter_message(given: GivenAnswer, longest: int) -> GivenAnswer:
    return {**given, "message": given["message"][:longest]} if "message" in given else given


def _cut(record: Record, key: RunTextKey, longest: int, *, keep_latest: bool = False) -> Record:
    runs = record.get("runs", [])
    numbers = [run["run"] for run in runs if key in run]
    spared = numbers[-1:] if keep_latest else []
    shorter = [run if run["run"] in spared else _with_shorter(run, key, longest) for run in runs]
    return record if shorter == runs else {**record, "runs": shorter}


def _with_shorter(run: Run, key: RunTextKey, longest: int) -> Run:
    if key not in run or len(run[key]) <= longest:
        return run
    text = run[key]  # the point is at the end of a message, and at the beginning of a detail
    return {**run, key: text[-longest:] if key == "last_message" else text[:longest]}  # type: ignore[misc]  # a text key of a run


def shortened(record: Record, limit: int) -> tuple[Record, bytes]:
    """Returns ``record`` without the least needed parts, and its bytes, at most ``limit``."""
    for step in _STEPS[:-1]:
        record = step(record)
        try:
            return record, encode(record, limit)
        except TooLarge:
            continue
    record = _STEPS[-1](record)
    return record, encode(record, limit)


def _with_short_texts(record: Record) -> Record:
    """Cuts the texts of all runs, and the last error if a run ended with it."""
    last = record["last_error"]
    is_of_run = last and any(run.get("detail") == last["message"] for run in record.get("runs", ()))
    record = _cut(_cut(record, "last_message", _SHORTEST), "detail", _SHORTEST)
    if not last or not is_of_run:
        return record
    return {**record, "last_error": {**last, "message": last["message"][:_SHORTEST]}}


def _with_latest_run_only(record: Record) -> Record:
    """Keeps the latest run, runs at work and the latest moves, and drops answers: the journal has all of them."""
    record = with_latest_moves(without_earlier_runs(record, 1), _LATEST_MOVES)
    return {key: value for key, value in record.items() if key != "answers"} if "answers" in record else record  # type: ignore[return-value]


def _without_what_hosts_told(record: Record) -> Record:
    """Drops what hosts reported of each run, and the paths of files."""
    # ``consumed`` stays, since the record's sum depends on it. Without ``conversation``, a client begins another one.
    keys = ("usage", "model", "worktree", "conversation", "transcript_path", "output_path")
    return {**record, "runs": [without_keys(run, *keys) for run in record.get("runs", [])]}


_STEPS: Sequence[Callable[[Record], Record]] = (_with_short_texts, _with_latest_run_only, _without_what_hosts_told)
