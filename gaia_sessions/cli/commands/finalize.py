"""``finalize``: end a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.api import at, updating
from gaia_sessions.cli import output
from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.render import plain
from gaia_sessions.session.phases import is_final

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call
    from gaia_sessions.session.schema import Record


@declare("finalize agent-123 completed --summary 'applied'", "finalize agent-123 failed --error 'plan rejected'")
@ID
@click.argument("outcome", metavar="completed|failed|abandoned")
@click.option("--summary", metavar="TEXT", help="Result of the work.")
@click.option("--error", metavar="TEXT", help="Count an error and store its text.")
def command(call: Call, agent_id: str, outcome: str, summary: str | None, error: str | None) -> None:
    """End a session as completed, failed or abandoned. Repeating the same outcome changes nothing."""
    if not is_final(outcome) and is_final(agent_id.casefold()):
        agent_id, outcome = outcome, agent_id
    session_id = call.session_id(agent_id, writes=True)
    written = at.write(call.sessions(), updating.finalize, session_id, outcome, summary, error=error)
    record = written.record
    if not written.is_changed:
        print_unchanged(call, record, {"summary": summary, "error": error})
    call.print_result(record, lambda: [plain.update_line(record, written.decision(), written.now)])


def print_unchanged(call: Call, record: Record, texts: dict[str, str | None]) -> None:
    """Prints which of ``texts`` were not stored because the session had already ended."""
    output.print_notice("unchanged", plain.unchanged_line(record, texts), plain.show_hint(record), as_json=call.as_json)
