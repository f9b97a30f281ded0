"""The examination: every check once, what ``--fix`` may do about what it finds, and the checks again.

Owns the table of checks and the table of safe mends. A check that fails itself is a finding like any other:
one that cannot be made hides none of the rest. In a folder that others use as well nothing is mended as a whole, by us
or by a command that we name.
"""

from __future__ import annotations

import os
import stat
from typing import TypedDict

from gaia_sessions import __version__
from gaia_sessions.errors import EXPORT_ROOT_COMMAND, plural, well_formed
from gaia_sessions.ingest.deferred import apply_deferred
from gaia_sessions.session.clock import utc_now
from gaia_sessions.store.root_ownership import make_root

from . import activity, contents, hooks, machine, root_folder, tree
from .findings import ok, problem
from .inspection import Inspection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gaia_sessions.errors import BadSetting, OwnedByAnother
    from gaia_sessions.system.project_root import SkippedProject

    from .findings import Finding

    Check = Callable[[Inspection], Finding]
    Fix = Callable[[Inspection], str]


class AppliedFix(TypedDict):
    """name: of the check whose mend was tried; done: what came of it."""

    name: str
    done: str


class DoctorReport(TypedDict):
    healthy: bool
    version: str
    root: str | None
    checks: list[Finding]
    fixed: list[AppliedFix]


CHECKS: dict[str, Check] = {
    "interpreter": machine.interpreter,
    "version": machine.version,
    "packages": machine.packages,
    "settings": activity.settings,
    "project": root_folder.project,
    "root": root_folder.root,
    "file_system": root_folder.file_system,
    "space": root_folder.space,
    "owner": root_folder.owner,
    "modes": root_folder.modes,
    "ignored": root_folder.ignored,
    "clock": machine.clock,
    "processes": machine.process_table,
    "readable": contents.readable,
    "corrupt": contents.corrupt,
    "times": contents.times,
    "runs": contents.runs,
    "locks": activity.locks,
    "inbox": contents.inbox,
    "hints": contents.hints,
    "leftovers": contents.leftovers,
    "hooks": hooks.hooks,
    "log": activity.log,
}


def examine(root: str, environ: Mapping[str, str], passed_over: Sequence[SkippedProject] = ()) -> DoctorReport:
    """What every check finds of the sessions at ``root``. Takes no lock and writes nothing."""
    return _report(root, _findings(Inspection(root, environ, utc_now(), passed_over=passed_over)), [])


def examine_and_fix(root: str, environ: Mapping[str, str], passed_over: Sequence[SkippedProject] = ()) -> DoctorReport:
    """The same after what is safe to mend was mended; ``fixed`` says what was done."""
    inspection = Inspection(root, environ, utc_now(), passed_over=passed_over)
    fixable = [finding["name"] for finding in _findings(inspection) if finding["fixable"]]
    fixed: list[AppliedFix] = [{"name": name, "done": _apply_fix(name, inspection)} for name in fixable]
    after = Inspection(root, environ, utc_now(), frozenset(fixable), passed_over)
    return _report(root, _findings(after), fixed)


def report_without_root(fault: BadSetting) -> DoctorReport:
    """What can be said where not even the root is known."""
    fix = f"unset {fault.origin}" if fault.origin.isidentifier() else "cd"
    return _report(None, [problem("root", f"{fault} ({fault.hint})", fix)], [])


def report_of_others_root(root: str, fault: OwnedByAnother) -> DoctorReport:
    """What can be said of sessions that are another user's: whose they are, and what to do."""
    return _report(root, [problem("root", f"{fault}; sessions are private to a user", EXPORT_ROOT_COMMAND)], [])


def _findings(inspection: Inspection) -> list[Finding]:
    """Of a root that cannot be used the other checks would only say the same in other words."""
    found = []
    for name, check in CHECKS.items():
        found.append(_run_check(name, check, inspection))
        if name == "root" and not found[-1]["ok"]:
            break
    return found


def _run_check(name: str, check: Check, inspection: Inspection) -> Finding:
    try:
        found = check(inspection)
        return found if found["ok"] or name not in WHOLE_ROOT_CHECKS or inspection.is_ours else _without_fix(found)
    except Exception as error:  # noqa: BLE001  # whatever is wrong here, the other checks may say why
        if _is_refusal(error) and inspection.entries_of_others:
            return ok(name, f"not checked: see the finding `owner` ({error})")
        return problem(name, f"could not be checked: {type(error).__name__}: {error}", None)


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, PermissionError) or isinstance(error.__cause__, PermissionError)


def _without_fix(found: Finding) -> Finding:
    return problem(found["name"], f"{found['found']}; others keep files there too, so that is left to you", None)


def _apply_fix(name: str, inspection: Inspection) -> str:
    try:
        return FIXES[name](inspection)
    except Exception as error:  # noqa: BLE001  # the checks that follow show what is left to mend
        return well_formed(f"failed: {type(error).__name__}: {error}")


def _make_private(inspection: Inspection) -> str:
    return f"{tree.make_private(inspection.root, inspection.entries[0].owner)} made private"


def _make_root_accessible(inspection: Inspection) -> str:
    os.chmod(inspection.root, stat.S_IMODE(os.stat(inspection.root).st_mode) | stat.S_IRWXU)
    return "may be read and written to by its owner"


def _ignore(inspection: Inspection) -> str:
    with make_root(inspection.root, durable=inspection.store.durable):
        return "kept out of version control"


def _sweep(inspection: Inspection) -> str:
    inspection.store.purge_trash()
    removed = inspection.store.sweep(inspection.now, inspection.records.active)
    return f"hints put right, {plural(len(removed), 'leftover')} removed"


def _apply_inbox(inspection: Inspection) -> str:
    return "; ".join(apply_deferred(inspection.store, inspection.now, inspection.config)) or "nothing waits any more"


FIXES: dict[str, Fix] = {
    "root": _make_root_accessible,
    "modes": _make_private,
    "ignored": _ignore,
    "hints": _sweep,
    "leftovers": _sweep,
    "inbox": _apply_inbox,
}
WHOLE_ROOT_CHECKS = frozenset([*FIXES, "owner", "readable", "corrupt"]) - {"root"}
"""The checks whose mends, made by us or by hand, would touch what others have in the root."""


def _report(root: str | None, checks: list[Finding], fixed: list[AppliedFix]) -> DoctorReport:
    healthy = all(finding["ok"] for finding in checks)
    return {"healthy": healthy, "version": __version__, "root": root, "checks": checks, "fixed": fixed}
