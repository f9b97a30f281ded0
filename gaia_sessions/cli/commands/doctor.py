"""``doctor``: what is wrong, and the command that fixes it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.render.doctor import doctor_lines
from gaia_sessions.errors import BadSetting, OwnedByAnother
from gaia_sessions.errors.exit_codes import EXIT_DONE, EXIT_NO

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call
    from gaia_sessions.doctor.report import DoctorReport


@declare("doctor || gaia-sessions doctor --fix", "doctor --fix --json")
@click.option("--fix", is_flag=True, help="Fix what is safe to fix: modes, index, leftovers, inbox.")
def command(call: Call, *, fix: bool) -> int:
    """Check settings, hooks and sessions; say how to fix problems. Exit code 0 healthy, 1 problems found."""
    report = _doctor_report(call, fix=fix)
    if call.as_json:
        output.print_json(report)
    else:
        output.print_lines(doctor_lines(report))
    return EXIT_DONE if report["healthy"] else EXIT_NO


def _doctor_report(call: Call, *, fix: bool) -> DoctorReport:
    from gaia_sessions.doctor import report
    from gaia_sessions.system.project_root import check_owner

    try:
        root, skipped = call.find_root()
        check_owner(root)
    except OwnedByAnother as error:
        return report.report_of_others_root(root, error)
    except BadSetting as setting_error:
        if call.root is not None:  # an option that was just typed is a usage error
            raise
        return report.report_without_root(setting_error)
    check = report.examine_and_fix if fix else report.examine
    return check(root, os.environ, skipped)
