"""``events``: what happened to a session, and on what evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.cli import output
from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.render import plain
from gaia_sessions.errors import SessionsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.cli.call import Call
    from gaia_sessions.jsonio.strict import Json


@declare("events agent-20260108-180530-abc12345", "events agent-20260108-180530-abc12345 --json")
@ID
def command(call: Call, agent_id: str) -> None:
    """Show what Claude Code or another client told of a session.

    Each event comes with its evidence, in the order in which it was applied.
    """
    found = call.sessions().events(call.session_id(agent_id))
    if call.as_json:
        output.print_json_array(_readable_entries(found))
        return
    lines = [plain.event_line(entry) for entry in _readable_entries(found)]
    output.print_lines(lines or ["No events"])


def _readable_entries(found: Iterator[Json | SessionsError]) -> Iterator[Json]:
    """The entries that can be read; for each other one, a line on stderr."""
    for entry in found:
        if isinstance(entry, SessionsError):
            output.print_to_stderr(f"skipped: {entry}")
        else:
            yield entry
