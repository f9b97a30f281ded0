"""Begins the transcript of a session anew. What it forgets is in ``session.transcript`` and ``session.compaction``."""

from __future__ import annotations

from gaia_sessions.session.compaction import without_memory
from gaia_sessions.session.transcript import begun_anew, without_turns
from gaia_sessions.store.subagent_events import with_reset_noted

from .preconditions import check_no_send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

    from .at import Writing


def reset(at: Writing, agent_id: str, *, forget: bool = False) -> Record:
    """Begins a transcript anew, with the system prompt alone and no turns, and returns the record.

    What was used and the todos stay; with ``forget`` no tokens are used any more, and there are no todos. The
    messages are kept on disk, as an [archived transcript](store.md#transcripts). Raises ``SessionFinal``, and
    ``AgentAtWork`` while a send is at work.
    """
    emptied = without_memory if forget else without_turns
    with at.store.open(agent_id) as session:
        before = check_no_send(session.record)
        record, kept = begun_anew(emptied(before, at.now), at.store.messages(agent_id))
        return session.commit(with_reset_noted(before, record, at.now), messages=kept)
