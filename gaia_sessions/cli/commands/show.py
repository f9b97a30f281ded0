"""``show``: show one session to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.cli import output
from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.render import budgets, one_session, relatives
from gaia_sessions.system import utc_now

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("show agent-20260108-180530-abc12345")
@ID
def command(call: Call, agent_id: str) -> None:
    """Show one session: timeline, errors, runs, children."""
    sessions, session_id = call.sessions(), call.session_id(agent_id)
    if call.as_json:
        output.print_json(sessions.show(session_id))
        return
    view, now = sessions.view(session_id), utc_now()
    others = [*budgets.sections(view.record, view.usage), *relatives.sections(view)]
    if output.is_stdout_terminal():
        from gaia_sessions.cli.render import tables

        output.draw(tables.session_view(view, now, others))
    else:
        output.print_lines(one_session.session_lines(view, now))
        output.print_lines(one_session.section_lines(others))
