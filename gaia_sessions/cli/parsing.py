"""How a command line is read: click's commands and groups, which also keep what a useful error message needs.

Owns which words of a line are options, their values, or arguments. The errors themselves are explained by
``mistakes``, which is loaded only when there is one.
"""

from __future__ import annotations

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ExtraArguments(click.UsageError):
    """There are more arguments than the command of this context takes: ``words``."""

    def __init__(self, words: list[str], ctx: click.Context) -> None:
        super().__init__(f"unexpected arguments: {' '.join(words)}", ctx)
        self.words = words
        self.command = ctx


class NoSuchCommand(click.UsageError):
    """The group of this context has no command called ``name``, but those ``known``."""

    def __init__(self, name: str, ctx: click.Context, known: list[str]) -> None:
        super().__init__(f"no such command: {name}", ctx)
        self.name = name
        self.group = ctx
        self.known = known


class Command(click.Command):
    """A command whose errors say which command it is and which words are too many.

    rewrite: changes the words before they are read, for a command that takes them in another order too.
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
    """A group whose errors say which group it is, and which command it has not."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return _with_context(ctx, super().parse_args, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise NoSuchCommand(args[0], ctx, self.list_commands(ctx))
        return super().resolve_command(ctx, args)


def _with_context(
    ctx: click.Context, parse: Callable[[click.Context, list[str]], list[str]], words: list[str]
) -> list[str]:
    """Click leaves the context out of some errors: without it nobody knows which command was meant."""
    try:
        return parse(ctx, words)
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise


def argument_positions(command: click.Command, words: list[str]) -> list[int]:
    """The places in ``words`` of what is neither an option nor the value of one."""
    return [place for place, is_option in _positions(command, words) if not is_option]


def asks_for_json(command: click.Command, words: list[str]) -> bool:
    """Whether ``--json`` stands in ``words`` as an option, not as the value of another one or as an argument."""
    return any(is_option and words[place] == "--json" for place, is_option in _positions(command, words))


def _positions(command: click.Command, words: list[str]) -> Iterator[tuple[int, bool]]:
    """The place of each option and argument of ``command`` and its inner commands, and whether it is an option."""
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
    """How many words each option of ``command`` takes after it; flags are left out."""
    options = (option for option in command.params if isinstance(option, click.Option) and not option.is_flag)
    return {name: option.nargs for option in options for name in option.opts}
