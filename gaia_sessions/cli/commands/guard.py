"""``guard``: check whether a task is for a sub-agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import declare, declare_group
from gaia_sessions.cli.exit_codes import EXIT_DONE, EXIT_NO
from gaia_sessions.cli.option_values import text_or_stdin
from gaia_sessions.session.transcript import COMMIT_LIMIT

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare_group("guard check 'Find all .rs files in src'")
def command(call: Call) -> None:
    """Check whether a task is for a sub-agent."""


@declare("guard check 'Find all .rs files in src'", "guard check - < task.txt || echo 'not delegated'")
@click.argument("text", metavar="TEXT|-")
def check(call: Call, text: str) -> int:
    """Check whether a task only asks to find or fetch something.

    This only checks. If the setting guard.mode is "block", `run` refuses any other task, and with `hooks install
    --enforce` the hook denies the delegation of any other task.

    Exit codes: 0 the task is for a sub-agent, 1 it is not.
    """
    answer = call.sessions().guard(text_or_stdin(text, "TEXT", COMMIT_LIMIT, "the task"))
    call.print_result(
        answer, lambda: ["yes: the task can be delegated" if answer["allowed"] else f"no: {answer['reason']}"]
    )
    return EXIT_DONE if answer["allowed"] else EXIT_NO


command.add_command(check)
