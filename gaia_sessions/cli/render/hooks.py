"""What ``hooks install`` and ``hooks uninstall`` print, as plain text and as JSON."""

from __future__ import annotations

import json

from gaia_sessions.doctor.hook_files import command_for_root
from gaia_sessions.errors import well_formed
from gaia_sessions.install import plan
from gaia_sessions.session.visible import visible

from .hook_status import warning_lines
from .words import Copyable, command_to_copy, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.doctor.hook_files import HookFinding
    from gaia_sessions.install.places import Places
    from gaia_sessions.install.plan import InstallResult

_LONGEST = 1000

_REMARKS = {
    plan.TRUST_HOOKS: "Codex skips these hooks until you trust them: type /hooks in Codex.",
    plan.TRUST_FOLDER: "Claude Code ignores permissions of a project until you trust its folder: start it there once.",
    plan.MACHINE_PATHS: "The entries contain paths of this machine; --user keeps them out of the shared settings.",
}


def json_document(value: object) -> object:
    """Returns ``value`` with all texts in valid UTF-8: paths and settings of others can contain any bytes."""
    if isinstance(value, dict):
        return {json_document(key): json_document(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [json_document(inner) for inner in value]
    return well_formed(value) if isinstance(value, str) else value


def result_lines(
    result: InstallResult, warnings: list[HookFinding], places: Places, *, is_terminal: bool
) -> Iterator[str]:
    """Yields what an installation or an uninstall did, and what is wrong now; for a dry run, only the difference."""
    if result["dry_run"]:  # a terminal must not obey bytes of the file; a pipe gets an exact patch
        diff = visible(result["diff"]) if is_terminal else result["diff"]
        yield from map(Copyable, diff.split("\n")) if diff else ["nothing would change"]
        return
    is_install = result["action"] == plan.INSTALL
    if result["changed"]:
        yield f"{'installed in' if is_install else 'removed from'} {_path(result['file'])}"
        yield from _detail_lines(result)
    else:
        state = "already installed" if is_install else "not installed"
        yield f"{state} in {_path(result['file'])}, nothing changed"
    for scope in result["elsewhere"]:
        command = command_for_root(places, "hooks", "uninstall", "--host", result["host"], f"--{scope}")
        yield command_to_copy(command, before="  installed elsewhere: ")
    yield from (f"  {_REMARKS[remark]}" for remark in result["remarks"])
    yield from warning_lines(warnings)


def _detail_lines(result: InstallResult) -> Iterator[str]:
    yield from (Copyable(safe(rule, _LONGEST), before="  allows: ") for rule in result["rules"])
    yield from (Copyable(safe(rule, _LONGEST), before="  no longer allows: ") for rule in result["withdrawn"])
    word = "replaced" if result["action"] == plan.INSTALL else "removed"
    for found in result["by_hand"]:
        text = f"{json.dumps(found['event'])}: [{json.dumps(found['entry'])}]"
        yield Copyable(visible(text), before=f"  {word} what was written by hand: ")


def _path(path: str) -> str:
    return safe(path, _LONGEST)
