"""The functions about the messages of a session.

Owns their arguments, as ``gaia_sessions`` exports them.
"""

from __future__ import annotations

from .sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.session.transcript import Message


def session_messages(
    agent_id: str, *, last: int | None = None, since: datetime | str | None = None, root: str | None = None
) -> Iterator[Message | SessionsError]:
    """The messages of a session's transcript in their order; an error in place of one that cannot be read.

    ``last`` takes at most so many, ``since`` those made at that time or later; the cost follows what is taken. Each is
    ``{seq, turn, role, content, timestamp, tool_name?, tool_call_id?, tokens?}``. Raises ``SessionNotFound``,
    ``CorruptSession``, ``InvalidId``, ``BadArgument`` and ``StoreFailure``.
    """
    from gaia_sessions.usecases.listing import time_argument

    return Sessions(root).messages(agent_id, last, time_argument(since, "since"))


def add_message(
    agent_id: str,
    role: str,
    content: str,
    *,
    tool_name: str | None = None,
    tool_call_id: str | None = None,
    tokens: int | None = None,
    root: str | None = None,
) -> Message:
    """Adds a message of ``system``, ``user``, ``assistant`` or ``tool`` to a session's transcript.

    Returns it as it is stored, and on disk by then: with its number ``seq`` and its ``turn``. ``tokens`` is how many
    the content has. Raises ``SessionNotFound``, ``SessionFinal``, ``BadArgument`` for another role, ``InvalidInput``,
    ``TooLarge`` for more than 1 MiB, and what ``update_state`` raises.
    """
    sessions = Sessions(root)
    return sessions.add_message(agent_id, role, content, tool_name=tool_name, tool_call_id=tool_call_id, tokens=tokens)
