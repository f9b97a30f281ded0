"""Runs the command line, and turns every exception into a message and an exit code. Bugs go to a log, not to stderr."""

from __future__ import annotations

import os
import sys

import click

from gaia_sessions import __version__
from gaia_sessions.errors import SessionsError, StoreFailure, UnknownWord, well_formed
from gaia_sessions.system import state_folder, streams

from . import output
from .call import declare_program
from .exit_codes import EXIT_BUG, EXIT_CODES, EXIT_DONE, EXIT_INTERRUPTED
from .group import Commands, asks_for_json
from .render.words import safe

_BUG_LOG = "bugs.log"
_BUG_LOG_LIMIT = 1 << 20
_LONGEST = 2000

_EPILOG = f"""\
Options: --root DIR [default: the project's .claude/session], --json, -h,
--version, --lock-timeout SECONDS: how long to wait for a lock [default: 10]
ID: a whole ID, its beginning or end (4 characters or more), or 'latest'
Exit codes: {"; ".join(f"{code} {words}" for code, (words, _) in EXIT_CODES.items())}
"""


commands = declare_program(Commands, "Durable sessions for the sub-agents of coding agents.", _EPILOG)
click.option("--all", "every", is_flag=True, is_eager=True, help="With --help: every command.")(commands)
click.version_option(__version__, "-V", "--version", prog_name="gaia-sessions")(commands)


def main(arguments: list[str] | None = None, group: click.Group = commands, name: str = "gaia-sessions") -> int:
    """Runs the command line of ``group`` and returns the exit code; ``name`` is the name of the program."""
    streams.fill_closed_streams()
    output.prepare_streams()
    argv = [_decode_utf8(argument) for argument in (sys.argv[1:] if arguments is None else arguments)]
    try:
        code: int = group.main(argv, prog_name=name, standalone_mode=False)
        output.flush_result()
    except SystemExit:  # click raises this error if the reader of the help closed the pipe
        code = EXIT_DONE
    except (KeyboardInterrupt, click.Abort):
        code = _print_error(
            EXIT_INTERRUPTED,
            "interrupted",
            "interrupted",
            "changes that were reported before are stored",
            as_json=_asks_for_json(argv),
        )
    except Exception as error:  # noqa: BLE001  # the caller gets a line, never a traceback
        as_json = _asks_for_json(argv)
        try:
            known_error = _as_sessions_error(error, argv, name)
        except OSError as refusal:  # the search for an explanation failed
            known_error = _of_system(refusal)
        code = _report_error(known_error, as_json=as_json) if known_error else _report_bug(as_json=as_json)
    return code


def _asks_for_json(argv: list[str]) -> bool:
    """Returns whether errors must be printed as JSON."""
    try:
        return asks_for_json(commands, argv)
    except Exception:  # noqa: BLE001  # a command that cannot be loaded must not hide the first error
        return "--json" in argv


def _as_sessions_error(error: Exception, argv: list[str], name: str) -> SessionsError | None:
    """Returns ``error`` as one of our errors, with a hint; None for a bug."""
    if isinstance(error, click.UsageError):
        from .mistakes import explain

        return explain(error, argv)
    if isinstance(error, UnknownWord):
        from .mistakes import correct

        correct(error, argv, name)
    if isinstance(error, OSError):
        return _of_system(error)
    return error if isinstance(error, SessionsError) else None


def _of_system(error: OSError) -> StoreFailure:
    """Returns our error if a module cannot be loaded, or if click cannot write the help."""
    # All other failures of the system are reported where they occur.
    if error.filename is not None:
        return StoreFailure("load", str(error.filename), error.strerror or str(error))
    output.discard_buffered(sys.stdout)
    return output.unwritten(error)


def _decode_utf8(argument: str) -> str:
    """Returns ``argument`` decoded as UTF-8, in every locale: records are UTF-8 too."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def _report_error(error: SessionsError, *, as_json: bool) -> int:
    return _print_error(error.exit_code, error.code, str(error), error.hint, *error.excerpts, as_json=as_json)


def _print_error(status: int, code: str, message: str, hint: str, *excerpts: str, as_json: bool) -> int:
    hint = output.with_root(hint)
    if as_json:
        output.print_json_to_stderr({"error": {"code": code, "message": message, "hint": well_formed(hint)}})
    else:
        lines = [f"Error: {safe(message, _LONGEST)}", *(f"  {line}" for text in excerpts for line in text.splitlines())]
        lines += [f"Hint: {safe(hint, _LONGEST)}"] if hint else []
        output.print_to_stderr("\n".join(lines))
    return status


def _report_bug(*, as_json: bool) -> int:
    import traceback

    from gaia_sessions.store.directory import Directory
    from gaia_sessions.store.hook_log import append_log_line

    stack_trace = well_formed(traceback.format_exc())
    folder = state_folder(os.environ)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with Directory.at(folder) as logs:
            append_log_line(logs, _BUG_LOG, f"{__version__}\n{stack_trace}\n".encode(), _BUG_LOG_LIMIT)
        hint = f"details: {os.path.join(folder, _BUG_LOG)}"
    except OSError as error:
        hint = f"{stack_trace.splitlines()[-1]}; the log could not be written: {error.strerror}"
    return _print_error(EXIT_BUG, "bug", "internal error in gaia-sessions", hint, as_json=as_json)
