"""Times, durations and texts, as a person reads them: words that plain text and tables share.

Anybody can have written the text in a record, so only its visible characters are shown.
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
"""What to do with a resume line on the next line."""

WHY_STOPPED = {
    schema.INTERRUPTED: "interrupted",
    schema.STOPPED_BY_USER: "stopped by the user",
    schema.USAGE_LIMIT: "stopped by a usage limit",
    schema.OVERLOADED: "stopped because the model service was overloaded",
    schema.CONNECTION_LOST: "stopped by a lost connection",
    schema.ENDED_WITH_HOST: "stopped because its conversation was closed",
}
"""What stopped a run from outside, in words, by its ``interruption`` or else ``end``; for ``lost``: ``crash_text``."""


class Copyable(str):
    """A line that ends with a command or a marker to copy; ``before`` is the text before that."""

    __slots__ = ("before",)

    before: str

    def __new__(cls, copied: str, before: str = "") -> Self:
        line = super().__new__(cls, before + copied)
        line.before = before
        return line


class Command(Copyable):
    """A line that ends with a command of ours to copy; the typed ``--root`` is added to it."""

    __slots__ = ()


class Hint(str):
    """A line that says what to type and has no text from a record: the typed ``--root`` is added to its commands."""

    __slots__ = ()


class Prose(str):
    """A line that anybody can have written and that can be broken anywhere; its next lines begin at ``indent``."""

    __slots__ = ("indent",)

    indent: int

    def __new__(cls, text: str, indent: int = 0) -> Self:
        line = super().__new__(cls, text)
        line.indent = indent
        return line


def safe(text: object, longest: int = 200) -> str:
    """Returns the ``visible`` characters of ``text`` on one line of at most ``longest`` characters."""
    words = " ".join(visible(str(text)).split())
    return words if len(words) <= longest else words[: longest - 1] + "…"


def command_to_copy(command: str, before: str = "    ") -> str:
    """Returns the line with ``command``, unless it has invisible characters: without them, it is another command."""
    if visible(command) == command == well_formed(command):
        return Copyable(command, before)
    return f"{before}no command is shown, because a name in the command has invisible characters"


def safe_lines(text: str) -> list[str]:
    """Returns the ``visible`` characters of each line of ``text``, with the indentation."""
    return [visible(line.expandtabs(4)).rstrip() for line in text.splitlines()]


def prose(text: str, indent: int) -> list[Prose]:
    """Returns the ``safe_lines`` of ``text``, indented."""
    return [Prose(" " * indent + line if line else "", indent) for line in safe_lines(text)]


def listed(heading: str, lines: Iterable[str]) -> Iterator[Prose]:
    """Yields the heading, and below it the indented lines; nothing if there are no lines."""
    for number, line in enumerate(lines):
        if not number:
            yield Prose(heading)
        yield Prose(("  " + line).rstrip(), 2 + (line.indent if isinstance(line, Prose) else 2))


def duration(seconds: float, units: int = 1) -> str:
    """Returns ``3 minutes``: in the largest unit, rounded down; ``1 hour 35 minutes`` if ``units`` is 2."""
    size, noun = _largest_unit(seconds)
    text = plural(int(seconds / size), noun)
    rest = next((plural(int(seconds % size / less), one) for less, one in _UNITS if less < size), "0 ")
    return text if units == 1 or rest.startswith("0 ") else f"{text} {rest}"


def short_duration(seconds: float, units: int = 1) -> str:
    """Returns ``18m``, ``3h``, ``1h 35m``: a ``duration`` for a column. With one unit, options accept the text."""
    words = duration(seconds, units).split()
    return " ".join(f"{count}{noun[0]}" for count, noun in zip(words[::2], words[1::2], strict=True))


def overlap_text(overlap: Overlap) -> str:
    """Returns ``42% 2m``: the share of a span that a session worked; if it can be more, ``42%+ 2m`` or ``unknown``."""
    share, seconds = overlap["share"], overlap["seconds"]
    if "at_least" in overlap and not share:
        return "unknown"
    return f"{share_text(share)}{'+' * ('at_least' in overlap)} {short_duration(seconds)}"


def share_text(share: float) -> str:
    """Returns ``42%``, rounded down; ``<1%`` if less than 1% but not 0."""
    percent = int(share * 100 + _ROUNDING)
    return f"{percent if percent or not share else '<1'}%"


_ROUNDING = 1e-9
"""Added before rounding down: as a binary fraction, 0.29 is a little less."""


def _largest_unit(seconds: float) -> tuple[int, str]:
    return next((unit for unit in _UNITS if seconds >= unit[0]), _UNITS[-1])


def time_limit_text(soft: float, hard: float | None) -> str:
    """Returns ``10m, then 30s to finish``: the limits of a command."""
    grace = "" if hard is None else f", then {exactly(round(max(0, hard - soft), 6))} to finish"
    return f"{exactly(soft)}{grace}"


def exactly(seconds: float) -> str:
    """Returns ``1h 10m 30s`` or ``1.5s``: a limit, not rounded."""
    parts, rest = [], seconds
    for size, noun in _UNITS[:-1]:
        count, rest = divmod(rest, size)
        parts += [f"{count:.0f}{noun[0]}"] if count else []
    return " ".join([*parts, f"{rest:.10g}s"] if rest or not parts else parts)


def time_left(until: str, now: datetime) -> str:
    return duration(_seconds_left(until, now))


def _seconds_left(until: str, now: datetime) -> float:
    """Returns the seconds, rounded to the nearest minute: right after an activity, the whole limit is shown."""
    seconds = max(0, (parse_time(until) - now).total_seconds())
    return seconds if seconds < _MINUTE else round(seconds / _MINUTE) * _MINUTE


def resume_text(resume: ResumeSummary, phase: str, now: datetime, *, running: bool = False) -> str:
    """Returns ``resumable for 12 minutes``, or why the session cannot be resumed; empty if the session has ended."""
    if resume["until"] is not None:
        return f"resumable for {time_left(resume['until'], now)}"
    if is_final(phase):
        return ""
    if "paused_until" in resume and not running:
        return f"waits for its usage limit, reset in {time_left(resume['paused_until'], now)}"
    return WORKING if running else _NOT_RESUMABLE.get(resume["reason"], resume["reason"].replace("_", " "))


def state_text(state: str, phase: str, liveness: Liveness | None = None, *, cancelled: bool = False) -> str:
    """Returns the state and its details: ``waiting: Bash``, ``working: cancelled``, ``open: planning``."""
    beside = [CANCELLED] if cancelled and state != CANCELLED and not is_final(phase) else []
    if liveness is not None and not is_final(phase):
        beside += [safe(liveness["for"], 30)] if "for" in liveness else []
        beside += [f"waits for its own {safe(liveness['awaits'], 30)}"] if "awaits" in liveness else []
    elif state == BY_HAND:
        beside = [phase]
    return ": ".join([state, *[", ".join(beside)] * bool(beside)])


def left_text(resume: ResumeSummary, now: datetime) -> str:
    """Returns how long the session is resumable (``28m``), when its limit is reset (``14:00``), or why not."""
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
    """Returns ``3 minutes ago``, or ``in 3 minutes`` for the future."""
    seconds = (now - parse_time(text)).total_seconds()
    if seconds < 0:
        return f"in {duration(-seconds)}"
    return "just now" if seconds < 1 else f"{duration(seconds)} ago"


def client_text(run: Run | Pending) -> str:
    """Returns ``Claude Code (process 4711)`` or ``Claude Code on another machine``: where the agent of a run works."""
    process = run["wrapper"] if "wrapper" in run else run.get("host_process", {})
    if "pid" not in process:
        return safe(client_of(run))
    from gaia_sessions.system.processes import elsewhere  # few answers name a process

    return safe(client_of(run)) + " " + (elsewhere(process) or f"(process {process['pid']})")


def cancellation_text(cancellation: Cancellation, now: datetime) -> str:
    """Returns ``3 minutes ago, with agent-1 above it: no longer needed``."""
    parts = [ago(cancellation["at"], now) if "at" in cancellation else "at an unknown time"]
    parts += [f"with {safe(cancellation['by'])} above it"] if "by" in cancellation else []
    text = ", ".join(parts)
    return f"{text}: {safe(cancellation['reason'])}" if "reason" in cancellation else text


def seen_text(text: str, now: datetime) -> str:
    """Returns ``now``, ``18m``, ``3h``, ``5d``: how long ago, rounded down; ``in 2h`` for the future."""
    seconds = (now - parse_time(text)).total_seconds()
    if abs(seconds) < _MINUTE:
        return "now"
    return f"{'in ' if seconds < 0 else ''}{short_duration(abs(seconds))}"


def clock_time(text: str) -> str:
    """Returns ``19:05:30``, the local time of day of a valid time."""
    return f"{parse_time(text).astimezone():%H:%M:%S}"


def local_time(text: str) -> str:
    """Returns ``2026-01-08 19:05:30+01:00``, which ``--since`` accepts; ``text`` itself if it is not a valid time."""
    try:
        return parse_time(text).astimezone().isoformat(sep=" ", timespec="seconds")
    except (ValueError, OverflowError):
        return text
