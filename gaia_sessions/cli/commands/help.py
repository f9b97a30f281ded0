"""``help [COMMAND]...``: what ``--help`` says."""

from __future__ import annotations

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.group import COMMANDS
from gaia_sessions.cli.parsing import NoSuchCommand


@click.command(hidden=True)
@click.argument("names", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def command(ctx: click.Context, /, names: tuple[str, ...]) -> int:
    """Show what there is, or how a command is used."""
    asked, outer = ctx.find_root().command, ctx.find_root()
    for name in names:
        inner = asked.get_command(outer, name) if isinstance(asked, click.Group) else None
        if inner is None:
            raise NoSuchCommand(name, outer, list(COMMANDS))
        asked, outer = inner, click.Context(inner, outer, name)
    output.say(asked.get_help(outer))
    return 0
