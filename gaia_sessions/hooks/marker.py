"""The marker: one line with which an agent says, in our words, why it stops.

``[gaia-sessions: approval] why``, as the last line of its last message. Owns reading it; nothing else in
a message is ever read for meaning.
"""

from __future__ import annotations

from gaia_sessions.ids import is_agent_id
from gaia_sessions.phases import FAILED, RESUMABLE

_OPENING = "[gaia-sessions:"
_DECORATION = " \t\r*_>`"
_FENCE = "~~~"


def read_marker(message: str) -> tuple[str | None, str | None]:
    """The phase the last line of ``message`` names (a resumable one, or ``failed``) and the id, if one follows."""
    words = _words(_last_line(message))
    if not words or words[0].casefold() not in (*RESUMABLE, FAILED):
        return None, None
    named = words[1] if len(words) > 1 and is_agent_id(words[1]) else None
    return words[0].casefold(), named


def _last_line(message: str) -> str:
    """The last line with something on it; models like to end with a code fence, or to dress the line up."""
    lines = (line.strip(_DECORATION) for line in reversed(message.split("\n")))
    return next((line for line in lines if line and line != _FENCE), "")


def _words(line: str) -> list[str]:
    if not line.casefold().startswith(_OPENING) or "]" not in line:
        return []
    return line[len(_OPENING) : line.index("]")].split()
