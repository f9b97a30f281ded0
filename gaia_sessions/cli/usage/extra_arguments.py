"""Arguments that a command does not take: what was probably meant by them, and the line to type instead.

Owns the meaning of an extra word for each command. Where a line cannot keep everything that was typed, the hint shows
only the form of the line.
"""

from __future__ import annotations

import os
import shlex

import click

from gaia_sessions.cli.group import argument_positions
from gaia_sessions.cli.option_values import HOURS
from gaia_sessions.cli.typed_ids import is_id_like
from gaia_sessions.errors import UnknownHost, UsageError
from gaia_sessions.session.phases import ABANDONED, OUTCOMES, PHASES

from . import synonyms
from .lines import LIST_HINT, PROGRAM, command_hint
from .synonyms import closest_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.cli.group import ExtraArguments


class _Line:
    """A line with ``extra`` words: its command, and the positions of names, of valid arguments and of extra ones."""

    def __init__(self, error: ExtraArguments, argv: list[str]) -> None:
        positions = argument_positions(error.command.find_root().command, argv)
        self.path = error.command.command_path
        self.name = self.path.removeprefix(error.command.find_root().command_path).strip()
        depth = len(self.name.split())
        self.argv, self.extra = argv, error.words
        self.names, self.taken = positions[:depth], positions[depth : -len(self.extra)]
        self.places = positions[-len(self.extra) :]
        self.options = {
            name: option
            for option in error.command.command.get_params(error.command)
            if isinstance(option, click.Option)
            for name in (*option.opts, *option.secondary_opts)
        }

    def rest(self) -> list[str]:
        """All words but the extra ones."""
        return [word for place, word in enumerate(self.argv) if place not in self.places]

    def has(self, option: str) -> bool:
        return any(word.partition("=")[0] == option for word in self.argv)

    def unexpected_error(self, hint: str | None = None) -> UsageError:
        message = f"unexpected argument{'s' if len(self.extra) > 1 else ''}: {shlex.join(self.extra)}"
        return UsageError(message, hint or f"see {self.path} --help")

    def instead(self, *words: str) -> UsageError:
        """The error with a line that has ``words`` instead of the extra ones, unless that would repeat an option."""
        is_repeated = any(word in self.options and not self.options[word].multiple and self.has(word) for word in words)
        return self.unexpected_error(None if is_repeated else command_hint([*self.rest(), *words]))

    def one_id_error(self) -> UsageError:
        """The error for several IDs where the command takes one."""
        words = ["ID" if place == self.taken[0] else word for place, word in enumerate(self.argv)]
        words = [word for place, word in enumerate(words) if place not in self.places]
        hint = command_hint(words, after=" for each ID")
        return UsageError(f"{self.name} takes one ID", hint or "run the command once per ID")

    def no_id_error(self, advice: str, *command: str) -> UsageError:
        """The error for an ID where none is taken; ``command`` takes one, and is given with ``ID`` in its place."""
        is_one = len(self.rest()) == self.names[-1] + 1 and len(self.extra) == 1 and is_id_like(self.extra[0])
        words = [self.extra[0] if is_one and word == "ID" else word for word in command]
        after = "" if is_one else f"; {LIST_HINT}" if len(self.extra) == 1 else " for each ID"
        line = command_hint([*self.argv[: self.names[0]], *words]) or f"see {PROGRAM} {command[0]} --help"
        return UsageError(f"{self.name} takes no ID; {advice}", line + after)


def to_usage_error(error: ExtraArguments, argv: list[str]) -> UsageError:
    """The usage error for more arguments than the command takes."""
    line = _Line(error, argv)
    for explain in (_missing_quotes, _missing_dashes, _EXPLANATIONS.get(line.name), _in_a_folder):
        usage_error = explain(line) if explain else None
        if usage_error:
            return usage_error
    return line.unexpected_error()


def _missing_quotes(line: _Line) -> UsageError | None:
    """The extra words continue the text of an option, its last value: ``--summary Terraform applied``."""
    first, behind = line.places[0], line.places[-1] + 1
    texts = {name: option.nargs for name, option in line.options.items() if "TEXT" in (option.metavar or "")}
    if all("=" in word or word in PHASES for word in line.extra) or behind - first != len(line.places):
        return None
    name, equals, _ = line.argv[first - 1].partition("=")
    if (equals and name in texts) or any(
        line.argv[: first - 1][-number:][:1] == [one] for one, number in texts.items()
    ):
        text = " ".join(line.argv[first - 1 : behind])
        return line.unexpected_error(command_hint([*line.argv[: first - 1], text, *line.argv[behind:]]))
    return None


def _missing_dashes(line: _Line) -> UsageError | None:
    """The extra words are names of options, with their values: ``doctor fix``, ``update ID phase approval``."""
    words, place = [], 0
    while place < len(line.extra):
        name = f"--{line.extra[place].casefold()}"
        option = line.options.get(name)
        behind = place + 1 if option is None or option.is_flag else place + 1 + option.nargs
        if option is None or behind > len(line.extra):
            return None
        words += [name, *line.extra[place + 1 : behind]]
        place = behind
    return line.instead(*words)


def _for_update(line: _Line) -> UsageError | None:
    if all("=" in word for word in line.extra):
        return line.instead(*(part for word in line.extra for part in ("-m", word)))
    phases = [_phase(word) for word in (line.argv[line.taken[0]], *line.extra)]
    if len(line.extra) == 1 and phases[1]:
        return line.instead("--phase", phases[1])
    if len(line.extra) == 1 and phases[0]:
        words = [line.extra[0] if place == line.taken[0] else word for place, word in enumerate(line.argv)]
        del words[line.places[0]]
        return line.unexpected_error(command_hint([*words, "--phase", phases[0]]))
    return line.one_id_error() if all(map(is_id_like, line.extra)) else None


def _phase(word: str) -> str | None:
    return word.casefold() if word.casefold() in PHASES else synonyms.PHASES.get(word.casefold())


def _for_list(line: _Line) -> UsageError | None:
    words = [word.casefold() for word in line.extra]
    if len(words) == 1 and words[0] in synonyms.ACTIVE_WORDS:
        return line.instead("--active-only")
    if all(word in PHASES for word in words):
        return line.instead(*(part for word in words for part in ("--phase", word)))
    if all(map(is_id_like, line.extra)):
        return line.no_id_error("show shows one session", "show", "ID")
    return line.instead("--agent", line.extra[0]) if len(words) == 1 and os.sep not in words[0] else None


def _for_create(line: _Line) -> UsageError:
    if line.has("--agent"):
        return line.instead("--purpose", " ".join(line.extra))
    purpose = ["--purpose", " ".join(line.extra[1:])] if line.extra[1:] else []
    return line.instead("--agent", line.extra[0], *purpose)


def _for_finalize(line: _Line) -> UsageError:
    outcomes = [word for word in line.extra if word.casefold() in OUTCOMES]
    is_ended = any(line.argv[place] in OUTCOMES for place in line.taken)
    if not outcomes and not is_ended:
        message = f"unknown outcome {line.argv[line.taken[-1]]!r}"
        return UsageError(message, "the outcomes are " + ", ".join(OUTCOMES))
    if not outcomes:
        return line.instead("--summary", " ".join(line.extra))
    if not is_ended:
        return UsageError("finalize takes one ID", f"type {PROGRAM} finalize ID {outcomes[0]} for each ID")
    return UsageError("a session has one outcome", f"use only one: {PROGRAM} finalize ID {'|'.join(OUTCOMES)}")


def _for_cleanup(line: _Line) -> UsageError | None:
    duration = line.extra[0] + "".join(line.extra[1:])[:1]  # 2 days
    if (len(line.extra) == 1 or line.extra[1:] in synonyms.DURATION_UNITS) and _is_duration(duration):
        return line.instead("--hours", duration)
    if os.sep in line.extra[0]:
        return None
    return line.no_id_error("finalize ends one session", "finalize", "ID", ABANDONED)


def _for_usage(line: _Line) -> UsageError | None:
    is_number = len(line.extra) == 1 and line.extra[0].isdecimal()
    return line.instead("--charge", line.extra[0]) if is_number else line.one_id_error()


def _for_todo_add(line: _Line) -> UsageError:
    """The text without its quotes: ``todo add ID write the tests``."""
    text = " ".join([line.argv[line.taken[-1]], *line.extra])
    words = [text if place == line.taken[-1] else word for place, word in enumerate(line.argv)]
    return line.unexpected_error(command_hint([word for place, word in enumerate(words) if place not in line.places]))


def _is_duration(text: str) -> bool:
    try:
        return HOURS.convert(text, None, None) >= 0
    except UsageError:
        return False


def _for_hooks(line: _Line) -> UsageError | None:
    word = line.extra[0]
    if line.extra == [os.curdir]:
        return line.unexpected_error(command_hint(line.rest()))
    if len(line.extra) > 1 or _is_folder(word):
        return None
    try:
        return line.instead("--host", str(line.options["--host"].type.convert(word, None, None)))
    except UnknownHost as unknown:
        intended = closest_word(word, unknown.known)
        return line.instead("--host", intended) if intended else line.unexpected_error(unknown.hint)
    except UsageError as error:
        return error


def _in_a_folder(line: _Line) -> UsageError | None:
    """The extra word is a folder; a command works on the project of the working directory."""
    if line.name not in synonyms.TAKE_NO_ID or len(line.extra) > 1 or not _is_folder(line.extra[0]):
        return None
    return line.unexpected_error(command_hint(line.rest(), before=f"cd {shlex.quote(line.extra[0])} && "))


def _is_folder(word: str) -> bool:
    return os.sep in word or word == os.pardir


_EXPLANATIONS: dict[str, Callable[[_Line], UsageError | None]] = {
    "update": _for_update,
    "list": _for_list,
    "create": _for_create,
    "finalize": _for_finalize,
    "cleanup": _for_cleanup,
    **dict.fromkeys(["hooks install", "hooks uninstall"], _for_hooks),
    "usage": _for_usage,
    "todo add": _for_todo_add,
    **dict.fromkeys(["get", "show", "events", "transcript", "should-resume", "todo list"], _Line.one_id_error),
}
