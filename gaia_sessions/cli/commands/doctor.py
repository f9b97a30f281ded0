"""``doctor``: what is wrong, and what fixes it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.render import health
from gaia_sessions.errors import EXIT_DONE, EXIT_NO, BadSetting, OwnedByAnother

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call
    from gaia_sessions.doctor.examination import DoctorReport


@declare("doctor || gaia-sessions doctor --fix", "doctor --fix --json")
@click.option("--fix", is_flag=True, help="Fix what is safe to fix: modes, hints, leftovers, the inbox.")
def command(call: Call, *, fix: bool) -> int:
    """Check settings, hooks and sessions; say how to fix problems. Exit code 0 healthy, 1 problems found."""
    report = _doctor_report(call, fix=fix)
    if call.as_json:
        output.print_json(report)
    else:
        output.print_lines(health.doctor_lines(report))
    return EXIT_DONE if report["healthy"] else EXIT_NO


def _doctor_report(call: Call, *, fix: bool) -> DoctorReport:
    from gaia_sessions.doctor import examination
    from gaia_sessions.system.project_root import check_owner

    try:
        root, passed_over = call.search()
        check_owner(root)
    except OwnedByAnother as theirs:
        return examination.report_of_others_root(root, theirs)
    except BadSetting as fault:
        if call.root is not None:  # what was just typed is for whoever typed it to correct
            raise
        return examination.report_without_root(fault)
    check = examination.examine_and_fix if fix else examination.examine
    return check(root, os.environ, passed_over)
