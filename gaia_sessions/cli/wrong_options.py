"""Options that a command does not have: which one was meant, or what stands by itself in its place.

Owns how a line with such an option is corrected. Loaded only when there is one; runs nothing.
"""

from __future__ import annotations

import click

from gaia_sessions.errors import UsageError
from gaia_sessions.session.phases import COMPLETED, OUTCOMES

from . import synonyms
from .alike import meant_by, nearest
from .lines import PROGRAM, in_place_of, replaced, to_type, value_of, with_option
from .parsing import arguments


def explained(typed: str, ctx: click.Context, given: list[str]) -> UsageError:
    """What to type instead of ``typed``, which the command of this context does not have."""
    inner = _behind_its_command(ctx, typed, given)
    if inner:
        name, line = inner
        return UsageError(f"{typed} goes after {name}", to_type(line) or f"see {ctx.command_path} {name} --help")
    return _by_itself(typed, ctx, given) or _another(typed, ctx, given)


def names_of(command: click.Command, ctx: click.Context) -> list[str]:
    """Every name of every option of ``command``."""
    return [name for option in command.get_params(ctx) for name in (*option.opts, *option.secondary_opts)]


def _by_itself(typed: str, ctx: click.Context, given: list[str]) -> UsageError | None:
    """An option for what is an argument, or belongs to another command."""
    told = f"no such option: {typed}"
    if typed in synonyms.OF_THE_ID and _takes(ctx, "agent_id"):
        without = to_type(replaced(given, typed, []))
        return UsageError(told, without or "leave it out: the ID stands by itself")
    if line := _of_the_outcome(typed, given) if _takes(ctx, "outcome") else None:
        return UsageError(told, to_type(line) or "leave it out: the outcome stands by itself")
    if typed == "--summary" and ctx.info_name == "update":
        return UsageError(f"{told}; a summary is given when the session ends", _with_summary(ctx, given))
    return None


def _another(typed: str, ctx: click.Context, given: list[str]) -> UsageError:
    known = names_of(ctx.command, ctx)
    meant = next((one for one in synonyms.OPTIONS.get(typed.casefold(), ()) if one in known), None)
    meant = meant or nearest(typed, [name for name in known if name.startswith("--")])
    hint = _with_unit(typed, known, given) or in_place_of(typed, meant, given)
    return UsageError(f"no such option: {typed}", hint or f"{ctx.command_path} --help lists the options")


def _takes(ctx: click.Context, argument: str) -> bool:
    return any(one.name == argument for one in ctx.command.params)


def _of_the_outcome(typed: str, given: list[str]) -> list[str] | None:
    """The line with the outcome by itself, for ``--completed`` and for ``--outcome completed``."""
    ended = synonyms.ENDS.get(typed.lstrip("-"))
    if ended:
        return replaced(given, typed, [ended])
    value = value_of(given, typed) if typed in synonyms.OF_THE_OUTCOME else None
    meant = meant_by(value, synonyms.OUTCOMES, OUTCOMES) if value else None
    return with_option(given, typed, value, [meant]) if value and meant else None


def _with_summary(ctx: click.Context, given: list[str]) -> str:
    """``finalize`` with all that was given for ``update``; its form if it does not take all of that."""
    form = f"type {PROGRAM} finalize ID {COMPLETED} --summary TEXT"
    text, phase = value_of(given, "--summary"), value_of(given, "--phase") or COMPLETED
    if text is None or phase not in OUTCOMES:
        return form
    rest = with_option(with_option(given, "--summary", text, []), "--phase", phase, [])
    found = arguments(ctx.find_root().command, rest)
    if found != [len(rest) - 2, len(rest) - 1]:  # the command and the ID, and no other options
        return form
    return to_type([*rest[: found[0]], "finalize", rest[-1], phase, "--summary", text]) or form


def _with_unit(typed: str, known: list[str], given: list[str]) -> str | None:
    """The line with the unit in the value, for ``--days 1``."""
    unit, value = synonyms.UNITS.get(typed), value_of(given, typed)
    meant = next((one for one in ("--hours", "--since") if one in known), None)
    if not unit or not meant or not value or not value.isdecimal():
        return None
    return to_type(with_option(given, typed, value, [meant, value + unit]))


def _behind_its_command(ctx: click.Context, typed: str, given: list[str]) -> tuple[str, list[str]] | None:
    """The inner command that has the option which was typed before its name, and the line in the right order."""
    start = next((place for place, word in enumerate(given) if word.partition("=")[0] == typed), len(given))
    group, names = ctx.command, list[int]()
    for place in range(start + 1, len(given)):
        inner = group.get_command(ctx, given[place]) if isinstance(group, click.Group) else None
        if inner is None:
            continue
        group, names = inner, [*names, place]
        if typed in names_of(inner, click.Context(inner, ctx)):
            rest = [given[at] for at in range(start, len(given)) if at not in names]
            return given[place], [*given[:start], *(given[at] for at in names), *rest]
    return None
