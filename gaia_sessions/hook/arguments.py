"""What stands behind a hook in the settings of a host: which host, whose sessions, whether tools are followed.

Owns those words, in both spellings (``--host NAME``, ``--host=NAME``), and which are only for people. Any other
word is passed over and told to the log: a host takes a complaint for a veto.
"""

from __future__ import annotations

from gaia_sessions.errors import well_formed

TEST = "--test"
HELP = frozenset(["-h", "--help"])

_LONGEST_WORD = 128
_HOST, _ROOT, _TOOLS = "--host", "--root", "--track-tools"


class HookArguments:
    """How a hook was wired. root: None if that was not said; ignored: the words that mean nothing here."""

    __slots__ = ("host", "ignored", "root", "tools")

    def __init__(self) -> None:
        self.host: str | None = None
        self.root: str | None = None
        self.tools = False
        self.ignored: list[str] = []


def is_for_people(arguments: list[str]) -> bool:
    """Whether no host wrote these."""
    return TEST in arguments or not HELP.isdisjoint(arguments)


def parse_arguments(arguments: list[str]) -> HookArguments:
    """What ``arguments`` say; the last of two that say the same counts. Raises nothing."""
    parsed, rest = HookArguments(), list(arguments)
    while rest:
        word = rest.pop(0)
        name, glued, value = word.partition("=")
        if word == _TOOLS:
            parsed.tools = True
            continue
        if name in (_HOST, _ROOT) and not glued and rest and not rest[0].startswith("--"):
            value = rest.pop(0)
        if name in (_HOST, _ROOT) and value:
            setattr(parsed, name.removeprefix("--"), value)
        else:
            parsed.ignored.append(well_formed(word[:_LONGEST_WORD]))
    return parsed
