"""Clients that are run as commands: which there are, and what whoever runs one asks of it.

A client that is a command is told its input and tells what it does by a protocol of its own, which its module knows.
"""

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
        """One process of a client, from its start to its end.

        conversation_id: its ID of the conversation, once that is known. is_told_all: nothing more will be written to
        its stdin. must_be_killed: it goes on although it has no tokens left. message: what its main agent said last.
        problem: why it has failed, whatever its exit code says; None if its last words are its result. is_at_rest: it
        has told how its latest turn ended, and so has its conversation. is_refused: it does not know the conversation
        that it was to go on with. may_report: whether a report at a limit would be kept.
        """

        def __init__(self, text: str, environment: Mapping[str, str], conversation_id: str | None) -> None:
            """It will be told ``text``, in this conversation if there is one, else in a new one."""

        may_report: bool

        @property
        def conversation_id(self) -> str | None: ...

        @property
        def is_told_all(self) -> bool: ...

        @property
        def must_be_killed(self) -> bool: ...

        @staticmethod
        def check(words: Sequence[str]) -> None:
            """Raises ``UsageError`` for what may not stand in a command: what the preset gives, and a prompt."""

        @staticmethod
        def with_tools(words: Sequence[str], allowed: Sequence[str] | None, blocked: Sequence[str]) -> list[str]:
            """``words`` by which it has no tools but those ``allowed`` (None: all), and none that is ``blocked``.

            Raises ``UsageError`` if it knows no list of what is allowed, or the words have another one.
            """

        @property
        def message(self) -> str: ...

        @property
        def problem(self) -> str | None: ...

        @property
        def is_at_rest(self) -> bool: ...

        @property
        def is_refused(self) -> bool: ...

        def words(self, words: Sequence[str]) -> list[str]:
            """The command ``words`` with what it needs besides."""

        def to_say(self) -> bytes:
            """What is to be written to its stdin now."""

        def hear(self, data: bytes) -> Iterator[tuple[int, bytes]]:
            """What a person is to be shown of the ``data`` that it wrote to stdout, each with the stream for it."""

        def asks_to_end(self, *, is_out_of_tokens: bool) -> bool:
            """Whether it is told on its stdin to end with a report; if not, SIGINT is what ends it.

            is_out_of_tokens: from now on its model may be asked for one thing, or what it is being asked for already.
            """

        def figures(self) -> Run:
            """What its main agent used so far: ``consumed``, and its ``model``; empty if nothing is known."""

        def tokens_of_agents(self) -> int:
            """What its sub-agents used since it began, of a budget."""


_FOLDERS = {"claude": "claude_code", "codex": "codex"}
PRESETS = (*_FOLDERS,)
"""The clients, by the names of their programs."""

_LONGEST_LINE = 8 << 20
"""Bytes. A line that is longer is passed over: it is the result of a tool, of which nothing is shown."""

BY_NAME = "by its name"
"""In place of a preset: that of the client whose program has this name, or none."""


def preset_for(words: Sequence[str], preset: str | None) -> str | None:
    """The preset for the command ``words`` where ``preset`` is wanted.

    Raises ``BadArgument`` for one that there is not, and ``UsageError`` for words that are its own.
    """
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
    """What begins a process of the client ``preset``."""
    from importlib import import_module  # only the module of the client is loaded

    client: type[Client] = import_module(f"{__package__}.{_FOLDERS[preset]}.client").CLIENT
    return client


def is_conversation_id(text: str) -> bool:
    """Whether ``text`` may be a client's ID of a conversation: all of them give UUIDs, and no other text is passed on.

    It becomes a word of a command line and a part of a path.
    """
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


class Options:
    """The options of a client. Of one that stands nowhere here nothing is known: it may take any number of values.

    own: those of the preset, or with which the client does something else than to do its task and end. with_one_value:
    those that take at most one.
    """

    __slots__ = ("own", "with_one_value", "without_value")

    def __init__(self, own: Collection[str], without_value: Collection[str], with_one_value: Collection[str]) -> None:
        self.own = own
        self.without_value = without_value
        self.with_one_value = with_one_value

    def room_behind(self, name: str) -> float:
        """How many values may stand behind the option ``name``."""
        if name in self.without_value:
            return 0
        return 1 if name in self.with_one_value else float("inf")


def check_words(preset: str, arguments: Sequence[str], options: Options) -> None:
    """Raises ``UsageError`` for ``arguments`` that the ``preset`` gives itself, and for a prompt."""
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
        f"{word} stands in the command, where the preset {preset} does not take it",
        f"leave {word} out; to run the command just as it is, add --no-preset",
    )


def _not_read(word: str, preset: str) -> UsageError:
    return UsageError(
        f"{word!r} stands in the command, and {preset} would not read it there",
        "say it by --task, or as the TEXT of send; to run the command just as it is, add --no-preset",
    )


class JsonLines:
    """Puts together the lines of what comes in pieces, each a JSON object; of one that is too long nothing.

    They are read as programs write them: a text may end within a character, and nothing is kept as it is.
    """

    __slots__ = ("_begun", "_is_too_long")

    def __init__(self) -> None:
        self._begun = bytearray()
        self._is_too_long = False

    def add(self, data: bytes) -> Iterator[tuple[bytes, Payload]]:
        """The lines that are whole now, none of them blank, and the object in each; empty for anything else."""
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
    """``text`` as it is shown."""
    return text.encode("utf-8", "replace")


def _object_in(line: bytes) -> Payload:
    try:
        found: object = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
