"""What was typed wrong, and the line to type instead.

Owns what each kind of mistake is answered with; those of options and of arguments too many have modules of their own.
Loaded only when a command line could not be understood; runs nothing.
"""

from __future__ import annotations

import click

from gaia_sessions.errors import UnknownHost, UnknownOutcome, UnknownPhase, UsageError
from gaia_sessions.session.phases import COMPLETED, EXECUTING, OUTCOMES, PHASES

from . import surplus, synonyms, wrong_options
from .alike import meant_by
from .lines import IDS, ONE_LINE, PROGRAM, in_place_of, joined, to_type, with_option
from .metadata import OtherMetadata
from .parsing import ExtraArguments, NoSuchCommand, arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gaia_sessions.errors import SessionsError

_PLAIN = {"a valid integer range": "a whole number", "a valid integer": "a whole number", "a valid float": "a number"}
"""What click says for those who know the types of Python, and what everybody understands."""


def explained(error: click.UsageError, given: list[str]) -> UsageError:
    """``error`` of click about the words ``given`` in our words, with the line that was probably meant."""
    if isinstance(error, NoSuchCommand):
        return _command(error, given)
    if isinstance(error, ExtraArguments):
        return surplus.explained(error, given)
    if isinstance(error, click.NoSuchOption) and error.ctx:
        return wrong_options.explained(error.option_name, error.ctx, given)
    if isinstance(error, click.MissingParameter) and error.param and error.ctx:
        return _missing(error.param.human_readable_name, error.ctx, given) or _as_it_is(error)
    return _as_it_is(error)


def add_line(error: SessionsError, given: list[str], group: click.Command) -> None:
    """Puts the line that was probably meant into the hint of ``error``, if it is one that we know a line for."""
    line: str | None = None
    if isinstance(error, UnknownOutcome):
        line = _known_instead(str(error.outcome), synonyms.OUTCOMES, OUTCOMES, given)
    elif isinstance(error, UnknownPhase) and _asks_for_open_ones(str(error.phase), given, group):
        line = to_type(with_option(given, "--phase", str(error.phase), ["--active-only"]))
    elif isinstance(error, UnknownPhase):
        line = _known_instead(str(error.phase), synonyms.PHASES, PHASES, given)
    elif isinstance(error, UnknownHost):
        line = _known_instead(str(error.host), {}, error.known, given)
    elif isinstance(error, OtherMetadata):
        line = to_type(with_option(given, "--metadata", error.typed, error.instead), after=error.after)
    error.hint = line or error.hint


def _asks_for_open_ones(phase: str, given: list[str], group: click.Command) -> bool:
    names = arguments(group, given)
    return bool(names) and given[names[0]] == "list" and phase.casefold() in synonyms.NOT_ENDED


def _known_instead(word: str, tried: Mapping[str, str], known: Collection[str], given: list[str]) -> str | None:
    return in_place_of(word, meant_by(word, tried, known), given)


def _as_it_is(error: click.UsageError) -> UsageError:
    message = error.format_message()
    for theirs, plain in _PLAIN.items():
        message = message.replace(theirs, plain)
    return UsageError(message, f"see {error.ctx.command_path if error.ctx else PROGRAM} --help")


def _command(error: NoSuchCommand, given: list[str]) -> UsageError:
    rest = given[given.index(error.name) + 1 :]
    word = error.name.casefold().replace("_", "-")
    hint = _verb(word, rest) if error.group.parent is None else None
    hint = hint or _renamed(word, rest, error) or f"{error.group.command_path} --help lists the commands"
    return UsageError(f"no such command: {error.name}", hint)


def _verb(word: str, rest: list[str]) -> str | None:
    """What is done to one session, by commands that have other arguments."""
    agent_id = rest[:1] or ["ID"]
    if word in synonyms.REMOVALS:
        return f"{PROGRAM} cleanup removes old sessions; finalize ends one"
    if word in synonyms.ENDS:
        return to_type(["finalize", *agent_id, synonyms.ENDS[word], *rest[1:]]) or f"see {PROGRAM} finalize --help"
    if word in synonyms.APPROVALS:
        return _approved(agent_id, rest[1:]) or f"type {PROGRAM} update ID --phase {EXECUTING}"
    if word in synonyms.DENIALS:
        return _denied(agent_id, rest[1:]) or f"type {PROGRAM} update ID --deny TEXT"
    if word in synonyms.OF_ONE and rest and not rest[0].startswith("-"):
        return to_type([synonyms.OF_ONE[word], *rest]) or f"did you mean {synonyms.OF_ONE[word]}?"
    return None


def _approved(agent_id: list[str], rest: list[str]) -> str | None:
    if any(not word.startswith("-") for word in rest):
        return None
    return to_type(["update", *agent_id, "--phase", EXECUTING, *rest])


def _denied(agent_id: list[str], rest: list[str]) -> str | None:
    """``deny ID 'too dear'``, in quotes or not."""
    if any(word.startswith("-") for word in rest):
        return None
    return to_type(["update", *agent_id, "--deny", " ".join(rest) or "TEXT"])


def _renamed(word: str, rest: list[str], error: NoSuchCommand) -> str | None:
    ctx = error.group
    meant = meant_by(word, synonyms.OF_HOOKS if ctx.parent else synonyms.COMMANDS, error.known)
    if meant is None:
        return None
    words = _arguments_for(meant, rest, ctx)
    line = None if words is None else to_type([*_inner(ctx), *meant.split(), *words])
    return line or f"did you mean {meant}?"


def _inner(ctx: click.Context) -> list[str]:
    """The names of the commands below the program: what it is called may hold blanks."""
    return ctx.command_path.removeprefix(ctx.find_root().command_path).split()


def _arguments_for(name: str, rest: list[str], ctx: click.Context) -> list[str] | None:
    """``rest`` as the command ``name`` takes it; None if it does not."""
    command = ctx.command
    for part in name.split():
        command = (command.get_command(ctx, part) if isinstance(command, click.Group) else None) or command
    if " ".join([*_inner(ctx), name]) not in synonyms.TAKE_NO_ID:
        return rest or (["ID"] if name in synonyms.NEED_ID else [])
    known = wrong_options.names_of(command, click.Context(command, ctx))
    words = [word for word in rest if word not in synonyms.OF_LS]
    takes = all(word.partition("=")[0] in known for word in words if word.startswith("-"))
    return words if takes and not arguments(command, words) else None


def _missing(what: str, ctx: click.Context, given: list[str]) -> UsageError | None:
    """The line with what is missing in its place; it keeps the options that were given."""
    is_end = "finalize" in ctx.command_path
    if what != "ID" and not is_end:
        return None
    found = arguments(ctx.find_root().command, given)
    has_outcome = any(given[place] in OUTCOMES for place in found)
    if what != "ID" and not has_outcome:
        return UsageError("no outcome was given: completed, failed or abandoned", f"type {joined([*given, COMPLETED])}")
    name = next(place for place in found if given[place] == ctx.info_name)
    missing = ["ID", COMPLETED] if is_end and not has_outcome else ["ID"]
    words = [*given[: name + 1], *missing, *given[name + 1 :]]
    line = to_type(words, after=f"; {IDS}")
    if line and len(line) <= ONE_LINE:
        return UsageError("no ID was given", line)
    return UsageError(f"no ID was given; {IDS}", to_type(words) or f"type the ID right after {given[name]}")
