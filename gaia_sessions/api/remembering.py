"""The memory of a session: its messages, the older of which a summary can replace."""

from __future__ import annotations

from itertools import islice, takewhile

from gaia_sessions.session.compaction import compaction_of, summary_message, with_compaction
from gaia_sessions.session.retention import ROOM_FOR_ENDS
from gaia_sessions.session.rounds import without_lone_results
from gaia_sessions.session.transcript import after, is_system_prompt, readable, replaced_through, system_prompt

from .transcript_messages import checked_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message

    from .at import Reading, Writing


def remembered(at: Reading, agent_id: str, last: int | None = None) -> Sequence[Message]:
    """Returns the messages of the memory, the oldest first.

    These are the messages of the transcript. If ``compact`` replaced older messages, you get the summary instead. A
    message that cannot be read is left out.

    Args:
        last: returns only so many of the newest. A tool result is left out if its call is not among them.
    """
    most = checked_number(last)
    record = at.store.read(agent_id)
    through = replaced_through(record)
    newest_first = takewhile(lambda message: message["seq"] > through, readable(at.store.messages_backwards(agent_id)))
    found = list(islice(newest_first, most))[::-1]
    prompt = system_prompt(at.store.messages(agent_id)) if through else None  # else ``found`` includes the prompt
    beginning = [*filter(None, [prompt]), *summary_message(record)]
    if last is None:
        return beginning + found
    room = max(0, last - len(found))
    return [*beginning[max(0, len(beginning) - room) :], *without_lone_results(found)]


def compact(at: Writing, agent_id: str) -> bool:
    """Replaces the older messages of the memory by a summary.

    The newest fifth of the messages stays. The transcript keeps all messages. The tokens of the summary replace
    the tokens that were charged for the replaced messages.

    Returns:
        Whether messages were replaced. False if there are fewer than 5 messages, or the summary would be longer than
        the messages that it replaces.
    """
    seen = at.store.read(agent_id)
    readable_messages = readable(at.store.messages(agent_id, is_wanted=after(replaced_through(seen))))
    not_replaced = [message for message in readable_messages if not is_system_prompt(message)]
    found = compaction_of(not_replaced, seen.get("compaction"))
    if found is None:
        return False

    def rule(record: Record, now: datetime) -> Record:
        is_other = any(record.get(key) != seen.get(key) for key in ("compaction", "transcripts_archived"))
        return record if is_other else with_compaction(record, *found, now)

    changed = at.change(agent_id, rule, ROOM_FOR_ENDS)
    return changed.get("compaction") == found[0]
