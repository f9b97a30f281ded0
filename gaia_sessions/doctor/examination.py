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
from gaia_sessions.errors import KEEP_ELSEWHERE, well_formed
from gaia_sessions.ingest.dispatch import apply_deferred
from gaia_sessions.session.clock import utc_now
from gaia_sessions.store import root as roots

from . import activity, contents, machine, place, tree, wired
from .case import Case
from .findings import ailing, counted, fine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gaia_sessions.errors import BadSetting, OwnedByAnother
    from gaia_sessions.system.project_root import PassedOver

    from .findings import Finding

    Check = Callable[[Case], Finding]
    Mend = Callable[[Case], str]


class Mended(TypedDict):
    """name: of the check whose mend was tried; done: what came of it."""

    name: str
    done: str


class Examined(TypedDict):
    healthy: bool
    version: str
    root: str | None
    checks: list[Finding]
    fixed: list[Mended]


CHECKS: dict[str, Check] = {
    "interpreter": machine.interpreter,
    "version": machine.version,
    "packages": machine.packages,
    "settings": activity.settings,
    "project": place.project,
    "root": place.root,
    "file_system": place.file_system,
    "space": place.space,
    "owner": place.owner,
    "modes": place.modes,
    "ignored": place.ignored,
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
    "hooks": wired.hooks,
    "log": activity.log,
}


def examine(root: str, environ: Mapping[str, str], passed_over: Sequence[PassedOver] = ()) -> Examined:
    """What every check finds of the sessions at ``root``. Takes no lock and writes nothing."""
    return _told(root, _findings(Case(root, environ, utc_now(), passed_over=passed_over)), [])


def treat(root: str, environ: Mapping[str, str], passed_over: Sequence[PassedOver] = ()) -> Examined:
    """The same after what is safe to mend was mended; ``fixed`` says what was done."""
    case = Case(root, environ, utc_now(), passed_over=passed_over)
    ailing_now = [finding["name"] for finding in _findings(case) if finding["fixable"]]
    fixed: list[Mended] = [{"name": name, "done": _mended(name, case)} for name in ailing_now]
    again = Case(root, environ, utc_now(), frozenset(ailing_now), passed_over)
    return _told(root, _findings(again), fixed)


def unfound(fault: BadSetting) -> Examined:
    """What can be said where not even the root is known."""
    mend = f"unset {fault.origin}" if fault.origin.isidentifier() else "cd"
    return _told(None, [ailing("root", f"{fault} ({fault.hint})", mend)], [])


def refused(root: str, fault: OwnedByAnother) -> Examined:
    """What can be said of sessions that are another user's: whose they are, and what to do."""
    return _told(root, [ailing("root", f"{fault}; sessions are private to a user", KEEP_ELSEWHERE)], [])


def _findings(case: Case) -> list[Finding]:
    """Of a root that cannot be used the other checks would only say the same in other words."""
    found = []
    for name, check in CHECKS.items():
        found.append(_checked(name, check, case))
        if name == "root" and not found[-1]["ok"]:
            break
    return found


def _checked(name: str, check: Check, case: Case) -> Finding:
    try:
        found = check(case)
        return found if found["ok"] or name not in OF_THE_WHOLE_ROOT or case.is_ours else _left_alone(found)
    except Exception as error:  # noqa: BLE001  # whatever is wrong here, the other checks may say why
        if _is_refusal(error) and case.strange:
            return fine(name, f"not checked: see the finding `owner` ({error})")
        return ailing(name, f"could not be checked: {type(error).__name__}: {error}", None)


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, PermissionError) or isinstance(error.__cause__, PermissionError)


def _left_alone(found: Finding) -> Finding:
    return ailing(found["name"], f"{found['found']}; others keep files there too, so that is left to you", None)


def _mended(name: str, case: Case) -> str:
    try:
        return MENDS[name](case)
    except Exception as error:  # noqa: BLE001  # the checks that follow show what is left to mend
        return well_formed(f"failed: {type(error).__name__}: {error}")


def _make_private(case: Case) -> str:
    return f"{tree.make_private(case.root, case.entries[0].owner)} made private"


def _open_root(case: Case) -> str:
    os.chmod(case.root, stat.S_IMODE(os.stat(case.root).st_mode) | stat.S_IRWXU)
    return "may be read and written to by its owner"


def _ignore(case: Case) -> str:
    with roots.make(case.root, durable=case.store.durable):
        return "kept out of version control"


def _tend(case: Case) -> str:
    case.store.settle()
    return f"hints put right, {counted(len(case.store.tend(case.now, case.records.active)), 'leftover')} removed"


def _apply(case: Case) -> str:
    return "; ".join(apply_deferred(case.store, case.now, case.config)) or "nothing waits any more"


MENDS: dict[str, Mend] = {
    "root": _open_root,
    "modes": _make_private,
    "ignored": _ignore,
    "hints": _tend,
    "leftovers": _tend,
    "inbox": _apply,
}
OF_THE_WHOLE_ROOT = frozenset([*MENDS, "owner", "readable", "corrupt"]) - {"root"}
"""The checks whose mends, made by us or by hand, would touch what others have in the root."""


def _told(root: str | None, checks: list[Finding], fixed: list[Mended]) -> Examined:
    healthy = all(finding["ok"] for finding in checks)
    return {"healthy": healthy, "version": __version__, "root": root, "checks": checks, "fixed": fixed}
