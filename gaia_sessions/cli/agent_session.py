"""The seven commands of an earlier tool, ``agent_session.py``. Scripts of users read its output: keep every word.

Options, exit codes and the output with ``--json`` are the same as in ``gaia-sessions``.
"""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager

import click

from gaia_sessions.api import at, updating
from gaia_sessions.config import DEFAULT_HOURS
from gaia_sessions.errors import InvalidId, SessionNotFound, SessionsError

from . import output, start
from .call import ID, declare, declare_program
from .commands.create import AGENT, PURPOSE, warn_if_network
from .commands.finalize import print_unchanged
from .commands.should_resume import decision_for, exit_code_of
from .group import COMMANDS, Commands, Group
from .option_values import HOURS
from .render.words import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gaia_sessions.api.listing import CorruptSummary, Summary

    from .call import Call


group = declare_program(
    Group, "Durable sessions for the sub-agents of coding agents. gaia-sessions --help --all shows all commands."
)


def main() -> None:
    """Runs the command line and ends the process."""
    gc.disable()
    from .main import main as run

    start.exit_process(run(group=group, name=f"python3 {sys.argv[0]}"))


def _command(name: str, failed: str = "") -> Callable[[Callable[..., int | None]], None]:
    """Declares a command; ``--json`` calls the command of ``gaia-sessions``; ``failed`` is printed on stdout."""

    def add(function: Callable[..., int | None]) -> None:
        def run(call: Call, **options: object) -> int | None:
            if not call.as_json:
                with _print_on_failure(failed, options.get("agent_id")):
                    return function(call, **options)
            ctx = click.get_current_context()
            json_command = Commands().get_command(ctx, name)
            code: int | None = ctx.invoke(json_command, **options)  # type: ignore[arg-type]  # the options of both have the same names
            return code

        run.__doc__ = COMMANDS[name]
        run.__dict__.update(function.__dict__)  # click keeps the options in this attribute until it makes the command
        command = declare()(run)
        command.epilog = f"gaia-sessions {name} does the same and more."
        group.add_command(command, name)

    return add


@contextmanager
def _print_on_failure(failed: str, agent_id: object) -> Iterator[None]:
    try:
        yield
    except SessionsError:
        if failed:
            output.print_line(f"{failed}: {safe(agent_id)}")
        raise


@_command("create")
@AGENT
@PURPOSE
def _create(call: Call, agent: str, purpose: str) -> None:
    sessions = call.sessions()
    agent_id = sessions.create(agent, purpose)
    warn_if_network(sessions)
    output.print_line(f"Created session: {agent_id}")


@_command("update", failed="Failed to update session")
@ID
@click.option("--phase", metavar="PHASE", help="New phase; a final phase ends the session.")
@click.option("--error", metavar="TEXT", help="Count an error and store its text.")
def _update(call: Call, agent_id: str, phase: str | None, error: str | None) -> None:
    session_id = call.session_id(agent_id, writes=True)
    record = call.sessions().update(session_id, phase, error=error)
    output.print_line(f"Updated session: {record['agent_id']}")


@_command("should-resume")
@ID
def _should_resume(call: Call, agent_id: str) -> int:
    try:
        decision = decision_for(call, agent_id)
    except InvalidId:
        output.print_line(f"Should resume {safe(agent_id)}: False")
        raise
    output.print_line(f"Should resume {decision['agent_id']}: {decision['should_resume']}")
    if not decision["should_resume"]:
        output.print_to_stderr(f"{decision['reason']}: {safe(decision['advice'], 500)}")
    return exit_code_of(decision)


@_command("get")
@ID
def _get(call: Call, agent_id: str) -> None:
    from gaia_sessions.api import records

    try:
        session_id = call.session_id(agent_id)
        output.print_json(records.read(call.sessions(), session_id))
    except SessionNotFound:
        output.print_line(f"Session {agent_id} not found")
        raise


@_command("finalize", failed="Failed to finalize session")
@ID
@click.argument("outcome", metavar="completed|failed|abandoned")
@click.option("--summary", metavar="TEXT", help="Result of the work.")
def _finalize(call: Call, agent_id: str, outcome: str, summary: str | None) -> None:
    session_id = call.session_id(agent_id, writes=True)
    written = at.write(call.sessions(), updating.finalize, session_id, outcome, summary)
    if not written.is_changed:
        print_unchanged(call, written.record, {"summary": summary})
    output.print_line(f"Finalized session: {session_id}")


@_command("list")
@click.option("--active-only", is_flag=True, help="Only sessions that have not ended.")
@click.option("--agent", "agent_name", metavar="NAME", help="Only sessions of this agent type.")
def _list(call: Call, *, active_only: bool, agent_name: str | None) -> None:
    lines = list(call.sessions().list(active_only=active_only, agent_name=agent_name))
    if not lines:
        output.print_line("No sessions found")
        return
    output.print_line(f"\nFound {len(lines)} sessions:\n")
    for line in lines:
        output.print_lines([*_session_lines(line), ""])


def _session_lines(line: Summary | CorruptSummary) -> Iterator[str]:
    if "problem" in line:
        yield f"{line['status'].upper()} {line['agent_id']}"
        yield f"  Problem: {safe(line['problem'])}"
        return
    yield f"{'INACTIVE' if line['status'] == 'final' else 'ACTIVE'} {line['agent_id']}"
    yield f"  Agent: {safe(line['agent_name'])}, Phase: {line['phase']}"
    yield f"  Last updated: {line['last_updated']}"
    if line["error_count"]:
        yield f"  Errors: {line['error_count']}"


@_command("cleanup")
@click.option(
    "--hours", type=HOURS, default=DEFAULT_HOURS, help="Remove what has not been used for this long.  [default: 24]"
)
def _cleanup(call: Call, hours: float) -> int:
    with call.noticing_warnings():
        report = call.sessions().cleanup(hours)
    output.print_line(f"Cleaned up {len(report['removed'])} sessions older than {hours:g}h")
    for corrupt in report["corrupt"]:
        output.print_to_stderr(f"{corrupt['agent_id']}: {safe(corrupt['reason'])}")
    return output.print_failures([failed["reason"] for failed in report["failed"]], as_json=call.as_json)
