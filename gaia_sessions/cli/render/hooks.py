"""What ``hooks install``, ``hooks uninstall`` and ``hooks status`` print, as plain text and as JSON.

Owns the wording, also of the notices and states that ``install`` knows by code.
"""

from __future__ import annotations

import json
import shlex

from gaia_sessions.doctor.findings import PROBLEM
from gaia_sessions.errors import well_formed
from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.settings import LOCAL, PROJECT, USER
from gaia_sessions.install import installed_file, notices, plan
from gaia_sessions.session.visible import visible

from .doctor import problem_lines
from .words import Copyable, ago, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gaia_sessions.doctor.findings import Finding
    from gaia_sessions.install.installed_file import InstallState
    from gaia_sessions.install.plan import InstallResult
    from gaia_sessions.install.status import HookStatus

_LONGEST = 1000
_LONGEST_NAME = 60
_WIDTH = 80

_NOTES = {
    notices.TRUST_HOOKS: "Codex skips these hooks until you trust them there: type /hooks.",
    notices.TRUST_FOLDER: (
        "Claude Code ignores a project's permissions until you trust its folder: start it there once."
    ),
    notices.MACHINE_PATHS: "The entries contain paths of this machine; --user keeps them out of the shared settings.",
    notices.ROOT_ELSEWHERE: (
        "Hooks keep their sessions in {root} only where the host is started with GAIA_SESSIONS_ROOT set to it."
    ),
    notices.START_THERE: (
        "A client that is started here does not read this file: start it in {start_in}, or install with --here."
    ),
    notices.NOT_IGNORED: "Git does not ignore this file. To have it ignored, type",
    notices.TRACKED: "Git tracks this file: the next commit will include your entries.",
    notices.MIXED_ENTRY: "An entry that starts gaia-sessions and something else was not changed: see hooks status.",
}

_STATE_TEXTS = {
    installed_file.COMPLETE: "installed",
    installed_file.INCOMPLETE: "installed, but not for every event",
    installed_file.ELSEWHERE: "installed, but another version or from another path",
    installed_file.ABSENT: "not installed",
    installed_file.UNREADABLE: "cannot be read",
}


_SCOPE_TEXTS = {LOCAL: "this project for you", PROJECT: "this project for the team", USER: "all your projects"}


def json_document(value: object) -> object:
    """``value`` with every text valid in UTF-8: paths and the settings of others may contain any bytes."""
    if isinstance(value, dict):
        return {json_document(key): json_document(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [json_document(inner) for inner in value]
    return well_formed(value) if isinstance(value, str) else value


def result_lines(result: InstallResult) -> Iterator[str]:
    """What an installation or an uninstall did; for a dry run, only the difference."""
    if result["dry_run"]:
        yield from map(Copyable, result["diff"].split("\n")) if result["diff"] else ["nothing would change"]
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
        if note == notices.NOT_IGNORED and result["exclude"]:
            yield Copyable(visible(result["exclude"]["command"]), before="    ")


def status_lines(hook_status: HookStatus, findings: list[Finding], now: datetime, *, verbose: bool) -> Iterator[str]:
    """What is wrong, then where the hooks are installed and work; with ``verbose`` everything that is known of them."""
    yield from problem_lines(findings)
    problems = [finding["found"] for finding in findings if finding["state"] == PROBLEM]
    installed = [found for found in hook_status["installed"] if found["state"] != installed_file.ABSENT]
    for found in installed:
        if hook_status["enabled"] and not any(found["file"] in problem for problem in problems):
            heard = _last_event(hook_status, found["host"], now)
            yield f"{found['host']}: installed in {_SCOPE_TEXTS[found['scope']]}, {heard}"
    if hook_status["enabled"] and hook_status["plugin"]:
        yield f"{CLAUDE_CODE}: the plugin is enabled, {_last_event(hook_status, CLAUDE_CODE, now)}"
    if verbose:
        for found in installed:
            yield from _installation_lines(found)
        for host, events in hook_status["heard_from"].items():
            yield f"last events from {safe(host, _LONGEST_NAME)}"
            yield from (f"  {safe(event, _LONGEST_NAME)}: {ago(at, now)}" for event, at in events.items())


def _last_event(hook_status: HookStatus, host: str, now: datetime) -> str:
    times = hook_status["heard_from"].get(host, {}).values()
    return f"last event {ago(max(times), now)}" if times else "no event received yet"


def _installation_lines(found: InstallState) -> Iterator[str]:
    yield f"{found['host']}, {found['scope']}: {_STATE_TEXTS[found['state']]}: {_path(found['file'])}"
    if found["command"]:
        yield Copyable(visible(shlex.join(found["command"])), before="  starts: ")
    yield from _event_lines("events", found["wired"])
    yield from _event_lines("missing events", found["missing"])


def _event_lines(name: str, events: list[str]) -> Iterator[str]:
    """``events`` in lines that fit a terminal; nothing if there are none."""
    line = f"  {name}:"
    for place, event in enumerate(events):
        word = safe(event, _LONGEST_NAME) + ("," if place < len(events) - 1 else "")
        if len(line) + 1 + len(word) > _WIDTH:
            yield line
            line = "   "
        line += f" {word}"
    if events:
        yield line


def _path(path: str) -> str:
    return safe(path, _LONGEST)
