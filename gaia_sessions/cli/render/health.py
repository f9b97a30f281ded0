"""How the findings of ``doctor`` are said: a line per check, and below it the command that fixes it."""

from __future__ import annotations

from .words import Copied, plural, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.doctor.examination import Examined

_LONGEST = 1000
_WIDTH = 12


def examined(report: Examined) -> Iterator[str]:
    """What was fixed, what was found, and whether all is well; each command on a line of its own, to be copied."""
    yield from (f"fixed {fixed['name']}: {safe(fixed['done'], _LONGEST)}" for fixed in report["fixed"])
    for finding in report["checks"]:
        verdict = "ok  " if finding["ok"] else "FIX "
        yield f"{verdict}  {finding['name']:<{_WIDTH}} {safe(finding['found'], _LONGEST)}"
        if finding["mend"]:
            yield Copied(safe(finding["mend"], len(finding["mend"])), before="      ")
    sick = sum(not finding["ok"] for finding in report["checks"])
    yield "healthy" if report["healthy"] else f"{plural(sick, 'problem')} found"
