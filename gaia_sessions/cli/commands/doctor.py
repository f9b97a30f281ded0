"""``doctor``: what is wrong, and the command that fixes it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.render.words import Copyable, safe
from gaia_sessions.errors import BadSetting, OwnedByAnother, plural
from gaia_sessions.errors.exit_codes import EXIT_DONE, EXIT_NO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.cli.call import Call
    from gaia_sessions.doctor.report import DoctorReport

_LONGEST = 1000
_NAME_WIDTH = 12


@declare("doctor || gaia-sessions doctor --fix", "doctor --fix --json")
@click.option("--fix", is_flag=True, help="Fix what is safe to fix: modes, index, leftovers, inbox.")
def command(call: Call, *, fix: bool) -> int:
    """Check settings, hooks and sessions; say how to fix problems. Exit code 0 healthy, 1 problems found."""
    report = _doctor_report(call, fix=fix)
    if call.as_json:
        output.print_json(report)
    else:
        output.print_lines(_report_lines(report))
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


def _report_lines(report: DoctorReport) -> Iterator[str]:
    """What was fixed, then a line for each check, with the command that fixes it on a line below, to be copied."""
    yield from (f"fixed {fixed['name']}: {safe(fixed['done'], _LONGEST)}" for fixed in report["fixed"])
    for finding in report["checks"]:
        label = "ok  " if finding["ok"] else "FIX "
        yield f"{label}  {finding['name']:<{_NAME_WIDTH}} {safe(finding['found'], _LONGEST)}"
        if finding["fix"]:
            yield Copyable(safe(finding["fix"], len(finding["fix"])), before="      ")
    problem_count = sum(not finding["ok"] for finding in report["checks"])
    yield "healthy" if report["healthy"] else f"{plural(problem_count, 'problem')} found"
