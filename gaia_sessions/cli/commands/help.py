"""``help [COMMAND]``: what ``--help`` says."""

from __future__ import annotations

import click

from gaia_sessions.cli import output


@click.command(hidden=True)
@click.argument("name", metavar="[COMMAND]", required=False)
@click.pass_context
def command(ctx: click.Context, /, name: str | None) -> int:
    """Say what there is, or how a command is used."""
    outer = ctx.find_root()
    group = outer.command
    asked = group.get_command(outer, name) if name and isinstance(group, click.Group) else group
    if asked is None:
        raise click.UsageError(f"No such command '{name}'.", outer)
    output.say(asked.get_help(click.Context(asked, outer if name else None, name or outer.info_name)))
    return 0
