"""The transcript of one session, as programs and commands read it and add to it.

Owns that a message is made by the clock of this call, and added after the events that wait in the inbox were applied.
Must never know how a message is shown.
"""

from __future__ import annotations

from gaia_sessions.session.transcript import new_message
from gaia_sessions.system import utc_now
from gaia_sessions.usecases import transcript

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.session.transcript import Message
    from gaia_sessions.store.port import Store


class Transcript:
    """The messages of the session ``agent_id``; ``Sessions.transcript`` makes it."""

    __slots__ = ("_agent_id", "_apply_deferred", "_store")

    def __init__(self, store: Store, apply_deferred: Callable[[], None], agent_id: str) -> None:
        self._store = store
        self._apply_deferred = apply_deferred
        self._agent_id = agent_id

    def messages(self, last: int | None = None, since: datetime | None = None) -> Iterator[Message | SessionsError]:
        """As ``session_messages`` returns them."""
        return transcript.messages(self._store, self._agent_id, last, since)

    def add(
        self,
        role: str,
        content: str,
        *,
        tool_name: str | None = None,
        tool_call_id: str | None = None,
        tokens: int | None = None,
    ) -> Message:
        """Adds a message, and returns it as ``add_message`` does."""
        now = utc_now()
        message = new_message(role, content, now, tool_name=tool_name, tool_call_id=tool_call_id, tokens=tokens)
        self._apply_deferred()
        return transcript.add_message(self._store, now, self._agent_id, message)
