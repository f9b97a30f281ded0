"""A client as the command of a run: which conversation it continues, what it used, and how it ended.

While the client works, its usage is written twice a second, so a wrapper that is killed loses only the last figures.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from gaia_sessions.api import at, permitting
from gaia_sessions.errors import SessionsError, well_formed
from gaia_sessions.hosts.clients import client_class, is_conversation_id
from gaia_sessions.session.budget import consumed_tokens
from gaia_sessions.session.client_conversation import Told, conversation_to_go_on, standing_of
from gaia_sessions.session.host_events import MAX_MESSAGE_LENGTH
from gaia_sessions.session.own_runs import EXITED, RunEnd
from gaia_sessions.session.runs import is_send

from .supervise import (
    ANOTHER_CONVERSATION,
    CONVERSATION_ELSEWHERE,
    CONVERSATION_MOVED,
    CONVERSATION_UNKNOWN,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gaia_sessions.api.command import Command
    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.hosts.clients import Client
    from gaia_sessions.session.client_conversation import Whereabouts
    from gaia_sessions.session.requests import Start
    from gaia_sessions.session.schema import Conversation, Record, Run

    from .supervise import Supervisor

_SECONDS_BETWEEN_NOTES = 0.5


def limited_words(sessions: Sessions, start: Start, command: Command) -> Sequence[str]:
    """Returns the words of ``command``; for a client, with the tools that the agent of the session may use."""
    if command.preset is None:
        return command.words
    blocked = sessions.config.limits_blocked_tools
    allowed = at.read(sessions, permitting.tools_of, start)
    return client_class(command.preset).with_tools(command.words, allowed, blocked)


def client_of_run(sessions: Sessions, record: Record, command: Command, words: Sequence[str]) -> ClientOfRun | None:
    """Returns the client that is the ``command`` of the latest run; None for any other command."""
    return None if command.preset is None else ClientOfRun(sessions, record, command, command.preset, words)


class ClientOfRun:
    """The client ``preset`` as the ``command`` of the latest run of ``record``."""

    def __init__(self, sessions: Sessions, record: Record, command: Command, preset: str, words: Sequence[str]) -> None:
        self._sessions = sessions
        self._agent_id = record["agent_id"]
        *earlier, self._run = record["runs"]
        self._words = words
        self._preset = preset
        self._began = standing_of(record)
        self._found = conversation_to_go_on(record, preset, earlier)
        self._cwd = os.path.realpath(command.cwd or os.getcwd())
        self._untouched: Whereabouts | None = None
        self._client: Client | None = None
        self._seen: tuple[Run, int] = {}, 0
        self._noted: Run = {}
        self._noted_at = float("-inf")

    def supervised(
        self, supervisor: Supervisor, env: Mapping[str, str], going_on: Callable[[], str], anew: Callable[[], str]
    ) -> RunEnd:
        """Runs the client; returns its end. The prompt is ``going_on()`` in the old conversation, else ``anew()``."""
        if self._found:
            why_not = self._why_anew(self._found)
            if why_not is None:
                client = client_class(self._preset)(going_on(), env, self._found["id"])
                ended = self._ended(supervisor, env, client)
                if ended.cause != EXITED or not client.is_refused:
                    return ended
            if why_not == CONVERSATION_ELSEWHERE:
                self._untouched = {"preset": self._preset, "id": self._found["id"], "cwd": self._found["cwd"]}
            supervisor.tell(why_not or ANOTHER_CONVERSATION, self._found["cwd"])
        return self._ended(supervisor, env, client_class(self._preset)(anew(), env, None))

    def _why_anew(self, found: Conversation) -> str | None:
        """Returns why the conversation that the record names is not continued; None if it is continued."""
        # A stranger may have written the record. It must not choose an option of the client, nor where the client runs.
        if not is_conversation_id(found["id"]):
            return CONVERSATION_UNKNOWN
        if found["cwd"] == self._cwd:
            return None
        return CONVERSATION_ELSEWHERE if _is_own_folder(found["cwd"]) else CONVERSATION_MOVED

    def _ended(self, supervisor: Supervisor, env: Mapping[str, str], client: Client) -> RunEnd:
        self._client = client
        client.may_report = client.may_report and not is_send(self._run)  # a turn that fails stores no report
        ended = supervisor.run(client.words(self._words), env, "", client)
        detail = ended.detail or (client.problem if ended.cause == EXITED else None)
        if detail and not client.is_at_rest and supervisor.complaint:
            detail = f"{detail}: {supervisor.complaint}"
        detail = well_formed(detail)[:MAX_MESSAGE_LENGTH] if detail else detail
        told = Told(client.figures(), began=self._began, untouched=self._untouched)
        if client.is_at_rest and client.conversation_id and well_formed(self._cwd) == self._cwd:
            told.conversation = {"preset": self._preset, "id": client.conversation_id, "cwd": self._cwd}
        return RunEnd(ended.cause, ended.exit_code, client.message, detail, told)

    def see(self) -> None:
        """Looks at what the client used so far: only the thread that hears the client may do that."""
        if self._client is not None:
            self._seen = self._client.figures(), self._client.tokens_of_agents()

    def note(self) -> None:
        """Writes to the record what the main agent had used when it was last seen, unless that was done just now."""
        from gaia_sessions.api import own_runs

        figures = self._seen[0]
        if figures != self._noted and time.monotonic() >= self._noted_at + _SECONDS_BETWEEN_NOTES:
            with suppress(SessionsError):  # the end of the run will write it
                at.write(self._sessions, own_runs.note_figures, self._agent_id, self._run, Told(figures))
                self._noted, self._noted_at = figures, time.monotonic()

    def unnoted_tokens(self) -> int:
        """Returns the tokens that the record does not have yet; those of sub-agents count too."""
        figures, tokens_of_agents = self._seen
        return _tokens(figures) - _tokens(self._noted) + tokens_of_agents


def _is_own_folder(path: str) -> bool:
    """Returns whether a message may name the folder ``path``: the user owns it, and its name is printable."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    return os.path.isabs(path) and path.isprintable() and stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _tokens(figures: Run) -> int:
    return consumed_tokens(figures.get("consumed", {}))
