"""Plain text about the hooks in hosts' settings: what was written, what stands there, what is doubtful.

Owns the wording of ``hooks install``, ``uninstall`` and ``status``, and of the remarks and states that the room
``wiring`` knows by code.
"""

from __future__ import annotations

import shlex

from .words import ago, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gaia_sessions.wiring.installing import Answer
    from gaia_sessions.wiring.status import Installed, Standing

_LONGEST = 1000

_REMARKS = {
    "trust_hooks": "Codex skips these hooks until you trust them there: type /hooks.",
    "trust_folder": "Claude Code passes over a project's permissions until you trust its folder: start it there once.",
    "machine_paths": "The entries name paths of this machine; --local or --user keeps them out of version control.",
}

_STATES = {
    "complete": "installed",
    "incomplete": "installed, but not for every event",
    "elsewhere": "installed, but another version or from another path",
    "absent": "not installed",
    "unreadable": "cannot be read",
}


def changed(answer: Answer) -> Iterator[str]:
    """What ``install`` or ``uninstall`` did; of a dry run, the difference and nothing else."""
    if answer["dry_run"]:
        yield from answer["diff"].split("\n") if answer["diff"] else ["nothing would change"]
        return
    if not answer["changed"]:
        state = "installed already" if answer["action"] == "install" else "not installed"
        yield f"{answer['host']}: {state}, nothing changed: {_path(answer['file'])}"
        return
    done = "installed in" if answer["action"] == "install" else "removed from"
    yield f"{answer['host']}: {done} {_path(answer['file'])}"
    yield from (f"  also changed: {_path(path)}" for path in answer["changed"] if path != answer["file"])
    yield from _particulars(answer)


def _particulars(answer: Answer) -> Iterator[str]:
    if answer["command"]:
        yield f"  starts: {safe(shlex.join(answer['command']), _LONGEST)}"
        yield f"  events: {', '.join(answer['events'])}"
    word = "allows" if answer["action"] == "install" else "no longer allows"
    yield from (f"  {word}: {safe(rule, _LONGEST)}" for rule in answer["rules"])
    if answer["backup"]:
        yield f"  a copy of what was there before: {_path(answer['backup'])}"
    yield from (f"  {_REMARKS[remark]}" for remark in answer["remarks"])


def stands(standing: Standing, now: datetime) -> Iterator[str]:
    """Where we are installed, what was heard when, and every warning."""
    told = [found for found in standing["installed"] if found["state"] != "absent"]
    for found in told:
        yield from _described(found)
    if standing["plugin"]:
        yield "claude-code: the plugin is enabled"
    if not told and not standing["plugin"]:
        yield "not installed: gaia-sessions hooks install"
    if standing["heard"]:
        yield "last heard"
        yield from (f"  {safe(event, 60)}: {ago(at, now)}" for event, at in standing["heard"].items())
    yield from (
        f"warning: {warned['code']}: {_told(warned['file'], warned['message'])}" for warned in standing["warnings"]
    )


def _described(found: Installed) -> Iterator[str]:
    yield f"{found['host']}, {found['scope']}: {_STATES[found['state']]}: {_path(found['file'])}"
    if found["command"]:
        yield f"  starts: {safe(shlex.join(found['command']), _LONGEST)}"
    if found["missing"]:
        yield f"  not heard: {', '.join(found['missing'])}"


def _told(path: str | None, message: str) -> str:
    named = path is None or path in message
    return safe(message if named else f"{message} ({path})", _LONGEST)


def _path(path: str) -> str:
    return safe(path, _LONGEST)
