"""One send to an agent that is a command: what it gets, and what of its output is the answer.

The command gets all earlier messages and the new ones as JSON on its stdin.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

from gaia_sessions.api import at, own_runs
from gaia_sessions.api.send import SECONDS_BETWEEN_TRIES, Said, Send
from gaia_sessions.errors import InvalidInput, SessionsError, StoreFailure
from gaia_sessions.jsonio.strict import dump_line, loads
from gaia_sessions.session.context import context_lines
from gaia_sessions.session.host_events import MAX_MESSAGE_LENGTH
from gaia_sessions.session.own_runs import EXITED, SIGNALLED, RunEnd
from gaia_sessions.session.requests import Start
from gaia_sessions.session.transcript import COMMIT_LIMIT, spoken
from gaia_sessions.system.project_root import roots_for_command, working_directory

from . import process_tree
from .client_of_run import client_of_run, limited_words
from .command_output import NoLog, Whole
from .run import environment, look_of
from .signals import Signals
from .stand_in import StandIn
from .supervise import Supervisor, Teller
from .tries import written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gaia_sessions.api.command import Command
    from gaia_sessions.api.send import SentTurn
    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.transcript import NewMessage


_SAID_BEFORE = "Earlier messages, the oldest first:"
_NOT_STORED = "unless it arrived, send the message again when the server is back"
_SAID_NOW = "End of the earlier messages. The new message:"


class SendOutcome:
    """How the command ended, and the turn if it was answered; ``problem``: why the turn may not be stored."""

    __slots__ = ("answer", "ended", "is_cut", "problem", "turn")

    def __init__(self, ended: RunEnd) -> None:
        self.ended = ended
        self.answer: str | None = None  # what the command wrote
        self.is_cut = False  # whether a message was too long
        self.problem: SessionsError | None = None
        self.turn: SentTurn | None = None


def send(  # noqa: PLR0913  # its options
    sessions: Sessions,
    agent_id: str,
    said: Sequence[NewMessage],
    command: Command,
    *,
    is_pruned: bool,
    until: float,
    live: dict[int, int],
    tell: Callable[[str, str], None],
) -> SendOutcome:
    """Runs ``command`` as the agent of a session, sends it what is ``said``, and returns when it has ended."""
    words = limited_words(sessions, Start(agent_id), command)
    roots = roots_for_command(sessions.root, os.environ, working_directory())  # no folder for the hooks: it raises
    process_tree.become_subreaper()
    with Signals() as signals, Send(sessions, agent_id, said, fields=command.limits) as sending:
        while not sending.began(until):
            time.sleep(SECONDS_BETWEEN_TRIES)
            if signals.is_ended_by_somebody():
                return SendOutcome(RunEnd(SIGNALLED))
        client = client_of_run(sessions, sending.record, command, words)
        stand_in = StandIn(sessions, sending.record, roots, has_client=client is not None)
        told = Teller(tell)
        stand_in.put(told)
        look = look_of(sessions, sending.record, client, sending.lease, stand_in, told)
        env = environment(sessions, agent_id, sending.run["run"], command, roots)
        whole = Whole()
        supervisor = Supervisor(command, look, told, NoLog(), live, signals, said=whole)
        given: list[dict[str, str]] = []
        if client is None:
            given = [*Said(sessions, agent_id).before(sending.record, pruned=is_pruned), *map(spoken, sending.said)]
            ended = supervisor.run(command.words, env, dump_line(given, limit=sys.maxsize).decode())
        else:
            sent = "\n\n".join(message["content"] for message in sending.said)
            ended = client.supervised(supervisor, env, lambda: sent, lambda: _behind_context(sessions, agent_id, sent))
        ended.told.below = stand_in.end(supervisor.namespace)
        server = None if sessions.folder else sessions.root
        outcome = _stored(sending, ended, given, whole if client is None else None, signals, told, server)
        if client is not None and not sending.is_given_up:
            _end_runs_below(sessions, sending, supervisor.namespace)
    supervisor.finish()
    return outcome


def _end_runs_below(sessions: Sessions, sending: Send, pid_ns: str | None) -> None:
    with suppress(SessionsError):  # the turn is stored; ``reconcile`` ends them
        agent_id = sending.record["agent_id"]
        at.write(sessions, own_runs.end_runs_of_gone_hosts_below, agent_id, sending.run, pid_ns)


def _stored(
    sending: Send,
    ended: RunEnd,
    given: list[dict[str, str]],
    whole: Whole | None,
    signals: Signals,
    tell: Callable[[str, str], None],
    server: str | None,
) -> SendOutcome:
    """Stores the turn if the send was answered; returns the outcome. ``whole`` is the output, if no client wrote it."""
    outcome = SendOutcome(ended)
    answer = ended.message if whole is None or not ended.is_success else _answer_in(ended.message)
    if ended.is_success:
        outcome.answer = ended.message

    def write() -> SentTurn | None:
        try:
            if ended.is_success:
                return sending.answer(answer, given, ended.told, seconds=0)
            sending.end(ended)
        except SessionsError as error:
            if not sending.is_over:
                raise
            outcome.problem = error  # there is nothing more to write
        return None

    try:
        outcome.turn = written(write, sending.lease, signals, tell, server)
        outcome.is_cut = outcome.turn is not None and (sending.is_cut or (whole is not None and whole.is_cut))
    except SessionsError as error:
        outcome.problem = error
        if server and isinstance(error, StoreFailure):
            outcome.problem = StoreFailure("store the answer", error.path, error.reason, _NOT_STORED)
            sending.give_up()
        else:
            with suppress(SessionsError):  # the next reader finds the run gone
                sending.end(RunEnd(EXITED, detail=str(error)[:MAX_MESSAGE_LENGTH]))
    return outcome


def _behind_context(sessions: Sessions, agent_id: str, sent: str) -> str:
    """Returns the earlier messages and then what is ``sent``, for a client that remembers nothing."""
    context = sessions.context(agent_id)
    prompt = [context.pop("system_prompt")] if "system_prompt" in context else []
    lines = context_lines(context)
    earlier = ["\n".join([_SAID_BEFORE, *lines, _SAID_NOW])] if lines else []
    return "\n\n".join([*prompt, *earlier, sent])


def _answer_in(output: str) -> str | list[Json]:
    """Returns the answer in the output: messages of a JSON array, else the text without its last line breaks."""
    if output.lstrip().startswith("["):
        try:
            found = loads(output.strip().encode(), COMMIT_LIMIT)
        except InvalidInput:
            found = None
        if isinstance(found, list) and found and all(isinstance(one, dict) and "role" in one for one in found):
            return found
    return output.rstrip("\n")
