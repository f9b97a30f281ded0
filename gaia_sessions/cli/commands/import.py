"""``import``: take in the sessions of other folders."""  # noqa: N999  # as every command's: the group loads it by name

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

    DIR has one folder per session, each with a state.json, or is a project with such a folder in .claude/session. It
    may also be the folder of one session.

    Sessions come with everything that is theirs and keep their IDs. What leads elsewhere stays behind: conversations
    and files of clients. One whose ID is here already stays as it is. A run without an end ends as lost, and what is
    cancelled there as abandoned. Nothing in DIR is changed. After an interruption the same command does the rest.
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
