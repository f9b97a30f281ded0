"""The one way in and the one way out: every error becomes a message and its documented exit code here.

Nothing else in the package exits, and no traceback ever reaches a person: of a bug of ours they see
one line and the path of a log that has the rest.
"""

from __future__ import annotations

import gc
import os
import sys

import click

from gaia_sessions import __version__, streams
from gaia_sessions.errors import EXIT_BUG, EXIT_DONE, EXIT_INTERRUPTED, SessionsError, UsageError, exit_code
from gaia_sessions.stores import atomic
from gaia_sessions.stores.directory import Directory
from gaia_sessions.views.words import safe

from . import output
from .call import CONTEXT, LOCK_TIMEOUT, ROOT
from .group import Commands

_BUGS = "bugs.log"
_BUGS_LIMIT = 1 << 20
_LONGEST = 2000

_EPILOG = """\b
Examples:
  gaia-sessions create --agent terraform-architect --purpose approval_workflow
  gaia-sessions should-resume agent-20260108-180530-abc12345 && echo resume it
  gaia-sessions list --active-only
\b
Exit codes: 0 done, yes; 1 no; 2 usage; 3 not found; 4 conflict; 5 lock timeout; 6 corrupt;
7 invalid input; 8 I/O error; 9 applied, durability unknown; 70 a bug of ours; 130 interrupted.
"""


@click.group(cls=Commands, context_settings=CONTEXT, epilog=_EPILOG, no_args_is_help=False, invoke_without_command=True)
@ROOT
@LOCK_TIMEOUT
@click.version_option(__version__, "-V", "--version", prog_name="gaia-sessions")
@click.pass_context
def commands(ctx: click.Context, /, **_shared: object) -> int:
    """Durable sessions for the sub-agents of coding agents."""
    if ctx.invoked_subcommand is None:
        output.say(ctx.get_help())
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    gc.disable()  # a command makes no cycles worth looking for, and starting up makes many objects
    streams.secure()
    output.prepare()
    given = sys.argv[1:] if arguments is None else arguments
    try:
        return _run(["--help"] if given == ["help"] else given)
    except output.ReaderGone:
        return EXIT_DONE
    except click.ClickException as error:
        return _report_usage(error, as_json="--json" in given)
    except SessionsError as error:
        return _report(error, as_json="--json" in given)
    except (KeyboardInterrupt, click.Abort):
        output.complain("interrupted")
        return EXIT_INTERRUPTED
    except Exception:  # noqa: BLE001  # the last resort: whoever called gets a line and a log, not our stack
        return _report_bug()


def _run(arguments: list[str]) -> int:
    with output.answering():  # click writes help by itself
        code: int = commands.main(arguments, prog_name="gaia-sessions", standalone_mode=False)
        output.finish()
        return code


def _report(error: SessionsError, *, as_json: bool) -> int:
    if as_json:
        output.complain_json({"error": {"code": error.code, "message": str(error), "hint": error.hint}})
    else:
        output.complain(f"Error: {safe(error, _LONGEST)}\nHint: {safe(error.hint, _LONGEST)}")
    return exit_code(error)


def _report_usage(error: click.ClickException, *, as_json: bool) -> int:
    ctx = getattr(error, "ctx", None)
    hint = f"{ctx.command_path if ctx else 'gaia-sessions'} --help says how"
    return _report(UsageError(error.format_message(), hint), as_json=as_json)


def _report_bug() -> int:
    import traceback

    folder = os.path.join(_state_home(), "gaia-sessions")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with Directory.at(folder) as logs:
            atomic.log(logs, _BUGS, f"{__version__}\n{traceback.format_exc()}\n".encode(errors="replace"), _BUGS_LIMIT)
        told = f"the log has the rest: {os.path.join(folder, _BUGS)}"
    except OSError:
        told = f"no log could be written: {traceback.format_exc(limit=-1).splitlines()[-1]}"
    output.complain(f"Error: a bug in gaia-sessions, not in what you asked\nHint: {told}")
    return EXIT_BUG


def _state_home() -> str:
    given = os.environ.get("XDG_STATE_HOME", "")
    return given if os.path.isabs(given) else os.path.expanduser("~/.local/state")
