"""What was done with a piece of news, for the log and for the answer to the host.

Owns the words. Knows nothing of how any of it is done.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

NOT_JOINED = "not_joined"
"""The news has a key, and no session has it yet: it may come too early."""

BUSY = "busy"
"""Somebody held what had to be changed."""

WAITS_FOR_APPROVAL = "waits_for_approval"
"""A stop that did not say how the work ended met a session in ``approval``, and left it as it was."""

NO_KEY = "no_key"
KEYS_DISAGREE = "keys_disagree"
KNOWN = "known"
DEFERRED = "deferred"


class EventResult:
    """``word`` says what was done, ``record`` is the session as it is now.

    resumed: the session whose work goes on with this delegation, as it was before; reason: why it could
    not be resumed itself. refused: why a resume that was asked for came to nothing.
    """

    __slots__ = ("agent_id", "reason", "record", "refused", "resumed", "word")

    def __init__(
        self,
        word: str,
        agent_id: str | None = None,
        record: Record | None = None,
        *,
        resumed: Record | None = None,
        reason: str | None = None,
        refused: str | None = None,
    ) -> None:
        self.word = word
        self.agent_id = record["agent_id"] if record else agent_id
        self.record = record
        self.resumed = resumed
        self.reason = reason
        self.refused = refused
