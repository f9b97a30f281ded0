"""``show``: show one session to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.cli import output
from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.render import plain
from gaia_sessions.errors import NewerSchema
from gaia_sessions.session.clock import utc_now
from gaia_sessions.session.policy import resume_summary
from gaia_sessions.session.record import check_readable

if TYPE_CHECKING:
    from gaia_sessions.api import Sessions
    from gaia_sessions.cli.call import Call
    from gaia_sessions.session.schema import Record


@declare("show agent-20260108-180530-abc12345")
@ID
def command(call: Call, agent_id: str) -> None:
    """Show one session: timeline, errors, runs."""
    sessions = call.sessions()
    record = sessions.preview(call.session_id(agent_id))
    if call.as_json:
        output.print_json(_with_decision(sessions, record))
        return
    check_readable(record)
    decision = sessions.decide(record)
    if output.is_stdout_terminal():
        from gaia_sessions.cli.render import tables

        output.draw(tables.session_view(record, decision, utc_now()))
    else:
        output.print_lines(plain.session_lines(record, decision, utc_now()))


def _with_decision(sessions: Sessions, record: Record) -> dict[str, object]:
    """The record with the policy's decision; a record of a later version may not be understood, and gets none."""
    try:
        check_readable(record)
    except NewerSchema:
        return {**record}
    return {**record, "resume": resume_summary(sessions.decide(record))}
