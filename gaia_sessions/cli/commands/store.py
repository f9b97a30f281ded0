"""``store``: set up the tables of the sessions on a server, and look at them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from gaia_sessions.api import at
from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare, declare_group
from gaia_sessions.cli.option_values import DAYS
from gaia_sessions.cli.render import store as lines
from gaia_sessions.errors import UsageError
from gaia_sessions.system import server_url
from gaia_sessions.system.project_root import ROOT_VARIABLE, check_expanded, is_on_server

if TYPE_CHECKING:
    from types import ModuleType

    from gaia_sessions.api.copying import Copied
    from gaia_sessions.cli.call import Call

_MOST_FAILURES = 5


@declare_group("store init", "store info", "store copy .claude/session postgresql://db.example.com/agents")
def command(call: Call) -> None:
    """Put sessions on a server: init, migrate, info, copy.

    The root is the URL of a PostgreSQL database, for example postgresql://db.example.com/agents. To use it in every
    command, set GAIA_SESSIONS_ROOT.
    """


@declare("store init", "store init --keep-days 30")
@click.option(
    "--keep-days",
    type=DAYS,
    help="How long cleanup keeps open sessions with turns or an open question: days, or 36h.  [at first: 7]",
)
def init(call: Call, keep_days: float | None) -> None:
    """Make the tables in the database, or bring them to this version.

    The database must exist. Without --keep-days, a repeated init keeps the value.

    On a server, cleanup ignores the setting keep_days of a project.
    """
    root, setup = _server(call)
    changed = setup.init(root, keep_days)
    call.print_result(changed, lambda: lines.changed_lines(changed, root))


@declare("store migrate")
def migrate(call: Call) -> None:
    """Bring the tables of an earlier version to this version.

    A version of gaia-sessions uses only tables of its own version, so update it on all machines first.
    """
    root, setup = _server(call)
    changed = setup.migrate(root)
    call.print_result(changed, lambda: lines.changed_lines(changed, root))


@declare("store info", "store info --json")
def info(call: Call) -> None:
    """Show the server, its sessions, and changes of its timeline.

    The timeline changes when a standby takes over. A server that does not wait for its standby may lose the latest
    writes then. Changes are noticed by this command, init, migrate and cleanup.
    """
    root, _ = _server(call)
    from gaia_sessions.postgres import health

    found = health.info(root)
    call.print_result(found, lambda: lines.info_lines(found))


@declare(
    "store copy .claude/session postgresql://db.example.com/agents",
    "store copy postgresql://db.example.com/agents .claude/session",
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
def copy(call: Call, source: str, target: str) -> int:
    """Copy all sessions of a folder to a server, or back.

    FROM and TO are a folder and the URL of a server. The folder is one with sessions, or a project.

    Sessions that have ended are copied. Open sessions move: they go on only in TO. An open session stays if somebody
    works on it, with those above and below it and those that share its state. If you interrupt the copy, type the same
    command again.
    """
    if call.root is not None:
        raise UsageError("store copy takes no --root", "type: gaia-sessions store copy FROM TO")
    sessions, there = call.sessions_in(_root_in("FROM", source)), _root_in("TO", target)
    bar = None
    if output.is_stderr_terminal():
        from gaia_sessions.cli.progress import Bar

        bar = Bar()
    try:
        report = sessions.copy_to(there, on_session=bar.show if bar else None)
    except KeyboardInterrupt:
        output.print_to_stderr(
            "\nTo end the copy, type the same command again. Until then, some sessions can be moving."
        )
        raise
    finally:
        if bar:
            bar.clear()
    output.keep_whole(report["source"], report["target"])
    call.print_result(report, lambda: lines.copied_lines(report, os.environ.get(ROOT_VARIABLE, "")))
    kinds = [output.kind_of_error(failed["reason"]) for failed in report["failed"]]
    return output.print_failures(_failures(report), *kinds[:1], as_json=call.as_json)


def _failures(report: Copied) -> list[str]:
    """Returns a line for each failure, but a few of many: one cause often fails hundreds of sessions."""
    failed = [
        one["detail"] if one["what"] in one["detail"] else f"{one['what']}: {one['detail']}" for one in report["failed"]
    ]
    others = len(failed) - _MOST_FAILURES
    return (
        failed if others <= 0 else [*failed[:_MOST_FAILURES], f"{others} more could not be copied (--json names all)"]
    )


def _root_in(name: str, path: str) -> str:
    """Returns the folder of sessions that ``path`` names, as a folder or as a project; or the URL."""
    if is_on_server(path):
        return server_url.checked(name, path)
    check_expanded(name, path, os.environ)
    return os.path.join(path, ".claude", "session") if os.path.isdir(os.path.join(path, ".claude")) else path


def _server(call: Call) -> tuple[str, ModuleType]:
    """Returns the URL of the server and the module ``setup``; raises ``UsageError`` for a root that is a folder."""
    root = call.session_root()
    if not is_on_server(root):
        raise UsageError(f"store is only for a server, and {root} is a folder", "add --root postgresql://HOST/DATABASE")
    with at.needing_driver(root):
        from gaia_sessions.postgres import setup
    at.read(call.sessions(), lambda _: None)  # this says how long the server may take for its first answer
    return root, setup


for _part in (init, migrate, info, copy):
    command.add_command(_part)
