"""Sends: how a turn of a conversation with an agent begins, and what each of its ends does to the session.

A send is a run that has a ``turn`` and the process that sends as its ``wrapper``: while that is there, nobody else ends
it. What was sent and answered is one turn, once it is answered; before that nothing of it is stored. Pure.
"""

from __future__ import annotations

from gaia_sessions.jsonio.strict import dump_line

from . import phases
from .budget import with_charge
from .client_conversation import Told, conversation_fields, with_figures
from .clock import format_time
from .context import cut
from .host_events import MAX_MESSAGE_LENGTH
from .ids import send_command
from .own_runs import check_nobody_at_work, end_of, refusal, refuse
from .phases import TURN_TAKEN
from .record import NOT_APPROVED_REASON, UPDATE, is_asking
from .rounds import last_answer
from .run_ends import marker_fields, with_end_by_wrapper
from .runs import untold_answers, with_new_run
from .schema import CANCELLED, KILLED, RUN_FAILED, RUN_RETURNED, STOPPED_BY_USER
from .transcript import COMMIT_LIMIT, LINE_LIMIT, SYSTEM, current_turn, new_message
from .updates import with_activity, with_event, with_given_answer, with_phase, without_pause, without_question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from .own_runs import CommandEnd
    from .policy import Decision
    from .schema import GivenAnswer, Record, Run
    from .transcript import NewMessage

WAIT_TO_SEND = "to wait until that is over, add --wait (in Python: wait=60)"
_CONTINUE = f"to go on with it in a new session, type {send_command('{id}', ended=True)}"


_LONGEST_CONTENT = LINE_LIMIT - (16 << 10)
"""Bytes of a content, as JSON: its line has the names of a tool and a call besides."""


class SendEnd:
    """How a send that was not answered ended: one of ``ENDS``, and what else is known of it, as fields of the run.

    told: what a client that was asked tells of itself.
    """

    __slots__ = ("end", "fields", "told")

    def __init__(self, end: str, fields: Run, told: Told | None = None) -> None:
        self.end = end
        self.fields = fields
        self.told = told or Told()

    @property
    def is_failure(self) -> bool:
        """Whether its agent failed, and was not stopped."""
        return self.end == RUN_FAILED


def failed(detail: str) -> SendEnd:
    """The agent failed, for the reason ``detail``."""
    return SendEnd(RUN_FAILED, {"detail": detail[:MAX_MESSAGE_LENGTH]})


def ended_with(command: CommandEnd) -> SendEnd:
    """The command that was the agent has ended otherwise than by its answer."""
    end, fields = end_of(command, None)
    if command.exit_code is not None:
        fields["exit_code"] = command.exit_code
    return SendEnd(end, fields, command.told)


def stopped(detail: str) -> SendEnd:
    """Somebody stopped the sender: no error of the agent."""
    return SendEnd(KILLED, {"detail": detail, "interruption": STOPPED_BY_USER})


def cancelled() -> SendEnd:
    """The session was cancelled while the agent was at work."""
    return SendEnd(KILLED, {"detail": CANCELLED})


def fitted(message: NewMessage) -> NewMessage:
    """``message`` as a line of the transcript may have it: the beginning and the end of a content that is too long."""
    longest = _LONGEST_CONTENT
    shorter = message
    while len(dump_line(shorter["content"], limit=COMMIT_LIMIT)) > _LONGEST_CONTENT:
        shorter = {**message, "content": cut(message["content"], longest)}
        longest -= longest // 8
    return shorter


def check_may_send(record: Record, decision: Decision) -> None:
    """Raises ``RunNotAllowed`` unless somebody may send something to the agent of ``record``, which is not cancelled.

    ``decision`` is the policy's on it. Idle time, errors and a limit to wait for refuse nothing: a person asks.
    """
    if phases.is_final(record["phase"]):
        raise refusal(record, f"it is {record['phase']}", _CONTINUE)
    check_nobody_at_work(record, decision, WAIT_TO_SEND)
    if phases.is_new(record["phase"]):
        return
    if not phases.is_resumable(record["phase"]):
        refuse(record, "phase_not_resumable")
    if decision["reason"] == NOT_APPROVED_REASON:
        refuse(record, NOT_APPROVED_REASON)
    if not record["resume_ready"]:
        refuse(record, "not_ready")


def answer_message(record: Record, now: datetime) -> list[NewMessage]:
    """What a person answered to what the agent asked, as messages of the turn that began last."""
    return [
        new_message(SYSTEM, f"What you asked an approval for was {given['answer']}{_said(given)}", now)
        for given in untold_answers({**record, "runs": record["runs"][:-1]})
        if given["by"] != UPDATE
    ]


def _said(given: GivenAnswer) -> str:
    return f": {given['message']}" if given.get("message") else "."


def with_send_begun(record: Record, fields: Run, now: datetime, shell: str | None) -> Record:
    """With a new run, which has ``fields``, by which the next turn is taken from ``now`` on.

    What is sent answers what the agent asked. shell: the host in whose agent's shell that is typed, if it is.
    """
    begun = with_new_run(record, {**fields, "turn": current_turn(record), "started_at": format_time(now)})
    if is_asking(record):
        begun = with_given_answer(begun, None, now, "send", shell=shell)
    return with_event(with_activity(without_pause(begun), now), TURN_TAKEN, now)


def with_answer_of_send(
    record: Record,
    run: Run,
    said: Sequence[NewMessage],
    answer: Sequence[NewMessage],
    marked: str | None,
    told: Told,
    now: datetime,
) -> Record:
    """With ``run``, which ``record`` has, answered: its turn is complete. A session that is final keeps its outcome.

    ``said`` and ``answer`` are the messages of the turn; what the latter say of their tokens is charged. ``marked`` is
    the phase in the marker that ends the answer. ``told`` is what a client that answered tells of itself.
    """
    record, run = with_figures(record, run, told)
    last = last_answer(answer)[-MAX_MESSAGE_LENGTH:]
    fields: Run = {"last_message": last} if last else {}
    fields |= conversation_fields(record, told, len(said) + len(answer))
    if marked is not None and phases.is_resumable(marked):
        fields |= marker_fields(marked)
    closed = with_end_by_wrapper(record, run, RUN_RETURNED, fields, now)
    if "reported" in fields and not phases.is_final(closed["phase"]):
        closed = with_phase(without_question(closed), fields["reported"], now)
    tokens = sum(message.get("tokens", 0) for message in answer)
    if tokens and not phases.is_final(closed["phase"]):
        closed = with_charge(closed, tokens, now)
    return {**closed, "turns": current_turn(record)}


def with_failed_send(record: Record, run: Run, ended: SendEnd, now: datetime) -> Record:
    """With ``run``, which ``record`` has, ended without an answer: of its turn nothing is stored."""
    told = Told(began=ended.told.began, untouched=ended.told.untouched)
    fields: Run = {**ended.fields, **conversation_fields(record, told, 0)}
    return with_end_by_wrapper(*with_figures(record, run, ended.told), ended.end, fields, now)
