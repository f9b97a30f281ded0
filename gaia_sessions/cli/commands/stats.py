"""``stats``: how sessions ended, how often they were resumed, and how long they stayed in each phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare, lists
from gaia_sessions.cli.option_values import TIME
from gaia_sessions.errors import UsageError
from gaia_sessions.session.totals import GROUPINGS

if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.api.figures_of_all import Stats
    from gaia_sessions.cli.call import Call


@declare(
    "stats",
    "stats --since 'last week'",
    "stats --by agent",
    "stats --by day --since 30d --json",
)
@click.option(
    "--since", type=TIME, help="Only sessions that ended, or open sessions last active, at or after this time."
)
@click.option(
    "--until", type=TIME, help="Only sessions that ended, or open sessions last active, at or before this time."
)
@click.option(
    "--by", type=click.Choice(GROUPINGS), help="One row per agent type, per day on which sessions ended, or per phase."
)
@lists
def command(call: Call, since: datetime | None, until: datetime | None, by: str | None) -> None:
    """Show how sessions ended, and how long their phases took.

    This counts all sessions, also sessions of apps and removed sessions. The success rate is the share of completed
    sessions among the ended sessions. The resume rate is the share of runs that another run followed, among the runs
    that left their session open. Half of the stays in a phase were at most as long as the column median says, and 9 of
    10 at most as long as the column 90% says.
    """
    if since and until and until < since:
        raise UsageError("--until is before --since", "give the earlier time to --since")
    stats = _stats(call, since, until, by)
    if call.as_json:
        output.print_json(stats)
    elif any((stats["total"]["sessions"], stats["unread"], stats["unread_lines"], "removed_unread" in stats)):
        from gaia_sessions.cli.render.stats import lines

        output.print_lines(lines(stats, by, output.stdout_width()))
    elif since or until:
        there = call.sessions().stats()["total"]["sessions"]
        without = f"; without --since and --until, there {'is' if there == 1 else 'are'} {there:,}"
        output.print_line(f"No sessions ended or were active in that time{without}")
    else:
        from .list import print_that_none_was_found

        print_that_none_was_found(call.sessions())


def _stats(call: Call, since: datetime | None, until: datetime | None, by: str | None) -> Stats:
    sessions = call.sessions()
    if not output.is_stderr_terminal():
        return sessions.stats(since=since, until=until, by=by)
    from gaia_sessions.api import at, records
    from gaia_sessions.cli.progress import ReadingLine

    reading = ReadingLine(len(at.read(sessions, records.ids)))
    try:
        return sessions.stats(since=since, until=until, by=by, on_read=reading.show)
    finally:
        reading.clear()
