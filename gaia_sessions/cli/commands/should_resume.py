"""``should-resume``: check whether a session can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.exit_codes import EXIT_DONE, EXIT_NO
from gaia_sessions.cli.render import decisions
from gaia_sessions.errors import CorruptSession, InvalidId, SessionNotFound

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call
    from gaia_sessions.session.policy import Decision

# For these errors the answer is also no, but their exit code differs from the no of the resume check.
_EXIT_CODES = {"not_found": SessionNotFound.exit_code, "corrupt": CorruptSession.exit_code}


@declare("should-resume agent-123 && echo resume it", "should-resume agent-123 --verbose")
@ID
@click.option("--verbose", is_flag=True, help="Show all checks, not only those that failed.")
def command(call: Call, agent_id: str, *, verbose: bool) -> int:
    """Check whether a session can be resumed: exit code 0 or 1.

    Exit codes: 0 yes, 1 no, 3 not found, 6 corrupt, 7 invalid ID.
    """
    try:
        decision = decision_for(call, agent_id)
    except InvalidId as error:
        answer = decisions.invalid_id_decision(agent_id, error)
        call.print_result(answer, lambda: [decisions.invalid_id_line(answer["reason"])])
        raise
    call.print_result(decision, lambda: decisions.decision_lines(decision, verbose=verbose))
    return exit_code_of(decision)


def decision_for(call: Call, typed_id: str) -> Decision:
    """Returns the decision on the session that ``typed_id`` means; adds advice if there is no such session."""
    agent_id = call.session_id(typed_id)
    decision = call.sessions().explain_resume(agent_id)
    if decision["reason"] == "not_found":
        from gaia_sessions.cli.typed_ids import advice

        decision["advice"] = advice(agent_id, call.both(), decision["advice"])
    return decision


def exit_code_of(decision: Decision) -> int:
    """Returns 0 for yes; for no, another code if the session is missing or corrupt."""
    return EXIT_DONE if decision["should_resume"] else _EXIT_CODES.get(decision["reason"], EXIT_NO)
