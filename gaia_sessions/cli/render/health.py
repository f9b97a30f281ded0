"""How the findings of ``doctor`` are said: a line per check, and below it the command that fixes it."""

from __future__ import annotations

from gaia_sessions.errors import plural

from .words import Copyable, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.doctor.examination import DoctorReport

_LONGEST = 1000
_WIDTH = 12


def doctor_lines(report: DoctorReport) -> Iterator[str]:
    """What was fixed, what was found, and whether all is well; each command on a line of its own, to be copied."""
    yield from (f"fixed {fixed['name']}: {safe(fixed['done'], _LONGEST)}" for fixed in report["fixed"])
    for finding in report["checks"]:
        label = "ok  " if finding["ok"] else "FIX "
        yield f"{label}  {finding['name']:<{_WIDTH}} {safe(finding['found'], _LONGEST)}"
        if finding["mend"]:
            yield Copyable(safe(finding["mend"], len(finding["mend"])), before="      ")
    problem_count = sum(not finding["ok"] for finding in report["checks"])
    yield "healthy" if report["healthy"] else f"{plural(problem_count, 'problem')} found"
