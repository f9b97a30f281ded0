"""The commands by name, and how click reads a line of them so that an error can be explained.

Owns the table of names and summaries, from which ``--help`` is made without importing a command, and which words of a
line are options, values of options, or arguments. ``usage`` explains errors, and is loaded only then.
"""

from __future__ import annotations

from importlib import import_module

import click

from gaia_sessions.errors.exit_codes import EXIT_DONE

from . import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMANDS = {
    "create": "Create a session and print its ID.",
    "get": "Print the record of a session as JSON.",
    "update": "Update a session: phase, metadata, errors.",
    "should-resume": "Check whether a session can be resumed: exit code 0 or 1.",
    "list": "List sessions, the most recently active first.",
    "tree": "Show sessions below their parents.",
    "revive": "Print the commands that continue what was stopped.",
    "finalize": "End a session as completed, failed or abandoned.",
    "cancel": "Cancel a session with everything below it.",
    "cancelled": "Check whether a session is cancelled: exit code 10 or 0.",
    "report": "Report how the work of a session stands or ended.",
    "wait": "Wait until the work of sessions has ended.",
    "cleanup": "Remove sessions that have not been used for a while.",
    "reconcile": "Close runs that are proven to have ended without a report.",
    "doctor": "Check settings, hooks and sessions; say how to fix problems.",
    "show": "Show one session: timeline, errors, runs, children.",
    "usage": "Show how much of its budget a session has used, or charge it.",
    "skill": "Record which skills an agent loaded.",
    "todo": "Keep the todos of a session: add, done, list.",
    "events": "Show what hosts reported about a session, with evidence.",
    "transcript": "Show the messages of a session in their order, or add one.",
    "import": "Import the sessions of another folder.",
    "hooks": "Install, remove or check the hooks in a host's settings.",
    "hook": "Handle one event of a host: JSON on standard input.",
    "schema": "Print the JSON Schema of state.json.",
}

HIDDEN = ("help", "version")
"""Commands that people try before they have read anything."""


class ExtraArguments(click.UsageError):
    """The command of this context was given more arguments than it takes: ``words``."""

    def __init__(self, words: list[str], ctx: click.Context) -> None:
        super().__init__(f"unexpected arguments: {' '.join(words)}", ctx)
        self.words = words
        self.command = ctx


class NoSuchCommand(click.UsageError):
    """The group of this context has no command ``name``; ``valid_words`` are the names that it has."""

    def __init__(self, name: str, ctx: click.Context, valid_words: list[str]) -> None:
        super().__init__(f"no such command: {name}", ctx)
        self.name = name
        self.group = ctx
        self.valid_words = valid_words


class Command(click.Command):
    """A command whose errors name the command and the extra words.

    ``rewrite`` changes the words before they are read, for a command that accepts them in another order too.
    """

    allow_extra_args = True
    rewrite: Callable[[click.Command, list[str]], list[str]] | None = None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = self.rewrite(self, args) if self.rewrite else args
        extra = _with_context(ctx, super().parse_args, words)
        if extra and not ctx.resilient_parsing:
            raise ExtraArguments(extra, ctx)
        return extra


class Group(click.Group):
    """A group whose errors name the group and the command that it does not have."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return _with_context(ctx, super().parse_args, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise NoSuchCommand(args[0], ctx, self.list_commands(ctx))
        return super().resolve_command(ctx, args)


class Commands(Group):
    """The commands of the table, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # as click calls it
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # see above
        if cmd_name not in COMMANDS and cmd_name not in HIDDEN:
            return None
        module = import_module(f"gaia_sessions.cli.commands.{cmd_name.replace('-', '_')}")
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


def _with_context(
    ctx: click.Context, parse: Callable[[click.Context, list[str]], list[str]], words: list[str]
) -> list[str]:
    """Adds the context to errors for which click leaves it out; without it, the command is not known."""
    try:
        return parse(ctx, words)
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise


def argument_positions(command: click.Command, words: list[str]) -> list[int]:
    """The positions in ``words`` of those that are neither an option nor the value of one."""
    return [position for position, is_option in _positions(command, words) if not is_option]


def asks_for_json(command: click.Command, words: list[str]) -> bool:
    """Whether ``words`` contain ``--json`` as an option, not as the value of another option or as an argument."""
    return any(is_option and words[position] == "--json" for position, is_option in _positions(command, words))


def _positions(command: click.Command, words: list[str]) -> Iterator[tuple[int, bool]]:
    """The position of each option and argument of ``command`` and its inner commands, and whether it is an option."""
    position, value_counts = 0, _value_counts(command)
    while position < len(words):
        word = words[position]
        if word == "--":
            yield from ((rest, False) for rest in range(position + 1, len(words)))
            return
        is_option = word.startswith("-") and len(word) > 1
        yield position, is_option
        if isinstance(command, click.Group) and not is_option:
            command = command.get_command(click.Context(command), word) or command
            value_counts = _value_counts(command)
        position += 1 + value_counts.get(word, 0)


def _value_counts(command: click.Command) -> dict[str, int]:
    """How many words each option of ``command`` takes as its value; flags are left out."""
    options = (option for option in command.params if isinstance(option, click.Option) and not option.is_flag)
    return {name: option.nargs for option in options for name in option.opts}
