"""What ``hooks status`` prints: what is wrong with the hooks, and where they are installed."""

from __future__ import annotations

import shlex

from gaia_sessions.doctor.findings import PROBLEM
from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.settings import LOCAL, PROJECT, USER
from gaia_sessions.install import installed_file

from .doctor import finding_lines
from .words import ago, command_to_copy, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.doctor.hook_files import HookFinding
    from gaia_sessions.doctor.hooks import HookStatus
    from gaia_sessions.install.installed_file import InstallState

_LONGEST = 1000
_LONGEST_NAME = 60

_STATE_TEXTS = {
    installed_file.COMPLETE: "installed",
    installed_file.INCOMPLETE: "installed, but not for every event",
    installed_file.ELSEWHERE: "installed, but in another version or from another path",
    installed_file.ABSENT: "not installed",
    installed_file.UNREADABLE: "cannot be read",
}


_SCOPE_TEXTS = {LOCAL: "this project for you", PROJECT: "this project for the team", USER: "all your projects"}


def warning_lines(found: Iterable[HookFinding]) -> Iterator[str]:
    """Yields what can keep the hooks from working, and the commands that repair these problems."""
    return finding_lines((one["state"], one["message"], one["fix"]) for one in found)


def status_lines(hook_status: HookStatus, now: datetime, *, verbose: bool) -> Iterator[str]:
    """Yields what is wrong, then where the hooks are installed and work; with ``verbose`` all details."""
    yield from warning_lines(hook_status["warnings"])
    broken = {one["file"] for one in hook_status["warnings"] if one["state"] == PROBLEM}
    installed = [found for found in hook_status["installed"] if found["state"] != installed_file.ABSENT]
    for found in installed:
        if hook_status["enabled"] and found["file"] not in broken:
            heard = _last_event(hook_status, found["host"], now)
            yield f"{found['host']}: installed in {_SCOPE_TEXTS[found['scope']]}, {heard}"
            if options := installed_file.options_of(found):
                yield f"  with {' '.join(options)}"
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
    yield f"{found['host']}, {found['scope']}: {_STATE_TEXTS[found['state']]}: {safe(found['file'], _LONGEST)}"
    if found["command"]:
        yield command_to_copy(shlex.join(found["command"]), before="  starts: ")
    for name, events in (("events", found["wired"]), ("missing events", found["missing"])):
        if events:
            yield f"  {name}: {', '.join(safe(event, _LONGEST_NAME) for event in events)}"
