"""Begins the transcript of a session anew. What it forgets is in ``session.transcript`` and ``session.compaction``."""

from __future__ import annotations

from gaia_sessions.session.compaction import without_memory
from gaia_sessions.session.transcript import without_turns
from gaia_sessions.store.subagent_events import with_reset_noted

from .preconditions import check_no_send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.updates import Change

    from .at import Writing


def reset(at: Writing, agent_id: str, *, forget: bool = False) -> Record:
    """Begins a transcript anew, with the system prompt alone and no turns, and returns the record.

    What was used and the todos stay; with ``forget`` no tokens are used any more, and there are no todos. The
    messages are kept on disk, as an [archived transcript](store.md#transcripts). Raises ``SessionFinal``, and
    ``AgentAtWork`` while a send is at work.
    """
    emptied = without_memory if forget else without_turns

    def rule(record: Record) -> Change:
        return with_reset_noted(check_no_send(record), emptied(record, at.now), at.now)

    return at.store.empty_transcript(agent_id, rule)
