"""What can be set: every option once, with its place in a file, its default and its check.

Owns the one table. Knows nothing of files or the environment: ``config`` reads those.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TOO_LARGE = 1e9


class Option:
    """One setting: where a file has it, its default, and how a value from a file or the environment is checked."""

    __slots__ = ("default", "key", "read", "wanted")

    def __init__(self, key: str, read: Callable[[object], object], *, default: object, wanted: str) -> None:
        self.key = key
        self.default = default
        self.read = read
        self.wanted = wanted


def _nonnegative(value: object) -> float:
    number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    if not 0 <= number < _TOO_LARGE:
        raise ValueError
    return number


def _positive(value: object) -> float:
    number = _nonnegative(value)
    if not number:
        raise ValueError
    return number


def _count(value: object) -> int:
    number = _positive(value)
    if number != int(number):
        raise ValueError
    return int(number)


_BOOLEAN_WORDS = {
    "on": True,
    "true": True,
    "1": True,
    "yes": True,
    "off": False,
    "false": False,
    "0": False,
    "no": False,
}


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.casefold() in _BOOLEAN_WORDS:
        return _BOOLEAN_WORDS[value.casefold()]
    raise ValueError


def _durability(value: object) -> str:
    return _one_of(value, "full", "fast")


def _note(value: object) -> str:
    return _one_of(value, "all", "resume", "off")


def _track(value: object) -> str:
    return _one_of(value, "all", "named")


def _one_of(value: object, *words: str) -> str:
    if value not in words:
        raise ValueError
    return str(value)


def _names(value: object) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError
    return tuple(name.strip().casefold() for name in names if name.strip())


OPTIONS: dict[str, Option] = {
    "idle_minutes": Option("idle_minutes", _positive, default=30.0, wanted="a number of minutes above 0"),
    "max_errors": Option("max_errors", _count, default=3, wanted="a whole number above 0"),
    "durability": Option("durability", _durability, default="full", wanted='"full" or "fast"'),
    "lock_timeout": Option("lock_timeout", _nonnegative, default=10.0, wanted="a number of seconds from 0"),
    "hooks": Option("hooks.enabled", _boolean, default=True, wanted="true or false"),
    "ignore_agents": Option("hooks.ignore_agents", _names, default=(), wanted="a list of agent types"),
    "note": Option("hooks.note", _note, default="all", wanted='"all", "resume" or "off"'),
    "track": Option("hooks.track", _track, default="all", wanted='"all" or "named"'),
    "report_command": Option("hooks.report_command", _boolean, default=False, wanted="true or false"),
    "store_description": Option("hooks.store_description", _boolean, default=True, wanted="true or false"),
    "keep_last_message": Option("hooks.keep_last_message", _boolean, default=True, wanted="true or false"),
}


def display_value(value: object) -> str:
    """``value`` as a message may have it."""
    is_huge = isinstance(value, int) and abs(value) > _TOO_LARGE  # Python itself refuses to write out the largest
    return "a number too large" if is_huge else repr(value)
