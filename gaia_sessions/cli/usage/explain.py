"""Turns an error of click, or of a value, into a usage error with the line that was probably meant.

Owns which explanation each kind of error gets, and those of unknown commands, unknown words and missing arguments;
unknown options and extra arguments have modules of their own.
"""

from __future__ import annotations

import click

from gaia_sessions.cli.group import ExtraArguments, NoSuchCommand, argument_positions
from gaia_sessions.cli.option_values import OtherMetadata
from gaia_sessions.errors import UnknownHost, UnknownOutcome, UnknownPhase, UsageError
from gaia_sessions.session.phases import COMPLETED, EXECUTING, OUTCOMES, PHASES

from . import extra_arguments, synonyms, unknown_options
from .lines import LIST_HINT, MAX_ONE_LINE, PROGRAM, command_hint, command_line, correction_hint, replace_option
from .synonyms import intended_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gaia_sessions.errors import SessionsError

_PLAIN_WORDS = {
    "a valid integer range": "a whole number",
    "a valid integer": "a whole number",
    "a valid float": "a number",
}
"""Phrases of click that name types of Python, and plain ones for them."""


def to_usage_error(error: click.UsageError, argv: list[str]) -> UsageError:
    """The usage error for ``error`` of click about the words ``argv``, with the line that was probably meant."""
    if isinstance(error, NoSuchCommand):
        return _unknown_command(error, argv)
    if isinstance(error, ExtraArguments):
        return extra_arguments.to_usage_error(error, argv)
    if isinstance(error, click.NoSuchOption) and error.ctx:
        return unknown_options.to_usage_error(error.option_name, error.ctx, argv)
    if isinstance(error, click.MissingParameter) and error.param and error.ctx:
        return _missing_parameter(error.param, error.ctx, argv)
    return _plain_usage_error(error)


def add_command_hint(error: SessionsError, argv: list[str], group: click.Command) -> None:
    """Replaces the hint of ``error`` by the line that was probably meant, if there is one."""
    hint: str | None = None
    if isinstance(error, UnknownOutcome):
        hint = _valid_word_hint(str(error.outcome), synonyms.OUTCOMES, OUTCOMES, argv)
    elif isinstance(error, UnknownPhase) and _asks_for_active(str(error.phase), argv, group):
        hint = command_hint(replace_option(argv, "--phase", str(error.phase), ["--active-only"]))
    elif isinstance(error, UnknownPhase):
        hint = _valid_word_hint(str(error.phase), synonyms.PHASES, PHASES, argv)
    elif isinstance(error, UnknownHost):
        hint = _valid_word_hint(str(error.host), {}, error.known, argv)
    elif isinstance(error, OtherMetadata):
        hint = command_hint(replace_option(argv, "--metadata", error.typed, error.instead), after=error.after)
    error.hint = hint or error.hint


def _asks_for_active(phase: str, argv: list[str], group: click.Command) -> bool:
    positions = argument_positions(group, argv)
    return bool(positions) and argv[positions[0]] == "list" and phase.casefold() in synonyms.ACTIVE_WORDS


def _valid_word_hint(
    word: str, synonym_table: Mapping[str, str], valid_words: Collection[str], argv: list[str]
) -> str | None:
    """The line with the valid word that was probably meant by ``word``."""
    return correction_hint(word, intended_word(word, synonym_table, valid_words), argv)


def _plain_usage_error(error: click.UsageError) -> UsageError:
    message = error.format_message()
    for click_words, plain in _PLAIN_WORDS.items():
        message = message.replace(click_words, plain)
    return UsageError(message, f"see {error.ctx.command_path if error.ctx else PROGRAM} --help")


def _unknown_command(error: NoSuchCommand, argv: list[str]) -> UsageError:
    rest = argv[argv.index(error.name) + 1 :]
    word = error.name.casefold().replace("_", "-")
    hint = _session_command_hint(word, rest) if error.group.parent is None else None
    hint = hint or _similar_command_hint(word, rest, error) or f"{error.group.command_path} --help lists the commands"
    return UsageError(f"no such command: {error.name}", hint)


def _session_command_hint(word: str, rest: list[str]) -> str | None:
    """The hint for a word that means a command on one session, whose arguments are different."""
    agent_id = rest[:1] or ["ID"]
    if word in synonyms.DELETE_COMMANDS:
        return f"{PROGRAM} cleanup removes old sessions; finalize ends one"
    if word in synonyms.END_COMMANDS:
        return (
            command_hint(["finalize", *agent_id, synonyms.END_COMMANDS[word], *rest[1:]])
            or f"see {PROGRAM} finalize --help"
        )
    if word in synonyms.APPROVE_COMMANDS:
        return _approve_hint(agent_id, rest[1:]) or f"type {PROGRAM} update ID --phase {EXECUTING}"
    if word in synonyms.DENY_COMMANDS:
        return _deny_hint(agent_id, rest[1:]) or f"type {PROGRAM} update ID --deny TEXT"
    if word in synonyms.COMMANDS_WITH_ID and rest and not rest[0].startswith("-"):
        return (
            command_hint([synonyms.COMMANDS_WITH_ID[word], *rest]) or f"did you mean {synonyms.COMMANDS_WITH_ID[word]}?"
        )
    return None


def _approve_hint(agent_id: list[str], rest: list[str]) -> str | None:
    if any(not word.startswith("-") for word in rest):
        return None
    return command_hint(["update", *agent_id, "--phase", EXECUTING, *rest])


def _deny_hint(agent_id: list[str], rest: list[str]) -> str | None:
    """The line for ``deny ID 'too expensive'``, with or without quotes."""
    if any(word.startswith("-") for word in rest):
        return None
    return command_hint(["update", *agent_id, "--deny", " ".join(rest) or "TEXT"])


def _similar_command_hint(word: str, rest: list[str], error: NoSuchCommand) -> str | None:
    ctx = error.group
    synonym_table = synonyms.INNER_COMMANDS[" ".join(_inner_names(ctx))] if ctx.parent else synonyms.COMMANDS
    intended = intended_word(word, synonym_table, error.valid_words)
    if intended is None:
        return None
    if word == "charge" and len(rest) > 1 and rest[1].isdecimal():
        rest = [rest[0], "--charge", *rest[1:]]
    words = _arguments_for(intended, rest, ctx)
    line = None if words is None else command_hint([*_inner_names(ctx), *intended.split(), *words])
    return line or f"did you mean {intended}?"


def _inner_names(ctx: click.Context) -> list[str]:
    """The names of the commands after that of the program, which may contain blanks."""
    return ctx.command_path.removeprefix(ctx.find_root().command_path).split()


def _arguments_for(name: str, rest: list[str], ctx: click.Context) -> list[str] | None:
    """The arguments ``rest`` as the command ``name`` takes them; None if it does not take them."""
    command = ctx.command
    for part in name.split():
        command = (command.get_command(ctx, part) if isinstance(command, click.Group) else None) or command
    path = " ".join([*_inner_names(ctx), name])
    if path not in synonyms.TAKE_NO_ID:
        return rest or (["ID"] if path in synonyms.NEED_ID else [])
    valid_options = unknown_options.option_names(command, click.Context(command, ctx))
    words = [word for word in rest if word not in synonyms.LS_OPTIONS]
    is_accepted = all(word.partition("=")[0] in valid_options for word in words if word.startswith("-"))
    return words if is_accepted and not argument_positions(command, words) else None


def _missing_parameter(param: click.Parameter, ctx: click.Context, argv: list[str]) -> UsageError:
    """The error for an argument, or an option that is required, with the line or at least its form."""
    if isinstance(param, click.Option):
        name = param.opts[0]
        return UsageError(f"missing {name}", command_hint([*argv, name, str(param.metavar)]) or _form_hint(ctx))
    error = _missing_argument(param.human_readable_name, ctx, argv)
    return error or UsageError(f"missing {param.human_readable_name}", _form_hint(ctx))


def _form_hint(ctx: click.Context) -> str:
    """The form of a line of the command of this context: everything that it requires."""
    options = [one for one in ctx.command.params if one.required and isinstance(one, click.Option)]
    words = [*_required_arguments(ctx), *(f"{one.opts[0]} {one.metavar}" for one in options)]
    return f"type {' '.join([ctx.command_path, *words])}"


def _required_arguments(ctx: click.Context) -> list[str]:
    return [one.human_readable_name for one in ctx.command.params if one.required and isinstance(one, click.Argument)]


def _missing_argument(argument: str, ctx: click.Context, argv: list[str]) -> UsageError | None:
    """The line with the missing argument in its place and all options that were given."""
    is_end = "finalize" in ctx.command_path
    if argument != "ID" and not is_end:
        return None
    if argument == "ID" and len(_required_arguments(ctx)) > 1 and not is_end:
        return UsageError(f"missing ID; {LIST_HINT}", _form_hint(ctx))
    positions = argument_positions(ctx.find_root().command, argv)
    has_outcome = any(argv[place] in OUTCOMES for place in positions)
    if argument != "ID" and not has_outcome:
        return UsageError("missing outcome: completed, failed or abandoned", f"type {command_line([*argv, COMPLETED])}")
    position = next(place for place in positions if argv[place] == ctx.info_name)
    missing = ["ID", COMPLETED] if is_end and not has_outcome else ["ID"]
    words = [*argv[: position + 1], *missing, *argv[position + 1 :]]
    line = command_hint(words, after=f"; {LIST_HINT}")
    if line and len(line) <= MAX_ONE_LINE:
        return UsageError("missing ID", line)
    return UsageError(f"missing ID; {LIST_HINT}", command_hint(words) or f"type the ID right after {argv[position]}")
