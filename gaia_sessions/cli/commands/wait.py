"""``wait``: wait until the work of sessions has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.api import waiting
from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.option_values import SECONDS
from gaia_sessions.cli.render import session_reports
from gaia_sessions.errors import Cancelled, SessionNotFound
from gaia_sessions.errors.exit_codes import EXIT_DONE, EXIT_TIMEOUT, EXIT_WORK_FAILED
from gaia_sessions.session import report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from gaia_sessions.api.waiting import NoReport
    from gaia_sessions.cli.call import Call
    from gaia_sessions.session.report import Report, Status

_EXIT_CODES: dict[Status | Literal["not_found"], int] = {
    report.SUCCESS: EXIT_DONE,
    report.CANCELLED: Cancelled.exit_code,
    report.ERROR: EXIT_WORK_FAILED,
    report.RUNNING: EXIT_TIMEOUT,
    report.TIMEOUT: EXIT_TIMEOUT,
    waiting.NOT_FOUND: SessionNotFound.exit_code,
}
"""The exit code of each status, the worst last."""

_SEVERITY = [*_EXIT_CODES]


@declare(
    "wait agent-123 --timeout 500ms || echo 'not in time'",
    "wait agent-123 agent-124 --any --timeout 0.5 || echo 'not yet'",
)
@click.argument("agent_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--any/--all", "first", default=False, help="Wait for the first of them, or for all.  [default: --all]")
@click.option("--timeout", type=SECONDS, help="Wait no longer: seconds, or 5m, 2h.  [default: no limit]")
def command(call: Call, agent_ids: tuple[str, ...], *, first: bool, timeout: float | None) -> int:
    """Wait until the work of sessions has ended. A report on each is printed.

    Work has ended when the latest run of its agent has, in whatever phase that leaves the session, or when the session
    is final or cancelled.

    Exit codes, by the worst of them: 0 success, 3 not found, 10 cancelled, 11 the work failed, 124 not ended in time.
    """
    ids = [call.session_id(agent_id) for agent_id in agent_ids]
    reports = call.sessions().wait(ids, first=first, timeout=timeout)
    if call.as_json:
        output.print_json_array(reports)
    else:
        output.print_lines(session_reports.wait_lines(reports))
    return _EXIT_CODES[_worst(reports, first=first)]


def _worst(reports: Sequence[Report | NoReport], *, first: bool) -> Status | Literal["not_found"]:
    """The worst status; of those waited for with ``first``, work that goes on counts only if none has ended."""
    statuses = [found["status"] for found in reports]
    ended = [status for status in statuses if status != report.RUNNING]
    return max(ended if first and ended else statuses, key=_SEVERITY.index)
