"""``resume``: print the commands that resume work, of the named sessions or of all that stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.api import at, resuming
from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare, lists
from gaia_sessions.cli.exit_codes import EXIT_DONE, EXIT_NO
from gaia_sessions.cli.render import resumptions
from gaia_sessions.cli.render.decisions import invalid_id_decision
from gaia_sessions.errors import InvalidId, SessionsError, UsageError
from gaia_sessions.system import utc_now

if TYPE_CHECKING:
    from gaia_sessions.api.resuming import Resumption
    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.cli.call import Call
    from gaia_sessions.session.policy import Decision


@declare("resume", "resume agent-123", "resume --host-session 0b7e3c1a-5a0e-4c57-9d0c-2f6f0d1d8a55")
@click.argument("agent_ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--host-session",
    metavar="ID",
    help="Only work of the conversation with this ID in Claude Code or another client.",
)
@lists
def command(call: Call, *, agent_ids: tuple[str, ...], host_session: str | None) -> int:
    """Print the commands that resume work; nothing is started.

    Without an ID, this lists all unfinished work that was answered (approved or denied), or that was stopped by an
    error, Esc, a limit, an overload, a lost connection, or a crash of the client. What is cheapest to resume comes
    first. Work that waits for a limit is listed with the time of the reset. Work that the user stopped comes last.

    With an ID, this says how to resume that session, whatever stopped it. If the session has expired, this also records
    activity, so that you can resume the session. The exit code is 1 if the session cannot be resumed (cancelled,
    working, ended, too many errors). It is also 1 if the question was denied: the agent must find another way.
    """
    if agent_ids and host_session is not None:
        hint = "type gaia-sessions resume ID, or gaia-sessions resume --host-session ID"
        raise UsageError("ID and --host-session cannot be combined", hint)
    if agent_ids:
        return _print_named(call, agent_ids)
    found, left_out = at.read(call.sessions(), resuming.resumptions, host_session)
    if call.as_json:
        output.print_json_array(found)
    elif found or left_out or not call.says_there_is_no_root():
        where = call.place_searched()
        output.print_lines(resumptions.resumption_lines(found, left_out, utc_now(), host_session, where))
    return EXIT_DONE


def _print_named(call: Call, typed: tuple[str, ...]) -> int:
    """Prints an answer for each session that was ``typed``, even if one of them fails."""
    answers: list[Resumption | Decision] = []
    failed: list[SessionsError] = []
    places = {agent_id: sessions for sessions, agent_id in [call.find(one, writes=True) for one in typed]}
    for agent_id, sessions in places.items():
        try:
            answers.append(_answer(call, sessions, agent_id))
        except SessionsError as error:
            failed.append(error)
    if call.as_json:
        output.print_json_array(answers)
    else:
        output.print_lines(resumptions.answer_lines(answers, utc_now()))
    if len(failed) == 1:
        raise failed[0]
    code = output.print_failures([str(error) for error in failed], *map(type, failed[:1]), as_json=call.as_json)
    goes_on = all("means" in one and "problem" not in one for one in answers)
    return code or (EXIT_DONE if goes_on else EXIT_NO)


def _answer(call: Call, sessions: Sessions, agent_id: str) -> Resumption | Decision:
    try:
        answer = resuming.resumption_after_activity(sessions, agent_id)
    except InvalidId as error:
        return invalid_id_decision(agent_id, error)
    if "means" not in answer and answer["reason"] == "not_found":
        from gaia_sessions.cli.typed_ids import advice

        answer["advice"] = advice(agent_id, call.both(), answer["advice"])
    return answer
