"""The arguments of a hook's command in a host's settings: the host, the root, what else it is to do.

Owns these options, in both spellings (``--host NAME``, ``--host=NAME``), and which of them are for people. Any other
word is ignored and logged: a host would take a usage error for a veto. Must never refuse a command.
"""

from __future__ import annotations

from gaia_sessions.errors import well_formed

from . import ALLOW_REPORT, TRACK_TOOLS

TEST = "--test"
HELP = frozenset(["-h", "--help"])

_LONGEST_WORD = 128
_HOST, _ROOT = "--host", "--root"


class HookArguments:
    """What the command of a hook says; ``host`` and ``root`` are None where it says nothing."""

    __slots__ = ("host", "ignored", "reports", "root", "tools")

    def __init__(self) -> None:
        self.host: str | None = None
        self.root: str | None = None
        self.tools = False
        self.reports = False
        self.ignored: list[str] = []


def is_for_people(arguments: list[str]) -> bool:
    """Whether a person gave these arguments, which no host does."""
    return TEST in arguments or not HELP.isdisjoint(arguments)


def parse_arguments(arguments: list[str]) -> HookArguments:
    """Reads ``arguments``; of two equal options the last one counts. Raises nothing."""
    parsed, rest = HookArguments(), list(arguments)
    while rest:
        word = rest.pop(0)
        name, glued, value = word.partition("=")
        if word == TRACK_TOOLS:
            parsed.tools = True
            continue
        if word == ALLOW_REPORT:
            parsed.reports = True
            continue
        if name in (_HOST, _ROOT) and not glued and rest and not rest[0].startswith("--"):
            value = rest.pop(0)
        if name in (_HOST, _ROOT) and value:
            setattr(parsed, name.removeprefix("--"), value)
        else:
            parsed.ignored.append(well_formed(word[:_LONGEST_WORD]))
    return parsed
