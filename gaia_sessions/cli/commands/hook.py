"""``hook``: what a person is told who types it.

``cli.start`` handles the calls of hosts without click, and without this.
"""

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
        message = "hook is for hosts, which call it with JSON on standard input"
        hint = "type gaia-sessions hooks install to set it up, hook --test to try it"
        output.print_notice("typed", message, hint, as_json=call.as_json)
        return
    from .hooks import command as hooks

    meant = f"did you mean gaia-sessions hooks {shlex.join(words)}?"
    hint = meant if words[0] in hooks.commands else "gaia-sessions hooks --help lists the commands"
    raise UsageError(f"hook takes no {words[0]!r}", hint)


command.context_settings = {**command.context_settings, "ignore_unknown_options": True}  # those meant for hooks
