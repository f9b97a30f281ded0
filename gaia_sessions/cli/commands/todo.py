"""``todo``: the todos of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import HOST_AGENT, declare, declare_group, given, param_of
from gaia_sessions.cli.render import budgets
from gaia_sessions.session.schema import TODO_CANCELLED, TODO_COMPLETED

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.cli.call import Call
    from gaia_sessions.session.todos import NumberedTodo

    HostAgent = tuple[str, str] | None

_ID = click.argument("agent_id", metavar="ID", required=False)
_NUMBER = click.argument("number", metavar="N", required=False)


@declare_group(
    "todo add agent-123 'write the tests'",
    "todo done agent-123 1",
    "todo cancel agent-123 1",
    "todo list agent-123",
)
def command(call: Call) -> None:
    """Manage the todos of a session: add, done, cancel, list."""


@declare("todo add agent-123 'write the tests'")
@_ID
@click.argument("text", metavar="TEXT", required=False)
@HOST_AGENT
def add(call: Call, agent_id: str | None, text: str | None, host_agent: HostAgent) -> None:
    """Add a todo at the end and print its number."""
    session_id, description = _chosen(call, agent_id, text, host_agent, "text")
    _change(call, session_id, lambda: call.sessions().add_todo(session_id, description))


@declare("todo done agent-123 1")
@_ID
@_NUMBER
@HOST_AGENT
def complete(call: Call, agent_id: str | None, number: str | None, host_agent: HostAgent) -> None:
    """Mark todo N as completed; the first todo is 1."""
    _mark(call, agent_id, number, host_agent, TODO_COMPLETED)


@declare("todo cancel agent-123 1")
@_ID
@_NUMBER
@HOST_AGENT
def cancel(call: Call, agent_id: str | None, number: str | None, host_agent: HostAgent) -> None:
    """Mark todo N as cancelled: nobody will do it. You can also cancel a completed todo."""
    _mark(call, agent_id, number, host_agent, TODO_CANCELLED)


@declare("todo list agent-123", "todo list agent-123 --json")
@_ID
@HOST_AGENT
def list_(call: Call, agent_id: str | None, host_agent: HostAgent) -> None:
    """List the todos of a session, with their numbers."""
    session_id = call.chosen_session(agent_id, host_agent, writes=False)
    todos = call.sessions().todos(session_id)
    if call.as_json:
        output.print_json_array(todos)
        return
    output.print_lines(budgets.todo_lines(todos) or ["No todos"])


def _chosen(call: Call, agent_id: str | None, word: str | None, host_agent: HostAgent, name: str) -> tuple[str, str]:
    """Returns the session and the ``word`` after the ID; with --host-agent, the first word is not an ID."""
    if host_agent is not None and word is None:
        agent_id, word = None, agent_id
    session_id = call.chosen_session(agent_id, host_agent)
    return session_id, given(word, name)


def _mark(call: Call, agent_id: str | None, number: str | None, host_agent: HostAgent, status: str) -> None:
    session_id, typed = _chosen(call, agent_id, number, host_agent, "number")
    which = click.INT.convert(typed, param_of("number"), click.get_current_context())  # type: ignore[arg-type]  # it takes a text
    _change(call, session_id, lambda: call.sessions().set_todo_status(session_id, which, status))


def _change(call: Call, session_id: str, change: Callable[[], NumberedTodo]) -> None:
    todo = change()
    call.notice_if_abandoned(session_id)
    call.print_result({"agent_id": session_id, **todo}, lambda: [budgets.todo_change_line(session_id, todo)])


command.add_command(add)
command.add_command(complete, "done")
command.add_command(cancel)
command.add_command(list_, "list")
