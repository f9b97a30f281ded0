"""Says what is wrong with a command line, and what to type instead. Loaded only after a mistake."""

from __future__ import annotations

import io
import shlex
from contextlib import redirect_stdout
from difflib import get_close_matches
from itertools import takewhile

import click

from gaia_sessions.errors import SessionsError, UsageError

from .group import NO_COMMAND_GIVEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gaia_sessions.errors import UnknownWord

PROGRAM = "gaia-sessions"
_LONGEST_LINE = 144
"""The longest corrected line that a hint repeats: with the words before, it fills two lines of a terminal."""

_CUTOFF = 0.8
"""How similar a suggestion must be: ``aproval`` suggests ``approval``, ``running`` does not suggest ``planning``."""

_WITHOUT_ID = {
    **dict.fromkeys(["approve", "deny"], "gaia-sessions pending shows who waits, and what to type"),
    "rm": "the IDs: `gaia-sessions list`; to remove old ones: `gaia-sessions cleanup`",
}
"""Hints for commands that should not suggest ``latest``: perhaps the user thinks of another session."""

_MOST_AGENTS = 5

_START = "for a command `gaia-sessions run -- COMMAND`, else `gaia-sessions create`"
_STOP = "stop the agent in its client; to cancel its work: gaia-sessions cancel ID"
_PAUSE = "an agent pauses with this last line: [gaia-sessions: approval] QUESTION"
_UNCANCEL = "nobody can undo a cancellation; for new work: gaia-sessions create"
_REOPEN = "nobody can undo an end; to continue: gaia-sessions create --continues ID"
_PURGE = "one session: `gaia-sessions rm ID`; old sessions: `gaia-sessions cleanup`"
_EXPORT = "to export, copy the session's folder; to import: gaia-sessions import DIR"
_END = "to end a session: gaia-sessions finalize ID completed|failed|abandoned"
_EDIT = "gaia-sessions update ID takes --phase PHASE, -m KEY=VALUE, --error TEXT"
_CONFIG = "edit .claude/gaia-sessions.toml; to check it: gaia-sessions doctor"

COMMANDS = {
    "new": "create",
    **dict.fromkeys(["view", "info", "describe", "inspect", "status"], "show ID"),
    **dict.fromkeys(["cat", "read", "print", "dump"], "get ID"),
    **dict.fromkeys(["set", "touch", "heartbeat"], "update ID"),
    **dict.fromkeys(["reject", "refuse", "disapprove"], "deny ID --reason TEXT"),
    **dict.fromkeys(["questions", "inbox", "approvals"], "pending"),
    **dict.fromkeys(["accept", "allow", "permit"], "approve ID"),
    **dict.fromkeys(["complete", "finish", "done", "succeed"], "finalize ID completed"),
    "fail": "finalize ID failed",
    "abandon": "finalize ID abandoned",
    **dict.fromkeys(["can-resume", "resumable"], "should-resume ID"),
    **dict.fromkeys(["revive", "recover", "wake", "continue", "unpause", "restart", "retry", "reopen"], "resume"),
    **dict.fromkeys(["prune", "gc"], "cleanup"),
    **dict.fromkeys(["delete", "del", "remove", "destroy"], "rm ID"),
    **dict.fromkeys(["diagnose", "fsck"], "doctor"),
    **dict.fromkeys(["await", "join"], "wait ID"),
    "result": "report ID",
    "budget": "usage ID",
    **dict.fromkeys(["tokens", "cost", "costs"], "usage"),
    "charge": "usage ID --charge N",
    **dict.fromkeys(["log", "logs", "history"], "events ID"),
    **dict.fromkeys(["watch", "follow", "tail", "attach"], "events ID --follow"),
    **dict.fromkeys(["messages", "conversation", "chat"], "transcript ID"),
    "todos": "todo list ID",
    **dict.fromkeys(["search", "grep", "find"], "list --grep TEXT"),
    **dict.fromkeys(["install", "init", "setup"], "hooks install"),
    "uninstall": "hooks uninstall",
    "hooks add": "install",
    **dict.fromkeys(["hooks remove", "hooks rm"], "uninstall"),
    **dict.fromkeys(["hooks list", "hooks ls", "hooks show"], "status"),
    "todo new": "add ID TEXT",
    **dict.fromkeys(["todo complete", "todo finish", "todo check"], "done ID N"),
    **dict.fromkeys(["todo ls", "todo show"], "list ID"),
    **dict.fromkeys(["skill load", "skill new"], "add ID NAME"),
}
"""Words of other tools, each with our command; words in capitals stand for arguments."""

WORDS = {
    **dict.fromkeys(["done", "finished", "success", "succeeded", "ok"], "completed"),
    **dict.fromkeys(["running", "busy"], "working"),
    **dict.fromkeys(["pending", "blocked", "asking"], "waiting"),
    **dict.fromkeys(["dead", "died", "lost"], "crashed"),
    "killed": "interrupted",
}
"""Words of other tools for outcomes, phases and states."""

NO_COMMAND = {
    **dict.fromkeys(["start", "spawn"], _START),
    **dict.fromkeys(["stop", "kill", "abort", "terminate"], _STOP),
    **dict.fromkeys(["pause", "suspend"], _PAUSE),
    "uncancel": _UNCANCEL,
    **dict.fromkeys(["undo", "unfinalize"], _REOPEN),
    **dict.fromkeys(["purge", "clear"], _PURGE),
    **dict.fromkeys(["export", "backup", "archive"], _EXPORT),
    **dict.fromkeys(["end", "close"], _END),
    **dict.fromkeys(["edit", "modify", "change"], _EDIT),
    **dict.fromkeys(["config", "configure", "settings"], _CONFIG),
}
"""Words that no command replaces, each with a hint that says what to do."""

OPTIONS = {
    **dict.fromkeys(["--status", "--state"], ("--state", "--phase", "outcome")),
    "--outcome": ("outcome",),
    **dict.fromkeys(["--agent-id", "--session-id", "--session"], ("--id", "agent_id")),
    "--id": ("agent_id",),
    **dict.fromkeys(["--name", "--agent-name", "--agent-type", "--type"], ("--agent",)),
    **dict.fromkeys(["--description", "--task"], ("--purpose",)),
    **dict.fromkeys(["--message", "--result"], ("--summary", "--note")),
    "-m": ("--note",),
    "--data": ("--metadata",),
    "--open": ("--active-only",),
    **dict.fromkeys(["--max", "--count", "--last"], ("--limit", "--recent")),
    "--tail": ("--recent",),
    "--after": ("--since",),
    "--before": ("--until",),
    **dict.fromkeys(["--search", "--filter", "--query"], ("--grep",)),
    **dict.fromkeys(["--age", "--older-than"], ("--hours",)),
    "--silent": ("--quiet",),
    **dict.fromkeys(["--check", "--preview"], ("--dry-run",)),
    "--global": ("--user",),
    "--format": ("--json",),
    "-v": ("--verbose", "--version"),
    "-n": ("--limit", "--recent", "--dry-run"),
}
"""Options of other tools, each with ours; a name without dashes is an argument."""


def explain(error: click.UsageError, argv: list[str]) -> UsageError:
    """Returns our error for an ``error`` that click raised about the words ``argv``."""
    ctx = error.ctx
    if ctx is None:
        return UsageError(error.format_message(), "type --help after the name of a command to see its options")
    if isinstance(error, click.NoSuchCommand):
        return UsageError(error.message, _command_hint(error, ctx, argv))
    if isinstance(error, click.NoSuchOption):
        return UsageError(error.message, _option_hint(error, ctx))
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Argument):
        return UsageError(error.format_message(), _id_hint(ctx, argv) or _form_hint(ctx))
    if type(error) is click.UsageError:  # no command after --, or an argument too many
        return UsageError(
            error.message, _no_command_hint(error, ctx, argv) or _state_hint(ctx, argv) or _form_hint(ctx)
        )
    return UsageError(error.format_message(), f"see {ctx.command_path} --help")


def correct(error: UnknownWord, argv: list[str], program: str) -> None:
    """Writes the corrected line into the hint of ``error``, if the word is misspelt or belongs to another option."""
    typed = str(error.word)
    word = WORDS.get(typed.casefold(), typed.casefold())
    options = [("", error.known), *error.other_options.items()]
    for cutoff in (1, _CUTOFF):  # an equal word of any option comes before a similar word
        for option, known in options:
            for meant in get_close_matches(word, known, 1, cutoff):
                words = _with_option(argv, typed, option, meant) if option else _with_word(argv, typed, meant)
                line = shlex.join(words or [])
                is_clear = words and len(line) < _LONGEST_LINE
                error.hint = f"type {program} {line}" if is_clear else f"did you mean {f'{option} {meant}'.strip()}?"
                return


def _with_word(argv: list[str], typed: str, meant: str) -> list[str] | None:
    """Replaces ``typed`` in ``argv`` with ``meant``; returns None if ``argv`` contains ``typed`` more than once."""
    is_clear = sum(word.count(typed) for word in argv) == 1
    return [word.replace(typed, meant) for word in argv] if is_clear else None


def _with_option(argv: list[str], typed: str, option: str, meant: str) -> list[str] | None:
    """Replaces ``typed`` and its option in ``argv`` with ``meant`` and ``option``; returns None if that is unclear."""
    names = [word.partition("=")[0] for word in argv]
    for place, word in enumerate(argv):
        own, equals, value = word.partition("=")
        start = place
        if not equals and place:
            own, value, start = argv[place - 1], word, place - 1
        if value == typed and own.startswith("--") and names.count(own) == 1 and option not in names:
            return [*argv[:start], option, meant, *argv[place + 1 :]]
    return None


def _command_hint(error: click.NoSuchCommand, ctx: click.Context, argv: list[str]) -> str:
    program = ctx.find_root().command_path
    word = f"{ctx.command_path} {error.command_name.casefold()}".removeprefix(program).strip()
    others = NO_COMMAND | COMMANDS if program == PROGRAM else {}  # the earlier tool has few of these commands
    if word not in others:  # stauts is status, not stats
        word = next((other for other in others if sorted(other) == sorted(word)), word)
    if word not in others:
        near = _did_you_mean(error.command_name, ctx.command.list_commands(ctx))  # type: ignore[attr-defined]  # a group
        if near:
            return near
        word = next(iter(get_close_matches(word, others, 1, _CUTOFF)), "") if " " not in word else ""
    if word in COMMANDS:
        line = _line(ctx, COMMANDS[word], argv)
        return f"type {program} {line}" if line else f"did you mean {ctx.command_path} {COMMANDS[word]}?"
    return others.get(word, f"{ctx.command_path} --help lists the commands")


def _line(ctx: click.Context, meant: str, argv: list[str]) -> str | None:
    """Replaces the command in ``argv`` with the words ``meant``; returns None if the other words do not fit."""
    # The first words after the command replace the words of ``meant`` in capitals.
    before, rest = argv[: len(argv) - len(ctx.args)], ctx.args[1:]
    places = [word for word in meant.split() if word.isupper()]
    given = dict(zip(places, takewhile(lambda word: not word.startswith("-"), rest), strict=False))
    words = [*(given.get(word, word) for word in meant.split()), *rest[len(given) :]]
    line = shlex.join([*before, *words])
    is_whole = ctx.args and len(given) == len(places) and _takes(ctx, words)
    return line if is_whole and len(line) < _LONGEST_LINE else None


def _takes(ctx: click.Context, words: list[str]) -> bool:
    """Returns whether ``words`` are a command and valid arguments for it; ``ctx`` is of the group with the command."""
    command, place = ctx.command, 0
    while isinstance(command, click.Group):
        inner = command.get_command(ctx, words[place])
        if inner is None:
            return False
        command, place = inner, place + 1
    try:
        with redirect_stdout(io.StringIO()):  # with --help the command prints its help
            command.make_context(words[place - 1], words[place:], ctx)
    except click.exceptions.Exit:
        return True
    except (click.UsageError, SessionsError):
        return False
    return True


def _option_hint(error: click.NoSuchOption, ctx: click.Context) -> str:
    params = ctx.command.get_params(ctx)
    options = {name for param in params if isinstance(param, click.Option) for name in param.opts}
    for meant in OPTIONS.get(error.option_name, ()):
        if meant in options:
            return f"did you mean {meant}?"
        if meant in {param.name for param in params if isinstance(param, click.Argument)}:
            return _form_hint(ctx)
    if isinstance(ctx.command, click.Group):
        return f"options go after the name of their command: see {ctx.command_path} --help"
    if near := _did_you_mean(error.option_name, options):
        return near
    if "value" in {param.name for param in params}:
        return f"put -- before a text that begins with -: {ctx.command_path} ID KEY -- {error.option_name}"
    return f"{ctx.command_path} --help lists the options"


def _state_hint(ctx: click.Context, argv: list[str]) -> str | None:
    """Returns a hint at ``--state`` if the last word is a state and the command has this option."""
    from gaia_sessions.session.state import STATES

    typed, takes = argv[-1].casefold(), {name for param in ctx.command.params for name in param.opts}
    word = WORDS.get(typed, typed)
    return f"did you mean --state {word}?" if "--state" in takes and word in STATES and "--state" not in argv else None


def _did_you_mean(typed: str, names: Iterable[str]) -> str | None:
    word, known = typed.casefold(), sorted(names)
    near = get_close_matches(word, known, cutoff=_CUTOFF)
    near = near or [name for name in known if sorted(name) == sorted(word)]  # of ``lsit`` only half the letters match
    return f"did you mean {' or '.join(near)}?" if near else None


def _form_hint(ctx: click.Context) -> str:
    return f"usage: {ctx.command_path} {' '.join(ctx.command.collect_usage_pieces(ctx))}"


def _no_command_hint(error: click.UsageError, ctx: click.Context, argv: list[str]) -> str | None:
    """Returns an example with a command after ``--``, and with the typed ID, if the command is missing."""
    if error.message != NO_COMMAND_GIVEN:
        return None
    names = [one.human_readable_name for one in ctx.command.params if isinstance(one, click.Argument) and one.required]
    typed = [shlex.quote(word) for word in argv[1:] if word != "--"]
    if not names and len(typed) > 1 and not any(word.startswith("-") for word in typed):
        return f"put -- before the command: {ctx.command_path} -- {' '.join(typed)}"
    if names or len(typed) != 1 or typed[0].startswith("-"):
        typed = [name.partition("|")[0] for name in names]
    return f"put a command after --, for example: {' '.join([ctx.command_path, *typed, '--', './agent'])}"


def _id_hint(ctx: click.Context, argv: list[str]) -> str | None:
    """Returns a hint for a missing ID if the command takes only IDs: perhaps a ``$(...)`` printed none."""
    names = [param.name for param in ctx.command.params if isinstance(param, click.Argument)]
    if names not in (["agent_id"], ["agent_ids"]):
        return None
    if ctx.info_name in _WITHOUT_ID:
        return _WITHOUT_ID[ctx.info_name]
    line = f"{ctx.find_root().command_path} {shlex.join([*argv, 'latest'])}"
    return f"type an ID from gaia-sessions list, or {line if len(line) < _LONGEST_LINE else 'latest'}"


def agents_hint(typed: str, names: Iterable[str]) -> str:
    """Returns the names of agents similar to ``typed``, else all, or as many as fit in a line."""
    known = {name.casefold(): name for name in sorted(names)}
    word = typed.casefold()
    near = [name for name in known if word in name] or get_close_matches(word, known, cutoff=_CUTOFF)
    found = near or [*known]
    more = f" and {len(found) - _MOST_AGENTS} more" if len(found) > _MOST_AGENTS else ""
    return f"known agents: {', '.join(known[name] for name in found[:_MOST_AGENTS])}{more}"
