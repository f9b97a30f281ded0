"""A client as the command of a run: which conversation it goes on with, what it used, and how it ended.

Owns that a client which does not know its conversation any more begins another one, and that what its main agent used
is in the record while it works: a wrapper that is killed loses half a second of it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from gaia_sessions.errors import SessionsError, well_formed
from gaia_sessions.hosts.clients import client_class
from gaia_sessions.session.budget import consumed_tokens
from gaia_sessions.session.clients import Told, conversation_to_go_on, standing_of
from gaia_sessions.session.command_runs import EXITED, CommandEnd
from gaia_sessions.session.runs import is_send

from .supervise import ANOTHER_CONVERSATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gaia_sessions.api.command import Command
    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.hosts.clients import Client
    from gaia_sessions.session.requests import Start
    from gaia_sessions.session.schema import Record, Run

    from .supervise import Supervisor

_SECONDS_BETWEEN_NOTES = 0.5


def limited_words(sessions: Sessions, start: Start, command: Command) -> Sequence[str]:
    """The words of ``command``, for a client with the tools that the agent of the session of ``start`` may use.

    Asked for before anything has begun: raises ``UsageError`` for a client that cannot be limited so.
    """
    if command.preset is None:
        return command.words
    blocked = sessions.config.limits_blocked_tools
    return client_class(command.preset).with_tools(command.words, sessions.tools_of(start), blocked)


def client_of_run(sessions: Sessions, record: Record, command: Command, words: Sequence[str]) -> ClientOfRun | None:
    """The client that is the ``command``, as ``words``, of the latest run of ``record``; None for any other command."""
    return None if command.preset is None else ClientOfRun(sessions, record, command, command.preset, words)


class ClientOfRun:
    """The client ``preset`` as the ``command`` of the latest run of ``record``."""

    def __init__(self, sessions: Sessions, record: Record, command: Command, preset: str, words: Sequence[str]) -> None:
        self._sessions = sessions
        self._agent_id = record["agent_id"]
        *earlier, self._run = record["runs"]
        self._command = command
        self._words = words
        self._preset = preset
        self._began = standing_of(record)
        self._found = conversation_to_go_on(record, preset, earlier)
        self._cwd = os.path.realpath(command.cwd or os.getcwd())
        self._client: Client | None = None
        self._noted: Run = {}
        self._noted_at = float("-inf")

    def supervised(
        self, supervisor: Supervisor, env: Mapping[str, str], going_on: Callable[[], str], anew: Callable[[], str]
    ) -> CommandEnd:
        """Has it run, and returns how it ended.

        ``going_on`` is what it is told where it remembers what was said, ``anew`` where it begins another conversation.
        """
        if self._found and self._can_work_in(self._found["cwd"]):
            program, *arguments = self._words  # a path stands for what it does where the command was typed
            words = [os.path.join(self._cwd, program) if os.sep in program else program, *arguments]
            client = client_class(self._preset)(going_on(), env, self._found["id"])
            ended = self._ended(supervisor, env, client, words, self._found["cwd"])
            if ended.cause != EXITED or not client.is_refused:
                return ended
            supervisor.tell(ANOTHER_CONVERSATION)
        client = client_class(self._preset)(anew(), env, None)
        return self._ended(supervisor, env, client, self._words, self._cwd)

    def _can_work_in(self, cwd: str) -> bool:
        """Whether it may run where its conversation is: elsewhere it does not find that."""
        return os.path.isdir(cwd) and (self._command.cwd is None or self._cwd == cwd)

    def _ended(
        self, supervisor: Supervisor, env: Mapping[str, str], client: Client, words: Sequence[str], cwd: str
    ) -> CommandEnd:
        self._client = client
        client.may_report = client.may_report and not is_send(self._run)  # of a turn that fails nothing is kept
        ended = supervisor.run(client.words(words), env, "", client, cwd)
        detail = ended.detail or (client.problem if ended.cause == EXITED else None)
        if detail and not client.is_at_rest and supervisor.complaint:
            detail = f"{detail}: {supervisor.complaint}"
        told = Told(client.figures(), began=self._began)
        if client.is_at_rest and client.conversation_id and well_formed(cwd) == cwd:
            told.conversation = {"preset": self._preset, "id": client.conversation_id, "cwd": cwd}
        return CommandEnd(ended.cause, ended.exit_code, client.message, detail, told)

    def note(self) -> None:
        """Notes in the record what its main agent used so far, unless that was done just now."""
        figures = self._client.figures() if self._client else {}
        if figures != self._noted and time.monotonic() >= self._noted_at + _SECONDS_BETWEEN_NOTES:
            with suppress(SessionsError):  # its end will have it
                self._sessions.note_figures(self._agent_id, self._run, Told(figures))
                self._noted, self._noted_at = figures, time.monotonic()

    def unnoted_tokens(self) -> int:
        """What counts against the budget beside what is noted: what its sub-agents used, too."""
        if self._client is None:
            return 0
        return _tokens(self._client.figures()) - _tokens(self._noted) + self._client.tokens_of_agents()


def _tokens(figures: Run) -> int:
    return consumed_tokens(figures.get("consumed", {}))
