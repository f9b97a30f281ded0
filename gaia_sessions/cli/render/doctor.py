"""What ``doctor`` found and fixed, one line for each check.

Owns the wording of that report.
"""

from __future__ import annotations

from gaia_sessions.errors import plural

from .words import Copyable, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.doctor.report import DoctorReport

_LONGEST = 1000
_NAME_WIDTH = 12


def doctor_lines(report: DoctorReport) -> Iterator[str]:
    """What was fixed, then a line for each check, with the command that fixes it on a line below, to be copied."""
    yield from (f"fixed {fixed['name']}: {safe(fixed['done'], _LONGEST)}" for fixed in report["fixed"])
    for finding in report["checks"]:
        label = "ok  " if finding["ok"] else "FIX "
        yield f"{label}  {finding['name']:<{_NAME_WIDTH}} {safe(finding['found'], _LONGEST)}"
        if finding["fix"]:
            yield Copyable(safe(finding["fix"], len(finding["fix"])), before="      ")
    problem_count = sum(not finding["ok"] for finding in report["checks"])
    yield "healthy" if report["healthy"] else f"{plural(problem_count, 'problem')} found"
