"""What was typed wrong, and the line to type instead.

Owns how alike a misspelt word must be to be taken for another, and how a line is corrected. Loaded only when a command
line could not be understood; runs nothing.
"""

from __future__ import annotations

import shlex
from difflib import get_close_matches

import click

from gaia_sessions.errors import UnknownHost, UnknownOutcome, UnknownPhase, UsageError
from gaia_sessions.phases import COMPLETED, OUTCOMES, PHASES

from . import synonyms
from .parsing import ExtraArguments, NoSuchCommand, arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

_PROGRAM = "gaia-sessions"
_NEAR = 0.75
"""How alike two words must be: ``phas`` is ``phase``, ``status`` is nothing."""
_SHORTEST_BEGINNING = 3
_LONGEST_LINE = 149
"""With it, the whole hint has two lines of 80 columns: there is room for a generated ID and a sentence."""

_PLAIN = {"a valid integer range": "a whole number", "a valid integer": "a whole number", "a valid float": "a number"}
"""What click says for those who know the types of Python, and what everybody understands."""


def explained(error: click.UsageError, given: list[str]) -> UsageError:
    """``error`` of click about the words ``given`` in our words, with the line that was probably meant."""
    if isinstance(error, NoSuchCommand):
        return _command(error, given)
    if isinstance(error, ExtraArguments):
        return _extra(error, given)
    if isinstance(error, click.NoSuchOption) and error.ctx:
        return _option(error.option_name, error.ctx, given)
    if isinstance(error, click.MissingParameter) and error.param:
        return _missing(error.param.human_readable_name, error, given)
    return _as_it_is(error)


def add_line(error: UsageError, given: list[str]) -> None:
    """Puts the line that was probably meant into the hint of ``error``, if it is one that we know a line for."""
    if isinstance(error, UnknownOutcome):
        word, meant = str(error.outcome), _meant(str(error.outcome), synonyms.OUTCOMES, OUTCOMES)
    elif isinstance(error, UnknownPhase):
        word, meant = str(error.phase), _meant(str(error.phase), synonyms.PHASES, PHASES)
    elif isinstance(error, UnknownHost):
        word, meant = str(error.host), nearest(str(error.host), error.known)
    else:
        return
    error.hint = _instead_of(word, meant, given) or error.hint


def _meant(word: str, tried: Mapping[str, str], known: Collection[str]) -> str | None:
    return word if word in known else tried.get(word.casefold()) or nearest(word, known)


def _instead_of(word: str, meant: str | None, given: list[str]) -> str | None:
    return meant and (_type(_replaced(given, word, [meant])) or f"did you mean {meant}?")


def _as_it_is(error: click.UsageError) -> UsageError:
    message = error.format_message()
    for theirs, plain in _PLAIN.items():
        message = message.replace(theirs, plain)
    return UsageError(message, f"see {_path(error)} --help")


def _command(error: NoSuchCommand, given: list[str]) -> UsageError:
    ctx, path = error.group, error.group.command_path
    known, is_root = error.known, ctx.parent is None
    word = error.name.casefold().replace("_", "-")
    rest = given[given.index(error.name) + 1 :]
    hint: str | None = f"{path} --help lists the commands"
    if is_root and word in synonyms.REMOVALS:
        hint = f"{_PROGRAM} cleanup removes old sessions; finalize ends one"
    elif is_root and word in synonyms.ENDS:
        hint = _type(["finalize", *(rest[:1] or ["ID"]), synonyms.ENDS[word], *rest[1:]])
    elif meant := _meant(word, synonyms.COMMANDS if is_root else synonyms.OF_HOOKS, known):
        hint = _type([*path.split()[1:], *meant.split(), *_arguments_for(meant, rest)]) or f"did you mean {meant}?"
    return UsageError(f"no such command: {error.name}", hint or f"see {path} finalize --help")


def _arguments_for(command: str, rest: list[str]) -> list[str]:
    if command in synonyms.TAKE_NO_ID:
        return []
    return rest or (["ID"] if command in synonyms.NEED_ID else [])


def _option(typed: str, ctx: click.Context, given: list[str]) -> UsageError:
    path = ctx.command_path
    inner = _behind_its_command(ctx, typed, given)
    if inner:
        name, line = inner
        return UsageError(f"{typed} goes after {name}", _type(line) or f"see {path} {name} --help")
    known = _options(ctx.command, ctx)
    if typed in synonyms.OF_THE_ID and any(one.name == "agent_id" for one in ctx.command.params):
        without = _type(_replaced(given, typed, []))
        return UsageError(f"no such option: {typed}", without or "leave it out: the ID stands by itself")
    meant = next((one for one in synonyms.OPTIONS.get(typed.casefold(), ()) if one in known), None)
    meant = meant or nearest(typed, [name for name in known if name.startswith("--")])
    hint = _instead_of(typed, meant, given) or f"{path} --help lists the options"
    return UsageError(f"no such option: {typed}", hint)


def _behind_its_command(ctx: click.Context, typed: str, given: list[str]) -> tuple[str, list[str]] | None:
    """The inner command that has the option which was typed before its name, and the line in the right order."""
    group = ctx.command
    start = next((place for place, word in enumerate(given) if word.partition("=")[0] == typed), None)
    if not isinstance(group, click.Group) or start is None:
        return None
    for place in range(start + 1, len(given)):
        inner = group.get_command(ctx, given[place]) if given[place] in group.list_commands(ctx) else None
        if inner and typed in _options(inner, click.Context(inner, ctx)):
            return given[place], [*given[:start], given[place], *given[start:place], *given[place + 1 :]]
    return None


def _extra(error: ExtraArguments, given: list[str]) -> UsageError:
    path = error.command.command_path
    told = f"unexpected argument{'s' if len(error.words) > 1 else ''}: {shlex.join(error.words)}"
    instead = _instead(path.removeprefix(f"{_PROGRAM} "), error.words)
    places = arguments(error.command.find_root().command, given)[-len(error.words) :]
    words = [word for place, word in enumerate(given) if place not in places]
    hint = None if instead is None else _type([*words, *instead])
    return UsageError(told, hint or f"see {path} --help")


def _instead(name: str, words: list[str]) -> list[str] | None:
    """What to type in the place of ``words``, which the command ``name`` does not take as arguments."""
    if words[0] in ("help", "json"):
        return [f"--{words[0]}"]
    return _INSTEAD[name](words) if name in _INSTEAD else None


def _for_update(words: list[str]) -> list[str] | None:
    if all("=" in word for word in words):
        return [part for word in words for part in ("-m", word)]
    phase = words[0].casefold()
    meant = phase if phase in PHASES else synonyms.PHASES.get(phase)
    return ["--phase", meant] if meant and len(words) == 1 else None


def _for_list(words: list[str]) -> list[str] | None:
    word = words[0].casefold()
    if word in ("active", "open", "running"):
        return ["--active-only"]
    return ["--phase", word] if word in PHASES else ["--agent", words[0]]


def _for_create(words: list[str]) -> list[str] | None:
    purpose = ["--purpose", " ".join(words[1:])] if words[1:] else []
    return ["--agent", words[0], *purpose]


def _for_hooks(words: list[str]) -> list[str] | None:
    return [f"--{words[0]}"] if words[0] in ("user", "project", "local", "here") else ["--host", words[0]]


_INSTEAD: dict[str, Callable[[list[str]], list[str] | None]] = {
    "update": _for_update,
    "list": _for_list,
    "create": _for_create,
    "finalize": lambda words: ["--summary", " ".join(words)],
    "cleanup": lambda words: ["--hours", words[0]],
    **dict.fromkeys(["hooks install", "hooks uninstall"], _for_hooks),
    **dict.fromkeys(["get", "show", "events", "should-resume"], lambda _words: []),
}


def _missing(what: str, error: click.UsageError, given: list[str]) -> UsageError:
    path = _path(error)
    outcome = next((word for word in given if word in OUTCOMES), None)
    if what != "ID" and not outcome and "finalize" in path:
        return UsageError(
            "no outcome was given: completed, failed or abandoned", f"type {_joined([*given, COMPLETED])}"
        )
    if what == "ID" or outcome:
        words = f"ID {outcome or COMPLETED}" if "finalize" in path else "ID"
        return UsageError("no ID was given", f"type {path} {words}; {_PROGRAM} list shows the IDs")
    return _as_it_is(error)


def _path(error: click.UsageError) -> str:
    return error.ctx.command_path if error.ctx else _PROGRAM


def _options(command: click.Command, ctx: click.Context) -> list[str]:
    return [name for option in command.get_params(ctx) for name in (*option.opts, *option.secondary_opts)]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The one of ``known`` that ``word`` is the beginning of, or a misspelling of; None if it is neither."""
    bare = {name.lstrip("-"): name for name in known}
    typed = word.lstrip("-").casefold()
    begun = [name for name in bare if name.startswith(typed)] if len(typed) >= _SHORTEST_BEGINNING else []
    near = begun[:1] if len(begun) == 1 else get_close_matches(typed, bare, n=1, cutoff=_NEAR)
    return bare[near[0]] if near else None


def _replaced(given: list[str], old: str, new: list[str]) -> list[str]:
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


def _type(words: list[str]) -> str | None:
    """What to type; None if it is too long to be read in an error message."""
    line = _joined(words)
    return f"type {line}" if len(line) <= _LONGEST_LINE else None


def _joined(words: list[str]) -> str:
    return f"{_PROGRAM} {shlex.join(words)}"
