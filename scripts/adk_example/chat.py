"""One message of a user and the answer, for the command line and for the web alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from google.adk.runners import Runner
from google.genai import types

from gaia_sessions import Sessions
from gaia_sessions.adk import GaiaSessionService

from .agent import FOLDER, STATE_KEYS, make_root_agent

if TYPE_CHECKING:
    from pathlib import Path

    from google.adk.sessions import Session

APP, VISITOR = "adk_example", "visitor"
"""A session is not bound to a user, of whom nothing is known at first: who they are is in its state."""


class Answer(TypedDict):
    """What a client is given: the id under which it goes on, the text, and what gathers all traces of the session."""

    session_id: str
    text: str
    trace_id: str


class UnknownSession(LookupError):
    """A client named a session that it was never given."""


class Chat:
    """Conversations that are kept on disk, in whatever process their next message is answered."""

    def __init__(self) -> None:
        root = FOLDER / "gaia-sessions"
        _agree_on_keys(root / ".config.toml")
        self.service = GaiaSessionService(root=str(root), none_clears=True)
        self._runner = Runner(app_name=APP, agent=make_root_agent(), session_service=self.service)
        self._sessions = Sessions(str(root))

    async def send(self, text: str, session_id: str | None = None) -> Answer:
        """Answers ``text``. Without an id, or after that session was left, a new one begins.

        Raises ``UnknownSession``: an id that a client made up is never adopted; and ADK's ``StaleSessionError`` while
        another message of the session is being answered. What its tools have done is not undone.
        """
        session = None if session_id is None else await self._load(session_id)
        if session is None or self._has_ended(session.id):
            session = await self.service.create_session(app_name=APP, user_id=VISITOR)
        message = types.Content(role="user", parts=[types.Part(text=text)])
        said = [
            part.text
            async for event in self._runner.run_async(user_id=VISITOR, session_id=session.id, new_message=message)
            if event.content
            for part in event.content.parts or []
            if part.text
        ]
        return {
            "session_id": session.id,
            "text": " ".join(said),
            "trace_id": self._sessions.show(session.id)["trace_id"],
        }

    async def leave(self, session_id: str) -> None:
        """Ends the session; the next visit begins another. Raises ``UnknownSession``."""
        session = await self._load(session_id)
        if not self._has_ended(session.id):
            self._sessions.finalize(session.id, "completed", "the user left")

    def _has_ended(self, session_id: str) -> bool:
        """Whether the user left it, or somebody ended or cancelled it."""
        shown = self._sessions.show(session_id)
        return "cancellation" in shown or "finalized_at" in shown

    async def _load(self, session_id: str) -> Session:
        session = await self.service.get_session(app_name=APP, user_id=VISITOR, session_id=session_id)
        if session is None:
            raise UnknownSession(session_id)
        return session


def _agree_on_keys(file: Path) -> None:
    """Writes the setting that refuses every key that was not agreed, unless somebody has settings there."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = (f'{key} = "{kind}"\n' for key, kind in STATE_KEYS.items())
        file.write_text("".join(["[state.keys]\n", *lines]), encoding="utf-8")
