"""The hooks as they are: in the settings of hosts, as a plugin, and in the log of received events."""

from __future__ import annotations

import json
import os

from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.settings import USER
from gaia_sessions.store import external_file, hook_log_reader

from .installed_file import LIMIT, read_files
from .json_text import as_object
from .places import HOSTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from gaia_sessions.hosts.settings import HostSettings
    from gaia_sessions.jsonio.strict import Json

    from .installed_file import InstalledFile
    from .places import Places

    LastEvents = dict[str, dict[str, str]]
    """The time of the last occurrence of each event, by the name of the host."""

_PLUGIN_PREFIX = "gaia-sessions@"

_DIRECT = "direct"
"""The event of a direct call in the log."""


class InstalledHooks:
    """What is installed for ``hosts`` at ``places``, read once."""

    __slots__ = ("files", "hosts", "last_events", "own", "places", "plugin")

    def __init__(self, places: Places, hosts: Collection[HostSettings]) -> None:
        self.places = places
        self.hosts = hosts
        self.files = {file: file.state() for host in hosts for file in read_files(places, host)}
        self.own = [file for file in self.files if file.own]
        self.plugin = HOSTS[CLAUDE_CODE] in hosts and _has_plugin(
            places, [file for file in self.files if file.host.name == CLAUDE_CODE]
        )
        self.last_events = _last_events(places.root)

    def own_of(self, host: HostSettings) -> list[InstalledFile]:
        """Returns the files with hooks of ours that clients of ``host`` perhaps read."""
        return [file for file in self.own if file.host is host]

    @property
    def last_received(self) -> dict[str, str]:
        """The time at which each event was last received from any host."""
        last: dict[str, str] = {}
        for events in self.last_events.values():
            last.update({event: max(last.get(event, at), at) for event, at in events.items()})
        return dict(sorted(last.items()))


def _has_plugin(places: Places, files: list[InstalledFile]) -> bool:
    """Returns whether Claude Code enables the plugin: the narrowest scope decides, else its installation."""
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
    """Returns the latest time of each event by host. The times are texts that sort like times."""
    last: LastEvents = {}
    for line in hook_log_reader.read_lines(root):
        event, at, host = line.get("event"), hook_log_reader.line_time(line), line.get("host")
        if at and isinstance(event, str) and isinstance(host, str) and event != _DIRECT:
            of_host = last.setdefault(host, {})
            of_host[event] = max(of_host.get(event, at), at)
    return {host: dict(sorted(events.items())) for host, events in sorted(last.items())}
