"""The table of options: for each one its key in a file, and how a value is parsed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TOO_LARGE = 1e9


class Option:
    """One option: its key in a file, how a value is parsed, and what a message says is expected.

    ``parse`` takes what a file, a variable or a flag has, and raises ``ValueError`` or ``OverflowError``.
    """

    __slots__ = ("expected", "key", "parse")

    def __init__(self, key: str, parse: Callable[[object], object], *, expected: str) -> None:
        self.key = key
        self.parse = parse
        self.expected = expected


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
    "idle_minutes": Option("idle_minutes", _positive, expected="a number of minutes above 0"),
    "quiet_minutes": Option("quiet_minutes", _positive, expected="a number of minutes above 0"),
    "max_errors": Option("max_errors", _count, expected="a whole number above 0"),
    "max_tokens": Option("max_tokens", _count, expected="a whole number above 0"),
    "sub_agent_max_tokens": Option("sub_agent_max_tokens", _count, expected="a whole number above 0"),
    "durability": Option("durability", _durability, expected='"full" or "fast"'),
    "lock_timeout": Option("lock_timeout", _nonnegative, expected="a number of seconds from 0"),
    "hooks": Option("hooks.enabled", _boolean, expected="true or false"),
    "ignore_agents": Option("hooks.ignore_agents", _names, expected="a list of agent types"),
    "note": Option("hooks.note", _note, expected='"all", "resume" or "off"'),
    "track": Option("hooks.track", _track, expected='"all" or "named"'),
    "store_description": Option("hooks.store_description", _boolean, expected="true or false"),
    "keep_last_message": Option("hooks.keep_last_message", _boolean, expected="true or false"),
}


def display_value(value: object) -> str:
    """``value`` as a message shows it."""
    is_huge = isinstance(value, int) and abs(value) > _TOO_LARGE  # Python refuses to convert the largest to text
    return "a number too large" if is_huge else repr(value)
