"""One settings file of a host: whether the hooks are installed there, and for which events.

Owns that state.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionsError

from . import backups
from .entries import own_entries
from .hook_command import TRACK_TOOLS, command_for, command_of, entries_for, wanted_entry_of
from .permission import RULES, SETTING
from .plan import INSTALLED_AT
from .settings import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from gaia_sessions.hosts.settings import HostSettings, WantedEntry

    from .entries import HookEntry
    from .places import Places
    from .settings import Settings

    class InstalledFile(TypedDict):
        """The state of one settings file.

        state: ``complete``, ``incomplete``, ``elsewhere`` (another version, or from another path), ``absent``, or
        ``unreadable``, which ``problem`` explains.
        command: the words of the command that starts the hook; empty if there is none.
        wired: the events that start the hook.
        missing: the events that should start it and do not, or have another matcher or another manner of waiting.
        optional: the events that would start it only with --track-tools.
        installed_at: the time of the installation; None if it is not known.
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


COMPLETE, INCOMPLETE, ELSEWHERE, ABSENT, UNREADABLE = STATES = (
    "complete",
    "incomplete",
    "elsewhere",
    "absent",
    "unreadable",
)


def read_installed_file(places: Places, host: HostSettings, scope: str) -> tuple[InstalledFile, Settings | None]:
    """The state of the settings of ``host`` in ``scope``, and the settings; None for them if they do not parse."""
    path = places.file_of(host, scope)
    try:
        settings = load(path, host)
    except SessionsError as error:
        return _installed_file(places, host, scope, [], str(error)), None
    return _installed_file(places, host, scope, own_entries(settings.text), None), settings


def _installed_file(
    places: Places, host: HostSettings, scope: str, hook_entries: list[HookEntry], problem: str | None
) -> InstalledFile:
    path = places.file_of(host, scope)
    words = command_of(hook_entries[0].handler) if hook_entries else []
    tools = TRACK_TOOLS in words
    wanted = entries_for(host, words, tools=tools) if hook_entries else []
    missing = _missing_events(wanted, hook_entries)
    wired = list(dict.fromkeys(entry.event for entry in hook_entries))
    backup = backups.find(places.state, path) if hook_entries else None
    return {
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
        "optional": _optional_events(host, wired) if hook_entries and not tools else [],
        "installed_at": backup.text(INSTALLED_AT) if backup else None,
    }


def _state(host: HostSettings, hook_entries: list[HookEntry], missing: list[str], *, tools: bool) -> str:
    if not hook_entries:
        return ABSENT
    if any(command_of(entry.handler) != _wanted_command(host, tools=tools) for entry in hook_entries):
        return ELSEWHERE
    return INCOMPLETE if missing else COMPLETE


def _wanted_command(host: HostSettings, *, tools: bool) -> list[str]:
    try:
        return command_for(host, tools=tools)
    except SessionsError:  # this installation has no working hook, so every entry is of another one
        return []


def _missing_events(wanted: list[WantedEntry], hook_entries: list[HookEntry]) -> list[str]:
    present = [wanted_entry_of(entry.event, entry.matcher, entry.handler) for entry in hook_entries]
    present += [entry._replace(is_filtered=False) for entry in present]  # where there is no filter, either will do
    return list(dict.fromkeys(entry.event for entry in wanted if entry not in present))


def _optional_events(host: HostSettings, wired: list[str]) -> list[str]:
    return [event for event in {**host.tools, **host.unawaited_tools} if event not in wired]
