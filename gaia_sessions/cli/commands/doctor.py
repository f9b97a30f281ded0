"""``doctor``: what is wrong, and the command that fixes it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import declare
from gaia_sessions.cli.exit_codes import EXIT_DONE, EXIT_NO
from gaia_sessions.cli.render.doctor import doctor_lines

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("doctor || gaia-sessions doctor --fix", "doctor --fix --json")
@click.option(
    "--fix", is_flag=True, help="Repair what is safe to repair: permissions of files, index, leftovers, waiting events."
)
@click.option("--verbose", is_flag=True, help="List all checks, also checks that found nothing.")
def command(call: Call, *, fix: bool, verbose: bool) -> int:
    """Check settings, hooks and sessions; say how to fix problems.

    If the root is the URL of a server, this checks the server, and the files of the hooks.

    Exit code 1 if there is a problem, else 0. A warning is not a problem.
    """
    from gaia_sessions.doctor.all_checks import make_report

    report = make_report(call.root, os.environ, fix=fix)
    call.print_result(report, lambda: doctor_lines(report, verbose=verbose))
    return EXIT_NO if report["problems"] else EXIT_DONE
