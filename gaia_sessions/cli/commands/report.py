"""``report``: print the result of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.api import at, reporting
from gaia_sessions.cli import output
from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.exit_codes import CODES_OF_REPORTS, EXIT_DONE
from gaia_sessions.cli.render import session_reports
from gaia_sessions.errors import UsageError
from gaia_sessions.system import utc_now

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("report agent-123 > answer.md || echo 'no answer yet'", "report agent-123 --json || echo 'no answer yet'")
@ID
@click.option("--verbose", is_flag=True, help="Also print the todos and the latest messages.")
@click.option("--output", "is_output", is_flag=True, help="Print only the stored output of its latest `run`.")
def command(call: Call, agent_id: str, *, verbose: bool, is_output: bool) -> int:
    """Print the result of a session. stdout has only the answer of the agent.

    If the work failed or was cancelled, stdout has the reason, then the last message of the agent. The state, the
    time, the tokens and what to do next go to stderr.

    Exit codes: 0 success, 3 not found, 10 cancelled, 11 the work failed, 124 not ended, or ended by its time limit.
    With --output: 0 printed, 3 not found, 4 the session has no `run`.
    """
    if is_output:
        return _print_output(call, agent_id, is_alone=not (verbose or call.as_json))
    session_id = call.session_id(agent_id)
    found, stands = at.read(call.sessions(), reporting.report_and_standing, session_id)
    if call.as_json:
        output.print_json(found)
        return CODES_OF_REPORTS[found["status"]]
    now = utc_now()
    answer = session_reports.result_lines(found)
    margin = [""] if answer and output.is_stdout_terminal() else []
    more = session_reports.more_lines(found) if verbose else ()
    beside = [*more, *session_reports.next_lines(found, stands)]
    for line in [session_reports.head_line(found, stands, now), *session_reports.answer_lines(found, now), *margin]:
        output.print_to_stderr(line)
    output.print_lines(answer)
    output.flush_result()
    for line in [*margin, *beside]:
        output.print_to_stderr(line)
    return CODES_OF_REPORTS[found["status"]]


def _print_output(call: Call, agent_id: str, *, is_alone: bool) -> int:
    if not is_alone:
        raise UsageError("--output cannot be combined with --json or --verbose", "leave out the other option")
    session_id = call.session_id(agent_id)
    output.print_bytes(at.read(call.sessions(), reporting.output_of, session_id))
    return EXIT_DONE
