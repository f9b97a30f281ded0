"""The line to type instead of a wrong one: how it is made from what was given, and how it is written.

Owns how long a line in an error message may be. Knows no command.
"""

from __future__ import annotations

import shlex

PROGRAM = "gaia-sessions"
IDS = f"{PROGRAM} list shows the IDs"
ONE_LINE = 74
"""Characters of a hint that fit into one line of 80 columns."""

_LONGEST_LINE = 149
"""With it, the whole hint has two lines of 80 columns: there is room for a generated ID and a sentence."""


def to_type(words: list[str], before: str = "", after: str = "") -> str | None:
    """What to type; None if it is too long to be read in an error message."""
    line = f"{before}{joined(words)}{after}"
    return f"type {line}" if len(line) <= _LONGEST_LINE else None


def joined(words: list[str]) -> str:
    return f"{PROGRAM} {shlex.join(words)}"


def replaced(given: list[str], old: str, new: list[str]) -> list[str]:
    """``given`` with the last ``old`` in it, alone or at either side of a ``=``, replaced by ``new``."""
    for place in range(len(given) - 1, -1, -1):
        name, equals, value = given[place].partition("=")
        if given[place] == old:
            return [*given[:place], *new, *given[place + 1 :]]
        if equals and name == old:
            return [*given[:place], "=".join([*new, value]), *given[place + 1 :]]
        if equals and value == old and name.startswith("-"):
            return [*given[:place], f"{name}={new[0]}", *given[place + 1 :]]
    return [*given, *new]


def in_place_of(word: str, meant: str | None, given: list[str]) -> str | None:
    """What to type where ``meant`` was meant by ``word``, if it is known."""
    return meant and (to_type(replaced(given, word, [meant])) or f"did you mean {meant}?")


def value_of(given: list[str], option: str) -> str | None:
    """The last value of ``option``, behind it or behind its ``=``; None if there is none."""
    for place in range(len(given) - 1, -1, -1):
        if given[place] == option:
            return given[place + 1] if place + 1 < len(given) else None
        if given[place].startswith(f"{option}="):
            return given[place].partition("=")[2]
    return None


def with_option(given: list[str], option: str, value: str, new: list[str]) -> list[str]:
    """``given`` with ``new`` in the place of ``option`` and its ``value``; as it is if they are not in it."""
    for place, word in enumerate(given):
        if word == option and given[place + 1 : place + 2] == [value]:
            return [*given[:place], *new, *given[place + 2 :]]
        if word == f"{option}={value}":
            return [*given[:place], *new, *given[place + 1 :]]
    return given


def is_like_an_id(word: str) -> bool:
    """Names of agents and phases have dashes too, but hardly a digit."""
    from gaia_sessions.session.ids import is_agent_id

    from .typed_ids import LATEST

    return word == LATEST or (is_agent_id(word) and any(char.isdigit() for char in word))
