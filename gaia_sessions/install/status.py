"""How things stand: where we are installed, what was heard from which event when, and what is doubtful about it.

Owns the look; changes nothing and judges nothing but by name. ``doctor`` and ``hooks status`` both read it here.
"""

from __future__ import annotations

from gaia_sessions import config
from gaia_sessions.errors import SessionsError
from gaia_sessions.hosts.registry import CLAUDE_CODE
from gaia_sessions.store import log_reader

from . import backups, warnings
from .entries import our_entries
from .hook_command import TRACK_TOOLS, command_for, words_of
from .permission import RULES, SETTING
from .places import HOSTS, Places
from .plan import INSTALLED_AT
from .settings import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import TypedDict

    from .entries import HookEntry
    from .places import Host
    from .settings import Settings
    from .warnings import InstallWarning, LastEvents

    class InstalledFile(TypedDict):
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

    class HookStatus(TypedDict):
        """All there is to say. enabled: our own switch. plugin: whether it is on in Claude Code.

        heard: events by name, each with when it last came, as the log tells; heard_from: the same of each host.
        """

        root: str
        enabled: bool
        plugin: bool
        installed: list[InstalledFile]
        heard: dict[str, str]
        heard_from: dict[str, dict[str, str]]
        warnings: list[InstallWarning]


COMPLETE, INCOMPLETE, ELSEWHERE, ABSENT, UNREADABLE = STATES = (
    "complete",
    "incomplete",
    "elsewhere",
    "absent",
    "unreadable",
)

_NOT_EVENTS = ("direct", "None", "")
"""What the log calls a call that no host made, and what earlier versions called one that names no event."""


def hook_status(root: str, variables: Mapping[str, str], now: datetime) -> HookStatus:
    """How things stand at ``now`` for the project whose sessions are at ``root``; writes nothing.

    A setting of ours that means nothing is a warning like any other; ``BadSetting`` is for a user without a home.
    """
    places = Places(root, variables)
    files = [_FileStatus(places, host, scope) for host in HOSTS.values() for scope in host.files]
    installed = [file.installed_file for file in files]
    last_events = _last_events(root)
    settings_in_force, faults = config.load_with_faults(root, variables)
    settings = [(file.host, file.scope, file.settings) for file in files if file.settings]
    plugin = warnings.has_plugin(
        places, [(scope, of_scope) for host, scope, of_scope in settings if host.name == CLAUDE_CODE]
    )
    found_warnings = [
        *warnings.own_setting_warnings(faults),
        *warnings.file_warnings(installed),
        *warnings.entry_warnings(settings),
        *warnings.root_warnings(installed, places),
        *warnings.visibility_warnings(installed, places, plugin=plugin),
        *warnings.usage_warnings(installed, last_events, now, enabled=settings_in_force.hooks),
        *warnings.settings_warnings(settings, installed, plugin=plugin),
    ]
    return {
        "root": root,
        "enabled": settings_in_force.hooks,
        "plugin": plugin,
        "installed": installed,
        "heard": _merged_last_events(last_events),
        "heard_from": last_events,
        "warnings": found_warnings,
    }


class _FileStatus:
    """One settings file, read."""

    __slots__ = ("host", "installed_file", "scope", "settings")

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
        hook_entries = our_entries(self.settings.text) if self.settings else []
        words = words_of(hook_entries[0].handler) if hook_entries else []
        tools = TRACK_TOOLS in words
        missing = _missing_events(host, hook_entries, tools=tools) if hook_entries else []
        wired = list(dict.fromkeys(entry.event for entry in hook_entries))
        backup = backups.find(places.state, path) if hook_entries else None
        self.installed_file: InstalledFile = {
            "host": host.name,
            "scope": scope,
            "file": path,
            "state": UNREADABLE if problem else _state(host, hook_entries, missing, tools=tools),
            "problem": problem,
            "command": words,
            "track_tools": tools,
            "allow_report": backup is not None and (backup.text(SETTING) is not None or bool(backup.texts(RULES))),
            "wired": wired,
            "missing": missing,
            "optional": [event for event in host.tools if event not in wired] if hook_entries and not tools else [],
            "installed_at": backup.text(INSTALLED_AT) if backup else None,
        }


def _state(host: Host, hook_entries: list[HookEntry], missing: list[str], *, tools: bool) -> str:
    if not hook_entries:
        return ABSENT
    if any(words_of(entry.handler) != _wanted_command(host, tools=tools) for entry in hook_entries):
        return ELSEWHERE
    return INCOMPLETE if missing else COMPLETE


def _wanted_command(host: Host, *, tools: bool) -> list[str]:
    try:
        return command_for(host, tools=tools)
    except SessionsError:  # nothing of ours to start: whatever stands there is another's
        return []


def _missing_events(host: Host, hook_entries: list[HookEntry], *, tools: bool) -> list[str]:
    present = {(entry.event, entry.matcher) for entry in hook_entries}
    return [event for event, matcher in host.event_matchers(tools=tools).items() if (event, matcher) not in present]


def _last_events(root: str) -> LastEvents:
    """Times as the log writes them are ordered like the texts they are; lines without a host are of Claude Code."""
    last: LastEvents = {}
    for line in log_reader.read_lines(root):
        event, at, host = line.get("event"), log_reader.line_time(line), line.get("host", CLAUDE_CODE)
        if at and isinstance(event, str) and isinstance(host, str) and event.strip() not in _NOT_EVENTS:
            of_host = last.setdefault(host, {})
            of_host[event] = max(of_host.get(event, at), at)
    return {host: dict(sorted(events.items())) for host, events in sorted(last.items())}


def _merged_last_events(last_events: LastEvents) -> dict[str, str]:
    last: dict[str, str] = {}
    for events in last_events.values():
        last.update({event: max(last.get(event, at), at) for event, at in events.items()})
    return dict(sorted(last.items()))
