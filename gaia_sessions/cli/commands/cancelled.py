"""``cancelled``: whether a session is cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.exit_codes import EXIT_DONE
from gaia_sessions.cli.render import cancellation
from gaia_sessions.errors import Cancelled
from gaia_sessions.system import utc_now

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("cancelled agent-20260108-180530-abc12345 || exit")
@ID
def command(call: Call, agent_id: str) -> int:
    """Check whether a session is cancelled: exit code 10 or 0.

    Exit codes: 0 not cancelled, 10 the session or one above it is cancelled, 3 not found.
    """
    session_id = call.session_id(agent_id)
    found = call.sessions().cancellation(session_id)
    result = {"agent_id": session_id, "cancelled": found is not None, **(found or {})}
    call.print_result(result, lambda: [cancellation.answer_line(session_id, found, utc_now())])
    return EXIT_DONE if found is None else Cancelled.exit_code
