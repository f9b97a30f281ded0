"""What hosts report, applied to the records: delegations, starts, ends, turns, the use of tools.

``dispatch`` sends each kind of event to its module; ``join`` finds the session and the run it belongs to; ``deferred``
tries again what had to wait. Owns what each of them returns: what was done with an event, for the log and for the reply
to the host. Must never know a host's own words, nor what people ask for (``usecases``).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

NOT_JOINED = "not_joined"
"""The event has a key that no session has yet: it may have come too early."""

BUSY = "busy"
"""A lock was held by another process, or the store could not be written."""

WAITS_FOR_APPROVAL = "waits_for_approval"
"""An end without a stated outcome left a session in ``approval`` as it was."""

NO_KEY = "no_key"
KEYS_DISAGREE = "keys_disagree"
KNOWN = "known"
DEFERRED = "deferred"


class EventResult:
    """``word`` says what was done; ``record`` is the session afterwards.

    resumed: the session whose work this delegation continues, as it was before; reason: why that session could not be
    resumed itself. refused: why a requested resume was refused.
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
