"""How a record gets shorter: the steps of shortening, and what each takes away.

Owns the order of the steps: what is needed least goes first. What people and agents store themselves (metadata,
summary, errors) is never shortened: it must leave room for the end. Loaded only where a record may be too long. Pure.
"""

from __future__ import annotations

from .record import encode
from .runs import has_ended, is_send, may_be_at_work, without_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from .schema import Record, Run

    Shortening = Callable[[Record], Record]
    RunTextKey = Literal["last_message", "detail"]

_KEPT_MOVES = 10
_KEPT_ANSWERS = 3


def shorten(record: Record, excess: int) -> Record:
    """Shortens step by step until ``excess`` bytes are saved or nothing is left to shorten."""
    size = _size_but_for_metadata(record)
    target = size - excess
    for step in _SHORTENING_STEPS:
        shorter = step(record) if size > target else record
        if shorter is not record:
            record, size = shorter, _size_but_for_metadata(shorter)
    return record


def _size_but_for_metadata(record: Record) -> int:
    """The encoded size without metadata, which is never shortened and usually the largest part."""
    return len(encode({**record, "metadata": {}}))


def without_ended_runs(record: Record, newest: int) -> Record:
    """With the ``newest`` runs, and those of the earlier ones that have no end."""
    runs = record.get("runs", [])
    return _with_runs(record, [*(run for run in runs[:-newest] if not has_ended(run)), *runs[-newest:-1]])


def without_earlier_sends(record: Record, newest: int) -> Record:
    """With the ``newest`` runs that are sends; those before them have an end."""
    runs = record.get("runs", [])
    dropped = {run["run"] for run in [run for run in runs if is_send(run)][:-newest]}
    return _with_runs(record, [run for run in runs[:-1] if run["run"] not in dropped])


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


def cut_text(record: Record, key: RunTextKey, longest: int, *, keep_latest: bool = False) -> Record:
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
        record = cut_text(record, "detail", longest)
        if not last or not is_of_run:
            return record
        return {**record, "last_error": {**last, "message": last["message"][:longest]}}

    return shorten


def _with_latest_moves(record: Record) -> Record:
    kept = record["history"][-_KEPT_MOVES:]
    dropped = len(record["history"]) - len(kept)
    if not dropped:
        return record
    return {**record, "history": kept, "history_dropped": record.get("history_dropped", 0) + dropped}


def _with_latest_answers(record: Record) -> Record:
    """With the latest answers alone, without what was said with them; the events have all."""
    answers = record.get("answers", [])
    kept = [{key: value for key, value in given.items() if key != "message"} for given in answers[-_KEPT_ANSWERS:]]
    return record if kept == answers else {**record, "answers": kept}  # type: ignore[typeddict-item]  # still answers


def _without_answers(record: Record) -> Record:
    """Without what holds no more: how the work was answered before it went on. The events have all."""
    return {key: value for key, value in record.items() if key != "answers"} if "answers" in record else record  # type: ignore[return-value]


def _without_reported_figures(record: Record) -> Record:
    """Without what hosts told of each run; what the runs consumed stays, since the sum of the record stands on it."""
    return {**record, "runs": [without_keys(run, "usage", "model", "worktree") for run in record.get("runs", [])]}


def _without_files(record: Record) -> Record:
    return _without_keys_of_runs(record, "transcript_path", "output_path")


def _without_conversations(record: Record) -> Record:
    """A client goes on in another conversation then."""
    return _without_keys_of_runs(record, "conversation")


def _without_keys_of_runs(record: Record, *keys: str) -> Record:
    runs = record.get("runs", [])
    if not any(key in run for run in runs for key in keys):
        return record
    return {**record, "runs": [without_keys(run, *keys) for run in runs]}


_SHORTENING_STEPS: tuple[Shortening, ...] = (
    lambda record: cut_text(record, "last_message", 0, keep_latest=True),
    _without_conversations,
    lambda record: cut_text(record, "last_message", 1000),
    lambda record: cut_text(record, "last_message", 200),
    lambda record: cut_text(record, "last_message", 0),
    _shorten_details(200),
    _shorten_details(40),  # the details that rules compare are shorter
    lambda record: without_ended_runs(record, 1),
    _with_latest_moves,
    _with_latest_answers,
    _without_reported_figures,
    _without_files,
    _without_lapsed_claims,
    _with_latest_run_only,
    _without_answers,
)
"""The steps of shortening; what is needed least goes first."""
