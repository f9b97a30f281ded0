"""``show``: show one session to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.cli import output
from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.render import budgets, one_session, relatives
from gaia_sessions.session.record import check_readable
from gaia_sessions.system import utc_now

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("show agent-20260108-180530-abc12345")
@ID
def command(call: Call, agent_id: str) -> None:
    """Show one session: timeline, errors, runs, children."""
    sessions = call.sessions()
    record = sessions.preview(call.session_id(agent_id))
    if call.as_json:
        children = [line["agent_id"] for line in sessions.children(record["agent_id"])]
        output.print_json(sessions.with_decision(record) | ({"children": children} if children else {}))
        return
    check_readable(record)
    decision, related = sessions.decide(record), sessions.relatives(record)
    alive, now = sessions.liveness(record, decision), utc_now()
    others = [
        *budgets.sections(record, sessions.usage(record)),
        *relatives.sections(record["agent_id"], related),
    ]
    if output.is_stdout_terminal():
        from gaia_sessions.cli.render import tables

        output.draw(tables.session_view(record, decision, now, others, alive))
    else:
        output.print_lines(one_session.session_lines(record, decision, now, alive))
        output.print_lines(one_session.section_lines(others))
