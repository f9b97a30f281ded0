"""The line to type instead of a wrong one: how it is made from the words that were typed.

Owns how long a line in an error message may be.
"""

from __future__ import annotations

import shlex

PROGRAM = "gaia-sessions"
LIST_HINT = f"{PROGRAM} list shows the IDs"
MAX_ONE_LINE = 74
"""Characters of a hint that fit into one line of 80 columns."""

_MAX_TWO_LINES = 149
"""Characters of a hint in two lines of 80 columns: room for a generated ID and a sentence."""


def command_hint(words: list[str], before: str = "", after: str = "") -> str | None:
    """The hint to type a line of ``words``; None if it is too long for an error message."""
    line = f"{before}{command_line(words)}{after}"
    return f"type {line}" if len(line) <= _MAX_TWO_LINES else None


def command_line(words: list[str]) -> str:
    return f"{PROGRAM} {shlex.join(words)}"


def replace_word(argv: list[str], old: str, new: list[str]) -> list[str]:
    """``argv`` with the last ``old`` in it, alone or on either side of a ``=``, replaced by ``new``."""
    for place in range(len(argv) - 1, -1, -1):
        name, equals, value = argv[place].partition("=")
        if argv[place] == old:
            return [*argv[:place], *new, *argv[place + 1 :]]
        if equals and name == old:
            return [*argv[:place], "=".join([*new, value]), *argv[place + 1 :]]
        if equals and value == old and name.startswith("-"):
            return [*argv[:place], f"{name}={new[0]}", *argv[place + 1 :]]
    return [*argv, *new]


def correction_hint(word: str, intended: str | None, argv: list[str]) -> str | None:
    """The hint to type ``intended`` instead of ``word``; None if ``intended`` is not known."""
    return intended and (command_hint(replace_word(argv, word, [intended])) or f"did you mean {intended}?")


def option_value(argv: list[str], option: str) -> str | None:
    """The last value of ``option``, in the next word or after a ``=``; None if it has none."""
    for place in range(len(argv) - 1, -1, -1):
        if argv[place] == option:
            return argv[place + 1] if place + 1 < len(argv) else None
        if argv[place].startswith(f"{option}="):
            return argv[place].partition("=")[2]
    return None


def replace_option(argv: list[str], option: str, value: str, new: list[str]) -> list[str]:
    """``argv`` with ``new`` instead of ``option`` and its ``value``; unchanged if it does not contain them."""
    for place, word in enumerate(argv):
        if word == option and argv[place + 1 : place + 2] == [value]:
            return [*argv[:place], *new, *argv[place + 2 :]]
        if word == f"{option}={value}":
            return [*argv[:place], *new, *argv[place + 1 :]]
    return argv
