"""Runs of commands: how ``gaia-sessions run`` begins one, and what each of its ends does to the session.

Owns the causes of an end, as whoever supervised the command found it, and how each is worded. The run has a
``wrapper``, the process that started the command: nothing but this module ends it while that process is there. Pure.
"""

from __future__ import annotations

from gaia_sessions.errors import AgentAtWork, RunNotAllowed

from . import schema
from .budget import is_used_up, tokens_of
from .client_conversation import Told, conversation_fields, with_figures
from .clock import format_time
from .host_events import MAX_MESSAGE_LENGTH
from .ids import run_command, send_command
from .phases import COMMAND_STARTED, is_final, is_new, waits_for_approval
from .policy import claimed_runs, is_running
from .record import NOT_APPROVED_REASON, is_asking
from .run_ends import marker_fields, with_end_by_wrapper
from .runs import has_agent, has_ended, is_conversation, with_new_run
from .schema import KILLED, LOST, RUN_FAILED, STOPPED, STOPPED_BY_USER
from .transcript import current_turn
from .updates import with_activity, with_event, with_given_answer, without_pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import NoReturn

    from .policy import Decision
    from .schema import Record, Run

EXITED = "exited"
TIMED_OUT = schema.TIMED_OUT
OUT_OF_TOKENS = schema.OUT_OF_TOKENS
SIGNALLED = "signalled"
CANCELLED = schema.CANCELLED
NOT_STARTED = "not_started"

CAUSES = (EXITED, TIMED_OUT, OUT_OF_TOKENS, SIGNALLED, CANCELLED, NOT_STARTED)
"""Why a command is over: by itself, at a limit, because its wrapper was sent a signal, with the session, never begun.

What met a limit, was stopped or was cancelled is over for that reason, whatever its exit code is.
"""

_SIGNAL_BASE = 128


class CommandEnd:
    """How a command ended.

    cause: one of ``CAUSES``. exit_code: as shells say it, None if there is none. message: the end of what it wrote to
    its stdout, or the last words of a client. detail: why it was not started, or has failed whatever its exit code is.
    What no record can hold is replaced in both. told: what a client tells of itself, as fields of the run.
    """

    __slots__ = ("cause", "detail", "exit_code", "message", "told")

    def __init__(
        self,
        cause: str,
        exit_code: int | None = None,
        message: str = "",
        detail: str | None = None,
        told: Told | None = None,
    ) -> None:
        self.cause = cause
        self.exit_code = exit_code
        self.message = _storable(message)
        self.detail = None if detail is None else _storable(detail)
        self.told = told or Told()

    @property
    def is_success(self) -> bool:
        """Whether it ended by itself, and has done what it was to do."""
        return self.cause == EXITED and not self.exit_code and self.detail is None


def _storable(text: str) -> str:
    """``text`` as JSON of records can hold it: programs write any bytes, and files have any names."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")


_RUN = run_command("{id}")
_WAIT = "wait until that is over: gaia-sessions wait {id}"
_CONTINUE = f"to go on with it in a new session, type {run_command('{id}', ended=True)}"
_GIVE_UP = f"type gaia-sessions finalize {{id}} abandoned; {_CONTINUE}"
_MORE_TOKENS = (
    "to let it use as many again, type this, then the same again: gaia-sessions update {{id}} --max-tokens {}"
)

_REFUSALS = {
    "phase_not_resumable": (
        "it is {phase}",
        "if nobody works on it, type this, then the same again: gaia-sessions update {id} --phase planning",
    ),
    NOT_APPROVED_REASON: (
        "it waits for an approval",
        "a person types this in a terminal, then the same again: gaia-sessions approve {id}",
    ),
    "not_ready": (
        "resuming is switched off",
        "type this, then the same again: gaia-sessions update {id} --resume-ready",
    ),
    "clock_skew": (
        "it was last updated in the future",
        "once the clock is right, type this, then the same again: gaia-sessions update {id}",
    ),
    "waiting_for_limit": (
        "it waits until {paused_until} for a limit to be reset",
        "wait until then; if it is reset, type this, then the same again: gaia-sessions update {id} --resume-ready",
    ),
    "expired": (
        "it has been idle for too long",
        "if it is still wanted, type this, then the same again: gaia-sessions update {id}",
    ),
    "too_many_errors": ("it has failed too often", _GIVE_UP),
}
"""Why work that rests may not go on, and what to type, for each reason of the policy but those that name an agent."""


def check_may_run(record: Record, decision: Decision) -> None:
    """Raises ``RunNotAllowed`` unless a command may go on with the work of ``record``, or begin it.

    ``decision`` is the policy's on that record, which is not cancelled: it decides but for work that nobody has begun.
    """
    if is_final(record["phase"]):
        raise refusal(record, f"it is {record['phase']}", _CONTINUE)
    check_nobody_at_work(record, decision)
    if is_used_up(record):
        raise refusal(
            record,
            f"its {record['max_tokens']:,} tokens are used up",
            _MORE_TOKENS.format(tokens_of(record) + record["max_tokens"]),
        )
    if decision["should_resume"] or is_new(record["phase"]):
        return
    if decision["reason"] == "expired" and waits_for_approval(record["phase"]):
        raise refusal(
            record, "it waited too long for an approval", "type this, then the same again: gaia-sessions approve {id}"
        )
    refuse(record, decision["reason"])


def check_nobody_at_work(record: Record, decision: Decision, hint: str = _WAIT) -> None:
    """Raises ``AgentAtWork`` if an agent is at work by the policy's ``decision``, or about to be."""
    if is_running(decision):
        raise at_work(record["agent_id"], hint=hint)
    if claimed_runs(decision):
        raise at_work(record["agent_id"], "somebody is about to resume it", hint)


def at_work(agent_id: str, problem: str = "its agent is at work", hint: str = _WAIT) -> AgentAtWork:
    """That the work of a session may not go on now, but later."""
    return AgentAtWork(agent_id, problem, hint.replace("{id}", agent_id))


def refuse(record: Record, reason: str) -> NoReturn:
    """Raises ``RunNotAllowed`` for a ``reason`` of the policy."""
    problem, hint = _REFUSALS[reason]
    raise refusal(record, problem, hint)


def check_may_be_continued(record: Record, now: datetime) -> None:
    """Raises ``RunNotAllowed`` unless the work of ``record`` has ended, so that another session may continue it.

    The runs of processes that are gone have their end.
    """
    if has_agent(record, now, ()):
        raise at_work(record["agent_id"])
    if not is_final(record["phase"]):
        going_on = send_command("{id}") if is_conversation(record) else _RUN
        raise refusal(record, "it has not ended", f"to go on with it, type {going_on}")


def refusal(record: Record, problem: str, hint: str) -> RunNotAllowed:
    """Why nobody may go on with the work of ``record`` now, and what to type."""
    facts = {"phase": record["phase"], "paused_until": record.get("paused_until")}
    agent_id = record["agent_id"]
    return RunNotAllowed(agent_id, problem.format(**facts), hint.replace("{id}", agent_id))


def with_command_begun(record: Record, fields: Run, now: datetime, shell: str | None = None) -> Record:
    """With a new run, which has ``fields``, whose command is at work from ``now`` on: the work is being carried out.

    It may rest, or be new; what it waited for is decided by that it goes on. shell: the host in whose agent's shell
    that is typed, if it is.
    """
    begun = with_new_run(record, {**fields, "started_at": format_time(now)})
    if is_asking(record):
        begun = with_given_answer(begun, "approval", now, "run", shell=shell)
    return with_event(with_activity(without_pause(begun), now), COMMAND_STARTED, now)


def is_ended_by_wrapper(run: Run) -> bool:
    """Whether the wrapper of ``run`` has ended it; one that was judged to be gone may still do that."""
    return has_ended(run) and run.get("end") != LOST


def with_command_end(record: Record, run: Run, ended: CommandEnd, marker_phase: str | None, now: datetime) -> Record:
    """With the end of ``run``, which ``record`` has, and of its work.

    ``marker_phase`` is the phase in the marker that ends what the command wrote, which is a turn. A session that is
    final keeps its outcome. Returns ``record`` itself if the wrapper has ended the run before.
    """
    end, fields = end_of(ended, marker_phase)
    if ended.exit_code is not None:
        fields["exit_code"] = ended.exit_code
    if ended.message:
        fields["last_message"] = ended.message[-MAX_MESSAGE_LENGTH:]
    fields |= conversation_fields(record, ended.told, 1 if ended.message else 0)
    counted, run = with_figures(record, run, ended.told)
    closed = with_end_by_wrapper(counted, run, end, fields, now)
    return {**closed, "turns": current_turn(record)} if ended.message and closed is not counted else closed


def end_of(ended: CommandEnd, marker_phase: str | None) -> tuple[str, Run]:
    """One of ``ENDS``, and what is stored of it besides."""
    if ended.is_success:
        return STOPPED, marker_fields(marker_phase)
    if ended.cause in (TIMED_OUT, OUT_OF_TOKENS):
        stated: Run = {} if marker_phase is None else {"reported": marker_phase}
        return RUN_FAILED, {**stated, "detail": ended.cause}
    if ended.cause == SIGNALLED:
        return KILLED, {"detail": "stopped by a signal", "interruption": STOPPED_BY_USER}
    if ended.cause == CANCELLED:
        return KILLED, {"detail": "cancelled"}
    return RUN_FAILED, {"detail": ended.detail or exit_text(ended.exit_code)}


def exit_text(exit_code: int | None) -> str:
    """``exit code 3``, ``killed by signal 9 (SIGKILL)``."""
    if exit_code is None:
        return "it was not started"
    from signal import Signals  # most commands end by themselves

    try:
        signal = Signals(exit_code - _SIGNAL_BASE)
    except ValueError:
        return f"exit code {exit_code}"
    return f"killed by signal {signal.value} ({signal.name})"
