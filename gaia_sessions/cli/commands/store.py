"""``store``: set up the tables of the sessions on a server, and look at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.api import at
from gaia_sessions.cli.call import declare, declare_group
from gaia_sessions.cli.option_values import DAYS
from gaia_sessions.cli.render import store as lines
from gaia_sessions.errors import UsageError
from gaia_sessions.system.project_root import is_on_server

if TYPE_CHECKING:
    from types import ModuleType

    from gaia_sessions.cli.call import Call


@declare_group("store init", "store info")
def command(call: Call) -> None:
    """Set up the sessions on a server: init, migrate, info.

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
    root, setup = _server(call)
    found = setup.info(root)
    call.print_result(found, lambda: lines.info_lines(found))


def _server(call: Call) -> tuple[str, ModuleType]:
    """Returns the URL of the server and the module ``setup``; raises ``UsageError`` for a root that is a folder."""
    root = call.session_root()
    if not is_on_server(root):
        raise UsageError(f"store is only for a server, and {root} is a folder", "add --root postgresql://HOST/DATABASE")
    with at.needing_driver(root):
        from gaia_sessions.postgres import setup
    at.read(call.sessions(), lambda _: None)  # this says how long the server may take for its first answer
    return root, setup


for _part in (init, migrate, info):
    command.add_command(_part)
