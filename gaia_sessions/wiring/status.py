"""How things stand: where we are installed, what was heard from which event when, and what is doubtful about it.

Owns the look; changes nothing and judges nothing but by name. ``doctor`` and ``hooks status`` both read it here.
"""

from __future__ import annotations

from gaia_sessions import config, log
from gaia_sessions.errors import SessionsError

from . import doubts, receipts
from .entries import of_ours
from .hosts import CLAUDE_CODE, HOSTS, Places
from .installing import SINCE
from .ours import TRACK_TOOLS, command_for, words_of
from .settings import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypedDict

    from .doubts import Warned
    from .entries import Entry
    from .hosts import Host
    from .settings import Settings

    class Installed(TypedDict):
        """One settings file. missing: events that are not heard, or heard for something else.

        state: ``complete``, ``incomplete``, ``elsewhere`` (it starts another version or path), ``absent`` or
        ``unreadable``, which ``problem`` explains.
        """

        host: str
        scope: str
        file: str
        state: str
        problem: str | None
        command: list[str]
        track_tools: bool
        missing: list[str]
        installed_at: str | None

    class Standing(TypedDict):
        """All there is to say. enabled: our own switch. plugin: whether it is on in Claude Code.

        heard: events of hosts by name, each with when it last came, as the log tells.
        """

        root: str
        enabled: bool
        plugin: bool
        installed: list[Installed]
        heard: dict[str, str]
        warnings: list[Warned]


COMPLETE, INCOMPLETE, ELSEWHERE, ABSENT, UNREADABLE = "complete", "incomplete", "elsewhere", "absent", "unreadable"


def standing(root: str, variables: Mapping[str, str]) -> Standing:
    """How things stand for the project whose sessions are at ``root``; writes nothing, raises ``BadSetting``."""
    places = Places(root, variables)
    looks = [_Look(places, host, scope) for host in HOSTS.values() for scope in host.files]
    installed = [look.found for look in looks]
    heard = _heard(root)
    enabled = config.load(root, variables, on_fault=_pass_over).hooks
    settings = [(look.host, look.scope, look.settings) for look in looks if look.settings]
    plugin = doubts.has_plugin(places, [(scope, read) for host, scope, read in settings if host.name == CLAUDE_CODE])
    warned = [
        *doubts.of_files(installed),
        *doubts.of_use(installed, heard, enabled=enabled),
        *doubts.of_settings(settings, installed, plugin=plugin),
    ]
    return {
        "root": root,
        "enabled": enabled,
        "plugin": plugin,
        "installed": installed,
        "heard": heard,
        "warnings": warned,
    }


class _Look:
    """One settings file, read."""

    __slots__ = ("found", "host", "scope", "settings")

    def __init__(self, places: Places, host: Host, scope: str) -> None:
        path = places.file_of(host, scope)
        self.host = host
        self.scope = scope
        self.settings: Settings | None = None
        problem = None
        try:
            self.settings = load(path, host)
        except SessionsError as error:
            problem = str(error)
        ours = of_ours(self.settings.text) if self.settings else []
        words = words_of(ours[0].handler) if ours else []
        tools = TRACK_TOOLS in words
        missing = _missing(host, ours, tools=tools) if ours else []
        kept = receipts.find(places.state, path) if ours else None
        self.found: Installed = {
            "host": host.name,
            "scope": scope,
            "file": path,
            "state": UNREADABLE if problem else _state(host, ours, missing, tools=tools),
            "problem": problem,
            "command": words,
            "track_tools": tools,
            "missing": missing,
            "installed_at": kept.text(SINCE) if kept else None,
        }


def _state(host: Host, ours: list[Entry], missing: list[str], *, tools: bool) -> str:
    if not ours:
        return ABSENT
    if any(words_of(entry.handler) != _wanted(host, tools=tools) for entry in ours):
        return ELSEWHERE
    return INCOMPLETE if missing else COMPLETE


def _wanted(host: Host, *, tools: bool) -> list[str]:
    try:
        return command_for(host, tools=tools)
    except SessionsError:  # nothing of ours to start: whatever stands there is another's
        return []


def _missing(host: Host, ours: list[Entry], *, tools: bool) -> list[str]:
    there = {(entry.event, entry.matcher) for entry in ours}
    return [event for event, matcher in host.heard(tools=tools).items() if (event, matcher) not in there]


def _heard(root: str) -> dict[str, str]:
    """Times as the log writes them are ordered like the texts they are."""
    last: dict[str, str] = {}
    for line in log.lines(root):
        event, at = line.get("event"), line.get("at")
        if isinstance(event, str) and isinstance(at, str) and event != "direct":
            last[event] = max(last.get(event, at), at)
    return dict(sorted(last.items()))


def _pass_over(_: object) -> None:
    """A fault in our own settings is told by every other command."""
