"""What ``doctor`` and ``hooks status`` found: what is wrong first, each with its command on a line of its own."""

from __future__ import annotations

from gaia_sessions.doctor.findings import NOT_CHECKED, OK, PROBLEM, WARNING
from gaia_sessions.errors import plural

from .words import Hint, command_to_copy, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gaia_sessions.doctor.all_checks import DoctorReport
    from gaia_sessions.doctor.findings import Finding

_LONGEST = 1000
_NAME_WIDTH = 12


def doctor_lines(report: DoctorReport, *, verbose: bool) -> Iterator[str]:
    """What was fixed, what is wrong, what was not looked at, and the number of what is fine; ``verbose`` lists that."""
    checks = report["checks"]
    yield from (f"fixed {fixed['name']}: {safe(fixed['done'], _LONGEST)}" for fixed in report["fixed"])
    yield from problem_lines(checks)
    not_checked = [finding for finding in checks if finding["state"] == NOT_CHECKED]
    yield from dict.fromkeys(f"not looked at: {safe(finding['found'], _LONGEST)}" for finding in not_checked)
    fine = [finding for finding in checks if finding["state"] == OK]
    hint = "" if verbose else f": gaia-sessions doctor --verbose lists {'it' if len(fine) == 1 else 'them'}"
    if fine:
        yield Hint(f"{plural(len(fine), 'check')} {'is' if len(fine) == 1 else 'are'} fine{hint}")
    if verbose:
        labels = {OK: "ok", NOT_CHECKED: "--"}
        for finding in (*fine, *not_checked):
            name = f"{finding['name']:<{_NAME_WIDTH}}"
            yield f"  {labels[finding['state']]}  {name} {safe(finding['found'], _LONGEST)}"


def problem_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """The problems and then the warnings among ``findings``, the command of each below it, to be copied."""
    listed = list(findings)
    for state in (PROBLEM, WARNING):
        for finding in (finding for finding in listed if finding["state"] == state):
            yield f"{state}: {safe(finding['found'], _LONGEST)}"
            if finding["fix"]:
                yield command_to_copy(finding["fix"])
