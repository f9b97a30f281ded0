"""``todo``: what the agent of a session means to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import ID, declare, declare_group
from gaia_sessions.cli.render import budgets

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare_group("todo add agent-123 'write the tests'", "todo done agent-123 1", "todo list agent-123")
def command(call: Call) -> None:
    """Keep the todos of a session: add, done, list."""


@declare("todo add agent-123 'write the tests'")
@ID
@click.argument("text", metavar="TEXT")
def add(call: Call, agent_id: str, text: str) -> None:
    """Add a todo at the end and print its number."""
    session_id = call.session_id(agent_id, writes=True)
    todo = call.sessions().add_todo(session_id, text)
    call.notice_if_abandoned(session_id)
    call.print_result({"agent_id": session_id, **todo}, lambda: [budgets.todo_change_line(session_id, todo)])


@declare("todo done agent-123 1")
@ID
@click.argument("number", metavar="N", type=int)
def complete(call: Call, agent_id: str, number: int) -> None:
    """Mark todo N as completed; the first one is 1."""
    session_id = call.session_id(agent_id, writes=True)
    todo = call.sessions().set_todo_status(session_id, number)
    call.notice_if_abandoned(session_id)
    call.print_result({"agent_id": session_id, **todo}, lambda: [budgets.todo_change_line(session_id, todo)])


@declare("todo list agent-123", "todo list agent-123 --json")
@ID
def list_(call: Call, agent_id: str) -> None:
    """List the todos of a session, with their numbers."""
    todos = call.sessions().todos(call.session_id(agent_id))
    if call.as_json:
        output.print_json_array(todos)
        return
    output.print_lines(budgets.todo_lines(todos) or ["No todos"])


command.add_command(add)
command.add_command(complete, "done")
command.add_command(list_, "list")
