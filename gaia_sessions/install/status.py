"""How things stand: where we are installed, what was heard from which event when, and what is doubtful about it.

Owns the look; changes nothing and judges nothing but by name. ``doctor`` and ``hooks status`` both read it here.
"""

from __future__ import annotations

from gaia_sessions import config
from gaia_sessions.errors import SessionsError
from gaia_sessions.hosts.registry import CLAUDE_CODE
from gaia_sessions.store import log_reader

from . import backup, warnings
from .entries import of_ours
from .hook_command import TRACK_TOOLS, command_for, words_of
from .own_setting import RULES, SETTING
from .places import HOSTS, Places
from .plan import SINCE
from .settings import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.errors import BadSetting

    from .entries import Entry
    from .places import Host
    from .settings import Settings
    from .warnings import Heard, Warned

    class Installed(TypedDict):
        """One settings file. wired: the events that start our hook. missing: those that do not and should, or that do
        so for something else. optional: those that would with --track-tools only.

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
        allow_report: bool
        wired: list[str]
        missing: list[str]
        optional: list[str]
        installed_at: str | None

    class Standing(TypedDict):
        """All there is to say. enabled: our own switch. plugin: whether it is on in Claude Code.

        heard: events by name, each with when it last came, as the log tells; heard_from: the same of each host.
        """

        root: str
        enabled: bool
        plugin: bool
        installed: list[Installed]
        heard: dict[str, str]
        heard_from: dict[str, dict[str, str]]
        warnings: list[Warned]


COMPLETE, INCOMPLETE, ELSEWHERE, ABSENT, UNREADABLE = STATES = (
    "complete",
    "incomplete",
    "elsewhere",
    "absent",
    "unreadable",
)

_NOT_EVENTS = ("direct", "None", "")
"""What the log calls a call that no host made, and what earlier versions called one that names no event."""


def standing(root: str, variables: Mapping[str, str], now: datetime) -> Standing:
    """How things stand at ``now`` for the project whose sessions are at ``root``; writes nothing.

    A setting of ours that means nothing is a warning like any other; ``BadSetting`` is for a user without a home.
    """
    places = Places(root, variables)
    looks = [_Look(places, host, scope) for host in HOSTS.values() for scope in host.files]
    installed = [look.found for look in looks]
    heard = _heard(root)
    faults: list[BadSetting] = []
    enabled = config.load(root, variables, on_fault=faults.append).hooks
    settings = [(look.host, look.scope, look.settings) for look in looks if look.settings]
    plugin = warnings.has_plugin(places, [(scope, read) for host, scope, read in settings if host.name == CLAUDE_CODE])
    warned = [
        *warnings.of_own_settings(faults),
        *warnings.of_files(installed),
        *warnings.of_entries(settings),
        *warnings.of_root(installed, places),
        *warnings.of_sight(installed, places, plugin=plugin),
        *warnings.of_use(installed, heard, now, enabled=enabled),
        *warnings.of_settings(settings, installed, plugin=plugin),
    ]
    return {
        "root": root,
        "enabled": enabled,
        "plugin": plugin,
        "installed": installed,
        "heard": _of_all(heard),
        "heard_from": heard,
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
        wired = list(dict.fromkeys(entry.event for entry in ours))
        kept = backup.find(places.state, path) if ours else None
        self.found: Installed = {
            "host": host.name,
            "scope": scope,
            "file": path,
            "state": UNREADABLE if problem else _state(host, ours, missing, tools=tools),
            "problem": problem,
            "command": words,
            "track_tools": tools,
            "allow_report": kept is not None and (kept.text(SETTING) is not None or bool(kept.texts(RULES))),
            "wired": wired,
            "missing": missing,
            "optional": [event for event in host.tools if event not in wired] if ours and not tools else [],
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


def _heard(root: str) -> Heard:
    """Times as the log writes them are ordered like the texts they are; lines without a host are of Claude Code."""
    last: Heard = {}
    for line in log_reader.lines(root):
        event, at, host = line.get("event"), log_reader.time_of(line), line.get("host", CLAUDE_CODE)
        if at and isinstance(event, str) and isinstance(host, str) and event.strip() not in _NOT_EVENTS:
            of_host = last.setdefault(host, {})
            of_host[event] = max(of_host.get(event, at), at)
    return {host: dict(sorted(events.items())) for host, events in sorted(last.items())}


def _of_all(heard: Heard) -> dict[str, str]:
    last: dict[str, str] = {}
    for events in heard.values():
        last.update({event: max(last.get(event, at), at) for event, at in events.items()})
    return dict(sorted(last.items()))
