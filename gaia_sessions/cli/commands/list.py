"""``list``: list sessions."""

from __future__ import annotations

from collections import Counter
from functools import partial

import click

from gaia_sessions.api import at, listing, records
from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare, lists
from gaia_sessions.cli.option_values import APP, SECONDS, TIME
from gaia_sessions.cli.render import plain
from gaia_sessions.errors import SessionNotFound, UnknownPhase, UnknownState, UsageError
from gaia_sessions.session.clock import timedelta
from gaia_sessions.session.phases import PHASES
from gaia_sessions.session.state import STATES, WAITING, WENT_WRONG
from gaia_sessions.system import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import Any, Concatenate, TypeVar

    from gaia_sessions.api.at import Reading
    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.cli.call import Call

    _Found = TypeVar("_Found")


_FILTERS = [
    click.option("--active-only", is_flag=True, help="Only sessions that have neither ended nor been cancelled."),
    click.option("--agent", "agent_name", metavar="NAME", help="Only sessions of this agent type."),
    click.option(
        "--state", "states", metavar="STATE[,STATE]", multiple=True, help="Only sessions in one of these states."
    ),
    click.option("--failed", is_flag=True, help=f"Only sessions in one of the states {', '.join(WENT_WRONG)}."),
    click.option("--waiting", is_flag=True, help=f"Short for --state {WAITING}: sessions that wait for a person."),
    click.option(
        "--phase", "phases", metavar="PHASE[,PHASE]", multiple=True, help="Only sessions in one of these phases."
    ),
    click.option("--parent", "parent_id", metavar="ID", help="Only sessions directly below this session."),
    click.option("--grep", metavar="TEXT", help="Only sessions with this text in the purpose or the agent's name."),
    click.option(
        "--since", type=TIME, help="Only sessions active at or after this time: 2h (ago), 18:05, monday, a date."
    ),
    click.option("--until", type=TIME, help="Only sessions last active at or before this time."),
    click.option("--created-since", type=TIME, help="Only sessions created at or after this time."),
    APP,
    click.option("--limit", metavar="N", type=click.IntRange(min=0), help="At most N sessions."),
]


def filters(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that filter sessions to ``command``; ``select`` reads them."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


@declare(
    "list --active-only",
    "list --waiting",
    "list --failed --since yesterday",
    "list --state crashed,interrupted -q",
    "list --agent terraform-architect --grep billing",
    "list --since 2h --limit 10 --json",
    "list --around 2026-01-08T18:05:30 --duration 90",
)
@filters
@click.option(
    "--around", metavar="START", type=TIME, help="Only sessions that worked in a span that begins at this time."
)
@click.option("--duration", type=SECONDS, help="With --around: length of the span: 90s, 5m, or a number of seconds.")
@click.option("-q", "--quiet", "ids_alone", is_flag=True, help="Print only whole IDs, one per line.")
@lists
def command(
    call: Call,
    *,
    around: datetime | None,
    duration: float | None,
    ids_alone: bool,
    **options: Any,  # noqa: ANN401  # those of filters
) -> None:
    """List sessions, the most recently active first.

    On a terminal, the column seen says how long ago the last activity was. The column left says how long the session
    can be resumed, or why it cannot be resumed. With --around, the column share says for how much of the span the
    session worked. The largest share comes first. This command is also called ls and ps.
    """
    span = _span(around, duration)
    lines, left_out = select(call, listing.listed, around=span, **options)
    sessions = call.sessions()
    if ids_alone:
        ids = [line["agent_id"] for line in lines]
        output.print_json_array(ids) if call.as_json else output.print_lines(ids)
    elif call.as_json:
        output.print_json_array(lines)
    elif not lines:
        if span:
            output.print_line(plain.nobody_worked_line(span[0], span[0] + timedelta(seconds=span[1]), utc_now()))
        print_that_none_was_found(sessions)
    elif output.is_stdout_terminal():
        from gaia_sessions.cli.render import tables

        output.draw(partial(tables.session_table, lines, utc_now(), at.read(sessions, records.ids)))
    else:
        output.print_lines(plain.list_lines(lines, utc_now()))
    if lines and not (ids_alone or call.as_json):
        say_what_is_left_out(left_out)


def select(
    call: Call,
    find: Callable[Concatenate[Reading, ...], tuple[Sequence[_Found], Mapping[str, int]]],
    *,
    parent_id: str | None,
    states: tuple[str, ...],
    phases: tuple[str, ...],
    failed: bool,
    waiting: bool,
    **others: Any,  # noqa: ANN401  # those of ``list`` as they are
) -> tuple[Sequence[_Found], Mapping[str, int]]:
    """Returns what ``find`` finds for the options of ``filters``, and by app how many sessions ``find`` left out."""
    if parent_id is not None:
        parent_id = call.session_id(parent_id)
    sessions = call.sessions()
    states = (*_split(states), *(WENT_WRONG if failed else ()), *([WAITING] if waiting else ()))
    try:
        lines, left_out = at.read(sessions, find, parent_id=parent_id, states=states, phases=_split(phases), **others)
    except (UnknownPhase, UnknownState) as error:
        error.other_options = {"--phase": PHASES} if isinstance(error, UnknownState) else {"--state": STATES}
        raise
    if not lines and parent_id is not None and parent_id not in at.read(sessions, records.ids):
        raise SessionNotFound(parent_id)
    if not lines and others["agent_name"] and not call.as_json:
        _say_which_agents_there_are(sessions, others["agent_name"])
    return lines, left_out


def _span(around: datetime | None, duration: float | None) -> tuple[datetime, float] | None:
    if around is None and duration is None:
        return None
    if duration is None:
        raise UsageError("--around needs --duration", "add the length of the span, for example --duration 5m")
    if around is None:
        raise UsageError("--duration needs --around", "add the beginning of the span, for example --around 18:05")
    try:
        around + timedelta(seconds=duration)
    except OverflowError:
        raise UsageError("the span ends after the year 9999", "use a shorter --duration") from None
    return around, duration


def _split(values: tuple[str, ...]) -> list[str]:
    return [word.strip() for value in values for word in value.split(",")]


def _say_which_agents_there_are(sessions: Sessions, typed: str) -> None:
    """Prints a notice with the known agents if no session at all has the agent ``typed``."""
    names = {
        line["agent_name"]
        for line in sessions.list(every_app=True)
        if "agent_name" in line and line["agent_name"].strip()
    }
    if names and typed not in names:
        from gaia_sessions.cli.mistakes import agents_hint

        hint = agents_hint(typed, names)
        output.print_notice("no_such_agent", f"no session has the agent {typed!r}", hint, as_json=False)


def say_what_is_left_out(apps: Mapping[str, int]) -> None:
    """Prints on stderr how many sessions of which apps are not shown, if any."""
    if apps:
        output.flush_result()
        output.print_aside("left_out", plain.left_out_line(apps), as_json=False)


def print_that_none_was_found(sessions: Sessions) -> None:
    """Prints that no session was found, the root, and how many sessions the options excluded."""
    lines = [*sessions.list(every_app=True)]
    apps = Counter(line["app"] for line in lines if "problem" not in line and "app" in line)
    output.print_line(plain.no_sessions_line(sessions.root, len(lines), apps, exists=sessions.is_there))
