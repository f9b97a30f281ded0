"""The commands by name: ``--help`` is made from this table without importing a command, and each is imported when it is
called.
"""

from __future__ import annotations

from importlib import import_module

import click

from gaia_sessions.errors.exit_codes import EXIT_DONE

from . import output

COMMANDS = {
    "create": "Create a session and print its ID.",
    "get": "Print the record of a session as JSON, as it is stored.",
    "update": "Update a session: phase, metadata, errors.",
    "should-resume": "Check whether a session can be resumed: exit code 0 or 1.",
    "list": "List sessions, the most recently active first.",
    "tree": "Show sessions below their parents.",
    "revive": "Print the commands that continue what stopped.",
    "pending": "Show who waits for a person, and for what.",
    "approve": "Approve what a session in phase approval is waiting for.",
    "deny": "Deny what a session in phase approval is waiting for.",
    "finalize": "End a session as completed, failed or abandoned.",
    "cancel": "Cancel a session with everything below it.",
    "cancelled": "Check whether a session is cancelled: exit code 10 or 0.",
    "report": "Print the result of a session.",
    "wait": "Wait until the work of sessions has ended.",
    "cleanup": "Remove sessions that have not been used for a while.",
    "reconcile": "Close runs that are proven to have ended without a report.",
    "doctor": "Check settings, hooks and sessions; say how to fix problems.",
    "show": "Show one session: state, question, errors, runs.",
    "usage": "Show how much of its budget a session has used, or charge it.",
    "skill": "Record which skills an agent loaded.",
    "todo": "Keep the todos of a session: add, done, list.",
    "events": "Show what hosts reported about a session, with evidence.",
    "transcript": "Show the messages of a session in their order, or add one.",
    "import": "Import whole sessions from other folders.",
    "hooks": "Install, remove or check the hooks in a host's settings.",
    "hook": "Handle one event of a host: JSON on standard input.",
    "schema": "Print the JSON Schema of state.json.",
}

HIDDEN = {"help": "help", "version": "version", "ls": "list", "ps": "list"}
"""Names that people try before they have read anything, and the command that each one is."""


class Group(click.Group):
    """A group that says which words it could not take, and which commands it has, also if they are not loaded."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            ctx.args = args  # click has emptied it; an explanation needs what was typed
            raise click.NoSuchCommand(args[0], possibilities=self.list_commands(ctx), ctx=ctx)
        return super().resolve_command(ctx, args)


class Commands(Group):
    """The commands of the table, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # as click calls it
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # see above
        name = cmd_name if cmd_name in COMMANDS else HIDDEN.get(cmd_name)
        if name is None:
            return None
        module = import_module(f"gaia_sessions.cli.commands.{name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # see above
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.pass_context
def show_help_without_command(ctx: click.Context, /, **_shared: object) -> int:
    """What a group itself does: print its help, unless one of its commands follows."""
    if ctx.invoked_subcommand is None:
        output.print_line(ctx.get_help())
    return EXIT_DONE


def asks_for_json(command: click.Command, words: list[str]) -> bool:
    """Whether ``words`` contain ``--json`` as an option, not as the value of another option or as an argument."""
    position, value_counts = 0, _value_counts(command)
    while position < len(words) and words[position] != "--":
        word = words[position]
        if word == "--json":
            return True
        if isinstance(command, click.Group) and not word.startswith("-"):
            command = command.get_command(click.Context(command), word) or command
            value_counts = _value_counts(command)
        position += 1 + value_counts.get(word, 0)
    return False


def _value_counts(command: click.Command) -> dict[str, int]:
    """How many words each option of ``command`` takes as its value; flags are left out."""
    options = (option for option in command.params if isinstance(option, click.Option) and not option.is_flag)
    return {name: option.nargs for option in options for name in option.opts}
