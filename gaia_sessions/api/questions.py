"""What an agent asks of a person: its words behind the marker, and all that it said with them.

Hooks load this to tell the main agent what to ask, so it loads nothing that costs.
"""

from __future__ import annotations

from gaia_sessions.hosts.marker import read_why, without_marker
from gaia_sessions.session.host_events import MAX_MESSAGE_LENGTH
from gaia_sessions.session.runs import is_own_run
from gaia_sessions.session.schema import MARKER_DETAIL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Reader


class Question:
    """What an agent said last, whole and as it is stored; a text is empty if there is none, or it is not kept.

    asked: the words behind its marker, or those that came with the phase. before: the message without the line of the
    marker.
    """

    __slots__ = ("asked", "before", "message")

    def __init__(self, asked: str, before: str, message: str) -> None:
        self.asked = asked
        self.before = before
        self.message = message


def question_of(record: Record) -> Question:
    """What the agent that spoke last in the session asked."""
    spoke = [run for run in record.get("runs", ()) if "last_message" in run]
    run: Run = spoke[-1] if spoke else {}
    message = run.get("last_message", "")
    if "question" in record:
        return Question(record["question"], without_marker(message), message)
    # one that met a limit, or waited for its own command when its client ended, may say it as well
    has_marker = run.get("detail") == MARKER_DETAIL or is_own_run(run) or "reported" in run
    return question_in(message) if has_marker else Question("", message, message)


def what_waits(sessions: Reader, record: Record) -> Question:
    """What is asked in a session that waits, whole: a transcript may have what its record does not keep."""
    question = question_of(record)
    if (question.message or question.asked) and len(question.message) < MAX_MESSAGE_LENGTH:
        return question
    from gaia_sessions.hosts.payload import clean

    from .reporting import latest_messages

    said = [message["content"] for message in latest_messages(sessions, record) if message["role"] == "assistant"]
    whole = said[-1] if said else ""
    if not question.message:
        return question_in(whole)
    if clean(whole)[-MAX_MESSAGE_LENGTH:] != question.message:
        return question
    return Question(question.asked, without_marker(whole) if question.before != question.message else whole, whole)


def question_in(message: str) -> Question:
    """What the last ``message`` of an agent asks."""
    return Question(read_why(message), without_marker(message), message)
