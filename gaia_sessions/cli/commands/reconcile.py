"""``reconcile``: end runs whose agent is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.render import reports

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("reconcile --dry-run", "reconcile --json")
@click.option("-n", "--dry-run", is_flag=True, help="Show which runs would be ended; end none.")
def command(call: Call, *, dry_run: bool) -> int:
    """End runs whose agent is gone without reporting an end, for example because a client crashed.

    A run is one execution of an agent. Each verdict comes with its reason. A run that is perhaps still working is
    listed as unsure, and stays open.
    """
    report = call.sessions().reconcile(dry_run=dry_run)
    call.print_result(report, lambda: reports.reconcile_lines(report))
    return output.print_failures([failed["reason"] for failed in report["failed"]], as_json=call.as_json)
