"""The report: every check once; with ``--fix``, the safe fixes and then every check again.

A check that raises an error is a finding, so that it hides no other check.
"""

from __future__ import annotations

import os
import stat
from typing import TypedDict

from gaia_sessions import __version__
from gaia_sessions.errors import EXPORT_ROOT_COMMAND, BadSetting, OwnedByAnother, StoreFailure, plural, well_formed
from gaia_sessions.ingest.deferred import apply_deferred
from gaia_sessions.store.sweep import sweep_sessions
from gaia_sessions.system import utc_now
from gaia_sessions.system.project_root import (
    check_links,
    check_owner,
    find_root_and_skipped,
    is_on_server,
    working_directory,
)

from . import activity, contents, hooks, machine, own_files, parents, root_folder, server
from .findings import PROBLEM, not_checked, problem
from .inspection import Inspection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gaia_sessions.system.project_root import SkippedProject

    from .findings import Finding

    Check = Callable[[Inspection], Finding | list[Finding]]
    Fix = Callable[[Inspection], str]


class AppliedFix(TypedDict):
    """A fix that was applied: the name of its check, and the result in words, or why it failed."""

    name: str
    done: str


class DoctorReport(TypedDict):
    """What was found and fixed."""

    problems: int  # how many
    version: str
    root: str | None  # the folder; None if it cannot be found
    server: str | None  # the URL that commands use instead of the folder
    checks: list[Finding]  # after the fixes
    fixed: list[AppliedFix]


CHECKS: dict[str, Check] = {
    "packages": machine.packages,
    "settings": activity.settings,
    "project": root_folder.project,
    "root": root_folder.root,
    "file_system": root_folder.file_system,
    "space": root_folder.space,
    "owner": root_folder.owner,
    "modes": root_folder.modes,
    "clock": machine.clock,
    "processes": machine.process_table,
    "containment": machine.containment,
    "readable": contents.readable,
    "marks": contents.marks,
    "corrupt": contents.corrupt,
    "shared": contents.shared,
    "figures": contents.figures,
    "times": contents.times,
    "parents": parents.parents,
    "answers": contents.answers,
    "runs": contents.runs,
    "locks": activity.locks,
    "inbox": contents.inbox,
    "messages": contents.messages,
    "hints": contents.hints,
    "leftovers": contents.leftovers,
    "hooks": hooks.hooks,
    "log": activity.log,
}


def make_report(typed_root: str | None, environ: Mapping[str, str], *, fix: bool) -> DoctorReport:
    """Returns the report on the sessions that a command would use; with ``fix``, applies the safe fixes before.

    If that root is on a server, the report is on the server and on the files of the hooks.
    """
    url = None
    try:
        root, skipped = find_root_and_skipped(typed_root, environ, working_directory())
        if is_on_server(root):
            url = root
            root, skipped = find_root_and_skipped(None, environ, working_directory(), only_files=True)
    except BadSetting as fault:
        if typed_root is not None:  # the user typed this root, so an error is enough
            raise
        return _report_without_root(fault)
    report = _report_on_files(root, environ, skipped, fix=fix)
    if url is None:
        return report
    return _report(root, [*server.server(url, environ), *report["checks"]], report["fixed"], url)


def _report_on_files(
    root: str, environ: Mapping[str, str], skipped: Sequence[SkippedProject], *, fix: bool
) -> DoctorReport:
    try:
        check_owner(root)
        check_links(root)
    except StoreFailure as fault:
        return _report_of_unusable_root(root, fault)
    return examine_and_fix(root, environ, skipped) if fix else examine(root, environ, skipped)


def examine(root: str, environ: Mapping[str, str], skipped: Sequence[SkippedProject] = ()) -> DoctorReport:
    """Returns the findings about the sessions at ``root``. Takes no lock and writes nothing."""
    return _report(root, _findings(Inspection(root, environ, utc_now(), skipped=skipped)), [])


def examine_and_fix(root: str, environ: Mapping[str, str], skipped: Sequence[SkippedProject] = ()) -> DoctorReport:
    """Returns the findings after all safe fixes, and what was fixed."""
    inspection = Inspection(root, environ, utc_now(), skipped=skipped)
    fixable = [finding["name"] for finding in _findings(inspection) if finding["fixable"]]
    fixed: list[AppliedFix] = [{"name": name, "done": _apply_fix(name, inspection)} for name in fixable]
    after = Inspection(root, environ, utc_now(), frozenset(fixable), skipped)
    return _report(root, _findings(after), fixed)


def _report_without_root(fault: BadSetting) -> DoctorReport:
    """Returns the report if no root can be found."""
    fix = f"unset {fault.origin}" if fault.origin.isidentifier() else "cd"
    return _report(None, _only_root(problem("root", f"{fault} ({fault.hint})", fix)), [])


def _report_of_unusable_root(root: str, fault: StoreFailure) -> DoctorReport:
    """Returns the report on sessions that belong to another user, or to which a link leads out of the project."""
    # The command to paste must contain no word of a link: a stranger can have made the link.
    advice = "sessions are private to a user" if isinstance(fault, OwnedByAnother) else fault.hint
    found = problem("root", f"{fault}; {advice}", EXPORT_ROOT_COMMAND)
    return _report(root, _only_root(found), [])


def _only_root(found: Finding) -> list[Finding]:
    return [found, *_without_root(name for name in CHECKS if name != "root")]


_OF_ROOT = frozenset(["owner", "modes", "corrupt", "locks", "inbox", "messages", "hints", "leftovers"])
_OF_SESSIONS = frozenset(["clock", "readable", "marks", "times", "parents", "answers", "runs"])


def _findings(inspection: Inspection) -> list[Finding]:
    """Returns the findings of all checks; if the root is unusable, no other check runs."""
    found: list[Finding] = []
    for number, (name, check) in enumerate(CHECKS.items(), 1):
        found += _run_check(name, check, inspection)
        if name == "root" and found[-1]["state"] == PROBLEM:
            return found + _without_root([*CHECKS][number:])
    return found


def _without_root(names: Iterable[str]) -> list[Finding]:
    return [not_checked(name, "everything else, because no folder for sessions can be used") for name in names]


def _run_check(name: str, check: Check, inspection: Inspection) -> list[Finding]:
    try:
        nothing = _why_nothing(name, inspection)
        found = not_checked(name, nothing) if nothing else check(inspection)
    except Exception as error:  # noqa: BLE001  # other checks may explain it
        if _is_refusal(error) and inspection.entries_of_others:
            return [not_checked(name, f"files of another user: {error}")]
        return [problem(name, f"{name} could not be checked: {type(error).__name__}: {error}", None)]
    return found if isinstance(found, list) else [found]


def _why_nothing(name: str, inspection: Inspection) -> str:
    """Returns why the check has nothing to look at; empty if it has something."""
    if name in _OF_ROOT | _OF_SESSIONS and not os.path.exists(inspection.root):
        return f"the sessions, because {inspection.root} does not exist yet"
    if name in _OF_SESSIONS and not inspection.records.total:
        return f"the sessions, because there are none in {inspection.root} yet"
    return ""


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, PermissionError) or isinstance(error.__cause__, PermissionError)


def _apply_fix(name: str, inspection: Inspection) -> str:
    try:
        return FIXES[name](inspection)
    except Exception as error:  # noqa: BLE001  # the next checks show what is still wrong
        return well_formed(f"failed: {type(error).__name__}: {error}")


def _make_private(inspection: Inspection) -> str:
    return f"{own_files.make_private(inspection.root, inspection.entries[0].owner)} made private"


def _make_root_accessible(inspection: Inspection) -> str:
    os.chmod(inspection.root, stat.S_IMODE(os.stat(inspection.root).st_mode) | stat.S_IRWXU)
    return "its owner can read and write it now"


def _sweep(inspection: Inspection) -> str:
    store, now = inspection.store, inspection.now
    removed = [*store.sweep(now), *sweep_sessions(store.folder, now)]
    return f"index corrected, {plural(len(removed), 'leftover')} removed"


def _apply_inbox(inspection: Inspection) -> str:
    applied = apply_deferred(inspection.store, inspection.now, inspection.config)
    return "; ".join(applied) or "no event is waiting now"


FIXES: dict[str, Fix] = {
    "root": _make_root_accessible,
    "modes": _make_private,
    "hints": _sweep,
    "leftovers": _sweep,
    "inbox": _apply_inbox,
}


def _report(root: str | None, checks: list[Finding], fixed: list[AppliedFix], url: str | None = None) -> DoctorReport:
    problem_count = sum(finding["state"] == PROBLEM for finding in checks)
    return {
        "problems": problem_count,
        "version": __version__,
        "root": root,
        "server": url,
        "checks": checks,
        "fixed": fixed,
    }
