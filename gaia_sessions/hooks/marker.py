"""Our own words in what agents write: the lines that begin with ``[gaia-sessions:``.

``[gaia-sessions: approval] why``, as the last line of an agent's last message, says why it stops;
``[gaia-sessions: resume ID]``, as a line of a delegation, asks to go on with a session. Owns reading
them; nothing else in a text is ever read for meaning.
"""

from __future__ import annotations

from gaia_sessions.ids import is_agent_id
from gaia_sessions.phases import FAILED, RESUMABLE

OPENING = "[gaia-sessions:"
RESUME = "resume"
BRIEFING = "briefing"

QUOTED = "| "
"""How every line of a briefing begins that comes from an earlier run."""

_MOST_MENTIONS = 20
_DECORATION = " \t\r*_>`"
_FENCE = "~~~"
_GENERATED = r"(?<![\w.-])agent-\d{8}-\d{6}-[0-9a-f]{8}(?![\w-])"


def read_marker(message: str) -> tuple[str | None, str | None]:
    """The phase the last line of ``message`` names (a resumable one, or ``failed``) and the id, if one follows."""
    words = _words(_last_line(message))
    if not words or words[0].casefold() not in (*RESUMABLE, FAILED):
        return None, None
    named = words[1] if len(words) > 1 and is_agent_id(words[1]) else None
    return words[0].casefold(), named


def read_why(message: str) -> str:
    """What the last line of ``message`` says behind its marker."""
    line = _last_line(message)
    return line.partition("]")[2].strip() if read_marker(message)[0] else ""


def read_requests(text: str) -> list[str]:
    """The sessions that lines of ``text`` ask to resume, each once."""
    if OPENING not in text.casefold():
        return []
    requests = (_words(line.strip(_DECORATION), whole=True) for line in text.split("\n"))
    return list(dict.fromkeys(words[1] for words in requests if _asks(words)))


def read_mentions(text: str) -> list[str]:
    """The ids of the generated form in ``text`` outside our own lines, each once; none if it is a list of them."""
    lines = [line for line in text.split("\n") if "agent-" in line and _is_foreign(line)]
    if not lines:
        return []
    import re  # costs a hook as much as all the rest

    found = list(dict.fromkeys(named for line in lines for named in re.findall(_GENERATED, line, re.ASCII)))
    return found if len(found) <= _MOST_MENTIONS else []


def _is_foreign(line: str) -> bool:
    return OPENING not in line.casefold() and not line.startswith(QUOTED)


def read_briefed(text: str) -> str | None:
    """The session whose briefing stands in ``text``."""
    _, _, rest = text.rpartition(f"{OPENING} {BRIEFING} ")  # ours comes last
    named = rest.partition("]")[0]
    return named if is_agent_id(named) else None


def _asks(words: list[str]) -> bool:
    return len(words) == 2 and words[0].casefold() == RESUME and is_agent_id(words[1])  # noqa: PLR2004  # verb, id


def _last_line(message: str) -> str:
    """The last line with something on it; models like to end with a code fence, or to dress the line up."""
    lines = (line.strip(_DECORATION) for line in reversed(message.split("\n")))
    return next((line for line in lines if line and line != _FENCE), "")


def _words(line: str, *, whole: bool = False) -> list[str]:
    """The words in the brackets, if the line begins with them; with ``whole`` it must be nothing else."""
    if not line.casefold().startswith(OPENING) or "]" not in line:
        return []
    inside, _, after = line[len(OPENING) :].partition("]")
    return [] if whole and after.strip() else inside.split()
