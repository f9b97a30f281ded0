"""Checks of single values of a JSON document, and functions that combine them into checks of arrays and objects.

A check takes a value and its place in the document, and raises ``InvalidInput`` if the value is invalid.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio.strict import json_type_of

from .clock import parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeGuard

    from gaia_sessions.jsonio.strict import Json

    Check = Callable[[object, str], None]


def is_integer(value: object) -> TypeGuard[int]:
    """Whether ``value`` is a whole number in JSON; Python counts booleans as integers too."""
    return isinstance(value, int) and not isinstance(value, bool)


TYPES: dict[str, Callable[[Json], bool]] = {
    "str": lambda value: isinstance(value, str),
    "int": is_integer,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    "dict": lambda value: isinstance(value, dict),
    "any": lambda _: True,
}
"""The types that the setting ``state.keys`` can name."""


def check_string(value: object, where: str) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"must be a string, not {json_type_of(value)}", where)


def check_integer(value: object, where: str) -> None:
    if not is_integer(value):
        raise InvalidInput("must be a whole number", where)


def check_flag(value: object, where: str) -> None:
    if not isinstance(value, bool):
        raise InvalidInput(f"must be true or false, not {json_type_of(value)}", where)


def check_object(value: object, where: str) -> None:
    if not isinstance(value, dict):
        raise InvalidInput(f"must be an object, not {json_type_of(value)}", where)


def check_time(value: object, where: str) -> None:
    try:
        parse_time(value)
    except ValueError:
        raise InvalidInput("must be an ISO 8601 time", where) from None


def check_seconds(value: object, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise InvalidInput("must be a number from 0", where)


def integer_from(least: int) -> Check:
    """Accepts a whole number of at least ``least``."""

    def check(value: object, where: str) -> None:
        if not is_integer(value) or value < least:
            raise InvalidInput(f"must be a whole number from {least}", where)

    return check


check_count = integer_from(0)
check_number = integer_from(1)


def one_of(words: tuple[str, ...]) -> Check:
    """Accepts one of the strings ``words``."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or value not in words:
            raise InvalidInput(f"must be one of {', '.join(words)}", where)

    return check


def nullable(inner: Check) -> Check:
    """Accepts ``null``, or what ``inner`` accepts."""

    def check(value: object, where: str) -> None:
        if value is not None:
            inner(value, where)

    return check


def array_of(element: Check) -> Check:
    """Accepts an array of what ``element`` accepts."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, list):
            raise InvalidInput(f"must be an array, not {json_type_of(value)}", where)
        for number, item in enumerate(value):
            element(item, f"{where}[{number}]")

    return check


def map_of(member: Check) -> Check:
    """Accepts an object with any keys whose values ``member`` accepts."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise InvalidInput(f"must be an object, not {json_type_of(value)}", where)
        for key, item in value.items():
            member(item, f"{where}.{key}")

    return check


def object_with(required: dict[str, Check], optional: dict[str, Check]) -> Check:
    """Accepts an object with all ``required`` members and valid ``optional`` ones; others are not checked."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise InvalidInput(f"must be an object, not {json_type_of(value)}", where)
        prefix = f"{where}." if where else ""
        for key, inner in required.items():
            if key not in value:
                raise InvalidInput("missing", prefix + key)
            inner(value[key], prefix + key)
        for key, inner in optional.items():
            if key in value:
                inner(value[key], prefix + key)

    return check
