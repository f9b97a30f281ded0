"""``cleanup``: remove sessions that have not been used for a while."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import declare
from gaia_sessions.cli.each_root import do_in_each, with_lists_joined
from gaia_sessions.cli.option_values import APP, HOURS
from gaia_sessions.cli.render import reports
from gaia_sessions.config import DEFAULT_HOURS

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call
    from gaia_sessions.cli.each_root import Report


@declare("cleanup --hours 24 --dry-run", "cleanup --hours 24 --quiet", "cleanup --corrupt")
@click.option(
    "--hours",
    type=HOURS,
    default=DEFAULT_HOURS,
    help="Remove sessions not used for this long: hours, or 90m, 1h30m, 7d.  [default: 24]",
)
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be removed; remove nothing.")
@click.option("--corrupt", is_flag=True, help="Also remove sessions that cannot be read, whatever their age.")
@APP
@click.option("-v", "--verbose", is_flag=True, help="Name each session removed, and each old session not removed.")
@click.option("-q", "--quiet", is_flag=True, help="Print only failures, or that the root does not exist (for cron).")
def command(
    call: Call, hours: float, *, dry_run: bool, corrupt: bool, app: str | None, verbose: bool, quiet: bool
) -> int:
    """Remove sessions that have not been used for a while (24 hours by default).

    Sessions that can be resumed, or perhaps still run, are not removed. An open session stays for 7 days after its last
    activity (the setting keep_days; on a server: `store init --keep-days`) if it has turns, or if it asked for an
    approval and was not denied. The output of a `run` is a turn, so a session with a `run` stays even if it was denied.

    If GAIA_SESSIONS_ROOT is the URL of a server, the project's own root is cleaned up, too. In --json, the lists then
    have the sessions of both, and keep_days is the server's.
    """
    call.says_there_is_no_root()
    with call.noticing_warnings():
        return do_in_each(
            call,
            lambda root: root.cleanup(hours, dry_run=dry_run, corrupt=corrupt, app=app),
            lambda report: () if quiet else reports.cleanup_lines(report, is_verbose=verbose),
            _joined,
        )


def _joined(first: Report, second: Report) -> Report:
    """Returns one report on two roots; ``hours`` and ``keep_days`` are those of the ``first``."""
    left_out: Counter[str] = Counter(first.get("left_out", {})) + Counter(second.get("left_out", {}))
    numbers = {"recent": first["recent"] + second["recent"], **({"left_out": {**left_out}} if left_out else {})}
    return {**with_lists_joined(first, second), **numbers}
