"""``skill``: record the skills that an agent loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import ID, declare, declare_group
from gaia_sessions.cli.render import budgets

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare_group("skill add agent-123 terraform --tokens 1200")
def command(call: Call) -> None:
    """Record which skills an agent loaded: skills use the agent's budget."""


@declare("skill add agent-123 terraform --tokens 1200")
@ID
@click.argument("name", metavar="NAME")
@click.option("--tokens", metavar="N", type=int, required=True, help="Tokens that the skill uses.")
def add(call: Call, agent_id: str, name: str, tokens: int) -> None:
    """Record a skill that the agent loaded.

    If the skill is already recorded, nothing changes.
    """
    session_id = call.session_id(agent_id, writes=True)
    skill = call.sessions().add_skill(session_id, name, tokens)
    call.notice_if_abandoned(skill["agent_id"])
    call.print_result(skill, lambda: [budgets.skill_line(skill)])


command.add_command(add)
