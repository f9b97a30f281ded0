"""What waits for a person: work that asks for an approval, and agents that ask for a permission.

Owns what of a session is its question.
"""

from __future__ import annotations

from typing import NamedTuple

from gaia_sessions.hosts.marker import read_why, without_marker
from gaia_sessions.session.schema import MARKER_DETAIL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record, Run


class Question(NamedTuple):
    """What an agent said last, whole and as it is stored; a text is empty if there is none, or it is not kept.

    asked: the words behind its marker. before: the message without the line of the marker.
    """

    asked: str
    before: str
    message: str


def question_of(record: Record) -> Question:
    """What the agent that spoke last in the session asked."""
    spoke = [run for run in record.get("runs", ()) if "last_message" in run]
    run: Run = spoke[-1] if spoke else {}
    message = run.get("last_message", "")
    if run.get("detail") != MARKER_DETAIL:
        return Question("", message, message)
    return Question(read_why(message), without_marker(message), message)
