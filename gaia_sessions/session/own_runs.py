"""Runs of ours: whether a run is allowed to begin, how it begins, and what its end does to the session.

Such a run has a ``wrapper``, the process that began it. While that process lives, only this module ends the run.
The end of a command ends the work; a send ends no work. A send stores its turn when it is answered.
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
from .record import NOT_APPROVED_REASON, UPDATE, is_asking, is_stand_in
from .run_ends import marker_fields, with_end_by_wrapper
from .runs import has_agent, has_ended, is_conversation, is_send, untold_answers, with_new_run
from .schema import CONNECTION_LOST, KILLED, LOST, RUN_FAILED, RUN_RETURNED, STOPPED, STOPPED_BY_USER
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
LEASE_LOST = "lease_lost"
"""The lease on a server lapsed, or could not be renewed: others may count the run as lost."""

CAUSES = (EXITED, TIMED_OUT, OUT_OF_TOKENS, SIGNALLED, CANCELLED, NOT_STARTED, LEASE_LOST)
"""Why a run is over; a limit, a signal or a cancellation counts whatever the exit code is."""

_SIGNAL_BASE = 128

_LONGEST_CONTENT = LINE_LIMIT - (16 << 10)
"""Bytes of a content as JSON; its line also has the names of a tool and a call."""


class RunEnd:
    """How a run of ours ended."""

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
        self.cause = cause  # one of ``CAUSES``
        self.exit_code = exit_code  # of a command, as shells say it
        self.message = _storable(message)  # the end of stdout, or the last words of a client or an agent
        # Why it was not started, was stopped, or has failed whatever its exit code is.
        self.detail = None if detail is None else _storable(detail)
        self.told = told or Told()
        # The turn that a send completes; empty if the send was not answered.
        self.said = said
        self.answered = answered

    @property
    def is_success(self) -> bool:
        """Whether the run ended by itself, without an error."""
        return self.cause == EXITED and not self.exit_code and self.detail is None

    def turn(self, run: Run, now: datetime) -> list[NewMessage] | None:
        """Returns the messages of the turn that the end of ``run`` completes; None if it completes none."""
        if is_send(run):
            return [*self.said, *self.answered] if self.is_success else None
        if not self.message:
            return None
        return [fitted({**new_message("assistant", self.message, now), "run": run["run"]})]


def _storable(text: str) -> str:
    """Replaces what a record cannot hold: programs write any bytes, and files have any names."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")


def fitted(message: NewMessage) -> NewMessage:
    """Cuts the middle of a content that is too long for a line of the transcript."""
    longest = _LONGEST_CONTENT
    shorter = message
    while len(dump_line(shorter["content"], limit=COMMIT_LIMIT)) > _LONGEST_CONTENT:
        from .context import cut  # few are too long

        shorter = {**message, "content": cut(message["content"], longest)}
        longest -= longest // 8
    return shorter


_WAIT = "to wait until the agent is done, type gaia-sessions wait {id}"
_WAIT_TO_SEND = "to wait until the agent is done, add --wait (in Python: wait=60)"
_CONTINUE = "to continue it in a new session, type "
_GIVE_UP = "to end it, so that you can continue it in a new session, type gaia-sessions finalize {id} failed"
_MORE_TOKENS = "to allow {:,} more, type this, then try again: gaia-sessions update {{id}} --max-tokens {}"

_LEASE_LOST = "its lease on the server lapsed, so the command was ended"

_REFUSALS = {
    "phase_not_resumable": (
        "its phase is {phase}",
        "if no agent works on it, type this, then try again: gaia-sessions update {id} --phase planning",
    ),
    NOT_APPROVED_REASON: (
        "it waits for approval",
        "a person must type this in a terminal, then try again: gaia-sessions approve {id}",
    ),
    "not_ready": (
        "resuming is switched off",
        "type this, then try again: gaia-sessions update {id} --resume-ready",
    ),
    "clock_skew": (
        "it was last updated in the future",
        "when the clock is right, type this, then try again: gaia-sessions update {id}",
    ),
    "waiting_for_limit": (
        "it waits for a usage limit, which is reset at {paused_until}",
        (
            "wait until then; if the limit is reset earlier, type this, then try again: "
            "gaia-sessions update {id} --resume-ready"
        ),
    ),
    "expired": (
        "it has been idle for too long",
        "to make it resumable, type this, then try again: gaia-sessions update {id}",
    ),
    "too_many_errors": ("it has failed too often", _GIVE_UP),
}
"""Why a session cannot be resumed, and what to type, for each reason of the policy except an agent at work."""

_REFUSED_TO_SENDERS = ("phase_not_resumable", NOT_APPROVED_REASON, "not_ready")
"""A person sends, so idle time, errors and a usage limit refuse no send."""


def check_may_begin(record: Record, decision: Decision, *, sends: bool = False) -> None:
    """Raises ``RunNotAllowed`` unless a command, or a send, may resume ``record`` or begin its work."""
    _refuse_stand_in(record)
    phase, reason = record["phase"], decision["reason"]
    if is_final(phase) and is_running(decision):
        raise _still_at_work(record)
    if is_final(phase):
        continued = (send_command if sends else run_command)("{id}", ended=True)
        raise _refusal(record, f"it has ended ({phase})", f"{_CONTINUE}{continued}")
    if is_running(decision):
        raise at_work(record["agent_id"], sends=sends)
    if claimed_runs(decision):
        raise at_work(record["agent_id"], "somebody is about to resume it", sends=sends)
    if is_used_up(record) and not sends:
        more = _MORE_TOKENS.format(record["max_tokens"], tokens_of(record) + record["max_tokens"])
        raise _refusal(record, f"its {record['max_tokens']:,} tokens are used up", more)
    if decision["should_resume"] or is_new(phase) or (sends and reason not in _REFUSED_TO_SENDERS):
        return
    if reason == "expired" and waits_for_approval(phase):
        raise _refusal(
            record, "it waited too long for approval", "type this, then try again: gaia-sessions approve {id}"
        )
    raise _refusal(record, *_REFUSALS[reason])


def at_work(agent_id: str, problem: str = "its agent is at work", *, sends: bool = False) -> AgentAtWork:
    """Returns the error of a session whose agent is at work."""
    return AgentAtWork(agent_id, problem, _WAIT_TO_SEND if sends else _WAIT.replace("{id}", agent_id))


def _still_at_work(record: Record) -> AgentAtWork:
    """Returns the error of a session that has ended while its agent is at work: ``wait`` does not wait for that."""
    hint = f"try again when its run has ended: `gaia-sessions show {record['agent_id']}` shows its runs"
    return AgentAtWork(record["agent_id"], f"it has ended ({record['phase']}), but its agent is at work", hint)


def check_may_be_continued(record: Record, now: datetime) -> None:
    """Raises ``RunNotAllowed`` unless ``record`` has ended, so that another session may continue it."""
    _refuse_stand_in(record)
    if has_agent(record, now, ()):  # the caller has ended the runs whose process is gone
        raise _still_at_work(record) if is_final(record["phase"]) else at_work(record["agent_id"])
    if not is_final(record["phase"]):
        going_on = (send_command if is_conversation(record) else run_command)("{id}")
        raise _refusal(record, "it has not ended", f"to resume it instead, type {going_on}")


def _refuse_stand_in(record: Record) -> None:
    if is_stand_in(record):
        raise _refusal(record, "it is on a server", "give the URL of the server with --root")


def _refusal(record: Record, problem: str, hint: str) -> RunNotAllowed:
    """Returns the error with all placeholders filled in."""
    facts = {"phase": record["phase"], "paused_until": record.get("paused_until")}
    agent_id = record["agent_id"]
    return RunNotAllowed(agent_id, problem.format(**facts), hint.replace("{id}", agent_id))


def with_run_begun(
    record: Record, fields: Run, now: datetime, shell: str | None = None, *, sends: bool = False
) -> Record:
    """Begins a run of a command, or a send, at ``now``; ``shell`` is the host whose agent typed the command."""
    if sends:
        fields = {**fields, "turn": current_turn(record)}
    begun = with_new_run(record, {**fields, "started_at": format_time(now)})
    if is_asking(record):  # a command approves the question, a send answers it
        key: AnswerKey | None = None if sends else "approval"
        begun = with_given_answer(begun, key, now, "send" if sends else "run", shell=shell)
    return with_event(with_activity(without_pause(begun), now), TURN_TAKEN if sends else COMMAND_STARTED, now)


def answer_message(record: Record, now: datetime) -> list[NewMessage]:
    """Returns what people answered to the agent's questions, as messages of the latest turn."""
    return [
        new_message(SYSTEM, f"Your request was {given['answer']}{_said(given)}", now)
        for given in untold_answers({**record, "runs": record["runs"][:-1]})
        if given["by"] != UPDATE
    ]


def _said(given: GivenAnswer) -> str:
    return f": {given['message']}" if given.get("message") else "."


def is_over(run: Run) -> bool:
    """Whether the process of ``run`` is no longer allowed to end the run."""
    # The end of a command still counts if its process was wrongly taken for gone.
    return has_ended(run) and (is_send(run) or run.get("end") != LOST)


def is_superseded(record: Record, run: Run) -> bool:
    """Whether the lease of ``run`` lapsed and others work, or may work, since then: its own end does not count."""
    if "lease" not in run.get("wrapper", ()) or not has_ended(run):
        return False
    return is_final(record["phase"]) or record["runs"][-1]["run"] != run["run"]


def with_run_ended(
    record: Record, run: Run, ended: RunEnd, marked: str | None, now: datetime
) -> tuple[Record, list[NewMessage] | None]:
    """Ends ``run``, and returns the messages of the turn that this completes; None if it completes none."""
    turn = ended.turn(run, now)
    end, fields = _end_of(run, ended, marked)
    if ended.exit_code is not None:
        fields["exit_code"] = ended.exit_code
    if turn is not None and ended.message:
        fields["last_message"] = ended.message[-MAX_MESSAGE_LENGTH:]
    if ended.told.below:
        fields["below"] = ended.told.below
    fields |= conversation_fields(record, ended.told, len(turn or ()), is_kept=turn is not None or not is_send(run))
    counted, run = with_figures(record, run, ended.told)
    closed = with_end_by_wrapper(counted, run, end, fields, now)
    if closed is counted or turn is None:  # nothing is stored of a failed send's turn
        return closed, turn
    tokens = sum(message.get("tokens", 0) for message in ended.answered)
    if tokens and not is_final(closed["phase"]):
        closed = with_charge(closed, tokens, now)
    return {**closed, "turns": current_turn(record)}, turn


def _end_of(run: Run, ended: RunEnd, marked: str | None) -> tuple[str, Run]:
    """Returns one of ``ENDS``, and the fields that are stored with it."""
    if ended.is_success and is_send(run):
        return RUN_RETURNED, marker_fields(marked if marked and is_resumable(marked) else None)
    if ended.is_success:
        return STOPPED, marker_fields(marked)
    if ended.cause in (TIMED_OUT, OUT_OF_TOKENS):
        stated: Run = {} if marked is None or is_send(run) else {"reported": marked}
        return RUN_FAILED, {**stated, "detail": ended.cause}
    if ended.cause in (SIGNALLED, LEASE_LOST):
        return _interruption(ended)
    if ended.cause == CANCELLED:
        return KILLED, {"detail": CANCELLED}
    return RUN_FAILED, {"detail": ended.detail or exit_text(ended.exit_code)}


def _interruption(ended: RunEnd) -> tuple[str, Run]:
    if ended.cause == LEASE_LOST:
        return KILLED, {"detail": _LEASE_LOST, "interruption": CONNECTION_LOST}
    return KILLED, {"detail": ended.detail or "stopped by a signal", "interruption": STOPPED_BY_USER}


def exit_text(exit_code: int | None) -> str:
    """Returns ``exit code 3`` or ``killed by signal 9 (SIGKILL)``."""
    if exit_code is None:
        return "it was not started"
    from signal import Signals  # most commands end by themselves

    try:
        signal = Signals(exit_code - _SIGNAL_BASE)
    except ValueError:
        return f"exit code {exit_code}"
    return f"killed by signal {signal.value} ({signal.name})"
