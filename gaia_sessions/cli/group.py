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
    "create": "Begin a session; prints its id.",
    "get": "Print a session's record as JSON.",
    "update": "Say where the work stands, what is known, what went wrong.",
    "should-resume": "May the work be resumed? Exit code 0 yes, 1 no.",
    "list": "List sessions, the latest activity first.",
    "finalize": "End a session as completed, failed or abandoned.",
    "cleanup": "Remove what nobody touched for long.",
    "reconcile": "Close the runs that nobody ended, where that is proved.",
    "doctor": "Say what is not as it should be, and which command mends it.",
    "import": "Take in the sessions of another folder.",
    "show": "Show one session to a person: timeline, errors, runs.",
    "events": "Show what hosts told of a session, with evidence.",
    "hooks": "Install, remove or check the hooks in a host's settings.",
    "hook": "Take in one event of a host: JSON on stdin.",
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
