"""``reconcile``: the runs that nobody ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.views import judged

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("reconcile --dry-run", "reconcile --json")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be closed, and close nothing.")
def command(call: Call, *, dry_run: bool) -> int:
    """Close the runs that nobody ended, where that is proved: by the host's own word, or its process being gone.

    Each verdict comes with its evidence. What cannot be told is unsure: it is listed and left alone.
    """
    report = call.sessions().reconcile(dry_run=dry_run)
    if call.as_json:
        output.say_json(report)
    else:
        output.say_all(judged.reconciled(report))
    return output.failures([failed["reason"] for failed in report["failed"]], as_json=call.as_json)
