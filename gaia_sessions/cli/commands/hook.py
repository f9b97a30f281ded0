"""``hook`` if a person types it. The calls of hosts do not come here: see ``cli.start``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.errors import UsageError

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("hook < event.json")
@click.argument("words", nargs=-1, metavar="")
def command(call: Call, words: tuple[str, ...]) -> None:
    """Handle one event of a host: JSON on standard input.

    Prints at most one JSON object; the exit code is always 0. Hosts call it: see gaia-sessions hooks --help.
    """
    if not words:
        message = "clients call this command, with JSON on standard input"
        hint = "to install: gaia-sessions hooks install; to try: gaia-sessions hook --test"
        output.print_notice("typed", message, hint, as_json=call.as_json)
        return
    from .hooks import command as hooks

    meant = f"did you mean gaia-sessions hooks {shlex.join(words)}?"
    hint = meant if words[0] in hooks.commands else "gaia-sessions hooks --help lists the commands"
    raise UsageError(f"hook takes no argument {words[0]!r}", hint)


command.context_settings = {**command.context_settings, "ignore_unknown_options": True}  # options of ``hooks``
