"""The check of the hooks: whether hosts call them, once, all of them, and what else stands in the way.

Owns which of the doubts of ``wiring`` a command can mend. The others are said and leave all well: hooks of others are
not ours to judge, and a user's own may well be heard in other projects. What our own settings say that means nothing is
the matter of a check of its own.
"""

from __future__ import annotations

import os

from gaia_sessions.config import PREFIX, project_file, said_in
from gaia_sessions.hosts.registry import CODEX
from gaia_sessions.install import warnings
from gaia_sessions.install.places import USER
from gaia_sessions.install.status import ABSENT, standing

from .findings import ailing, edit, fine, shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.install.status import Installed, Standing
    from gaia_sessions.install.warnings import Warned

    from .case import Case
    from .findings import Finding

_REMARKS = frozenset([warnings.NEVER_FIRED, warnings.REWRITER, warnings.MIXED_ENTRY, warnings.ROOT_ELSEWHERE])
_INSTALLED_ANEW = frozenset([warnings.MISSING_SCRIPT, warnings.MISSING_INTERPRETER])


def hooks(case: Case) -> Finding:
    """How the hooks stand in the settings of every host, as ``hooks status`` says at length."""
    found = standing(case.root, case.environ, case.now)
    found["warnings"] = [warned for warned in found["warnings"] if warned["code"] != warnings.BAD_SETTING]
    told = "; ".join([*_places(found), *(warned["message"] for warned in found["warnings"])])
    silent = [_hint(installed) for installed in found["installed"] if _is_silent(found, installed)]
    mends = list(dict.fromkeys(_mends(case, found)))
    if not mends and not silent:
        return fine("hooks", told)
    return ailing("hooks", "; ".join([told, *silent]), " && ".join(mends) or None)


def _places(found: Standing) -> Iterator[str]:
    there = [installed for installed in found["installed"] if installed["state"] != ABSENT]
    if found["plugin"]:
        yield "the plugin is enabled"
    for installed in there:
        missing = f", without {', '.join(installed['missing'])}" if installed["missing"] else ""
        yield f"{installed['host']} ({installed['scope']}): {installed['state']}{missing}"
    if not there and not found["plugin"]:
        yield "not installed, which `gaia-sessions hooks install` does"


def _is_silent(found: Standing, installed: Installed) -> bool:
    """Whether a project's hooks should have been heard by now; a user's own may well be heard in other projects."""
    codes = {warned["code"] for warned in found["warnings"] if warned["file"] in (None, installed["file"])}
    is_doubtful = warnings.NEVER_FIRED in codes and warnings.ROOT_ELSEWHERE not in codes
    return is_doubtful and installed["scope"] != USER and installed["installed_at"] is not None


def _hint(installed: Installed) -> str:
    """What a person has to do that no command can."""
    trusted = ", and trust the hooks there with /hooks" if installed["host"] == CODEX else ", and trust its folder"
    folder = os.path.dirname(os.path.dirname(installed["file"]))
    return f"the hooks of {installed['host']} never ran: start it in {folder}{trusted}"


def _mends(case: Case, found: Standing) -> Iterator[str]:
    by_file = {installed["file"]: installed for installed in found["installed"]}
    for installed in found["installed"]:
        if installed["missing"]:
            yield _install(case, installed)
    for warned in found["warnings"]:
        if warned["code"] not in _REMARKS:
            yield _mend(case, found, warned, by_file.get(warned["file"] or ""))


def _mend(case: Case, found: Standing, warned: Warned, installed: Installed | None) -> str:
    if installed and warned["code"] == warnings.NOT_READ_HERE:
        return case.command_anywhere("hooks", "install", "--here", *_as_before(installed))
    if warned["code"] == warnings.HOOKS_OFF:
        return _undone(said_in("hooks", case.root, case.environ) or project_file(case.root))
    if installed and warned["code"] in _INSTALLED_ANEW:
        return _install(case, installed)
    if installed and warned["code"] == warnings.INSTALLED_TWICE:
        return _uninstall(case, installed) if _is_elsewhere_too(found, installed) else _install(case, installed)
    return edit(warned["file"] or project_file(case.root))


def _undone(said: str) -> str:
    return shell("unset", said) if said.startswith(PREFIX) else edit(said)


def _is_elsewhere_too(found: Standing, installed: Installed) -> bool:
    """Whether the host has our hooks from somewhere else as well; if not, one file has an entry twice."""
    others = [other for other in found["installed"] if other["host"] == installed["host"] and other["command"]]
    return len(others) > 1 or found["plugin"]


def _install(case: Case, installed: Installed) -> str:
    return case.command("hooks", "install", *_as_before(installed))


def _as_before(installed: Installed) -> list[str]:
    given = {"--track-tools": installed["track_tools"], "--allow-report": installed["allow_report"]}
    options = [option for option, is_given in given.items() if is_given]
    return ["--host", installed["host"], f"--{installed['scope']}", *options]


def _uninstall(case: Case, installed: Installed) -> str:
    return case.command("hooks", "uninstall", "--host", installed["host"], f"--{installed['scope']}")
