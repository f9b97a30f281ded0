"""Where the hooks are installed, when each event was last received, and what to warn of.

``hooks status`` and ``doctor`` both show this.
"""

from __future__ import annotations

import json
import os
from collections import Counter

from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.settings import USER
from gaia_sessions.store import external_file, hook_log_reader

from . import warnings
from .installed_file import LIMIT, read_files
from .json_text import as_object
from .places import HOSTS, Places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.config import Config
    from gaia_sessions.config.sources import Fault
    from gaia_sessions.jsonio.strict import Json

    from .installed_file import InstalledFile, InstallState
    from .warnings import InstallWarning, LastEvents

    class HookStatus(TypedDict):
        """The status of the hooks of one project.

        enabled: whether the settings let the hooks do anything.
        plugin: whether Claude Code enables the plugin.
        last_received: by event, the time at which it was last received, according to the log.
        heard_from: the same for each host by name.
        """

        root: str
        enabled: bool
        plugin: bool
        installed: list[InstallState]
        last_received: dict[str, str]
        heard_from: dict[str, dict[str, str]]
        warnings: list[InstallWarning]


_MOST_ALIKE = 20
_PLUGIN_PREFIX = "gaia-sessions@"

_DIRECT = "direct"
"""What the log has in the place of an event for a direct call."""


def hook_status(
    root: str, variables: Mapping[str, str], now: datetime, settings: tuple[Config, list[Fault]]
) -> HookStatus:
    """The status at ``now`` for the project whose sessions are at ``root``.

    settings: those of gaia-sessions and the faults in them, which are warnings.
    """
    places = Places(root, variables)
    files = [file for host in HOSTS.values() for file in read_files(places, host)]
    installed = [file.state() for file in files]
    last_events = _last_events(root)
    settings_in_force, faults = settings
    plugin = _has_plugin(places, [file for file in files if file.host.name == CLAUDE_CODE])
    found_warnings = [
        *warnings.home_warnings(places, HOSTS.values()),
        *(warnings.plugin_warnings(variables) if plugin else ()),
        *warnings.own_setting_warnings(faults),
        *warnings.file_warnings(files),
        *warnings.entry_warnings(files),
        *warnings.root_warnings(files, places),
        *warnings.visibility_warnings(files, places, plugin=plugin),
        *warnings.usage_warnings(installed, last_events, now, enabled=settings_in_force.hooks),
        *warnings.limit_warnings(installed, settings_in_force),
        *warnings.settings_warnings(files, plugin=plugin),
    ]
    return {
        "root": root,
        "enabled": settings_in_force.hooks,
        "plugin": plugin,
        "installed": installed,
        "last_received": _merged_last_events(last_events),
        "heard_from": last_events,
        "warnings": _first_of_each(found_warnings),
    }


def _first_of_each(found: list[InstallWarning]) -> list[InstallWarning]:
    """At most so many warnings of one code about one file: it may have thousands of entries."""
    counts: Counter[tuple[str, str | None]] = Counter()
    first = []
    for warning in found:
        key = warning["code"], warning["file"]
        counts[key] += 1
        if counts[key] <= _MOST_ALIKE:
            first.append(warning)
    return first


def _has_plugin(places: Places, files: list[InstalledFile]) -> bool:
    """Whether Claude Code enables the plugin: the narrowest scope that says so decides, else its installation."""
    configured: dict[str, Json] = {}
    for file in files:  # from the user's to the narrowest scope
        configured.update(as_object(as_object(file.text.value).get("enabledPlugins")))
    plugins = dict.fromkeys(_installed_plugins(places), True) | configured
    return any(name.startswith(_PLUGIN_PREFIX) and value is not False for name, value in plugins.items())


def _installed_plugins(places: Places) -> list[str]:
    if not places.knows(HOSTS[CLAUDE_CODE], USER):
        return []
    path = os.path.join(places.folder_of(HOSTS[CLAUDE_CODE], USER), "plugins", "installed_plugins.json")
    try:
        document = json.loads(external_file.read(path, LIMIT) or b"{}")
    except (ValueError, RecursionError, InvalidInput, StoreFailure):
        return []
    return list(as_object(as_object(document).get("plugins")))


def _last_events(root: str) -> LastEvents:
    """The latest time of each event by host; texts of times as the log writes them have the order of the times."""
    last: LastEvents = {}
    for line in hook_log_reader.read_lines(root):
        event, at, host = line.get("event"), hook_log_reader.line_time(line), line.get("host")
        if at and isinstance(event, str) and isinstance(host, str) and event != _DIRECT:
            of_host = last.setdefault(host, {})
            of_host[event] = max(of_host.get(event, at), at)
    return {host: dict(sorted(events.items())) for host, events in sorted(last.items())}


def _merged_last_events(last_events: LastEvents) -> dict[str, str]:
    last: dict[str, str] = {}
    for events in last_events.values():
        last.update({event: max(last.get(event, at), at) for event, at in events.items()})
    return dict(sorted(last.items()))
