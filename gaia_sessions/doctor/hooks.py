"""The check of the hooks: whether hosts call each of them once, and what else prevents it.

Owns which of the warnings of ``install`` a command can fix. The others are shown and are no problem: the hooks of other
programs are not judged here, and those in a user's own settings may send their events in other projects. Faults in the
settings of gaia-sessions have a check of their own.
"""

from __future__ import annotations

import os

from gaia_sessions.config import origin_of, project_file
from gaia_sessions.hook import argument_words
from gaia_sessions.hosts import CODEX
from gaia_sessions.hosts.settings import USER
from gaia_sessions.install import warnings
from gaia_sessions.install.installed_file import ABSENT
from gaia_sessions.install.status import hook_status

from .findings import edit_command, ok, problem, undo_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.install.installed_file import InstallState
    from gaia_sessions.install.status import HookStatus
    from gaia_sessions.install.warnings import InstallWarning

    from .findings import Finding
    from .inspection import Inspection

_NOTICES = frozenset([warnings.NEVER_FIRED, warnings.REWRITER, warnings.MIXED_ENTRY, warnings.ROOT_ELSEWHERE])
_FIXED_BY_REINSTALL = frozenset([warnings.MISSING_SCRIPT, warnings.MISSING_INTERPRETER])


def hooks(inspection: Inspection) -> Finding:
    """The state of the hooks in the settings of every host; ``hooks status`` shows it in detail."""
    status = hook_status(inspection.root, inspection.environ, inspection.now)
    status["warnings"] = [warning for warning in status["warnings"] if warning["code"] != warnings.BAD_SETTING]
    message = "; ".join([*_install_states(status), *(warning["message"] for warning in status["warnings"])])
    silent = [_start_advice(installed) for installed in status["installed"] if _is_silent(status, installed)]
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
        yield "not installed; install with `gaia-sessions hooks install`"


def _is_silent(status: HookStatus, installed: InstallState) -> bool:
    """Whether an event of a project's hooks is overdue; a user's own hooks may send theirs in other projects."""
    codes = {warning["code"] for warning in status["warnings"] if warning["file"] in (None, installed["file"])}
    never_fired = warnings.NEVER_FIRED in codes and warnings.ROOT_ELSEWHERE not in codes
    return never_fired and installed["scope"] != USER


def _start_advice(installed: InstallState) -> str:
    """What a person has to do, because no command can."""
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
    inspection: Inspection, status: HookStatus, warning: InstallWarning, installed: InstallState | None
) -> str:
    if installed and warning["code"] == warnings.NOT_READ_HERE:
        return inspection.command_without_root("hooks", "install", "--here", *_install_options(installed))
    if warning["code"] == warnings.HOOKS_OFF:
        return undo_command(origin_of("hooks", inspection.root, inspection.environ) or project_file(inspection.root))
    if installed and warning["code"] in _FIXED_BY_REINSTALL:
        return _install(inspection, installed)
    if installed and warning["code"] == warnings.INSTALLED_TWICE:
        return (
            _uninstall(inspection, installed)
            if _is_elsewhere_too(status, installed)
            else _install(inspection, installed)
        )
    return edit_command(warning["file"] or project_file(inspection.root))


def _is_elsewhere_too(status: HookStatus, installed: InstallState) -> bool:
    """Whether the host has the hooks from another place too; otherwise one file has an entry twice."""
    others = [other for other in status["installed"] if other["host"] == installed["host"] and other["command"]]
    return len(others) > 1 or status["plugin"]


def _install(inspection: Inspection, installed: InstallState) -> str:
    return inspection.command("hooks", "install", *_install_options(installed))


def _install_options(installed: InstallState) -> list[str]:
    options = argument_words(tools=installed["track_tools"], reports=installed["allow_report"])
    return ["--host", installed["host"], f"--{installed['scope']}", *options]


def _uninstall(inspection: Inspection, installed: InstallState) -> str:
    return inspection.command("hooks", "uninstall", "--host", installed["host"], f"--{installed['scope']}")
