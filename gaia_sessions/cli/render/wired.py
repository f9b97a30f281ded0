"""Plain text about the hooks in hosts' settings: what was written, what stands there, what is doubtful.

Owns the wording of ``hooks install``, ``uninstall`` and ``status``, and of the remarks and states that the room
``wiring`` knows by code.
"""

from __future__ import annotations

import shlex

from gaia_sessions.hosts.registry import CLAUDE_CODE
from gaia_sessions.install import plan, remarks, status, warnings

from .words import Copied, ago, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gaia_sessions.install.plan import Answer
    from gaia_sessions.install.status import Installed, Standing

_LONGEST = 1000
_NAME = 60
_WIDTH = 80

_REMARKS = {
    remarks.TRUST_HOOKS: "Codex skips these hooks until you trust them there: type /hooks.",
    remarks.TRUST_FOLDER: (
        "Claude Code passes over a project's permissions until you trust its folder: start it there once."
    ),
    remarks.MACHINE_PATHS: "The entries name paths of this machine; --user keeps them out of what is shared.",
    remarks.ROOT_ELSEWHERE: (
        "Hooks keep their sessions in {root} only where the host is started with GAIA_SESSIONS_ROOT set to it."
    ),
    remarks.START_THERE: (
        "Start the client in {start_in} to have this file read; for one that is started here, install with --here."
    ),
    remarks.NOT_IGNORED: "Git does not ignore this file: add the line {line} to {file}",
    remarks.TRACKED: "Git tracks this file: the next commit will include your entries.",
    remarks.MIXED_ENTRY: "An entry that starts our hook and does more than that was left alone: see hooks status.",
    remarks.ENTRIES_BACK: "What was wired by hand before stands there again; uninstall again to take that out.",
    remarks.RULE_STAYS: (
        "Our reporting command stays allowed, since nothing says that --allow-report did it: see permissions.allow."
    ),
}

_STATES = {
    status.COMPLETE: "installed",
    status.INCOMPLETE: "installed, but not for every event",
    status.ELSEWHERE: "installed, but another version or from another path",
    status.ABSENT: "not installed",
    status.UNREADABLE: "cannot be read",
}


def changed(answer: Answer) -> Iterator[str]:
    """What ``install`` or ``uninstall`` did; of a dry run, the difference and nothing else."""
    if answer["dry_run"]:
        yield from map(Copied, answer["diff"].split("\n")) if answer["diff"] else ["nothing would change"]
        return
    if not answer["changed"]:
        state = "installed already" if answer["action"] == plan.INSTALL else "not installed"
        yield f"{answer['host']}: {state}, nothing changed: {_path(answer['file'])}"
        yield from _remarked(answer)
        return
    done = "installed in" if answer["action"] == plan.INSTALL else "removed from"
    yield f"{answer['host']}: {done} {_path(answer['file'])}"
    yield from (f"  also changed: {_path(path)}" for path in answer["changed"] if path != answer["file"])
    yield from _particulars(answer)


def _particulars(answer: Answer) -> Iterator[str]:
    if answer["command"]:
        yield Copied(safe(shlex.join(answer["command"]), _LONGEST), before="  starts: ")
        yield f"  events: {', '.join(answer['events'])}"
    word = "allows" if answer["action"] == plan.INSTALL else "no longer allows"
    yield from (Copied(safe(rule, _LONGEST), before=f"  {word}: ") for rule in answer["rules"])
    yield from (Copied(safe(rule, _LONGEST), before="  no longer allows: ") for rule in answer["withdrawn"])
    if answer["backup"]:
        yield f"  a copy of what was there before: {_path(answer['backup'])}"
    yield from _remarked(answer)


def _remarked(answer: Answer) -> Iterator[str]:
    host = "" if answer["host"] == CLAUDE_CODE else f" --host {answer['host']}"
    yield from (
        f"  installed elsewhere: gaia-sessions hooks uninstall{host} --{scope}" for scope in answer["elsewhere"]
    )
    named = {"root": answer["root"], "start_in": answer["start_in"] or "", **(answer["exclude"] or {})}
    for remark in answer["remarks"]:
        told = _REMARKS[remark]
        for name, path in named.items():
            told = told.replace(f"{{{name}}}", _path(str(path)))
        yield f"  {told}"


def stands(standing: Standing, now: datetime) -> Iterator[str]:
    """Where we are installed, what was heard when, and every warning."""
    told = [found for found in standing["installed"] if found["state"] != status.ABSENT]
    warned_of = {warned["file"] for warned in standing["warnings"]}
    for found in told:
        yield from _described(found)
        if found["command"] and not warnings.is_heard(found, standing["heard_from"]) and found["file"] not in warned_of:
            yield "  no event yet: the next conversation there sends the first"
    if standing["plugin"]:
        yield "claude-code: the plugin is enabled"
    if not told and not standing["plugin"]:
        yield "not installed: gaia-sessions hooks install"
    for host, events in standing["heard_from"].items():
        yield f"last heard from {safe(host, _NAME)}"
        yield from (f"  {safe(event, _NAME)}: {ago(at, now)}" for event, at in events.items())
    yield from (
        f"warning: {warned['code']}: {_told(warned['file'], warned['message'])}" for warned in standing["warnings"]
    )


def _described(found: Installed) -> Iterator[str]:
    yield f"{found['host']}, {found['scope']}: {_STATES[found['state']]}: {_path(found['file'])}"
    if found["command"]:
        yield Copied(safe(shlex.join(found["command"]), _LONGEST), before="  starts: ")
    yield from _listed("wired", found["wired"])
    yield from _listed("not wired", found["missing"])
    yield from _listed("wired only with --track-tools", found["optional"])


def _listed(name: str, events: list[str]) -> Iterator[str]:
    """``events`` in lines of one terminal, none for none."""
    line = f"  {name}:"
    for place, event in enumerate(events):
        word = safe(event, _NAME) + ("," if place < len(events) - 1 else "")
        if len(line) + 1 + len(word) > _WIDTH:
            yield line
            line = "   "
        line += f" {word}"
    if events:
        yield line


def _told(path: str | None, message: str) -> str:
    named = path is None or path in message
    return safe(message if named else f"{message} ({path})", _LONGEST)


def _path(path: str) -> str:
    return safe(path, _LONGEST)
