"""``usage``: the tokens of all agents, or of one session; charge tokens, or set the total."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare, lists
from gaia_sessions.cli.option_values import TIME
from gaia_sessions.cli.render import budgets
from gaia_sessions.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.cli.call import Call
    from gaia_sessions.session.budget import TokenUsage


@declare(
    "usage --since yesterday",
    "usage agent-123 --json",
    "usage agent-123 --charge 1500",
    "usage agent-123 --total 42000",
)
@click.argument("agent_id", metavar="[ID]", required=False)
@click.option("--since", type=TIME, help="Without ID: only sessions active at or after this time: 2h (ago), a date.")
@click.option("--charge", metavar="N", type=int, help="Add N tokens to those used so far.")
@click.option("--total", metavar="N", type=int, help="Set the tokens used so far to N. Later tokens are added to N.")
@lists
def command(call: Call, agent_id: str | None, since: datetime | None, charge: int | None, total: int | None) -> None:
    """Show the tokens of all agents, or of one session with its budget.

    The column unreported has the number of sessions whose tokens nobody reported. The option --max-tokens of create,
    update and run sets the budget of a session. Agents of Claude Code have a budget only with `hooks install
    --enforce`. If the budget is used up, the exit code is still 0: the text says "limit reached", and --json has
    "limit_reached": true.
    """
    if agent_id is None:
        _reject_without_id(charge, total)
        _print_all(call, since)
        return
    if since is not None:
        raise UsageError("--since and ID cannot be combined", "leave out --since, or leave out the ID")
    usage = _usage(call, agent_id, charge, total)
    if charge is not None or total is not None:
        call.notice_if_abandoned(usage["agent_id"])
    call.print_result(usage, lambda: [budgets.usage_line(usage)])


def _reject_without_id(charge: int | None, total: int | None) -> None:
    for option, value in (("--charge", charge), ("--total", total)):
        if value is not None:
            raise UsageError(f"{option} needs the ID of a session", f"type gaia-sessions usage ID {option} {value}")


def _print_all(call: Call, since: datetime | None) -> None:
    sessions = call.sessions()
    usage = sessions.usage_by_agent(since=since)
    if call.as_json:
        output.print_json(usage)
    elif usage["agents"] or usage["unread"]:
        from gaia_sessions.cli.render.usage_table import table_of_agents

        output.print_lines(table_of_agents(usage, output.stdout_width()))
    else:
        from .list import print_that_none_was_found

        print_that_none_was_found(sessions)


def _usage(call: Call, agent_id: str, charge: int | None, total: int | None) -> TokenUsage:
    if charge is not None and total is not None:
        raise UsageError(
            "--charge and --total cannot be combined", "leave out one of them: a total includes all charges"
        )
    session_id = call.session_id(agent_id, writes=(charge, total) != (None, None))
    if charge is not None:
        return call.sessions().charge(session_id, charge)
    if total is not None:
        return call.sessions().set_token_total(session_id, total)
    return call.sessions().usage(session_id)
