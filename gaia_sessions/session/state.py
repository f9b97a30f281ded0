"""The state of a session, in one word: the first rule of ``RULES`` that holds gives the word.

Lists, reports, hooks and JSON all use this word.
"""

from __future__ import annotations

from . import phases, schema
from .clock import parse_time
from .policy import claimed_runs, is_running
from .runs import CLIENT_IS_OVER, has_ended, is_send, may_be_at_work, run_by_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import NotRequired, TypedDict

    from .liveness import Liveness
    from .policy import Decision
    from .schema import AnswerKey, Record, Run

    Rule = tuple[str, Callable[["_Case"], bool], Callable[["_Case"], str | None], str]
    """The word, whether the rule holds, since when, and the word's meaning for people."""

    class State(TypedDict):
        """One of ``STATES``, and since when if known; ``state`` is absent for a record of a later version."""

        state: NotRequired[str]
        state_since: NotRequired[str]


WAITING = schema.WAITING
WORKING = schema.WORKING
QUIET = schema.QUIET
COMPLETED = phases.COMPLETED
STARTING = "starting"
CANCELLED = "cancelled"
LIMITED = "limited"
DENIED = "denied"
APPROVED = "approved"
ERROR = "error"
CRASHED = "crashed"
INTERRUPTED = "interrupted"
CUT_SHORT = "cut short"
PAUSED = "paused"
NEW = "new"
BY_HAND = "open"


class _Case:
    """What the rules look at."""

    __slots__ = ("alive", "decision", "record", "run")

    def __init__(self, record: Record, decision: Decision, alive: Liveness | None, run: Run | None) -> None:
        self.record = record
        self.decision = decision
        self.alive = alive
        self.run = run


def latest_begun(record: Record, dead_runs: Collection[int]) -> Run | None:
    """Returns the latest run that began, or whose host was gone before its start; denied runs do not count."""
    return next((run for run in reversed(record.get("runs", [])) if has_begun(run, dead_runs)), None)


def run_of(record: Record, dead_runs: Collection[int]) -> Run | None:
    """Returns the run that decides the state; if no run began, the latest delegated run."""
    return latest_begun(record, dead_runs) or next(reversed(record.get("runs", [])), None)


def has_begun(run: Run, dead_runs: Collection[int]) -> bool:
    """Whether an agent began ``run``, as far as is known, or the host was gone before the start."""
    if has_ended(run):
        return run.get("end") != schema.DENIED
    return may_be_at_work(run) or run["run"] in dead_runs


_BY_END = {
    schema.RUN_FAILED: ERROR,
    schema.LOST: CRASHED,
    schema.ENDED_WITH_HOST: INTERRUPTED,
    schema.KILLED: INTERRUPTED,
    schema.RUN_RETURNED: CUT_SHORT,
}


def broken_off(run: Run) -> str | None:
    """Returns the state of a session whose latest run broke off; None if the run's agent ended the run."""
    if not has_ended(run):
        return CRASHED
    if is_send(run) and run["end"] == schema.RUN_RETURNED:  # the send was answered
        return None
    word = _BY_END.get(run.get("end", ""))
    return INTERRUPTED if "interruption" in run and word not in (ERROR, CRASHED) else word


def state_of(record: Record, decision: Decision, alive: Liveness | None, dead_runs: Collection[int] = ()) -> State:
    """Returns the state of the session of ``record``; ``alive`` is None if no agent is at work."""
    case = _Case(record, decision, alive, latest_begun(record, dead_runs))
    word, since = next((word, since) for word, holds, since, _ in RULES if holds(case))
    state: State = {"state": word}
    moment = since(case)
    return {**state, "state_since": moment} if moment else state


def _ended_as(is_outcome: Callable[[str], bool]) -> Callable[[_Case], bool]:
    return lambda case: is_outcome(case.record["phase"])


def _was_cancelled(case: _Case) -> bool:
    """Whether a mark ended the session, and not something else before the mark."""
    if "cancellation" not in case.decision or not phases.is_abandoned(case.record["phase"]):
        return False
    at = case.decision["cancellation"].get("at")
    return at is None or parse_time(at) <= parse_time(_since_phase(case))


def _is_at_work_as(state: str) -> Callable[[_Case], bool]:
    return lambda case: case.alive is not None and case.alive["state"] == state


def _asks(case: _Case) -> bool:
    return phases.waits_for_approval(case.record["phase"])


def _broke_off_as(word: str) -> Callable[[_Case], bool]:
    return lambda case: case.run is not None and broken_off(case.run) == word


def _since_phase(case: _Case) -> str:
    """Returns when the session entered its phase."""
    moves = case.record["history"]
    return moves[-1]["timestamp"] if moves else case.record["created_at"]


def _since_question(case: _Case) -> str:
    """Returns when the agent last asked: the phase begins, or (after a denial) the agent stops again."""
    asked, run = _since_phase(case), case.run
    stopped = run.get("ended_at", asked) if run is not None and run.get("end") == schema.STOPPED else asked
    return max(asked, stopped, key=parse_time)


def _since_cancellation(case: _Case) -> str | None:
    return case.decision["cancellation"].get("at")


def _since_liveness(case: _Case) -> str | None:
    return None if case.alive is None else case.alive.get("since")


def _since_start(case: _Case) -> str | None:
    return None if case.run is None else case.run.get("started_at", case.run.get("claimed_at"))


def _since_claim(case: _Case) -> str | None:
    run = run_by_number(case.record, claimed_runs(case.decision)[-1])
    return None if run is None else run.get("claimed_at")


def _since_end(case: _Case) -> str:
    """Returns when the latest run ended; if nobody saw the end, when the run's agent was last active."""
    run: Run = case.run or {}
    heard = case.decision.get("last_activity", case.record["last_updated"])
    if "ended_at" not in run:
        return heard
    return min(run["ended_at"], heard, key=parse_time) if run.get("end") == schema.LOST else run["ended_at"]


def _is_answered_by(key: AnswerKey) -> Callable[[_Case], bool]:
    return lambda case: _asks(case) and key in case.record


def _since_answer(key: AnswerKey) -> Callable[[_Case], str]:
    return lambda case: case.record[key]["timestamp"]


RULES: tuple[Rule, ...] = (
    (COMPLETED, _ended_as(phases.is_success), _since_phase, "the work is done"),
    (phases.FAILED, _ended_as(phases.is_failure), _since_phase, "the work has failed"),
    (CANCELLED, _was_cancelled, _since_cancellation, "the session was cancelled, and has ended"),
    (phases.ABANDONED, _ended_as(phases.is_abandoned), _since_phase, "the work was given up"),
    (WAITING, _is_at_work_as(WAITING), _since_liveness, "the agent waits for your permission to use a tool"),
    (
        QUIET,
        _is_at_work_as(QUIET),
        _since_liveness,
        "the agent is at work, but showed no activity for `quiet_minutes` (10)",
    ),
    (WORKING, lambda case: is_running(case.decision), _since_start, "the agent is at work"),
    (
        STARTING,
        lambda case: bool(claimed_runs(case.decision)),
        _since_claim,
        "the work was delegated; no agent has started yet",
    ),
    (
        CANCELLED,
        lambda case: "cancellation" in case.decision,
        _since_cancellation,
        "the session was cancelled; the next write to the record ends the session",
    ),
    (
        LIMITED,
        lambda case: "paused_until" in case.decision,
        _since_end,
        "the session waits until a usage limit is reset",
    ),
    (DENIED, _is_answered_by("denial"), _since_answer("denial"), "the session's question was denied"),
    (APPROVED, _is_answered_by("approval"), _since_answer("approval"), "the session's question was approved"),
    (WAITING, _asks, _since_question, "the session waits for your answer"),
    (ERROR, _broke_off_as(ERROR), _since_end, "the agent stopped with an error"),
    (
        CRASHED,
        _broke_off_as(CRASHED),
        _since_end,
        f"the client, or `gaia-sessions run`, {CLIENT_IS_OVER} before the work was done",
    ),
    (
        INTERRUPTED,
        _broke_off_as(INTERRUPTED),
        _since_end,
        "you, a limit or the conversation's end stopped the agent",
    ),
    (
        CUT_SHORT,
        _broke_off_as(CUT_SHORT),
        _since_end,
        "the delegation returned without a stop, for example at a turn limit",
    ),
    (PAUSED, lambda case: case.run is not None, _since_end, "the agent stopped before the work was done"),
    (
        NEW,
        lambda case: phases.is_new(case.record["phase"]),
        lambda case: case.record["created_at"],
        "the work has not begun",
    ),
    (BY_HAND, lambda _: True, _since_phase, "your own program does the work, and sets the phase"),
)
"""Every state: the first rule that holds gives the word."""

STATES = tuple(dict.fromkeys(word for word, *_ in RULES))

BROKEN_OFF = (ERROR, CRASHED, INTERRUPTED, CUT_SHORT)
"""The states of work that stopped before it was done, and whose agent did not choose to stop."""

WENT_WRONG = (phases.FAILED, *BROKEN_OFF)
"""The states of work that failed or broke off."""

ANSWERED = (DENIED, APPROVED)
"""The states of a session whose question was answered, and that nobody has resumed yet."""

ENDED = (*phases.OUTCOMES, CANCELLED)
"""The states of a session that has ended, or ends with the next write."""


def check_state(state: object) -> str:
    """Returns ``state`` if it is one of ``STATES``."""
    if not isinstance(state, str) or state not in STATES:
        from gaia_sessions.errors import UnknownState

        raise UnknownState(state, STATES)
    return state


def are_open(states: Collection[str]) -> bool:
    """Whether all sessions in one of ``states`` are open."""
    return not any(state in ENDED for state in states)
