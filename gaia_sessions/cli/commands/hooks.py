"""``hooks``: install the hooks in the settings of a client, uninstall them, and show their status."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare, declare_group
from gaia_sessions.cli.render.hook_status import status_lines
from gaia_sessions.cli.render.hooks import json_document, result_lines
from gaia_sessions.cli.render.words import safe
from gaia_sessions.cli.settings_options import settings_options
from gaia_sessions.config import load_with_faults
from gaia_sessions.doctor.hooks import LEFT_BY_UNINSTALL, hook_status
from gaia_sessions.errors import well_formed
from gaia_sessions.hook import ALLOW_REPORT, ENFORCE
from gaia_sessions.install.places import Places
from gaia_sessions.install.plan import INSTALL, UNINSTALL, InstallRequest, carry_out
from gaia_sessions.system import utc_now
from gaia_sessions.system.project_root import ROOT_VARIABLE, check_links, check_owner, is_on_server

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call

_LONGEST = 1000
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Write nothing; print the changes as a patch.")


@declare_group("hooks install --user", "hooks status")
def command(call: Call) -> None:
    """Install, remove or check the hooks in a client's settings (Claude Code's, for example)."""


@declare("hooks install", "hooks install --allow-report", "hooks install --host codex --user --dry-run")
@settings_options
@click.option(
    ALLOW_REPORT,
    is_flag=True,
    help="Allow sub-agents to report with gaia-sessions update and todo, and tell them how.",
)
@click.option(
    ENFORCE,
    is_flag=True,
    help="Enforce the limits in your settings: deny tools, end loops, remind of todos.",
)
@_DRY_RUN
def install(
    call: Call,
    places: Places,
    scope: str | None,
    host: str,
    *,
    allow_report: bool,
    enforce: bool,
    dry_run: bool,
) -> None:
    """Add the hooks to a client's settings.

    Nothing else in the settings changes. Installing again replaces our entries in that file, and drops the options
    that you do not give again. Replaced entries that you wrote by hand are printed.
    """
    request = InstallRequest(INSTALL, host, scope, report=allow_report, enforce=enforce)
    _carry_out(call, places, request, dry_run=dry_run)


@declare("hooks uninstall", "hooks uninstall --host codex --user --dry-run")
@settings_options
@_DRY_RUN
def uninstall(call: Call, places: Places, scope: str | None, host: str, *, dry_run: bool) -> None:
    """Remove the hooks from a client's settings.

    Every other byte stays. If nothing else is left in the file, the file is removed.
    """
    _carry_out(call, places, InstallRequest(UNINSTALL, host, scope), dry_run=dry_run)


@declare("hooks status", "hooks status --verbose")
@click.option("--verbose", is_flag=True, help="Also list the events, and when each event was last received.")
def status(call: Call, *, verbose: bool) -> None:
    """Show where the hooks are installed.

    Problems come first, each with the command that solves it.
    """
    root = call.session_root(only_files=True)
    check_owner(root)
    check_links(root)
    now = utc_now()
    _notice_files(call, root)
    report = hook_status(Places(root, os.environ), now, load_with_faults(root, os.environ))
    call.print_result(json_document(report), lambda: status_lines(report, now, verbose=verbose))


def _notice_files(call: Call, root: str) -> None:
    """Prints a notice if commands use a server: hooks store their sessions in the folder ``root``."""
    if is_on_server(os.environ.get(ROOT_VARIABLE, "")):
        message = f"hooks store their sessions in {well_formed(root)}, not on the server"
        hint = f"to see them, type: gaia-sessions --root {quote(root)} list"
        output.print_notice("hooks_use_files", message, hint, as_json=call.as_json)


def _carry_out(call: Call, places: Places, request: InstallRequest, *, dry_run: bool) -> None:
    """Carries out ``request``; prints the path of the file before writing, then the result, and what is still wrong."""

    def announce(path: str) -> None:
        if not call.as_json:
            output.print_to_stderr(f"writing {safe(well_formed(path), _LONGEST)}")

    if request.action == INSTALL:
        _notice_files(call, places.root)
    result = carry_out(places, request, announce, dry_run=dry_run)
    warnings = []
    if not dry_run:
        settings = load_with_faults(places.root, os.environ)
        found = hook_status(places, utc_now(), settings, [request.host])["warnings"]
        warnings = [one for one in found if request.action == INSTALL or one["code"] in LEFT_BY_UNINSTALL]
    call.print_result(
        json_document({**result, "warnings": warnings}),
        lambda: result_lines(result, warnings, places, is_terminal=output.is_stdout_terminal()),
    )


for _part in (install, uninstall, status):
    command.add_command(_part)
