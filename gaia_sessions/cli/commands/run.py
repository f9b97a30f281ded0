"""``run``: run a command as a sub-agent."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TypedDict

import click

from gaia_sessions.api.command import TASK, Command
from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.command_options import CWD, wanted_preset, with_limits, with_presets
from gaia_sessions.cli.commands.create import continued, parent_of, refuse_reserved_id, warn_if_network
from gaia_sessions.cli.exit_codes import CODES_OF_REPORTS, EXIT_INTERRUPTED
from gaia_sessions.cli.group import CommandBehindDashes
from gaia_sessions.cli.option_values import STDIN, allowed_tools, text_or_stdin, with_tools
from gaia_sessions.cli.render import command_news, session_reports
from gaia_sessions.cli.render.words import safe
from gaia_sessions.errors import InvalidInput, UsageError
from gaia_sessions.hosts.clients import preset_for
from gaia_sessions.hosts.payload import SESSION_VARIABLE
from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.session.own_runs import SIGNALLED
from gaia_sessions.session.report import SUCCESS
from gaia_sessions.session.requests import Start
from gaia_sessions.session.transcript import COMMIT_LIMIT
from gaia_sessions.system import utc_now

if TYPE_CHECKING:
    from typing import Unpack

    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.cli.call import Call
    from gaia_sessions.runner.run import Outcome


_SAY_TASK = "give the task, for example: --task 'Review src/auth'"


class _New(TypedDict):
    """The options for a new session."""

    agent: str | None
    purpose: str | None
    max_tokens: int | None
    tools: list[str] | None
    available: list[str] | None
    parent: str | None
    continues: str | None
    new_id: str | None


@declare(
    "run --task 'Review src/auth' --timeout 15m -- claude",
    "run --agent tester --purpose 'unit tests' -- pytest -x",
    "run agent-123 --task 'Go on with it' -- claude",
    "run --json --task 'Review src' -- my-agent '{task}' > a.json",
    cls=CommandBehindDashes,
)
@click.argument("agent_id", metavar="[ID]", required=False)
@click.option("--agent", metavar="NAME", help="Agent type.  [default: the name of the program]")
@click.option("--purpose", metavar="TEXT", help="What the work is for.  [default: general]")
@click.option(
    "--task", metavar="TEXT|-", help=f"The task. It replaces {TASK} in the command; without {TASK}, it is on stdin."
)
@click.option("--context", metavar="TEXT", help="More text, below the task.")
@with_limits
@click.option(
    "--max-tokens", metavar="N", type=click.IntRange(min=1), help="End the command when it has used N tokens."
)
@with_tools
@with_presets
@CWD
@click.option(
    "--parent", metavar="ID", help=f"Session above the new one.  [default: {SESSION_VARIABLE}, if this root has it]"
)
@click.option("--continues", metavar="ID", help="Create a session that continues this one, which has ended.")
@click.option("--id", "new_id", metavar="ID", help="ID of the new session.  [default: generated]")
@click.option(
    "--contain", is_flag=True, help="Kill everything the command started, even if `run` is killed (only Linux)."
)
@click.option(
    "--keep-background",
    is_flag=True,
    help="Do not end background processes of the command. Their later output is stored, too.",
)
@click.option("--quiet", is_flag=True, help="Show the result at the end, but no output while the command runs.")
@click.option("--verbose", is_flag=True, help="Also print when the command starts, and when it ends without failure.")
def command(
    call: Call,
    agent_id: str | None,
    *,
    command: tuple[str, ...],
    task: str | None,
    context: str | None,
    timeout: float,
    grace: float,
    cwd: str | None,
    preset: str | None,
    no_preset: bool,
    contain: bool,
    keep_background: bool,
    quiet: bool,
    verbose: bool,
    **new: Unpack[_New],
) -> int:
    """Run a command as a sub-agent, within limits, and report on it.

    Without ID, `run` creates a session. With ID, `run` resumes that session, and so approves what the session asks for.
    The command is given what was found so far. When the command ends, `run` ends everything that the command started.

    The command reads the task and the context on stdin. Without both, the command reads the stdin of `run`; if that is
    a terminal, the command reads nothing. The output of the command is shown at once, and stored. If the command is
    claude or codex, give it no prompt: use --task.

    Exit codes: 0 success, 4 the session cannot be run, 7 the task or the tools are refused, 10 cancelled, 11 the
    command failed, 124 timeout, 130 interrupted.
    """
    from gaia_sessions.runner.run import run  # not needed for --help

    which = wanted_preset(preset, no_preset=no_preset)
    needs_task = preset_for(command, which) is not None and (task, context, agent_id, new["continues"]) == (None,) * 4
    what = Command(
        command,
        task=_task(STDIN if needs_task else task),
        preset=which,
        context=context,
        cwd=cwd,
        timeout=timeout,
        grace=grace,
        is_contained=contain,
        keeps_background=keep_background,
    )
    start = _start(call, agent_id, what.name, new)
    sessions = call.sessions()
    is_live = not (quiet or call.as_json)

    def tell(session: str, event: str, fact: str) -> None:
        if told := command_news.told_of(session, event, fact, what, verbose=verbose):
            output.print_aside(event, *told, as_json=call.as_json)

    with open(os.devnull, "rb") as nothing:
        stdin = nothing.fileno() if sys.stdin is None or sys.stdin.isatty() else sys.stdin.fileno()
        live = {1: sys.stdout.fileno(), 2: sys.stderr.fileno()} if is_live else {}
        with call.noticing_warnings():
            outcome = run(sessions, start, what, stdin=stdin, live=live, tell=tell)
    warn_if_network(sessions)
    _print(call, sessions, outcome, is_live=is_live, verbose=verbose)
    if outcome.problem:
        raise outcome.problem
    return EXIT_INTERRUPTED if outcome.ended.cause == SIGNALLED else CODES_OF_REPORTS[outcome.report["status"]]


def _task(typed: str | None) -> str | None:
    if typed != STDIN:
        return typed
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("no task given, and stdin is a terminal", _SAY_TASK)
    try:
        return text_or_stdin(STDIN, "--task", COMMIT_LIMIT, "the task")
    except InvalidInput as error:
        if error.hint:
            raise
        raise InvalidInput(error.problem, "the task", _SAY_TASK) from None


def _start(call: Call, agent_id: str | None, name: str, new: _New) -> Start:
    """Returns the session of ``agent_id``, or a ``new`` session, by default below the session in the environment."""
    given = [name for name, value in new.items() if value is not None]
    if agent_id is not None and given:
        option = f"--{given[0].removeprefix('new_').replace('_', '-')}"
        raise UsageError(
            f"{option} is only for a new session, but {agent_id} was given as ID",
            f"leave out {option}, or leave out {agent_id}",
        )
    if agent_id is not None:
        return Start(call.session_id(agent_id, writes=True))
    refuse_reserved_id(new["new_id"])
    continues = continued(call, new["continues"])
    parent_id, is_elsewhere = parent_of(call, new["parent"])
    by_default = os.environ.get(SESSION_VARIABLE, "")
    if parent_id is None and is_agent_id(by_default) and call.has(by_default):
        parent_id = by_default
    here = None if is_elsewhere else parent_id
    return Start(
        continues=continues,
        new_id=new["new_id"],
        program=name,
        agent_name=new["agent"],
        purpose=new["purpose"],
        parent_id=parent_id,
        is_parent_elsewhere=is_elsewhere,
        max_tokens=new["max_tokens"],
        allowed_tools=allowed_tools(call, new["tools"], new["available"], new["agent"] or name, here),
    )


def _print(call: Call, sessions: Sessions, outcome: Outcome, *, is_live: bool, verbose: bool) -> None:
    """Prints the report as JSON; for a person, prints the end on stderr, and the result on stdout unless shown."""
    report = outcome.report
    if call.as_json:
        output.print_json(report)
        return
    if not is_live:
        output.print_lines(session_reports.result_lines(report))
        output.flush_result()
    if outcome.problem:  # the caller raises it
        if is_live:
            said = report["error"] or report.get("state", report["status"])
            output.print_to_stderr(f"{report['agent_id']}: {safe(said)}")
        return
    from gaia_sessions.api import at, reporting

    _, stands = at.read(sessions, reporting.report_and_standing, report["agent_id"])
    if verbose or output.is_stderr_terminal() or report["status"] != SUCCESS:
        output.print_to_stderr(session_reports.head_line(report, stands, utc_now()))
        if report["error"] and is_live:
            output.print_to_stderr(f"  {safe(report['error'])}")
            output.print_to_stderr(session_reports.output_line(report["agent_id"], outcome.run.get("output_path")))
    for line in session_reports.next_lines(report, stands):
        output.print_to_stderr(line)
