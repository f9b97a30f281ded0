"""``adk``: sessions of Google ADK."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare, declare_group
from gaia_sessions.cli.render.words import safe
from gaia_sessions.errors import CorruptSession, plural
from gaia_sessions.system.project_root import check_expanded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.adk.importing import ImportedFromAdk
    from gaia_sessions.cli.call import Call


@declare_group("adk import .adk/session.db --dry-run")
def command(call: Call) -> None:
    """Import the sessions of Google ADK."""


@declare("adk import .adk/session.db --dry-run", "adk import .adk/session.db")
@click.argument("file", metavar="FILE")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be imported; import nothing.")
def import_(call: Call, file: str, *, dry_run: bool) -> int:
    """Import the sessions of ADK's SqliteSessionService.

    FILE stays as it is. Every session comes with its app, user, state and
    events, and what its app and its user share where nothing is here yet.
    After an interruption the same command does the rest; later it brings
    the events that came since. Name the same root as for the service, whose
    default, .adk/gaia-sessions, is not that of this command.
    """
    from gaia_sessions.adk.importing import import_file

    check_expanded("FILE", file, os.environ)
    with call.noticing_kept_messages():
        report = import_file(call.sessions(), file, dry_run=dry_run)
    call.print_result(report, lambda: _lines(report))
    failed = [f"{one['what']}: not imported: {one['detail']}" for one in report["failed"]]
    return output.print_failures(failed, CorruptSession, as_json=call.as_json)


def _lines(report: ImportedFromAdk) -> Iterator[str]:
    verb = "would import" if report["dry_run"] else "imported"
    yield f"{verb} {plural(len(report['imported']), 'session')} with {plural(report['events'], 'event')}"
    yield f"  into {safe(report['root'])}"
    yield from (f"  {safe(agent_id)}" for agent_id in report["imported"])
    yield from (f"{verb} what is shared by {_words(scope)}" for scope in report["shared"])
    yield from (f"kept as it is here: what is shared by {_words(scope)}" for scope in report["shared_here"])
    if report["already_there"]:
        yield f"{plural(len(report['already_there']), 'session')} had nothing new"


def _words(scope: list[str]) -> str:
    app, *user = map(safe, scope)
    return f"user {user[0]} of {app}" if user else f"all of {app}"


command.add_command(import_, "import")
