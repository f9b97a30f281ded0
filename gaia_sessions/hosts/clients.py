"""Clients that ``run`` and ``send`` start as commands. Each client's module knows its protocol."""

from __future__ import annotations

import json
import os
from uuid import UUID

from gaia_sessions.errors import BadArgument, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Protocol

    from gaia_sessions.session.schema import Run

    from .payload import Payload

    class Client(Protocol):
        """One process of a client, from its start to its end."""

        def __init__(self, text: str, environment: Mapping[str, str], conversation_id: str | None) -> None:
            """Prepares to give the client ``text``, in the conversation with this ID, or in a new one without an ID."""

        # Whether to ask for a report at a limit: only if the report would be recorded.
        may_report: bool

        # The client's ID of the conversation; None until it is known.
        @property
        def conversation_id(self) -> str | None: ...

        # Whether nothing more will be written to its stdin.
        @property
        def is_told_all(self) -> bool: ...

        # Whether the client keeps working although it has no tokens left.
        @property
        def must_be_killed(self) -> bool: ...

        @staticmethod
        def check(words: Sequence[str]) -> None:
            """Raises ``UsageError`` for words that a command must not have: the preset's options, and a prompt."""

        @staticmethod
        def with_tools(words: Sequence[str], allowed: Sequence[str] | None, blocked: Sequence[str]) -> list[str]:
            """Limits ``words`` to the tools ``allowed`` (None: all) without ``blocked``; raises ``UsageError``."""

        # What the main agent said last.
        @property
        def message(self) -> str: ...

        # Why it failed, whatever its exit code; None if its last words are its result.
        @property
        def problem(self) -> str | None: ...

        # Whether the client has said how its latest turn ended.
        @property
        def is_at_rest(self) -> bool: ...

        @property
        def is_refused(self) -> bool:
            """Whether the client does not know the conversation that it had to resume."""

        def words(self, words: Sequence[str]) -> list[str]:
            """Returns the command ``words`` with the options that the preset adds."""

        def to_say(self) -> bytes:
            """Returns what to write to its stdin now."""

        def hear(self, data: bytes) -> Iterator[tuple[int, bytes]]:
            """Yields what to show of ``data`` from its stdout, each piece with the number of our stream."""

        def asks_to_end(self, *, is_out_of_tokens: bool) -> bool:
            """Tells the client on stdin to end with a report; returns False if it needs SIGINT instead.

            If ``is_out_of_tokens``, the client is allowed only one more request: the running one, if there is one.
            """

        def figures(self) -> Run:
            """Returns what its main agent used so far: ``consumed`` and ``model``; empty if nothing is known."""

        def tokens_of_agents(self) -> int:
            """Returns the tokens of its sub-agents since it began, as a budget counts them."""


_FOLDERS = {"claude": "claude_code", "codex": "codex"}
PRESETS = (*_FOLDERS,)
"""The clients, by the names of their programs."""

_LONGEST_LINE = 8 << 20
"""Bytes. A longer line is a tool's result, of which we show nothing, so the line is skipped."""

BY_NAME = "by its name"
"""A value for a preset: use the client with the name of the program, or none."""


def preset_for(words: Sequence[str], preset: str | None) -> str | None:
    """Returns the checked preset for the command ``words``; None for no preset."""
    if preset == BY_NAME:
        name = os.path.basename(words[0])
        preset = name if name in PRESETS else None
    if preset is None:
        return None
    if preset not in PRESETS:
        raise BadArgument("preset", preset, " or ".join(PRESETS))
    client_class(preset).check(words)
    return preset


def client_class(preset: str) -> type[Client]:
    """Returns the class of the client ``preset``."""
    from importlib import import_module  # only the module of the client is loaded

    client: type[Client] = import_module(f"{__package__}.{_FOLDERS[preset]}.client").CLIENT
    return client


def is_conversation_id(text: str) -> bool:
    """Returns whether ``text`` is a UUID. It becomes a word of a command line and a part of a path."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


class Options:
    """The options of a client. An unknown option may take any number of values."""

    __slots__ = ("own", "with_one_value", "without_value")

    def __init__(self, own: Collection[str], without_value: Collection[str], with_one_value: Collection[str]) -> None:
        # Options that the preset gives, or that make the client do something else than its task.
        self.own = own
        self.without_value = without_value
        # Options that take at most one value.
        self.with_one_value = with_one_value

    def room_behind(self, name: str) -> float:
        """Returns how many values can follow the option ``name``."""
        if name in self.without_value:
            return 0
        return 1 if name in self.with_one_value else float("inf")


def check_words(preset: str, arguments: Sequence[str], options: Options) -> None:
    """Raises ``UsageError`` for ``arguments`` that the preset gives itself, and for a prompt."""
    room = 0.0  # how many words may be values of the option before them
    for place, word in enumerate(arguments, 1):
        if word == "--":
            if arguments[place:]:
                raise _not_read(arguments[place], preset)
        elif word.startswith("-") and word != "-":
            name, equals, _ = word.partition("=")
            name = name if name.startswith("--") else name[:2]
            if name in options.own:
                raise _given_already(name, preset)
            has_value = bool(equals) or word != name  # ``--name=value``, or ``-nvalue``
            room = 0 if has_value else options.room_behind(name)
        elif room < 1:
            raise _not_read(word, preset)
        else:
            room -= 1


def _given_already(word: str, preset: str) -> UsageError:
    return UsageError(
        f"the preset {preset} does not accept {word} in the command",
        f"remove {word}, or add --no-preset to run the command unchanged",
    )


def _not_read(word: str, preset: str) -> UsageError:
    return UsageError(
        f"the preset {preset} accepts only options in the command, not {word!r}",
        "give the task with --task or as the TEXT of send, or add --no-preset to run the command unchanged",
    )


class JsonLines:
    """Joins pieces of output to lines of JSON objects. Lines that are too long are dropped."""

    __slots__ = ("_begun", "_is_too_long")

    def __init__(self) -> None:
        self._begun = bytearray()
        self._is_too_long = False

    def add(self, data: bytes) -> Iterator[tuple[bytes, Payload]]:
        """Yields the lines that are now complete and not blank, each with its object (empty for other JSON)."""
        *whole, rest = data.split(b"\n")
        for end in whole:
            line = bytes(self._begun + end)
            if line.strip() and not self._is_too_long and len(line) <= _LONGEST_LINE:
                yield line, _object_in(line)
            self._begun, self._is_too_long = bytearray(), False
        self._is_too_long = self._is_too_long or len(self._begun) + len(rest) > _LONGEST_LINE
        if self._is_too_long:
            self._begun.clear()
        else:
            self._begun += rest


def shown_text(text: str) -> bytes:
    """Returns ``text`` as bytes for the screen."""
    return text.encode("utf-8", "replace")


def _object_in(line: bytes) -> Payload:
    try:
        # Programs may cut a text within a character. This JSON is not stored, so it need not be strict.
        found: object = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
