"""Runs of ours: whether one may begin, how it begins, and what each of its ends does to the session.

A run of ours has a ``wrapper``, the process that began it: nothing but this module ends it while that is there. It is
the run of a command, whose end is that of the work, or a send, which has a ``turn`` and ends no work. What was sent and
answered is one turn, once it is answered; before that nothing of it is stored. Pure.
"""

from __future__ import annotations

from gaia_sessions.errors import AgentAtWork, RunNotAllowed
from gaia_sessions.jsonio.strict import dump_line

from . import schema
from .budget import is_used_up, tokens_of, with_charge
from .client_conversation import Told, conversation_fields, with_figures
from .clock import format_time
from .host_events import MAX_MESSAGE_LENGTH
from .ids import run_command, send_command
from .phases import COMMAND_STARTED, TURN_TAKEN, is_final, is_new, is_resumable, waits_for_approval
from .policy import claimed_runs, is_running
from .record import NOT_APPROVED_REASON, UPDATE, is_asking
from .run_ends import marker_fields, with_end_by_wrapper
from .runs import has_agent, has_ended, is_conversation, is_send, untold_answers, with_new_run
from .schema import KILLED, LOST, RUN_FAILED, RUN_RETURNED, STOPPED, STOPPED_BY_USER
from .transcript import COMMIT_LIMIT, LINE_LIMIT, SYSTEM, current_turn, new_message
from .updates import with_activity, with_event, with_given_answer, without_pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from .policy import Decision
    from .schema import AnswerKey, GivenAnswer, Record, Run
    from .transcript import NewMessage

EXITED = "exited"
TIMED_OUT = schema.TIMED_OUT
OUT_OF_TOKENS = schema.OUT_OF_TOKENS
SIGNALLED = "signalled"
CANCELLED = schema.CANCELLED
NOT_STARTED = "not_started"

CAUSES = (EXITED, TIMED_OUT, OUT_OF_TOKENS, SIGNALLED, CANCELLED, NOT_STARTED)
"""Why a run is over: by itself, at a limit, because its process was stopped, with the session, or never begun.

What met a limit, was stopped or was cancelled is over for that reason, whatever its exit code is.
"""

_SIGNAL_BASE = 128

_LONGEST_CONTENT = LINE_LIMIT - (16 << 10)
"""Bytes of a content, as JSON: its line has the names of a tool and a call besides."""


class RunEnd:
    """How a run of ours ended.

    cause: one of ``CAUSES``. exit_code: of a command, as shells say it, None if there is none. message: the end of what
    it wrote to its stdout, or the last words of a client or an agent. detail: why it was not started, was stopped, or
    has failed whatever its exit code is. What no record can hold is replaced in both. told: what a client tells of
    itself. said, answered: the messages of the turn that a send completes; none of one that was not answered.
    """

    __slots__ = ("answered", "cause", "detail", "exit_code", "message", "said", "told")

    def __init__(
        self,
        cause: str,
        exit_code: int | None = None,
        message: str = "",
        detail: str | None = None,
        told: Told | None = None,
        *,
        said: Sequence[NewMessage] = (),
        answered: Sequence[NewMessage] = (),
    ) -> None:
        self.cause = cause
        self.exit_code = exit_code
        self.message = _storable(message)
        self.detail = None if detail is None else _storable(detail)
        self.told = told or Told()
        self.said = said
        self.answered = answered

    @property
    def is_success(self) -> bool:
        """Whether it ended by itself, and has done what it was to do."""
        return self.cause == EXITED and not self.exit_code and self.detail is None

    def turn(self, run: Run, now: datetime) -> list[NewMessage] | None:
        """The messages of the turn that the end of ``run`` completes, which may be none; None if it completes none."""
        if is_send(run):
            return [*self.said, *self.answered] if self.is_success else None
        if not self.message:
            return None
        return [fitted({**new_message("assistant", self.message, now), "run": run["run"]})]


def _storable(text: str) -> str:
    """``text`` as JSON of records can hold it: programs write any bytes, and files have any names."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")


def fitted(message: NewMessage) -> NewMessage:
    """``message`` as a line of the transcript may have it: the beginning and the end of a content that is too long."""
    longest = _LONGEST_CONTENT
    shorter = message
    while len(dump_line(shorter["content"], limit=COMMIT_LIMIT)) > _LONGEST_CONTENT:
        from .context import cut  # few are too long

        shorter = {**message, "content": cut(message["content"], longest)}
        longest -= longest // 8
    return shorter


_WAIT = "wait until that is over: gaia-sessions wait {id}"
_WAIT_TO_SEND = "to wait until that is over, add --wait (in Python: wait=60)"
_CONTINUE = "to go on with it in a new session, type "
_GIVE_UP = f"type gaia-sessions finalize {{id}} abandoned; {_CONTINUE}{run_command('{id}', ended=True)}"
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

_REFUSED_TO_SENDERS = ("phase_not_resumable", NOT_APPROVED_REASON, "not_ready")
"""Idle time, errors and a limit to wait for refuse no send: a person asks."""


def check_may_begin(record: Record, decision: Decision, *, sends: bool = False) -> None:
    """Raises ``RunNotAllowed`` unless a command, or somebody who ``sends``, may go on with ``record``, or begin it.

    ``decision`` is the policy's on that record, which is not cancelled: it decides but for work that nobody has begun.
    """
    phase, reason = record["phase"], decision["reason"]
    if is_final(phase):
        continued = (send_command if sends else run_command)("{id}", ended=True)
        raise _refusal(record, f"it is {phase}", f"{_CONTINUE}{continued}")
    if is_running(decision):
        raise at_work(record["agent_id"], sends=sends)
    if claimed_runs(decision):
        raise at_work(record["agent_id"], "somebody is about to resume it", sends=sends)
    if is_used_up(record) and not sends:
        more = _MORE_TOKENS.format(tokens_of(record) + record["max_tokens"])
        raise _refusal(record, f"its {record['max_tokens']:,} tokens are used up", more)
    if decision["should_resume"] or is_new(phase) or (sends and reason not in _REFUSED_TO_SENDERS):
        return
    if reason == "expired" and waits_for_approval(phase):
        raise _refusal(
            record, "it waited too long for an approval", "type this, then the same again: gaia-sessions approve {id}"
        )
    raise _refusal(record, *_REFUSALS[reason])


def at_work(agent_id: str, problem: str = "its agent is at work", *, sends: bool = False) -> AgentAtWork:
    """That the work of a session may not go on now, but later."""
    return AgentAtWork(agent_id, problem, _WAIT_TO_SEND if sends else _WAIT.replace("{id}", agent_id))


def check_may_be_continued(record: Record, now: datetime) -> None:
    """Raises ``RunNotAllowed`` unless the work of ``record`` has ended, so that another session may continue it.

    The runs of processes that are gone have their end.
    """
    if has_agent(record, now, ()):
        raise at_work(record["agent_id"])
    if not is_final(record["phase"]):
        going_on = (send_command if is_conversation(record) else run_command)("{id}")
        raise _refusal(record, "it has not ended", f"to go on with it, type {going_on}")


def _refusal(record: Record, problem: str, hint: str) -> RunNotAllowed:
    """Why nobody may go on with the work of ``record`` now, and what to type."""
    facts = {"phase": record["phase"], "paused_until": record.get("paused_until")}
    agent_id = record["agent_id"]
    return RunNotAllowed(agent_id, problem.format(**facts), hint.replace("{id}", agent_id))


def with_run_begun(
    record: Record, fields: Run, now: datetime, shell: str | None = None, *, sends: bool = False
) -> Record:
    """With a new run, which has ``fields`` and is at work from ``now`` on, of a command or by which somebody ``sends``.

    The work may rest, or be new. A command that goes on approves what the work waited for; what is sent answers it.
    shell: the host in whose agent's shell that is typed, if it is.
    """
    if sends:
        fields = {**fields, "turn": current_turn(record)}
    begun = with_new_run(record, {**fields, "started_at": format_time(now)})
    if is_asking(record):
        key: AnswerKey | None = None if sends else "approval"
        begun = with_given_answer(begun, key, now, "send" if sends else "run", shell=shell)
    return with_event(with_activity(without_pause(begun), now), TURN_TAKEN if sends else COMMAND_STARTED, now)


def answer_message(record: Record, now: datetime) -> list[NewMessage]:
    """What a person answered to what the agent asked, as messages of the turn that began last."""
    return [
        new_message(SYSTEM, f"What you asked an approval for was {given['answer']}{_said(given)}", now)
        for given in untold_answers({**record, "runs": record["runs"][:-1]})
        if given["by"] != UPDATE
    ]


def _said(given: GivenAnswer) -> str:
    return f": {given['message']}" if given.get("message") else "."


def is_over(run: Run) -> bool:
    """Whether its process may not end ``run`` any more; that of a command may if it was only taken to be gone."""
    return has_ended(run) and (is_send(run) or run.get("end") != LOST)


def with_run_ended(
    record: Record, run: Run, ended: RunEnd, marked: str | None, now: datetime
) -> tuple[Record, list[NewMessage] | None]:
    """``record`` with the end of its ``run``, and of its work if that is of a command; and the messages of the turn.

    None in their place if the end completes no turn; of one that is completed there may be none to store. ``marked`` is
    the phase in the marker that ends what was said last. A session that is final keeps its outcome. What the messages
    that were answered say of their tokens is charged. Nothing is kept of what a send that failed said.
    """
    turn = ended.turn(run, now)
    end, fields = _end_of(run, ended, marked)
    if ended.exit_code is not None:
        fields["exit_code"] = ended.exit_code
    if turn is not None and ended.message:
        fields["last_message"] = ended.message[-MAX_MESSAGE_LENGTH:]
    fields |= conversation_fields(record, ended.told, len(turn or ()), is_kept=turn is not None or not is_send(run))
    counted, run = with_figures(record, run, ended.told)
    closed = with_end_by_wrapper(counted, run, end, fields, now)
    if closed is counted or turn is None:
        return closed, turn
    tokens = sum(message.get("tokens", 0) for message in ended.answered)
    if tokens and not is_final(closed["phase"]):
        closed = with_charge(closed, tokens, now)
    return {**closed, "turns": current_turn(record)}, turn


def _end_of(run: Run, ended: RunEnd, marked: str | None) -> tuple[str, Run]:
    """One of ``ENDS``, and what is stored of it besides."""
    if ended.is_success and is_send(run):
        return RUN_RETURNED, marker_fields(marked if marked and is_resumable(marked) else None)
    if ended.is_success:
        return STOPPED, marker_fields(marked)
    if ended.cause in (TIMED_OUT, OUT_OF_TOKENS):
        stated: Run = {} if marked is None or is_send(run) else {"reported": marked}
        return RUN_FAILED, {**stated, "detail": ended.cause}
    if ended.cause == SIGNALLED:
        return KILLED, {"detail": ended.detail or "stopped by a signal", "interruption": STOPPED_BY_USER}
    if ended.cause == CANCELLED:
        return KILLED, {"detail": CANCELLED}
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
