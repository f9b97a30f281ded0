"""What an agent asks a person, and what the agent said before. Hooks load this file, so its imports must be cheap."""

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
    """What an agent said last: the question after its marker, what is ``before`` the marker, and the whole message."""

    __slots__ = ("asked", "before", "message")

    def __init__(self, asked: str, before: str, message: str) -> None:
        self.asked = asked
        self.before = before
        self.message = message


def question_of(record: Record) -> Question:
    """Returns the question of the agent that spoke last in the session."""
    spoke = [run for run in record.get("runs", ()) if "last_message" in run]
    run: Run = spoke[-1] if spoke else {}
    message = run.get("last_message", "")
    if "question" in record:
        return Question(record["question"], without_marker(message), message)
    # an agent that reached a limit, or waited for its own command when its client ended, may have a marker too
    has_marker = run.get("detail") == MARKER_DETAIL or is_own_run(run) or "reported" in run
    return question_in(message) if has_marker else Question("", message, message)


def what_waits(sessions: Reader, record: Record) -> Question:
    """Returns the whole question of a waiting session; a transcript may have more than the record."""
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
    """Returns the question in the last ``message`` of an agent."""
    return Question(read_why(message), without_marker(message), message)
