"""What is doubtful about how things stand, each doubt under a code that stays the same.

Owns when a warning is due and what it says: the hooks are there and were never heard, they are there twice, they
cannot start, they are switched off, or somebody else rewrites delegations too. Reads what was read; decides no exit.
"""

from __future__ import annotations

import json
import os
import re

from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.stores import foreign

from .entries import entries
from .hosts import CLAUDE_CODE, HOSTS, USER
from .ours import is_our_script, is_ours, words_of
from .receipts import LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypedDict

    from gaia_sessions.strictjson import Json

    from .hosts import Host, Places
    from .settings import Settings
    from .status import Installed

    class Warned(TypedDict):
        """``code`` for programs, ``message`` for people, ``file`` it is about, if one."""

        code: str
        message: str
        file: str | None

    Read = tuple[Host, str, Settings]


NEVER_FIRED = "never_fired"
INSTALLED_TWICE = "installed_twice"
ALL_HOOKS_DISABLED = "all_hooks_disabled"
HOOKS_OFF = "hooks_off"
REWRITER = "rewriter"
MISSING_SCRIPT = "missing_script"
MISSING_INTERPRETER = "missing_interpreter"
UNREADABLE_SETTINGS = "unreadable_settings"

_PLUGIN = "gaia-sessions@"
_EVERYTHING = (None, "", "*")
_PLAIN = re.compile(r"[A-Za-z0-9_\-,| ]+")
_LONGEST_MATCHER = 500


def of_files(installed: list[Installed]) -> Iterator[Warned]:
    """What each file by itself gives to think of."""
    for found in installed:
        path, words = found["file"], found["command"]
        if found["problem"]:
            yield _warned(UNREADABLE_SETTINGS, f"{found['problem']}; the host passes over all of it", path)
        if words and os.path.isabs(words[0]) and not os.access(words[0], os.X_OK):
            yield _warned(MISSING_INTERPRETER, f"{words[0]} is named there and cannot be started", path)
        script = next((word for word in words if is_our_script(word)), None)
        if script and not os.path.isfile(script):
            yield _warned(MISSING_SCRIPT, f"{script} is named there and is gone", path)


def of_use(installed: list[Installed], heard: dict[str, str], *, enabled: bool) -> Iterator[Warned]:
    """Whether what is installed was ever heard; switched off, it cannot be."""
    there = [found for found in installed if found["command"]]
    if there and not enabled:
        yield _warned(HOOKS_OFF, "the hooks are installed, and our own setting hooks.enabled is off", None)
    latest = max(heard.values(), default="")
    for found in there if enabled else []:
        since = found["installed_at"]
        if latest < (since or "") or not latest:
            when = f" since {since}" if since else ""
            told = f"no event of {found['host']} was heard in this project{when}; begin a conversation there"
            yield _warned(NEVER_FIRED, told, found["file"])


def of_settings(read: list[Read], installed: list[Installed], *, plugin: bool) -> Iterator[Warned]:
    """What the files together, and the entries of others in them, give to think of."""
    there = {found["host"]: None for found in installed if found["command"]}
    with_plugin = {CLAUDE_CODE: None} if plugin else {}
    for host in (HOSTS[name] for name in there | with_plugin):
        of_host = [settings for other, _, settings in read if other is host]
        yield from _twice(host, of_host, installed, plugin=plugin)
        yield from _disabled(of_host)
        yield from _rewriters(host, of_host)


def _twice(host: Host, read: list[Settings], installed: list[Installed], *, plugin: bool) -> Iterator[Warned]:
    files = [found["file"] for found in installed if found["host"] == host.name and found["command"]]
    if len({os.path.realpath(path) for path in files}) > 1:
        yield _warned(INSTALLED_TWICE, f"every event is taken in more than once: {', '.join(files)}", files[-1])
    elif files and plugin and host.name == CLAUDE_CODE:
        yield _warned(INSTALLED_TWICE, "the plugin is enabled, and the settings have the hooks as well", files[0])
    for settings in read:
        groups = [(entry.event, entry.matcher) for entry in entries(settings.text) if is_ours(entry.handler)]
        if len(set(groups)) < len(groups):
            yield _warned(INSTALLED_TWICE, "an event has more than one entry of ours", settings.path)


def _disabled(read: list[Settings]) -> Iterator[Warned]:
    for settings in read:
        if _members(settings.text.value).get("disableAllHooks") is True:
            yield _warned(ALL_HOOKS_DISABLED, "disableAllHooks is true: no hook runs, ours or another", settings.path)


def _rewriters(host: Host, read: list[Settings]) -> Iterator[Warned]:
    for settings in read:
        for entry in entries(settings.text):
            words = words_of(entry.handler)
            if entry.event != host.delegates or not words or is_ours(entry.handler):
                continue
            if any(matches(entry.matcher, tool) for tool in host.delegation):
                told = "may rewrite delegations; of two hooks that do, the last to finish wins whole"
                yield _warned(REWRITER, f"{' '.join(words)} {told}", settings.path)


def matches(matcher: Json, tool: str) -> bool:
    """Whether a host hears of ``tool`` by ``matcher``: everything, a list of names, or an expression."""
    if matcher in _EVERYTHING:
        return True
    if not isinstance(matcher, str) or len(matcher) > _LONGEST_MATCHER:
        return False
    if _PLAIN.fullmatch(matcher):
        return tool in [name.strip() for name in re.split("[,|]", matcher)]
    try:
        return re.search(matcher, tool) is not None
    except re.error:
        return False


def has_plugin(places: Places, read: list[tuple[str, Settings]]) -> bool:
    """Whether our plugin is on in Claude Code: by the settings, the nearest deciding, else by having been installed."""
    said: dict[str, Json] = {}
    for _, settings in read:  # from the user's to the nearest
        said.update(_members(_members(settings.text.value).get("enabledPlugins")))
    known = dict.fromkeys(_installed_plugins(places), True) | said
    return any(name.startswith(_PLUGIN) and value is not False for name, value in known.items())


def _installed_plugins(places: Places) -> list[str]:
    path = os.path.join(places.folder_of(HOSTS[CLAUDE_CODE], USER), "plugins", "installed_plugins.json")
    try:
        told = json.loads(foreign.read(path, LIMIT) or b"{}")
    except (ValueError, RecursionError, InvalidInput, StoreFailure):
        return []
    return list(_members(_members(told).get("plugins")))


def _members(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _warned(code: str, message: str, path: str | None) -> Warned:
    return {"code": code, "message": message, "file": path}
