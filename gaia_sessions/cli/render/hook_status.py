"""What ``hooks status`` prints for a person: what is wrong with the hooks, and where they are installed."""

from __future__ import annotations

import shlex

from gaia_sessions.doctor.findings import PROBLEM
from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.settings import LOCAL, PROJECT, USER
from gaia_sessions.install import installed_file, warnings

from .doctor import problem_lines
from .words import ago, command_to_copy, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gaia_sessions.doctor.findings import Finding
    from gaia_sessions.install.installed_file import InstallState
    from gaia_sessions.install.status import HookStatus

_LONGEST = 1000
_LONGEST_NAME = 60
_WIDTH = 80

_STATE_TEXTS = {
    installed_file.COMPLETE: "installed",
    installed_file.INCOMPLETE: "installed, but not for every event",
    installed_file.ELSEWHERE: "installed, but another version or from another path",
    installed_file.ABSENT: "not installed",
    installed_file.UNREADABLE: "cannot be read",
}


_SCOPE_TEXTS = {LOCAL: "this project for you", PROJECT: "this project for the team", USER: "all your projects"}


def status_lines(hook_status: HookStatus, findings: list[Finding], now: datetime, *, verbose: bool) -> Iterator[str]:
    """What is wrong, then where the hooks are installed and work; with ``verbose`` everything that is known of them."""
    yield from problem_lines(findings)
    problems = [finding["found"] for finding in findings if finding["state"] == PROBLEM]
    installed = [found for found in hook_status["installed"] if found["state"] != installed_file.ABSENT]
    for found in installed:
        if hook_status["enabled"] and not any(found["file"] in problem for problem in problems):
            heard = _last_event(hook_status, found["host"], now)
            yield f"{found['host']}: installed in {_SCOPE_TEXTS[found['scope']]}, {heard}"
            if options := installed_file.options_of(found):
                yield f"  with {' '.join(options)}"
    if hook_status["enabled"] and hook_status["plugin"]:
        yield f"{CLAUDE_CODE}: the plugin is enabled, {_last_event(hook_status, CLAUDE_CODE, now)}"
    for told in hook_status["warnings"]:
        if told["code"] == warnings.NOT_LOOKED_AT:
            yield f"not looked at: {told['message']}"
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
    yield f"{found['host']}, {found['scope']}: {_STATE_TEXTS[found['state']]}: {safe(found['file'], _LONGEST)}"
    if found["command"]:
        yield command_to_copy(shlex.join(found["command"]), before="  starts: ")
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
