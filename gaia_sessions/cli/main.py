"""The one way in and the one way out: every error becomes a message and its documented exit code here.

Nothing else in the package exits, and no traceback ever reaches a person: of a bug of ours they see
one line and the path of a log that has the rest.
"""

from __future__ import annotations

import os
import sys

import click

from gaia_sessions import __version__
from gaia_sessions.errors import (
    EXIT_BUG,
    EXIT_DONE,
    EXIT_INTERRUPTED,
    InvalidInput,
    SessionsError,
    StoreFailure,
    UsageError,
    exit_code,
    well_formed,
)
from gaia_sessions.store import atomic
from gaia_sessions.store.directory import Directory
from gaia_sessions.system import streams, users

from . import output, parsing
from .call import CONTEXT_SETTINGS, JSON, LOCK_TIMEOUT, ROOT
from .group import Commands
from .render.words import safe

_BUG_LOG = "bugs.log"
_BUG_LOG_LIMIT = 1 << 20
_LONGEST = 2000

_EPILOG = """\b
Examples:
  gaia-sessions create --agent terraform-architect --purpose approval_workflow
  gaia-sessions should-resume agent-20260108-180530-abc12345 && echo resume it
  gaia-sessions list --active-only
\b
ID: the whole ID of a session, its beginning or end (4 characters
or more, unambiguous), or 'latest'.
\b
Exit codes: 0 done, yes; 1 no; 2 usage; 3 not found; 4 conflict;
5 lock timeout; 6 corrupt; 7 invalid input; 8 I/O error;
9 applied, durability unknown; 70 a bug in gaia-sessions; 130 interrupted.
"""


@click.group(
    cls=Commands, context_settings=CONTEXT_SETTINGS, epilog=_EPILOG, no_args_is_help=False, invoke_without_command=True
)
@ROOT
@LOCK_TIMEOUT
@JSON
@click.version_option(__version__, "-V", "--version", prog_name="gaia-sessions")
@click.pass_context
def commands(ctx: click.Context, /, **_shared: object) -> int:
    """Durable sessions for the sub-agents of coding agents."""
    if ctx.invoked_subcommand is None:
        output.print_line(ctx.get_help())
    return 0


def main(arguments: list[str] | None = None, group: click.Group = commands, name: str = "gaia-sessions") -> int:
    """Runs the command line of ``group``, which is called ``name``; returns the exit code."""
    streams.fill_closed_streams()
    output.prepare_streams()
    argv = [_decode_utf8(argument) for argument in (sys.argv[1:] if arguments is None else arguments)]
    try:
        code: int = group.main(argv, prog_name=name, standalone_mode=False)
        output.flush_answer()
    except SystemExit:  # click's way of saying that nobody reads its help any more
        code = EXIT_DONE
    except (KeyboardInterrupt, click.Abort):
        code = _print_error(
            EXIT_INTERRUPTED,
            "interrupted",
            "interrupted",
            "what was reported as done is done",
            as_json=_asks_for_json(argv),
        )
    except Exception as error:  # noqa: BLE001  # whoever called gets a line, of a bug of ours too, never our stack
        known_error, as_json = _as_sessions_error(error, argv, group), _asks_for_json(argv)
        code = _report_error(known_error, as_json=as_json) if known_error else _report_bug(as_json=as_json)
    return code


def _asks_for_json(argv: list[str]) -> bool:
    """Whether errors are to be reported in JSON; asked only when there is one."""
    try:
        return parsing.asks_for_json(commands, argv)
    except Exception:  # noqa: BLE001  # a command that cannot be loaded is reported in any case
        return "--json" in argv


def _as_sessions_error(error: Exception, argv: list[str], group: click.Group) -> SessionsError | None:
    """What ``error`` is in our tree, with the line that was probably meant; None for a bug."""
    if isinstance(error, click.UsageError):
        from .usage import explain

        return explain.to_usage_error(error, argv)
    if isinstance(error, UsageError | InvalidInput):
        from .usage import explain

        explain.add_command_hint(error, argv, group)
    if isinstance(error, OSError):  # every room translates its own: this is click, writing help
        output.discard_buffered(sys.stdout)
        return StoreFailure("write the answer", "stdout", error.strerror or str(error))
    return error if isinstance(error, SessionsError) else None


def _decode_utf8(argument: str) -> str:
    """Arguments are UTF-8 whatever the locale: so are our files."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def _report_error(error: SessionsError, *, as_json: bool) -> int:
    return _print_error(exit_code(error), error.code, str(error), error.hint, as_json=as_json)


def _print_error(status: int, code: str, message: str, hint: str, *, as_json: bool) -> int:
    if as_json:
        output.print_json_to_stderr({"error": {"code": code, "message": message, "hint": well_formed(hint)}})
    else:
        output.print_to_stderr(f"Error: {safe(message, _LONGEST)}\nHint: {safe(hint, _LONGEST)}")
    return status


def _report_bug(*, as_json: bool) -> int:
    import traceback

    stack_trace = well_formed(traceback.format_exc())
    folder = users.state_folder(os.environ)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with Directory.at(folder) as logs:
            atomic.append_log_line(logs, _BUG_LOG, f"{__version__}\n{stack_trace}\n".encode(), _BUG_LOG_LIMIT)
        hint = f"the log has the rest: {os.path.join(folder, _BUG_LOG)}"
    except OSError as error:
        hint = f"it could not be logged ({error.strerror}): {stack_trace.splitlines()[-1]}"
    return _print_error(EXIT_BUG, "bug", "a bug in gaia-sessions, not in what you asked", hint, as_json=as_json)
