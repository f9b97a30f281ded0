"""``doctor``: what is wrong, and the command that fixes it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import declare
from gaia_sessions.cli.render.doctor import doctor_lines
from gaia_sessions.errors.exit_codes import EXIT_DONE, EXIT_NO

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("doctor || gaia-sessions doctor --fix", "doctor --fix --json")
@click.option("--fix", is_flag=True, help="Fix what is safe to fix: modes, index, leftovers, inbox.")
def command(call: Call, *, fix: bool) -> int:
    """Check settings, hooks and sessions; say how to fix problems. Exit code 0 healthy, 1 problems found."""
    from gaia_sessions.doctor.report import make_report

    report = make_report(call.root, os.environ, fix=fix)
    call.print_result(report, lambda: doctor_lines(report))
    return EXIT_DONE if report["healthy"] else EXIT_NO
