"""``report``: how the work of a session stands or ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.render import session_reports
from gaia_sessions.errors.exit_codes import EXIT_DONE, EXIT_NO

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("report agent-123 --json || echo 'not over yet'")
@ID
def command(call: Call, agent_id: str) -> int:
    """Report how the work of a session stands or ended: the result, or the error with partial results.

    Exit codes: 0 it has ended, in whatever way; 1 it has not, which includes a
    cancelled session whose agent may still be at work.
    """
    found, is_over = call.sessions().reporter()(call.session_id(agent_id))
    call.print_result(found, lambda: session_reports.report_lines(found))
    return EXIT_DONE if is_over else EXIT_NO
