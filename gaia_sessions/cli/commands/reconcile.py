"""``reconcile``: end runs whose agent is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import declare
from gaia_sessions.cli.each_root import do_in_each, with_lists_joined
from gaia_sessions.cli.render import reports

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("reconcile --dry-run", "reconcile --json")
@click.option("-n", "--dry-run", is_flag=True, help="Show which runs would be ended; end none.")
def command(call: Call, *, dry_run: bool) -> int:
    """End runs whose agent is gone without reporting an end, for example because a client crashed.

    A run is one execution of an agent. Each verdict comes with its reason. A run that is perhaps still working is
    listed as unsure, and stays open.

    If GAIA_SESSIONS_ROOT is the URL of a server, this also looks at the project's own root. In --json, the lists then
    have the runs of both.
    """
    return do_in_each(call, lambda root: root.reconcile(dry_run=dry_run), reports.reconcile_lines, with_lists_joined)
