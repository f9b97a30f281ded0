"""What ``doctor`` found: what is wrong, and on the next line the command that repairs the problem."""

from __future__ import annotations

from gaia_sessions.doctor.findings import NOT_CHECKED, OK, PROBLEM, SERVER, WARNING
from gaia_sessions.errors import plural

from .words import Hint, command_to_copy, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gaia_sessions.doctor.all_checks import DoctorReport
    from gaia_sessions.doctor.findings import Finding

_LONGEST = 1000
_LABELS = {PROBLEM: "problem", WARNING: "warning", NOT_CHECKED: "not checked"}


def doctor_lines(report: DoctorReport, *, verbose: bool) -> Iterator[str]:
    """Yields what was fixed, is wrong, or was not checked, and how many checks are fine; ``verbose`` lists them."""
    checks = report["checks"]
    yield from (f"fixed {fixed['name']}: {safe(fixed['done'], _LONGEST)}" for fixed in report["fixed"])
    yield from finding_lines((finding["state"], finding["found"], finding["fix"]) for finding in checks)
    of_server = [finding for finding in checks if finding["name"].startswith(SERVER)]
    of_files = [finding for finding in checks if finding not in of_server]
    if of_server:
        yield from _fine_lines(f"the server {report['server']}", of_server, verbose=verbose)
    files = "the files of the hooks in " if of_server else ""
    hint = "" if verbose else ": gaia-sessions doctor --verbose lists them"
    yield from _fine_lines(f"{files}{report['root']}", of_files, hint, verbose=verbose)


def _fine_lines(root: str, checks: list[Finding], hint: str = "", *, verbose: bool) -> Iterator[str]:
    """Yields how many checks of a root are fine; with ``verbose``, also each of them and what was not checked."""
    fine = [finding for finding in checks if finding["state"] == OK]
    if fine:
        are = "is" if len(fine) == 1 else "are"
        yield Hint(f"{plural(len(fine), 'check')} of {safe(root, _LONGEST)} {are} fine{hint}")
    if verbose:
        labels, width = {OK: "ok", NOT_CHECKED: "--"}, max(len(finding["name"]) for finding in checks)
        for finding in (*fine, *(finding for finding in checks if finding["state"] == NOT_CHECKED)):
            name = f"{finding['name']:<{width}}"
            yield f"  {labels[finding['state']]}  {name}  {safe(finding['found'], _LONGEST)}"


def finding_lines(findings: Iterable[tuple[str, str, str | None]]) -> Iterator[str]:
    """Yields problems, warnings, then what was not checked; a command follows all findings that the command repairs."""
    listed = list(findings)
    lines_above: dict[tuple[str | None, str], list[str]] = {}
    for state, label in _LABELS.items():
        for text, fix in (found[1:] for found in listed if found[0] == state):
            line = f"{label}: {safe(text, _LONGEST)}"
            lines_above.setdefault((fix, "" if fix else line), []).append(line)
    for (fix, _), lines in lines_above.items():
        yield from dict.fromkeys(lines)
        if fix:
            yield command_to_copy(fix)
