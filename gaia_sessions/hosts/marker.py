"""Reads the lines that begin with ``[gaia-sessions:`` in the texts of agents. No other text has a meaning for us.
``[gaia-sessions: approval] why`` as the last line of a last message says why the agent stops.
``[gaia-sessions: resume ID]`` as a line of a delegation requests to resume a session.
"""

from __future__ import annotations

from gaia_sessions.session.ids import MARKER_OPENING, RANDOM_DIGITS, RESUME, is_agent_id, is_hex
from gaia_sessions.session.phases import is_marker_phase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BRIEFING = "briefing"

FENCE = "=== gaia-sessions"
"""The beginning of the lines that enclose data of an earlier run in a briefing."""

END_OF_DATA = f"{FENCE}: end of data ==="
"""The last line of every briefing."""

_BRIEFING_HEADING = f"{MARKER_OPENING} {BRIEFING} "
_ESCAPED_LINE_END = r"\n"
_LINE_ENDS = ("\n", _ESCAPED_LINE_END)

NOTE = (
    "If you stop before the work is done (for an approval, a decision, or because you are stuck), end your last "
    f"message with one line of this form: {MARKER_OPENING} approval] why you stop. Instead of approval you may say "
    "planning or investigating; say failed if the work cannot be done. Your work can then be resumed with its "
    "context. If the work is done, write no such line."
)
"""The note to a sub-agent: what to do if it stops before the work is done."""

_MOST_MENTIONS = 20
_MOST_PLACES = 20_000
"""How many places in a text are searched for an ID: a text may consist of brackets, and a hook has little time."""

_DECORATION = " \t\r*_>`"
_EMPHASIS = " \t*_`"
_FENCE = "~~~"
_LEAD_INS = frozenset(["continue", "resume", "proceed", "approved", "now", "then", "please", "and"])
_MOST_LEAD_IN_WORDS = 3
_LONGEST_LEAD_IN_TEXT = 200
"""Characters before a request that may be a lead-in, so that a huge line is not split into words."""

_GENERATED = "agent-"
_TIME_LENGTHS = (8, 6)
"""The lengths of the day and the time in a generated ID."""


def read_marker(message: str) -> tuple[str | None, str | None]:
    """Returns the phase in the last line of ``message`` (resumable or ``failed``) and the ID after it, if any."""
    words = _marker_words(_last_line(message))
    if not words or not is_marker_phase(words[0].casefold()):
        return None, None
    agent_id = words[1] if len(words) > 1 and is_agent_id(words[1]) else None
    return words[0].casefold(), agent_id


def read_why(message: str) -> str:
    """Returns the text after the marker in the last line of ``message``."""
    line = _last_line(message)
    return line.partition("]")[2].strip() if read_marker(message)[0] else ""


def without_marker(message: str) -> str:
    """Returns the lines of ``message`` before the marker; the whole message if it has no marker."""
    lines = message.split("\n")
    while lines and not read_marker(lines[-1])[0]:
        lines.pop()
    return "\n".join(lines[:-1]).rstrip() if read_marker(message)[0] else message


def read_requests(text: str) -> list[str]:
    """Returns the IDs that lines of ``text`` request to resume, once for each request."""
    if not _holds_opening(text):
        return []
    from .quoting import unquoted_lines

    # Such a line has only the request, a list marker, emphasis, backticks and a lead-in. Any other request is a quote.
    requested = (_sole_request(line) for line in unquoted_lines(text, MARKER_OPENING))
    return [agent_id for agent_id in requested if agent_id]


def read_mentions(text: str) -> list[str]:
    """Returns the first IDs in ``text``: generated IDs, and IDs in requests anywhere."""
    found: dict[str, None] = {}
    for agent_id in _mentioned_ids(text):
        found[agent_id] = None
        if len(found) == _MOST_MENTIONS:
            break
    return list(found)


def _mentioned_ids(text: str) -> Iterator[str]:
    if _holds_opening(text):
        pieces = text.split("[", _MOST_PLACES)
        yield from filter(
            None, (_requested_id(f"[{piece}") for piece in pieces[1:_MOST_PLACES] if piece[:1] in ("g", "G"))
        )
    before, *pieces = text.split(_GENERATED, _MOST_PLACES)
    for piece in pieces:
        if piece[:1].isdigit() and not _is_of_word(before[-1:], "_.-"):
            suffix = _generated_suffix(piece)
            if suffix and not _is_of_word(piece[len(suffix) :][:1], "_-"):
                yield _GENERATED + suffix
        before = piece or "-"


def _holds_opening(text: str) -> bool:
    """Returns whether a marker begins anywhere in ``text``. For many MiB this takes a few milliseconds."""
    return MARKER_OPENING.encode() in text.encode("utf-8", "surrogatepass").lower()


def _generated_suffix(piece: str) -> str:
    """Returns the rest of the generated ID at the beginning of ``piece``; empty if there is no such ID."""
    rest = piece[: len("20260108-180530-") + RANDOM_DIGITS]
    day, _, time = rest.partition("-")
    time, _, random_part = time.partition("-")
    is_time = (len(day), len(time)) == _TIME_LENGTHS and (day + time).isascii() and (day + time).isdigit()
    return rest if is_time and is_hex(random_part, RANDOM_DIGITS) else ""


def _is_of_word(character: str, others: str) -> bool:
    return character.isalnum() or (character != "" and character in others)


def read_briefing_id(text: str) -> str | None:
    """Returns the ID in the last briefing in ``text``. The text may be escaped as in JSON."""
    # The last briefing counts: ours is added at the end. A quoted briefing begins no line, as all data in a briefing.
    end = len(text)
    while (place := text.rfind(_BRIEFING_HEADING, 0, end)) >= 0:
        agent_id, _, after = text[place + len(_BRIEFING_HEADING) : end].partition("]")
        if after.startswith(_LINE_ENDS) and _begins_line(text, place) and is_agent_id(agent_id):
            return agent_id
        end = place
    return None


def without_additions(prompt: str) -> str:
    """Returns ``prompt`` without the lines that request a resume, its briefing, and all that follows the briefing."""
    if not _holds_opening(prompt):
        return prompt
    lines = prompt.split("\n")
    end = next((number for number, line in enumerate(lines) if line.startswith(_BRIEFING_HEADING)), len(lines))
    return "\n".join(line for line in lines[:end] if not _sole_request(line)).rstrip()


def _begins_line(text: str, place: int) -> bool:
    if place == 0 or text[place - 1] == "\n":
        return True
    before = text[:place].removesuffix(_ESCAPED_LINE_END)
    backslashes = len(before) - len(before.rstrip("\\"))  # an even number: each of them is escaped itself
    return len(before) < place and backslashes % 2 == 0


def _sole_request(line: str) -> str | None:
    """Returns the ID that ``line`` requests, if the line contains nothing else."""
    lead, _, rest = line.partition("[")
    inside, closed, after = rest.partition("]")
    is_alone = line.isascii() and not after.strip(_EMPHASIS) and _is_lead_in(lead)
    return _requested_id(f"[{inside}]") if is_alone and closed else None


def _is_lead_in(lead: str) -> bool:
    """Returns whether ``lead`` has only a list marker, emphasis, and a few known words with a colon."""
    from .quoting import without_bullet

    text = without_bullet(lead).strip(_EMPHASIS)
    if not text:
        return True
    if len(text) > _LONGEST_LEAD_IN_TEXT:
        return False
    words = [word.strip(_EMPHASIS + ",") for word in text[:-1].casefold().split()]
    normalized = " ".join(words).replace("go on", "resume").split()
    return (
        text[-1] == ":" and normalized != [] and len(words) <= _MOST_LEAD_IN_WORDS and _LEAD_INS.issuperset(normalized)
    )


def _requested_id(line: str) -> str | None:
    """Returns the ID in the request at the beginning of ``line``."""
    words = _marker_words(line)
    is_request = len(words) == 2 and words[0].casefold() == RESUME and is_agent_id(words[1])  # noqa: PLR2004  # verb, id
    return words[1] if is_request else None


def _last_line(message: str) -> str:
    """Returns the last line that is not blank, without decoration: models often add a code fence or emphasis."""
    lines = (line.strip(_DECORATION) for line in reversed(message.split("\n")))
    return next((line for line in lines if line and line != _FENCE), "")


def _marker_words(line: str) -> list[str]:
    """Returns the first two words in the brackets and the rest, if ``line`` begins with a marker."""
    if line[: len(MARKER_OPENING)].casefold() != MARKER_OPENING or "]" not in line:
        return []
    return line[len(MARKER_OPENING) :].partition("]")[0].split(None, 2)
