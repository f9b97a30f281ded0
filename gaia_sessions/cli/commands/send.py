"""``send``: send a message to the agent of a session, which is a command, and print its answer."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from gaia_sessions.api.command import LONGEST, Command
from gaia_sessions.api.send import messages_of
from gaia_sessions.cli import output
from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.command_options import CWD, wanted_preset, with_limits, with_presets
from gaia_sessions.cli.commands.create import warn_if_network
from gaia_sessions.cli.exit_codes import CODES_OF_REPORTS, EXIT_DONE, EXIT_INTERRUPTED
from gaia_sessions.cli.group import CommandBehindDashes
from gaia_sessions.cli.option_values import SECONDS, STDIN, text_or_stdin
from gaia_sessions.cli.render import command_news, session_reports
from gaia_sessions.cli.render.words import safe
from gaia_sessions.errors import InvalidInput
from gaia_sessions.session.own_runs import SIGNALLED
from gaia_sessions.session.transcript import COMMIT_LIMIT
from gaia_sessions.system import utc_now

if TYPE_CHECKING:
    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.cli.call import Call
    from gaia_sessions.runner.send import SendOutcome

_FOR_EVER = f"{LONGEST:.0f}"


@declare(
    "send agent-123 'Which of them is the worst?' -- claude",
    "send agent-123 - -- claude < output.txt",
    "send agent-123 'Go on' --wait 5m --timeout 15m -- my-agent",
    cls=CommandBehindDashes,
)
@ID
@click.argument("text", metavar="TEXT|-")
@with_limits
@with_presets
@CWD
@click.option("--pruned", is_flag=True, help="Give the agent only what `context` prints, not the whole transcript.")
@click.option(
    "--wait",
    metavar="[DURATION]",
    type=SECONDS,
    is_flag=False,
    flag_value=_FOR_EVER,
    help="Wait while another agent is working on the session.",
)
def command(
    call: Call,
    agent_id: str,
    text: str,
    *,
    command: tuple[str, ...],
    timeout: float,
    grace: float,
    cwd: str | None,
    preset: str | None,
    no_preset: bool,
    pruned: bool,
    wait: float | None,
) -> int:
    """Send a message to an agent, and print its answer.

    The agent is a command. It reads the whole conversation and TEXT on stdin, as a JSON array of messages with role
    and content. It prints its answer, or a JSON array of messages. TEXT and the answer are stored together, as one
    turn. If the command fails, nothing is stored.

    Exit codes: 0 the agent answered, 4 nothing can be sent now, 10 cancelled, 11 the command failed, 124 timeout, 130
    interrupted.
    """
    from gaia_sessions.runner.send import send  # not needed for --help

    said = text_or_stdin(text, "send", COMMIT_LIMIT, "the text") if text == STDIN else text
    if not said.strip():
        raise InvalidInput("the message is blank", hint="give a text after the ID")
    session_id = call.session_id(agent_id, writes=True)
    sessions = call.sessions()
    what = Command(command, cwd=cwd, timeout=timeout, grace=grace, preset=wanted_preset(preset, no_preset=no_preset))

    def tell(event: str, fact: str) -> None:
        if told := command_news.told_of(session_id, event, fact, what):
            output.print_aside(event, *told, as_json=call.as_json)

    with call.noticing_warnings():
        outcome = send(
            sessions,
            session_id,
            messages_of(said, "user", "what is sent"),
            what,
            is_pruned=pruned,
            until=time.monotonic() + (wait or 0),
            live={} if call.as_json else {2: sys.stderr.fileno()},
            tell=tell,
        )
    warn_if_network(sessions)
    return _print(call, sessions, session_id, outcome)


def _print(call: Call, sessions: Sessions, session_id: str, outcome: SendOutcome) -> int:
    """Prints the answer, or why there is none, and returns the exit code."""
    if outcome.is_cut:
        output.print_aside("cut", "a message is larger than 1 MiB: its middle is left out", as_json=call.as_json)
    if outcome.turn:
        turn = outcome.turn
        call.print_result(turn, lambda: turn["text"].split("\n"))
    elif outcome.answer is not None:
        output.print_lines(outcome.answer.removesuffix("\n").split("\n"))
    output.flush_result()
    if outcome.problem:
        raise outcome.problem
    if outcome.turn:
        return EXIT_DONE
    from gaia_sessions.api import at, reporting

    report, stands = at.read(sessions, reporting.report_and_standing, session_id)
    if call.as_json:
        output.print_json(report)
    else:
        output.print_to_stderr(session_reports.head_line(report, stands, utc_now()))
        if report["error"]:
            output.print_to_stderr(f"  {safe(report['error'])}")
        output.print_to_stderr("  your message was not stored")
        for line in session_reports.next_lines(report, stands):
            output.print_to_stderr(line)
    return EXIT_INTERRUPTED if outcome.ended.cause == SIGNALLED else CODES_OF_REPORTS[report["status"]]
