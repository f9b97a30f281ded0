"""``events``: what happened to a session, and how that is known."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.render import plain, session_reports
from gaia_sessions.errors import SessionsError
from gaia_sessions.session.report import RUNNING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gaia_sessions.api.waiting import NoReport
    from gaia_sessions.cli.call import Call
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.report import Report


@declare("events agent-20260108-180530-abc12345", "events agent-20260108-180530-abc12345 --json")
@ID
@click.option(
    "-f", "--follow", is_flag=True, help="Print each new event as it comes, until the agent stops or the session ends."
)
@click.option("--since", metavar="N", type=click.IntRange(min=0), default=0, help="Only events after number N.")
def command(call: Call, agent_id: str, *, follow: bool, since: int) -> None:
    """Show what happened to a session, and how that is known.

    Events come from Claude Code or another client, from `run`, `send` and `reset`, and from answers to questions. They
    are listed in the order in which they were applied, each with its number. With --follow and --json, each line is one
    document.
    """
    found_id = call.session_id(agent_id)
    if follow:
        with call.noticing_warnings():
            _follow(call, found_id, since)
        return
    found = call.sessions().events(found_id, since=since)
    if call.as_json:
        output.print_json_array(_readable_entries(found))
        return
    lines = map(plain.event_line, _readable_entries(found))
    output.print_lines(chain([next(lines, "No events")], lines))


def _follow(call: Call, agent_id: str, since: int) -> None:
    """Prints the events, then new ones as they come, until the agent stops or nobody reads the output."""
    from gaia_sessions.api.waiting import looks

    seen: set[str] = set()
    for number, found in enumerate(looks({call.sessions(): lambda: [agent_id]})):
        if number == 0:
            _say_if_not_started(call, found[agent_id][0])
        for entry in _readable_entries(_new(call.sessions().events(agent_id, since=since), seen)):
            if not output.print_at_once(entry, None if call.as_json else plain.event_line(entry)):
                return
        if not output.is_result_read():
            return


def _say_if_not_started(call: Call, found: Report | NoReport) -> None:
    """Prints a notice if no agent was started for the session: perhaps no event ever comes."""
    if found["status"] == RUNNING and found["task_id"] is None:
        message, _ = session_reports.not_started_notice(found["agent_id"])
        output.print_notice("not_started", message, "to stop waiting for events, press Ctrl-C", as_json=call.as_json)


def _new(found: Iterable[Json | SessionsError], seen: set[str]) -> Iterator[Json | SessionsError]:
    """Yields the events in ``found`` that were not ``seen`` before."""
    for entry in found:
        again = {"revision": None, "seq": None}  # an event from the inbox can get other numbers when it is applied
        same = {**entry, **again} if isinstance(entry, dict) else entry
        if str(same) not in seen:
            seen.add(str(same))
            yield entry


def _readable_entries(found: Iterator[Json | SessionsError]) -> Iterator[Json]:
    """Yields the entries that can be read; prints a line on stderr for each of the others."""
    for entry in found:
        if isinstance(entry, SessionsError):
            output.print_to_stderr(f"skipped: {entry}")
        else:
            yield entry
