"""What ``hooks install`` and ``hooks uninstall`` print, as plain text and as JSON.

Owns the wording, also of the notices that ``install`` knows by code.
"""

from __future__ import annotations

import json

from gaia_sessions.errors import well_formed
from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.install import notices, plan
from gaia_sessions.install.places import UNKNOWN_HOME
from gaia_sessions.session.visible import visible

from .words import Copyable, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.install.plan import InstallResult

_LONGEST = 1000

_NOTES = {
    notices.TRUST_HOOKS: "Codex skips these hooks until you trust them there: type /hooks.",
    notices.TRUST_FOLDER: (
        "Claude Code ignores a project's permissions until you trust its folder: start it there once."
    ),
    notices.MACHINE_PATHS: (
        "The entries contain paths of this machine; --local, where the client has it, or --user keeps them out of the "
        "shared settings."
    ),
    notices.ROOT_ELSEWHERE: (
        "Hooks keep their sessions in {root} only where the host is started with GAIA_SESSIONS_ROOT set to it."
    ),
    notices.START_THERE: (
        "A client that is started here does not read this file: start it in {start_in}, or install with --here."
    ),
    notices.MIXED_ENTRY: (
        "An entry that starts gaia-sessions and something else was not changed: `gaia-sessions hooks status` shows it."
    ),
    notices.NO_HOME: f"Your own settings were not looked at: HOME {UNKNOWN_HOME}.",
}


def json_document(value: object) -> object:
    """``value`` with every text valid in UTF-8: paths and the settings of others may contain any bytes."""
    if isinstance(value, dict):
        return {json_document(key): json_document(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [json_document(inner) for inner in value]
    return well_formed(value) if isinstance(value, str) else value


def result_lines(result: InstallResult, *, is_terminal: bool) -> Iterator[str]:
    """What an installation or an uninstall did; for a dry run, only the difference.

    At a terminal nothing of the file is shown that it would obey; what a pipe gets is a patch to the byte.
    """
    if result["dry_run"]:
        diff = visible(result["diff"]) if is_terminal else result["diff"]
        yield from map(Copyable, diff.split("\n")) if diff else ["nothing would change"]
        return
    if not result["changed"]:
        state = "already installed" if result["action"] == plan.INSTALL else "not installed"
        yield f"{state} in {_path(result['file'])}, nothing changed"
        yield from _note_lines(result)
        return
    verb = "installed in" if result["action"] == plan.INSTALL else "removed from"
    yield f"{verb} {_path(result['file'])}"
    yield from _detail_lines(result)


def _detail_lines(result: InstallResult) -> Iterator[str]:
    yield from (Copyable(safe(rule, _LONGEST), before="  allows: ") for rule in result["rules"])
    yield from (Copyable(safe(rule, _LONGEST), before="  no longer allows: ") for rule in result["withdrawn"])
    word = "replaced" if result["action"] == plan.INSTALL else "removed"
    for found in result["by_hand"]:
        text = f"{json.dumps(found['event'])}: [{json.dumps(found['entry'])}]"
        yield Copyable(visible(text), before=f"  {word} what was written by hand: ")
    yield from _note_lines(result)


def _note_lines(result: InstallResult) -> Iterator[str]:
    host = "" if result["host"] == CLAUDE_CODE else f" --host {result['host']}"
    yield from (
        f"  installed elsewhere: gaia-sessions hooks uninstall{host} --{scope}" for scope in result["elsewhere"]
    )
    paths = {"root": _path(result["root"]), "start_in": _path(result["start_in"] or "")}
    for note in result["remarks"]:
        yield f"  {_NOTES[note].format_map(paths)}"


def _path(path: str) -> str:
    return safe(path, _LONGEST)
