"""One message of a user and the answer, for the command line and for the web."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypedDict

from google.adk.errors import StaleSessionError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.runners import Runner
from google.adk.sessions import Session
from google.genai import types

from gaia_sessions import Sessions
from gaia_sessions.adk import GaiaSessionService

from .agent import FOLDER, STATE_KEYS, make_root_agent

APP, VISITOR = "adk_example", "visitor"
"""A session belongs to no known user at first; its state says who the user is."""

ROOT = os.environ.get("ADK_EXAMPLE_ROOT", str(FOLDER / "gaia-sessions"))
"""The folder or the database of the sessions."""


class Answer(TypedDict):
    """What a client gets: the session's ID, the text, and the ID of all traces of the session."""

    session_id: str
    text: str
    trace_id: str


class UnknownSession(LookupError):
    """A client named a session that it never got, or that ended while it was answered."""


class BeingAnswered(RuntimeError):
    """Another message of the session is being answered, here or in another process."""


class Chat:
    """Stored conversations; any process can answer their next message."""

    def __init__(self) -> None:
        if "://" not in ROOT:
            _agree_on_keys(Path(ROOT, ".config.toml"))
        self.service = GaiaSessionService(root=ROOT, none_clears=True)
        self._runner = Runner(app_name=APP, agent=make_root_agent(), session_service=self.service)
        self._sessions = Sessions(ROOT)
        self._being_answered: set[str] = set()

    async def send(self, text: str, session_id: str | None = None) -> Answer:
        """Answers ``text``. Without an ID, or if that session was left, a new session begins."""
        # An ID that a client made up raises UnknownSession. If two processes answer two messages at once, one gets no
        # answer, and what its tools have done stays.
        session = None if session_id is None else await self._load(session_id)
        if session is None or self._has_ended(session.id):
            session = await self.service.create_session(app_name=APP, user_id=VISITOR)
        if session.id in self._being_answered:
            raise BeingAnswered(session.id)
        self._being_answered.add(session.id)
        try:
            said = await self._answer(session.id, text.encode("utf-8", "replace").decode())
        except StaleSessionError:
            raise BeingAnswered(session.id) from None
        except SessionNotFoundError:
            raise UnknownSession(session.id) from None
        finally:
            self._being_answered.discard(session.id)
        return {"session_id": session.id, "text": said, "trace_id": self._sessions.show(session.id)["trace_id"]}

    async def _answer(self, session_id: str, text: str) -> str:
        message = types.Content(role="user", parts=[types.Part(text=text)])
        said = [
            part.text
            async for event in self._runner.run_async(user_id=VISITOR, session_id=session_id, new_message=message)
            if event.content
            for part in event.content.parts or []
            if part.text
        ]
        return " ".join(said)

    async def leave(self, session_id: str) -> None:
        """Ends the session. The next visit begins another."""
        session = await self._load(session_id)
        if not self._has_ended(session.id):
            self._sessions.finalize(session.id, "completed", "the user left")

    def _has_ended(self, session_id: str) -> bool:
        """Returns whether the user left the session, or somebody ended or cancelled it."""
        shown = self._sessions.show(session_id)
        return "cancellation" in shown or "finalized_at" in shown

    async def _load(self, session_id: str) -> Session:
        session = await self.service.get_session(app_name=APP, user_id=VISITOR, session_id=session_id)
        if session is None:
            raise UnknownSession(session_id)
        return session


def _agree_on_keys(file: Path) -> None:
    """Writes the setting that refuses keys that were not agreed, unless settings exist."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = (f'{key} = "{kind}"\n' for key, kind in STATE_KEYS.items())
        file.write_text("".join(["[state.keys]\n", *lines]), encoding="utf-8")
