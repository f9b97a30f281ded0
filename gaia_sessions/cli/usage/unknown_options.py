"""Options that a command does not have: which option was meant, or which argument.

Owns how a line with such an option is corrected.
"""

from __future__ import annotations

import click

from gaia_sessions.cli.group import argument_positions
from gaia_sessions.errors import UsageError
from gaia_sessions.session.phases import COMPLETED, OUTCOMES

from . import synonyms
from .lines import PROGRAM, command_hint, correction_hint, option_value, replace_option, replace_word
from .synonyms import closest_word, intended_word


def to_usage_error(option: str, ctx: click.Context, argv: list[str]) -> UsageError:
    """The usage error for ``option``, which the command of this context does not have."""
    inner = _move_after_command(ctx, option, argv)
    if inner:
        name, line = inner
        return UsageError(f"{option} goes after {name}", command_hint(line) or f"see {ctx.command_path} {name} --help")
    return _argument_instead_error(option, ctx, argv) or _similar_option_error(option, ctx, argv)


def option_names(command: click.Command, ctx: click.Context) -> list[str]:
    """Every name of every option of ``command``."""
    return [name for option in command.get_params(ctx) for name in (*option.opts, *option.secondary_opts)]


def _argument_instead_error(option: str, ctx: click.Context, argv: list[str]) -> UsageError | None:
    """The error for an option that is an argument, or that belongs to another command."""
    message = f"no such option: {option}"
    if option in synonyms.ID_OPTIONS and _has_argument(ctx, "agent_id"):
        without = command_hint(replace_word(argv, option, []))
        return UsageError(message, without or "omit the option: the ID is a positional argument")
    if line := _with_outcome(option, argv) if _has_argument(ctx, "outcome") else None:
        return UsageError(message, command_hint(line) or "omit the option: the outcome is a positional argument")
    if option == "--summary" and ctx.info_name == "update":
        return UsageError(f"{message}; only finalize takes a summary", _finalize_hint(ctx, argv))
    return None


def _similar_option_error(option: str, ctx: click.Context, argv: list[str]) -> UsageError:
    valid_options = option_names(ctx.command, ctx)
    intended = next((one for one in synonyms.OPTIONS.get(option.casefold(), ()) if one in valid_options), None)
    intended = intended or closest_word(option, [name for name in valid_options if name.startswith("--")])
    hint = _duration_hint(option, valid_options, argv) or correction_hint(option, intended, argv)
    return UsageError(f"no such option: {option}", hint or f"{ctx.command_path} --help lists the options")


def _has_argument(ctx: click.Context, argument: str) -> bool:
    return any(one.name == argument for one in ctx.command.params)


def _with_outcome(option: str, argv: list[str]) -> list[str] | None:
    """The line with the outcome as an argument, for ``--completed`` and for ``--outcome completed``."""
    outcome = synonyms.END_COMMANDS.get(option.lstrip("-"))
    if outcome:
        return replace_word(argv, option, [outcome])
    value = option_value(argv, option) if option in synonyms.OUTCOME_OPTIONS else None
    intended = intended_word(value, synonyms.OUTCOMES, OUTCOMES) if value else None
    return replace_option(argv, option, value, [intended]) if value and intended else None


def _finalize_hint(ctx: click.Context, argv: list[str]) -> str:
    """The line of ``finalize`` with everything that was given for ``update``; only its form if that is impossible."""
    form = f"type {PROGRAM} finalize ID {COMPLETED} --summary TEXT"
    text, phase = option_value(argv, "--summary"), option_value(argv, "--phase") or COMPLETED
    if text is None or phase not in OUTCOMES:
        return form
    rest = replace_option(replace_option(argv, "--summary", text, []), "--phase", phase, [])
    positions = argument_positions(ctx.find_root().command, rest)
    if positions != [len(rest) - 2, len(rest) - 1]:  # the command and the ID, and no other options
        return form
    return command_hint([*rest[: positions[0]], "finalize", rest[-1], phase, "--summary", text]) or form


def _duration_hint(option: str, valid_options: list[str], argv: list[str]) -> str | None:
    """The line with the unit in the value, for ``--days 1``."""
    unit, value = synonyms.DURATION_OPTIONS.get(option), option_value(argv, option)
    intended = next((one for one in ("--hours", "--since") if one in valid_options), None)
    if not unit or not intended or not value or not value.isdecimal():
        return None
    return command_hint(replace_option(argv, option, value, [intended, value + unit]))


def _move_after_command(ctx: click.Context, option: str, argv: list[str]) -> tuple[str, list[str]] | None:
    """The inner command that has the option, which was typed before its name, and the line in the right order."""
    start = next((place for place, word in enumerate(argv) if word.partition("=")[0] == option), len(argv))
    group, names = ctx.command, list[int]()
    for place in range(start + 1, len(argv)):
        inner = group.get_command(ctx, argv[place]) if isinstance(group, click.Group) else None
        if inner is None:
            continue
        group, names = inner, [*names, place]
        if option in option_names(inner, click.Context(inner, ctx)):
            rest = [argv[at] for at in range(start, len(argv)) if at not in names]
            return argv[place], [*argv[:start], *(argv[at] for at in names), *rest]
    return None
