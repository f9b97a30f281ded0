"""The check of the hooks: whether hosts call them, once, all of them, and what else stands in the way.

Owns which of the doubts of ``wiring`` a command can mend. The others are said and leave all well: hooks of others are
not ours to judge, and a user's own may well be heard in other projects. What our own settings say that means nothing is
the matter of a check of its own.
"""

from __future__ import annotations

import os

from gaia_sessions.config import PREFIX, origin_of, project_file
from gaia_sessions.hosts.registry import CODEX
from gaia_sessions.hosts.settings import USER
from gaia_sessions.install import warnings
from gaia_sessions.install.installed_file import ABSENT
from gaia_sessions.install.status import hook_status

from .findings import edit_command, ok, problem, shell_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.install.installed_file import InstalledFile
    from gaia_sessions.install.status import HookStatus
    from gaia_sessions.install.warnings import InstallWarning

    from .findings import Finding
    from .inspection import Inspection

_NOTICES = frozenset([warnings.NEVER_FIRED, warnings.REWRITER, warnings.MIXED_ENTRY, warnings.ROOT_ELSEWHERE])
_FIXED_BY_REINSTALL = frozenset([warnings.MISSING_SCRIPT, warnings.MISSING_INTERPRETER])


def hooks(inspection: Inspection) -> Finding:
    """How the hooks stand in the settings of every host, as ``hooks status`` says at length."""
    status = hook_status(inspection.root, inspection.environ, inspection.now)
    status["warnings"] = [warning for warning in status["warnings"] if warning["code"] != warnings.BAD_SETTING]
    message = "; ".join([*_install_states(status), *(warning["message"] for warning in status["warnings"])])
    silent = [_hint(installed) for installed in status["installed"] if _is_silent(status, installed)]
    fixes = list(dict.fromkeys(_fix_commands(inspection, status)))
    if not fixes and not silent:
        return ok("hooks", message)
    return problem("hooks", "; ".join([message, *silent]), " && ".join(fixes) or None)


def _install_states(status: HookStatus) -> Iterator[str]:
    present = [installed for installed in status["installed"] if installed["state"] != ABSENT]
    if status["plugin"]:
        yield "the plugin is enabled"
    for installed in present:
        missing = f", without {', '.join(installed['missing'])}" if installed["missing"] else ""
        yield f"{installed['host']} ({installed['scope']}): {installed['state']}{missing}"
    if not present and not status["plugin"]:
        yield "not installed, which `gaia-sessions hooks install` does"


def _is_silent(status: HookStatus, installed: InstalledFile) -> bool:
    """Whether a project's hooks should have been heard by now; a user's own may well be heard in other projects."""
    codes = {warning["code"] for warning in status["warnings"] if warning["file"] in (None, installed["file"])}
    never_fired = warnings.NEVER_FIRED in codes and warnings.ROOT_ELSEWHERE not in codes
    return never_fired and installed["scope"] != USER and installed["installed_at"] is not None


def _hint(installed: InstalledFile) -> str:
    """What a person has to do that no command can."""
    trusted = ", and trust the hooks there with /hooks" if installed["host"] == CODEX else ", and trust its folder"
    folder = os.path.dirname(os.path.dirname(installed["file"]))
    return f"the hooks of {installed['host']} never ran: start it in {folder}{trusted}"


def _fix_commands(inspection: Inspection, status: HookStatus) -> Iterator[str]:
    by_file = {installed["file"]: installed for installed in status["installed"]}
    for installed in status["installed"]:
        if installed["missing"]:
            yield _install(inspection, installed)
    for warning in status["warnings"]:
        if warning["code"] not in _NOTICES:
            yield _fix_command(inspection, status, warning, by_file.get(warning["file"] or ""))


def _fix_command(
    inspection: Inspection, status: HookStatus, warning: InstallWarning, installed: InstalledFile | None
) -> str:
    if installed and warning["code"] == warnings.NOT_READ_HERE:
        return inspection.command_without_root("hooks", "install", "--here", *_install_options(installed))
    if warning["code"] == warnings.HOOKS_OFF:
        return _undo_command(origin_of("hooks", inspection.root, inspection.environ) or project_file(inspection.root))
    if installed and warning["code"] in _FIXED_BY_REINSTALL:
        return _install(inspection, installed)
    if installed and warning["code"] == warnings.INSTALLED_TWICE:
        return (
            _uninstall(inspection, installed)
            if _is_elsewhere_too(status, installed)
            else _install(inspection, installed)
        )
    return edit_command(warning["file"] or project_file(inspection.root))


def _undo_command(origin: str) -> str:
    return shell_command("unset", origin) if origin.startswith(PREFIX) else edit_command(origin)


def _is_elsewhere_too(status: HookStatus, installed: InstalledFile) -> bool:
    """Whether the host has our hooks from somewhere else as well; if not, one file has an entry twice."""
    others = [other for other in status["installed"] if other["host"] == installed["host"] and other["command"]]
    return len(others) > 1 or status["plugin"]


def _install(inspection: Inspection, installed: InstalledFile) -> str:
    return inspection.command("hooks", "install", *_install_options(installed))


def _install_options(installed: InstalledFile) -> list[str]:
    given = {"--track-tools": installed["track_tools"], "--allow-report": installed["allow_report"]}
    options = [option for option, is_given in given.items() if is_given]
    return ["--host", installed["host"], f"--{installed['scope']}", *options]


def _uninstall(inspection: Inspection, installed: InstalledFile) -> str:
    return inspection.command("hooks", "uninstall", "--host", installed["host"], f"--{installed['scope']}")
