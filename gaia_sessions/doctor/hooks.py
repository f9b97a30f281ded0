"""The check of the hooks: whether hosts call each of them once, and what else prevents it.

Owns which of the warnings of ``install`` are a problem, and the commands; ``hooks status`` shows the same. The hooks of
other programs are not judged here, and those in a user's own settings may send their events in other projects. Faults
in the settings of gaia-sessions have a check of their own.
"""

from __future__ import annotations

import os

from gaia_sessions.config import origin_of, project_file
from gaia_sessions.errors import BadSetting, StoreFailure
from gaia_sessions.hosts import CODEX
from gaia_sessions.hosts.settings import USER
from gaia_sessions.install import warnings
from gaia_sessions.install.executable import hook_program
from gaia_sessions.install.installed_file import ABSENT, ELSEWHERE, options_of
from gaia_sessions.install.status import hook_status
from gaia_sessions.system.project_root import find_root, working_directory

from .findings import edit_command, not_checked, ok, own_command, problem, shell_command, undo_command, warning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gaia_sessions.install.installed_file import InstallState
    from gaia_sessions.install.status import HookStatus
    from gaia_sessions.install.warnings import InstallWarning

    from .findings import Finding
    from .inspection import Inspection

_NO_PROBLEM = frozenset([warnings.REWRITER, warnings.MIXED_ENTRY, warnings.ROOT_ELSEWHERE])
_FIXED_BY_REINSTALL = frozenset([warnings.MISSING_SCRIPT, warnings.MISSING_INTERPRETER])


def hooks(inspection: Inspection) -> list[Finding]:
    """The state of the hooks in the settings of every host; ``hooks status`` shows it in detail."""
    status = hook_status(inspection.root, inspection.environ, inspection.now, (inspection.config, inspection.faults))
    states = [f"{found['host']} ({found['scope']}): {found['state']}" for found in _present(status)]
    states += ["the plugin is enabled"] * status["plugin"]
    return hook_findings(status, inspection.environ) or [ok("hooks", "; ".join(states))]


def hook_findings(status: HookStatus, environ: Mapping[str, str]) -> list[Finding]:
    """What is wrong with the hooks, or may be, each with its command; what one command fixes is one finding."""
    found: dict[str, Finding] = {}
    for finding in _findings(status, environ):
        first = found.setdefault(finding["fix"] or finding["found"], finding)
        if first is not finding:
            first["found"] += f"; {finding['found']}"
    return list(found.values())


def _findings(status: HookStatus, environ: Mapping[str, str]) -> Iterator[Finding]:
    by_file = {installed["file"]: installed for installed in status["installed"]}
    # an installation refuses to change these, so nothing else is said of them
    left_alone = {found["file"] for found in status["warnings"] if found["code"] == warnings.TOO_MANY}
    for found in status["warnings"]:
        if found["file"] in left_alone and found["code"] != warnings.TOO_MANY:
            continue
        if found["code"] != warnings.BAD_SETTING:
            yield _finding(status, environ, found, by_file.get(found["file"] or ""))
    for installed in _present(status):
        if installed["file"] in left_alone:
            continue
        where = f"the hooks of {installed['host']} in {installed['file']}"
        if installed["missing"]:
            message = f"{where} are not called for {', '.join(installed['missing'])}"
            yield problem("hooks", message, _install(status, environ, installed))
        elif installed["state"] == ELSEWHERE:
            message = f"{where} are not as this installation writes them: {shell_command(*installed['command'])}"
            yield warning("hooks", message, _install(status, environ, installed))
    if not _present(status) and not status["plugin"]:
        yield _first_install(status["root"], environ)


def _present(status: HookStatus) -> list[InstallState]:
    """The files with the hooks, and those that may have them since they cannot be read."""
    return [installed for installed in status["installed"] if installed["state"] != ABSENT]


def _finding(
    status: HookStatus, environ: Mapping[str, str], found: InstallWarning, installed: InstallState | None
) -> Finding:
    path = found["file"]
    message = found["message"] if path is None or path in found["message"] else f"{found['message']} ({path})"
    if found["code"] == warnings.NEVER_FIRED and installed:
        if _is_due_here(status, installed):
            return problem("hooks", _start_advice(installed), None)
        why = "no event was received in this project yet"
        return not_checked("hooks", f"whether {installed['host']} calls the hooks in {installed['file']}: {why}")
    if found["code"] in (warnings.LIMITS_NOT_HELD, warnings.COMMAND_NOT_ALLOWED) and installed:
        wanted: InstallState = {**installed}
        wanted["enforce" if found["code"] == warnings.LIMITS_NOT_HELD else "allow_report"] = True
        return warning("hooks", message, _install(status, environ, wanted))
    if found["code"] == warnings.NOT_LOOKED_AT:
        return not_checked("hooks", message)
    if found["code"] in _NO_PROBLEM or (found["code"] == warnings.INSTALLED_TWICE and path is None):
        return warning("hooks", message)
    return problem("hooks", message, _fix_command(status, environ, found, installed))


def _is_due_here(status: HookStatus, installed: InstallState) -> bool:
    """Whether the hooks send their events here: a user's own may send theirs in other projects."""
    is_elsewhere = any(warning["code"] == warnings.ROOT_ELSEWHERE for warning in status["warnings"])
    return not is_elsewhere and installed["scope"] != USER


def _start_advice(installed: InstallState) -> str:
    """What a person has to do, because no command can."""
    trusted = ", and trust the hooks there with /hooks" if installed["host"] == CODEX else ", and trust its folder"
    folder = os.path.dirname(os.path.dirname(installed["file"]))
    return f"the hooks of {installed['host']} in {installed['file']} never ran: start it in {folder}{trusted}"


def _fix_command(
    status: HookStatus, environ: Mapping[str, str], found: InstallWarning, installed: InstallState | None
) -> str:
    if installed and found["code"] == warnings.NOT_READ_HERE:
        return own_command(environ, "hooks", "install", "--here", *_install_options(installed))
    if found["code"] == warnings.HOOKS_OFF:
        return undo_command(origin_of("hooks", status["root"], environ) or project_file(status["root"]))
    is_second = found["code"] == warnings.INSTALLED_TWICE
    if installed and is_second and _is_elsewhere_too(status, installed):
        words = ["hooks", "uninstall", "--host", installed["host"], f"--{installed['scope']}"]
        return own_command(environ, "--root", status["root"], *words)
    if found["code"] == warnings.OLD_PYTHON:
        return own_command(environ, "hooks", "install")
    if installed and (is_second or found["code"] in _FIXED_BY_REINSTALL):
        return _install(status, environ, installed)
    return edit_command(found["file"] or project_file(status["root"]))


def _is_elsewhere_too(status: HookStatus, installed: InstallState) -> bool:
    """Whether the host has the hooks from another place too; otherwise one file has an entry twice."""
    others = [other for other in status["installed"] if other["host"] == installed["host"] and other["command"]]
    return len(others) > 1 or status["plugin"]


def _install(status: HookStatus, environ: Mapping[str, str], installed: InstallState) -> str:
    return own_command(environ, "--root", status["root"], "hooks", "install", *_install_options(installed))


def _install_options(installed: InstallState) -> list[str]:
    return ["--host", installed["host"], f"--{installed['scope']}", *options_of(installed)]


def _first_install(root: str, environ: Mapping[str, str]) -> Finding:
    """That there are no hooks, with the command that installs them for ``root``, or what keeps it from doing so."""
    message = "no hooks are installed here, so what agents do is not recorded"
    try:
        hook_program()
    except StoreFailure as error:
        return warning("hooks", f"{message}, and {error.reason}: {error.hint}", None)
    try:
        is_found = find_root(None, environ, working_directory()) == root
    except BadSetting:
        is_found = False
    command = own_command(environ, *([] if is_found else ["--root", root]), "hooks", "install")
    return warning("hooks", f"{message}; to install them for Claude Code:", command)
