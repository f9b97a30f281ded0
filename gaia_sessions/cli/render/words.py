"""Times, lengths of time and texts, as a person reads them.

Owns the wording that plain text and tables share. A record may contain anybody's text, so only what is visible of it is
shown.
"""

from __future__ import annotations

from gaia_sessions.errors import plural, well_formed
from gaia_sessions.session import schema
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.runs import client_of
from gaia_sessions.session.state import BY_HAND, CANCELLED, STARTING, WORKING
from gaia_sessions.session.visible import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from typing import Self

    from gaia_sessions.api.pending_work import Pending
    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.liveness import Liveness
    from gaia_sessions.session.policy import ResumeSummary
    from gaia_sessions.session.schema import Run
    from gaia_sessions.session.work_spans import Overlap

_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))

GIVE = "give this to your agent"
"""What to do with a resume line that stands below."""

WHY_STOPPED = {
    schema.INTERRUPTED: "interrupted",
    schema.STOPPED_BY_USER: "stopped by the user",
    schema.USAGE_LIMIT: "stopped by a usage limit",
    schema.OVERLOADED: "stopped because the service of the model was overloaded",
    schema.CONNECTION_LOST: "stopped by a lost connection",
    schema.ENDED_WITH_HOST: "its conversation was closed while the agent was at work",
}
"""How a run ended that was stopped from outside: by ``interruption``, or by ``end`` where it has none.

Of one that is lost ``crash_text`` says it.
"""


class Copyable(str):
    """A line that ends with something to copy, a command or a marker; ``before`` is the text that precedes it."""

    __slots__ = ("before",)

    before: str

    def __new__(cls, copied: str, before: str = "") -> Self:
        line = super().__new__(cls, before + copied)
        line.before = before
        return line


class Command(Copyable):
    """A line that ends with a command of ours to copy, which gets the ``--root`` that was typed."""

    __slots__ = ()


class Hint(str):
    """A line that says what to type, with nothing in it that others wrote: it gets the ``--root`` that was typed."""

    __slots__ = ()


class Prose(str):
    """A line of a text that anybody may have written, which is broken wherever it must be.

    ``indent`` is where its following lines begin.
    """

    __slots__ = ("indent",)

    indent: int

    def __new__(cls, text: str, indent: int = 0) -> Self:
        line = super().__new__(cls, text)
        line.indent = indent
        return line


def safe(text: object, longest: int = 200) -> str:
    """What is ``visible`` of ``text`` on one line of at most ``longest`` characters."""
    words = " ".join(visible(str(text)).split())
    return words if len(words) <= longest else words[: longest - 1] + "…"


def command_to_copy(command: str, before: str = "    ") -> str:
    """The line with ``command``; without it where some character of it would not be shown, since it names another."""
    if visible(command) == command == well_formed(command):
        return Copyable(command, before)
    return f"{before}no command is shown, since a name in it has characters that nobody sees: look there yourself"


def safe_lines(text: str) -> list[str]:
    """What is ``visible`` of the lines of ``text``, whole and with their indentation."""
    return [visible(line.expandtabs(4)).rstrip() for line in text.splitlines()]


def prose(text: str, indent: int) -> list[Prose]:
    """The ``safe_lines`` of ``text``, indented."""
    return [Prose(" " * indent + line if line else "", indent) for line in safe_lines(text)]


def listed(heading: str, lines: Iterable[str]) -> Iterator[Prose]:
    """The heading, and below it the lines, indented; nothing if there are none."""
    for number, line in enumerate(lines):
        if not number:
            yield Prose(heading)
        yield Prose(("  " + line).rstrip(), 2 + (line.indent if isinstance(line, Prose) else 2))


def duration(seconds: float, units: int = 1) -> str:
    """``3 minutes``: in the largest unit that fits, rounded down; in up to two ``units``, ``1 hour 35 minutes``."""
    size, noun = _largest_unit(seconds)
    text = plural(int(seconds / size), noun)
    rest = next((plural(int(seconds % size / less), one) for less, one in _UNITS if less < size), "0 ")
    return text if units == 1 or rest.startswith("0 ") else f"{text} {rest}"


def short_duration(seconds: float, units: int = 1) -> str:
    """``18m``, ``3h``, ``1h 35m``: the same for a column, in one unit as an option takes it."""
    words = duration(seconds, units).split()
    return " ".join(f"{count}{noun[0]}" for count, noun in zip(words[::2], words[1::2], strict=True))


def overlap_text(overlap: Overlap) -> str:
    """``42% 2m``: how much of a span a session worked, rounded down; ``unknown``, or ``42%+ 2m`` if it may be more."""
    share, seconds = overlap["share"], overlap["seconds"]
    if "at_least" in overlap and not share:
        return "unknown"
    return f"{share_text(share)}{'+' * ('at_least' in overlap)} {short_duration(seconds)}"


def share_text(share: float) -> str:
    """``42%``, rounded down; ``<1%`` of what is not nothing."""
    percent = int(share * 100 + _ROUNDING)
    return f"{percent if percent or not share else '<1'}%"


_ROUNDING = 1e-9
"""A share is a fraction in binary: 0.29 is a little less."""


def _largest_unit(seconds: float) -> tuple[int, str]:
    """The largest unit that fits into ``seconds``, else the smallest."""
    return next((unit for unit in _UNITS if seconds >= unit[0]), _UNITS[-1])


def time_limit_text(soft: float, hard: float | None) -> str:
    """``10 minutes, killed after 10 minutes 30 seconds``: the limits of a command."""
    killed = [f"killed after {exactly(hard)}"] if hard is not None else []
    return ", ".join([exactly(soft), *killed])


def exactly(seconds: float) -> str:
    """``duration`` in two units, or a part of a second: a limit as it was set."""
    return duration(seconds, 2) if seconds >= 1 else f"{seconds:.10g} seconds"


def time_left(until: str, now: datetime) -> str:
    """``12 minutes``, until then."""
    return duration(_seconds_left(until, now))


def _seconds_left(until: str, now: datetime) -> float:
    """To the nearest minute, so that the whole limit is shown right after an activity."""
    seconds = max(0, (parse_time(until) - now).total_seconds())
    return seconds if seconds < _MINUTE else round(seconds / _MINUTE) * _MINUTE


def resume_text(resume: ResumeSummary, phase: str, now: datetime, *, running: bool = False) -> str:
    """Whether a session in ``phase`` may be resumed: ``resumable for 12 minutes``, or why not; empty if it ended."""
    if resume["until"] is not None:
        return f"resumable for {time_left(resume['until'], now)}"
    if is_final(phase):
        return ""
    if "paused_until" in resume and not running:
        return f"waits for a limit, {time_left(resume['paused_until'], now)}"
    return WORKING if running else _NOT_RESUMABLE.get(resume["reason"], resume["reason"].replace("_", " "))


def state_text(state: str, phase: str, liveness: Liveness | None = None, *, cancelled: bool = False) -> str:
    """The state, with what stands beside it: ``waiting: Bash``, ``working: cancelled``, ``open: planning``."""
    beside = [CANCELLED] if cancelled and state != CANCELLED and not is_final(phase) else []
    if liveness is not None and not is_final(phase):
        beside += [safe(liveness["for"], 30)] if "for" in liveness else []
        beside += [f"waits for its own {safe(liveness['awaits'], 30)}"] if "awaits" in liveness else []
    elif state == BY_HAND:
        beside = [phase]
    return ": ".join([state, *[", ".join(beside)] * bool(beside)])


def left_text(resume: ResumeSummary, now: datetime) -> str:
    """How long the session may be resumed, ``28m``; or ``14:00``, when its limit is reset; or why it may not be."""
    until = resume["until"]
    if until is None and resume["reason"] == "waiting_for_limit":
        until = resume["paused_until"]
        if _seconds_left(until, now) < _DAY:
            return parse_time(until).astimezone().strftime("%H:%M")
    if until is None:
        return _NOT_LEFT.get(resume["reason"], "")
    return short_duration(_seconds_left(until, now))


_NOT_LEFT = {"expired": "exp.", "too_many_errors": "errors", "not_ready": "off", "clock_skew": "clock"}
_DAY, _MINUTE = 86400, 60
_NOT_RESUMABLE = {
    "phase_not_resumable": "not resumable",
    "corrupt": "not resumable",
    "claimed": STARTING,
    "not_ready": "resuming is off",
}


def ago(text: str, now: datetime) -> str:
    """``3 minutes ago``, counted from ``now``, or ``in 3 minutes`` for the future."""
    seconds = (now - parse_time(text)).total_seconds()
    if seconds < 0:
        return f"in {duration(-seconds)}"
    return "just now" if seconds < 1 else f"{duration(seconds)} ago"


def client_text(run: Run | Pending) -> str:
    """``Claude Code (process 4711)``: where a question of its agent is answered."""
    process = (run["wrapper"] if "wrapper" in run else run.get("host_process", {})).get("pid")
    return safe(client_of(run)) + (f" (process {process})" if process else "")


def cancellation_text(cancellation: Cancellation, now: datetime) -> str:
    """``3 minutes ago, with agent-1 above it: no longer needed``."""
    parts = [ago(cancellation["at"], now) if "at" in cancellation else "at an unknown time"]
    parts += [f"with {safe(cancellation['by'])} above it"] if "by" in cancellation else []
    text = ", ".join(parts)
    return f"{text}: {safe(cancellation['reason'])}" if "reason" in cancellation else text


def seen_text(text: str, now: datetime) -> str:
    """``now``, ``18m``, ``3h``, ``5d``: how long ago that is, rounded down; ``in 2h`` for the future."""
    seconds = (now - parse_time(text)).total_seconds()
    if abs(seconds) < _MINUTE:
        return "now"
    return f"{'in ' if seconds < 0 else ''}{short_duration(abs(seconds))}"


def local_time(text: str) -> str:
    """``2026-01-08 19:05:30+01:00``: to the second, in the time zone of the machine; ``--since`` accepts this form.

    Unchanged if ``text`` is not a time, or if the local time is not in the years 1 to 9999.
    """
    try:
        return parse_time(text).astimezone().isoformat(sep=" ", timespec="seconds")
    except (ValueError, OverflowError):
        return text
