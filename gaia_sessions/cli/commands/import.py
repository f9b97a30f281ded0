"""``import``: import sessions from other folders."""  # noqa: N999  # the group loads it by this name

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.render.reports import import_lines
from gaia_sessions.errors import (
    CorruptSession,
    DurabilityUnknown,
    InvalidId,
    LockTimeout,
    NewerSchema,
    StoreFailure,
    TooLarge,
)
from gaia_sessions.system.project_root import check_expanded

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call

_ERROR_TYPES = {kind.code: kind for kind in (LockTimeout, DurabilityUnknown)} | {
    kind.code: CorruptSession for kind in (CorruptSession, InvalidId, NewerSchema, TooLarge)
}


@declare("import ../old-project --dry-run", "import ../old-project")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True)
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be imported; import nothing.")
def command(call: Call, directories: tuple[str, ...], *, dry_run: bool) -> int:
    """Import whole sessions from other folders.

    DIR is a folder with one folder per session, a project with such a folder in .claude/session, or the folder of one
    session. Nothing in DIR is changed.

    A session comes with all its files and keeps its ID. If the ID exists in this root already, the session is not
    imported. Paths to conversations and files of clients are not imported. A run without an end is imported as lost, a
    cancelled session as abandoned. If you interrupt the import, type the same command again.

    An open session goes on in both places. To move all sessions to or from a server, type `store copy`.
    """
    for directory in directories:
        check_expanded("DIR", directory, os.environ)
    report = call.sessions().import_from(*directories, dry_run=dry_run)
    call.print_result(report, lambda: import_lines(report))
    error_types = [_ERROR_TYPES.get(failed["reason"], StoreFailure) for failed in report["failed"]]
    return output.print_failures(
        [f"{failed['agent_id']}: not imported: {failed['detail']}" for failed in report["failed"]],
        *error_types[:1],
        as_json=call.as_json,
    )
