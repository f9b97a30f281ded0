"""``usage``: how much of its budget a session has used; charge it, or state the total."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.render import budgets
from gaia_sessions.errors import UsageError

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call
    from gaia_sessions.session.budget import TokenUsage


@declare("usage agent-123 --json", "usage agent-123 --charge 1500", "usage agent-123 --total 42000")
@ID
@click.option("--charge", metavar="N", type=int, help="Count N more tokens.")
@click.option("--total", metavar="N", type=int, help="State that N tokens were used so far; what follows adds to it.")
def command(call: Call, agent_id: str, charge: int | None, total: int | None) -> None:
    """Show how much of its budget a session has used, or charge it.

    The exit code is 0 at the limit too: limit_reached says whether it is reached.
    """
    usage = _usage(call, agent_id, charge, total)
    if charge is not None or total is not None:
        call.notice_if_abandoned(usage["agent_id"])
    call.print_result(usage, lambda: [budgets.usage_line(usage)])


def _usage(call: Call, agent_id: str, charge: int | None, total: int | None) -> TokenUsage:
    if charge is not None and total is not None:
        raise UsageError("--charge and --total cannot be combined", "omit one of them: a total includes all charges")
    sessions = call.sessions()
    if charge is not None:
        return sessions.charge(call.session_id(agent_id, writes=True), charge)
    if total is not None:
        return sessions.set_token_total(call.session_id(agent_id, writes=True), total)
    return sessions.usage(call.session_id(agent_id))
