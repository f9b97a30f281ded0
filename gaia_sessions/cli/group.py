"""The commands by name.

Owns the table of names and summaries, from which ``--help`` is made without importing a command.
"""

from __future__ import annotations

from importlib import import_module

from .parsing import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    import click

COMMANDS = {
    "create": "Create a session and print its ID.",
    "get": "Print the record of a session as JSON.",
    "update": "Update a session: phase, metadata, errors.",
    "should-resume": "Check whether a session can be resumed: exit code 0 or 1.",
    "list": "List sessions, the most recently active first.",
    "finalize": "End a session as completed, failed or abandoned.",
    "cleanup": "Remove sessions that have not been used for a while.",
    "reconcile": "Close runs that ended without a report, where that is proved.",
    "doctor": "Check settings, hooks and sessions; say how to fix problems.",
    "show": "Show one session: timeline, errors, runs.",
    "events": "Show what hosts reported about a session, with evidence.",
    "import": "Take in the sessions of another folder.",
    "hooks": "Install, remove or check the hooks in a host's settings.",
    "hook": "Handle one event of a host: JSON on standard input.",
    "schema": "Print the JSON Schema of state.json.",
}


HIDDEN = ("help", "version")
"""What people try before they have read anything."""


class Commands(Group):
    """Commands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS and cmd_name not in HIDDEN:
            return None
        module = import_module(f"gaia_sessions.cli.commands.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
