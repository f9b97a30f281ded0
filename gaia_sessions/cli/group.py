"""The commands by name. ``--help`` uses this table and imports no command; a command is imported when it is called."""

from __future__ import annotations

from importlib import import_module
from itertools import takewhile

import click

from . import output
from .exit_codes import EXIT_DONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

GROUPS = {
    "People": {
        "list": "List sessions, the most recently active first.",
        "show": "Show one session: state, question, errors, runs.",
        "report": "Print the result of a session.",
        "pending": "Show who waits for a person, and for what.",
        "tree": "Show sessions below their parents.",
        "usage": "Show the tokens of all agents, or of one session.",
        "wait": "Wait until the work of sessions has ended.",
        "approve": "Approve what a session asks for.",
        "deny": "Deny what a session asks for.",
        "resume": "Print the commands that resume work; nothing is started.",
        "cancel": "Cancel a session with everything below it.",
        "run": "Run a command as a sub-agent, within limits, and report on it.",
        "hooks": "Install, remove or check the hooks in a client's settings.",
        "doctor": "Check settings, hooks and sessions; say how to fix problems.",
        "cleanup": "Remove sessions that have not been used for a while.",
    },
    "Scripts and agents": {
        "create": "Create a session and print its ID.",
        "update": "Update a session: phase, metadata, errors.",
        "get": "Print the record of a session as JSON, as it is stored.",
        "should-resume": "Check whether a session can be resumed: exit code 0 or 1.",
        "finalize": "End a session as completed, failed or abandoned.",
        "send": "Send a message to an agent, and print its answer.",
        "stats": "Show how sessions ended, and how long their phases took.",
        "turn": "Add a turn to the transcript: what was sent and answered.",
        "context": "Show what a resumed agent is told of earlier turns.",
        "state": "Store what agents hand each other: set, get, unset, incr.",
        "todo": "Manage the todos of a session: add, done, cancel, list.",
        "skill": "Record which skills an agent loaded.",
        "ensure": "Print the ID of the open session of a conversation.",
        "reset": "Start a new transcript for a session.",
        "tool": "Check whether the agent of a session may use a tool.",
        "guard": "Check whether a task is for a sub-agent.",
        "cancelled": "Check whether a session is cancelled: exit code 10 or 0.",
    },
    "Other commands": {
        "events": "Show what happened to a session, and how that is known.",
        "transcript": "Show the messages of a session in order, or add a message.",
        "rm": "Remove sessions that you name.",
        "reconcile": "End runs whose agent is gone without reporting an end.",
        "repair": "Remove text that follows the record in its file.",
        "import": "Import whole sessions from other folders.",
        "schema": "Print the JSON Schema of state.json.",
        "store": "Put sessions on a server: init, migrate, info, copy.",
    },
}
"""The commands by reader. The first screen describes the commands of the first group, and only names the others."""

COMMANDS = {name: said for group in GROUPS.values() for name, said in group.items()}

HIDDEN = {"hook": "hook", "help": "help", "version": "version", "ls": "list", "ps": "list"}
"""Commands that ``--help`` does not list: the command for hosts, and names that people try first."""

NO_COMMAND_GIVEN = "no command given"

SHARED = ("root", "lock_timeout", "as_json")
"""The options of every command; each ``--help`` shows these options in one line."""


class _HelpFormatter(click.HelpFormatter):
    """A formatter that breaks no line at a hyphen: names of commands, options and hosts have hyphens."""

    _GLUE = "\0"

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl([(term, text.replace("-", self._GLUE)) for term, text in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        return super().getvalue().replace(self._GLUE, "-")


class _Context(click.Context):
    formatter_class = _HelpFormatter


class Command(click.Command):
    """A command; its help lists its own options, and the common options in one line."""

    context_class = _Context

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = [one for one in self.params if isinstance(one, click.Option) and one.name not in SHARED]
        records = [record for option in own if (record := option.get_help_record(ctx))]
        if records:
            with formatter.section("Options"):
                formatter.write_dl(records)
        formatter.write("\nCommon options: --root DIR, --lock-timeout SECONDS, --json, -h\n")


class CommandBehindDashes(Command):
    """A command that takes another command after ``--``: its function gets the words of that command as ``command``."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "-- COMMAND [ARGS]..."]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = [*takewhile(lambda word: word != "--", args)]
        words = args[len(own) + 1 :]
        missing = None if words or ctx.resilient_parsing else click.UsageError(NO_COMMAND_GIVEN, ctx)
        if missing and own[:1] and not own[0].startswith("-"):  # these can be the other command's
            raise missing
        left = super().parse_args(ctx, own)  # this prints the help for --help
        if missing:
            raise missing
        ctx.params["command"] = tuple(words)
        return left


class Group(click.Group):
    """A group that keeps the words of a failed line for ``mistakes``, and lists commands that are not loaded."""

    context_class = _Context

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            ctx.args = args  # click has emptied ``ctx.args``; ``mistakes`` needs these words
            raise click.NoSuchCommand(args[0], ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        Command.format_options(self, ctx, formatter)  # type: ignore[arg-type]  # a group has all that it uses
        self.format_commands(ctx, formatter)


class Commands(Group):
    """The commands of the table; a command is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        name = cmd_name if cmd_name in COMMANDS else HIDDEN.get(cmd_name)
        if name is None:
            return None
        module = import_module(f"gaia_sessions.cli.commands.{name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Makes ``--help`` run after all other options: ``--all`` can follow ``--help``."""
        option = super().get_help_option(ctx)
        if option:
            option.is_eager = False
        return option

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.params.get("every"):
            super().format_help(ctx, formatter)
        else:
            formatter.write("".join(f"{line}\n" for line in self._first_screen(ctx)))

    def _first_screen(self, ctx: click.Context) -> Iterator[str]:
        from textwrap import wrap

        people, *others = GROUPS
        widest = max(map(len, GROUPS[people]))
        yield from (self.get_usage(ctx), self.help or "", "")
        yield from (f"  {name:{widest}}  {said}" for name, said in GROUPS[people].items())
        yield ""
        for group in others:
            names = f"{group}: {', '.join(GROUPS[group])}"
            yield from wrap(names, 80, subsequent_indent="  ", break_on_hyphens=False)
        yield "All commands, and exit codes: --help --all. One command: COMMAND --help."

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's signature
        widest = max(map(len, COMMANDS))
        formatter.write("\n")
        for heading, group in GROUPS.items():
            formatter.write(f"{heading}:\n")
            formatter.write("".join(f"  {name:{widest}}  {said}\n" for name, said in group.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's signature
        lines = (click.formatting.wrap_text(line, 80) for line in (self.epilog or "").splitlines())
        formatter.write("\n" + "\n".join(lines) + "\n")


@click.pass_context
def show_help_without_command(ctx: click.Context, /, **_shared: object) -> int:
    """Prints the help of a group, unless one of its commands follows."""
    if ctx.invoked_subcommand is None:
        output.print_line(ctx.get_help())
    return EXIT_DONE


def asks_for_json(command: click.Command, words: list[str]) -> bool:
    """Returns whether ``words`` contain ``--json`` as an option, not as a value or an argument."""
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
    """Returns how many words each option of ``command`` takes as its value, without flags."""
    options = (option for option in command.params if isinstance(option, click.Option) and not option.is_flag)
    return {name: option.nargs for option in options for name in option.opts}
