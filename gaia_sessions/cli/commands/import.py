"""``import``: copy the sessions of another folder."""  # noqa: N999  # as every command's: the group loads it by name

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.render.reports import import_lines
from gaia_sessions.errors import DurabilityUnknown, LockTimeout, NothingReadable, StoreFailure
from gaia_sessions.system.project_root import check_expanded
from gaia_sessions.usecases.importing import unreadable_count

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call
    from gaia_sessions.usecases.importing import Imported

_ERROR_TYPES = {kind.code: kind for kind in (LockTimeout, DurabilityUnknown)}


@declare("import ../old-project/.claude/session --dry-run", "import ../old-project/.claude/session")
@click.argument("directory", metavar="DIR")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be imported; import nothing.")
def command(call: Call, directory: str, *, dry_run: bool) -> int:
    """Import the sessions of another folder: DIR has one folder per session, each with a state.json.

    Sessions keep their IDs. A session that already exists here, or cannot be read, is skipped and listed with the
    reason. Nothing in DIR is changed, and importing again changes nothing. Only state.json is imported.
    """
    check_expanded("DIR", directory, os.environ)
    report = call.sessions().import_sessions(directory, dry_run=dry_run)
    call.print_result(report, lambda: import_lines(report))
    _suggest_other_directory(report, as_json=call.as_json)
    if number := unreadable_count(report):
        raise NothingReadable(report["directory"], number)
    error_types = [_ERROR_TYPES.get(failed["reason"], StoreFailure) for failed in report["failed"]]
    return output.print_failures(
        [failed["detail"] for failed in report["failed"]], *error_types[:1], as_json=call.as_json
    )


def _suggest_other_directory(report: Imported, *, as_json: bool) -> None:
    if report["instead"]:
        output.print_notice(
            "elsewhere",
            f"no sessions in {report['directory']}; found some in {report['instead']}",
            f"gaia-sessions import {shlex.quote(report['instead'])}",
            as_json=as_json,
        )
