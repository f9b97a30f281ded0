"""Our own words in what agents write: the lines that begin with ``[gaia-sessions:``.

``[gaia-sessions: approval] why``, as the last line of an agent's last message, says why it stops;
``[gaia-sessions: resume ID]``, as a line of a delegation, asks to go on with a session. Owns reading
them, and which sessions a text names besides; nothing else in it is ever read for meaning.
"""

from __future__ import annotations

from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.session.phases import FAILED, RESUMABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

OPENING = "[gaia-sessions:"
RESUME = "resume"
BRIEFING = "briefing"

FENCE = "=== gaia-sessions"
"""How each line begins that encloses data of an earlier run in a briefing."""

END_OF_DATA = f"{FENCE}: end of data ==="
"""The last line of every briefing."""

NOTE = (
    "If you stop before the work is done (for an approval, a decision, or because you are stuck), end your last "
    f"message with one line of this form: {OPENING} approval] why you stop. Instead of approval you may say "
    "planning or investigating; say failed if the work cannot be done. Your work can then be resumed with its "
    "context. If the work is done, write no such line."
)
"""What a sub-agent is asked to do when it stops before the work is done."""

QUOTED = "| "
"""How every line of a briefing begins that comes from an earlier run."""

_MOST_MENTIONS = 20
_MOST_PLACES = 20_000
"""At which a session may be named that are looked at: a hook has little time, and a text may be all brackets."""

_DECORATION = " \t\r*_>`"
_EMPHASIS = " \t*_`"
_FENCE = "~~~"
_LEAD_INS = frozenset(["continue", "resume", "proceed", "approved", "now", "then", "please", "and"])
_LONGEST_LEAD_IN = 3
_MOST_SIGNS = 200
"""Of a lead-in, so that a line of many MiB is not split into words."""

_GENERATED = "agent-"
_LENGTHS = (8, 6, 8)
"""Of the parts of a generated id: the day, the time, and what is random."""

_HEXADECIMAL = frozenset("0123456789abcdef")


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
    """The sessions that lines of ``text`` ask to resume, as often as they ask.

    Such a line holds the request and nothing else but a list marker, emphasis, backticks and a lead-in; any other
    quotes it.
    """
    if not _holds_opening(text):
        return []
    from .quoting import said_lines

    requested = (_requested(line) for line in said_lines(text, OPENING))
    return [agent_id for agent_id in requested if agent_id]


def read_mentions(text: str) -> list[str]:
    """The first sessions that ``text`` names: by an id of the generated form, or by the line, wherever it stands."""
    found: dict[str, None] = {}
    for agent_id in _named(text):
        found[agent_id] = None
        if len(found) == _MOST_MENTIONS:
            break
    return list(found)


def _named(text: str) -> Iterator[str]:
    if _holds_opening(text):
        pieces = text.split("[", _MOST_PLACES)
        yield from filter(None, (_asked(f"[{piece}") for piece in pieces[1:_MOST_PLACES] if piece[:1] in ("g", "G")))
    before, *pieces = text.split(_GENERATED, _MOST_PLACES)
    for piece in pieces:
        if piece[:1].isdigit() and not _is_of_word(before[-1:], "_.-"):
            named = _generated(piece)
            if named and not _is_of_word(piece[len(named) :][:1], "_-"):
                yield _GENERATED + named
        before = piece or "-"


def _holds_opening(text: str) -> bool:
    """Whether our words begin anywhere in ``text``; of a text of many MiB this takes a few milliseconds."""
    return OPENING.encode() in text.encode("utf-8", "surrogatepass").lower()


def _generated(piece: str) -> str:
    """The rest of a generated id that ``piece`` begins with."""
    rest = piece[: sum(_LENGTHS) + len(_LENGTHS) - 1]
    day, _, time = rest.partition("-")
    time, _, chance = time.partition("-")
    lengths = (len(day), len(time), len(chance))
    sound = rest.isascii() and (day + time).isdigit() and _HEXADECIMAL.issuperset(chance)
    return rest if sound and lengths == _LENGTHS else ""


def _is_of_word(sign: str, others: str) -> bool:
    return sign.isalnum() or (sign != "" and sign in others)


def read_briefed(text: str) -> str | None:
    """The session whose briefing stands in ``text``."""
    _, _, rest = text.rpartition(f"{OPENING} {BRIEFING} ")  # ours comes last
    named = rest.partition("]")[0]
    return named if is_agent_id(named) else None


def _requested(line: str) -> str | None:
    """The session that ``line`` asks for, if it says nothing else."""
    lead, _, rest = line.partition("[")
    inside, closed, after = rest.partition("]")
    alone = line.isascii() and not after.strip(_EMPHASIS) and _is_lead_in(lead)
    return _asked(f"[{inside}]") if alone and closed else None


def _is_lead_in(lead: str) -> bool:
    """Whether ``lead`` is nothing but a list marker, emphasis, and a few words that ask to go on, with a colon."""
    from .quoting import without_list_marker

    told = without_list_marker(lead).strip(_EMPHASIS)
    if not told:
        return True
    if len(told) > _MOST_SIGNS:
        return False
    words = [word.strip(_EMPHASIS + ",") for word in told[:-1].casefold().split()]
    known = " ".join(words).replace("go on", "resume").split()
    return told[-1] == ":" and known != [] and len(words) <= _LONGEST_LEAD_IN and _LEAD_INS.issuperset(known)


def _asked(line: str) -> str | None:
    """The session that our words ask for with which ``line`` begins."""
    words = _words(line)
    asks = len(words) == 2 and words[0].casefold() == RESUME and is_agent_id(words[1])  # noqa: PLR2004  # verb, id
    return words[1] if asks else None


def _last_line(message: str) -> str:
    """The last line with something on it; models like to end with a code fence, or to dress the line up."""
    lines = (line.strip(_DECORATION) for line in reversed(message.split("\n")))
    return next((line for line in lines if line and line != _FENCE), "")


def _words(line: str) -> list[str]:
    """The first two words in the brackets, and what follows them, if the line begins with our words."""
    if line[: len(OPENING)].casefold() != OPENING or "]" not in line:
        return []
    return line[len(OPENING) :].partition("]")[0].split(None, 2)
