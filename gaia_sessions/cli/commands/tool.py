"""``tool``: check whether an agent may use a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import ID, declare, declare_group
from gaia_sessions.cli.exit_codes import EXIT_DONE, EXIT_NO
from gaia_sessions.cli.render.words import safe

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call
    from gaia_sessions.session.tools import ToolAnswer


@declare_group("tool check agent-123 Bash || echo 'not allowed'")
def command(call: Call) -> None:
    """Check whether the agent of a session may use a tool."""


@declare("tool check agent-123 Bash || echo 'not allowed'")
@ID
@click.argument("name", metavar="NAME")
def check(call: Call, agent_id: str, name: str) -> int:
    """Check whether the agent of a session may use the tool NAME.

    Exit codes: 0 allowed, 1 not allowed.
    """
    session_id = call.session_id(agent_id)
    answer = call.sessions().check_tool(session_id, name)
    call.print_result(answer, lambda: _lines(answer))
    return EXIT_DONE if answer["allowed"] else EXIT_NO


def _lines(answer: ToolAnswer) -> list[str]:
    name = safe(answer["tool"])
    if answer["allowed"]:
        return [f"yes: the agent of {answer['agent_id']} may use {name}"]
    allowed = answer["usable_tools"]
    return [
        f"no: {safe(answer['reason'] or '')}",
        *([] if allowed is None else [f"  allowed: {', '.join(allowed) or 'none'}"]),
    ]


command.add_command(check)
