"""``help [COMMAND]...``: print the text of ``--help``."""

from __future__ import annotations

import click

from gaia_sessions.cli import output


@click.command(hidden=True)
@click.argument("names", metavar="[COMMAND]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every command.")
@click.pass_context
def command(ctx: click.Context, /, names: tuple[str, ...], *, every: bool) -> int:
    """Show the commands, or how a command is used."""
    shown_command, shown_ctx = ctx.find_root().command, ctx.find_root()
    shown_ctx.params["every"] |= every
    for name in names:
        inner = shown_command.resolve_command(shown_ctx, [name])[1] if isinstance(shown_command, click.Group) else None
        if inner is None:
            shown_ctx.fail(f"Got unexpected extra argument ({name})")
        shown_command, shown_ctx = inner, click.Context(inner, shown_ctx, name)
    output.print_line(shown_command.get_help(shown_ctx))
    return 0
