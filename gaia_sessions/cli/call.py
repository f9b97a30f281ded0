"""What every command has in common: ``--root``, ``--lock-timeout``, ``--json``, ID, and how a command is declared.

Owns the one value that a command gets beside its own options: whose sessions, which session is meant by what was typed
as ID, and for whom the answer is.
"""

from __future__ import annotations

import os
from functools import wraps

import click

from gaia_sessions.errors import SessionNotFound
from gaia_sessions.session.ids import is_agent_id, is_generated_id

from . import output
from .parsing import Command, Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gaia_sessions.api import Sessions
    from gaia_sessions.system.project_root import SkippedProject

CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

ROOT = click.option(
    "--root", metavar="DIR", help="Directory of the sessions.  [default: the project's .claude/session]"
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print the answer, and errors, as JSON.")
LOCK_TIMEOUT = click.option(
    "--lock-timeout", metavar="SECONDS", type=float, help="How long to wait for a locked session.  [default: 10]"
)
ID = click.argument("agent_id", metavar="ID")
"""For every command about one session, which then asks ``Call.session_id`` which one that is."""


class Call:
    """One call of a command: whose sessions, and for whom the answer is."""

    __slots__ = ("_flags", "_sessions", "as_json", "root")

    def __init__(self, root: str | None, lock_timeout: float | None, *, as_json: bool) -> None:
        self.root = root
        self._flags = {"lock_timeout": lock_timeout}
        self.as_json = as_json
        self._sessions: Sessions | None = None

    def folder(self) -> str:
        """The root of the sessions it is about; says which project was passed over on the way to it."""
        root, passed_over = self.search()
        if passed_over:
            from gaia_sessions.system import users

            message, wanted, command = users.skipped_project_notice(*passed_over[0], root)
            output.print_notice("passed_over", message, f"{wanted}: {command}", as_json=self.as_json)
        return root

    def search(self) -> tuple[str, list[SkippedProject]]:
        """The root of the sessions it is about, and the projects of others that were passed over on the way to it."""
        from gaia_sessions.system.project_root import find_root_and_skipped, working_directory

        return find_root_and_skipped(self.root, os.environ, working_directory())

    def sessions(self) -> Sessions:
        """The sessions it is about."""
        from gaia_sessions.api import Sessions

        if self._sessions is None:
            self._sessions = Sessions(self.folder(), self._flags)
        return self._sessions

    def session_id(self, typed_id: str, *, writes: bool = False, is_shown: bool = True) -> str:
        """The id of the session that was ``typed`` as ID: that very id, or one that it is a part of, or the latest.

        What stands for no session comes back as it is, and the store says so. Which session was taken is said on
        stderr if the command ``writes``, or unless its answer shows it. Raises ``AmbiguousId``.
        """
        if is_generated_id(typed_id) or not is_agent_id(typed_id) or self.sessions().has(typed_id):
            return typed_id
        from .typed_ids import resolve_id

        found = resolve_id(self.sessions(), typed_id)
        if found != typed_id and (writes or not is_shown):
            hint = "type the whole id where it must be exactly this one"
            output.print_notice("session_taken", f"took session {found!r} for {typed_id!r}", hint, as_json=self.as_json)
        return found

    def explain(self, missing: SessionNotFound) -> None:
        """``missing`` says where it was looked for, and what may have been meant."""
        if self._sessions is not None:
            from .typed_ids import explain

            explain(missing, self._sessions)


def declare(*examples: str) -> Callable[[Callable[..., int | None]], Command]:
    """Declares a command: its function gets a ``Call`` first and returns its exit code, None for 0.

    The function's docstring is the help, ``examples`` stand below it.
    """

    def make(function: Callable[..., int | None]) -> Command:
        return click.command(cls=Command, context_settings=CONTEXT_SETTINGS, epilog=_epilog(examples))(
            _as_callback(function)
        )

    return make


def declare_group(*examples: str) -> Callable[[Callable[..., int | None]], click.Group]:
    """Declares a command that has commands of its own; without one it shows its help.

    What all commands have in common may stand before the name of the inner one too.
    """

    def make(function: Callable[..., int | None]) -> click.Group:
        @wraps(function)
        def run_or_show_help(call: Call, **options: object) -> int | None:
            ctx = click.get_current_context()
            if ctx.invoked_subcommand is None:
                output.print_line(ctx.get_help())
                return None
            return function(call, **options)

        group = click.group(
            cls=Group,
            context_settings=CONTEXT_SETTINGS,
            epilog=_epilog(examples),
            invoke_without_command=True,
            no_args_is_help=False,
        )
        return group(_as_callback(run_or_show_help))

    return make


def _as_callback(function: Callable[..., int | None]) -> Callable[..., int]:
    """``function`` as click calls it, with the options that all commands have in common."""

    @wraps(function)
    def run(root: str | None, lock_timeout: float | None, *, as_json: bool, **options: object) -> int:  # noqa: ARG001
        call = Call(
            _innermost_option("root"), _innermost_option("lock_timeout"), as_json=bool(_innermost_option("as_json"))
        )
        try:
            return function(call, **options) or 0
        except SessionNotFound as missing:
            call.explain(missing)
            raise

    for option in (JSON, LOCK_TIMEOUT, ROOT):
        run = option(run)
    return run


def _epilog(examples: tuple[str, ...]) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  gaia-sessions {example}" for example in examples)


def _innermost_option(name: str) -> Any:  # noqa: ANN401  # as the option's type says
    """What was given for an option, the innermost command first; None if it was given nowhere."""
    ctx: click.Context | None = click.get_current_context()
    while ctx is not None:
        value = ctx.params.get(name)
        if value is not None and value is not False:
            return value
        ctx = ctx.parent
    return None
