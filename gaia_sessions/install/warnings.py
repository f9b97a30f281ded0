"""What is doubtful about how things stand, each doubt under a code that stays the same.

Owns when a warning is due and what it says: the hooks are there and were never heard, a client started here would not
read them, they are there twice, they cannot start, they are part of a command of somebody's own, they are switched off,
or somebody else rewrites delegations too. Reads what was read; decides no exit.
"""

from __future__ import annotations

import json
import os
import re
from datetime import timedelta

from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.hosts.registry import CLAUDE_CODE
from gaia_sessions.session.clock import read_time
from gaia_sessions.store import external_file

from .backup import LIMIT
from .entries import entries, is_gone
from .executable import interpreter_of
from .hook_command import is_our_script, is_ours, mentions_us, scripts_of, starts_by_itself, words_of
from .places import HOSTS, USER, Places
from .scopes import is_out_of_sight, with_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.errors import BadSetting
    from gaia_sessions.jsonio.strict import Json

    from .places import Host
    from .settings import Settings
    from .status import Installed

    class Warned(TypedDict):
        """``code`` for programs, ``message`` for people, ``file`` it is about, if one."""

        code: str
        message: str
        file: str | None

    Read = tuple[Host, str, Settings]

    Heard = dict[str, dict[str, str]]
    """By the name of a host: its events, each with when it last came."""


NEVER_FIRED = "never_fired"
NOT_READ_HERE = "not_read_here"
INSTALLED_TWICE = "installed_twice"
ALL_HOOKS_DISABLED = "all_hooks_disabled"
HOOKS_OFF = "hooks_off"
REWRITER = "rewriter"
MISSING_SCRIPT = "missing_script"
MISSING_INTERPRETER = "missing_interpreter"
UNREADABLE_SETTINGS = "unreadable_settings"
MIXED_ENTRY = "mixed_entry"
BROKEN_MIXED_ENTRY = "broken_mixed_entry"
ROOT_ELSEWHERE = "root_elsewhere"
BAD_SETTING = "bad_setting"

_REFUSES = "Python then ends with 2, which hosts take for a refusal"
_PEACE = "the hooks do nothing then; install them again, or uninstall them"
_LEFT_ALONE = "it is neither replaced nor taken out"
_TWICE = "nothing counts twice, but each event takes twice as long"

_LONG = timedelta(days=1)

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
        program = words[0] if words else ""
        interpreter = interpreter_of(program) if is_our_script(program) else program
        if interpreter and os.path.isabs(interpreter) and not os.access(interpreter, os.X_OK):
            yield _warned(MISSING_INTERPRETER, f"{interpreter} is named there and cannot be started", path)


def of_entries(read: list[Read]) -> Iterator[Warned]:
    """What each entry by itself gives to think of."""
    for _, _, settings in read:
        known = entries(settings.text)
        whole = [entry.handler for entry in known if is_ours(entry.handler)]
        mixed = [entry.handler for entry in known if mentions_us(entry.handler)]
        for harmless, then in ((False, _REFUSES), (True, _PEACE)):
            for path in _gone([handler for handler in whole if starts_by_itself(handler) is harmless]):
                yield _warned(MISSING_SCRIPT, f"{path} is named there and is gone; {then}", settings.path)
        for path in _gone(mixed):
            told = f"{path} is named beside something else and is gone; {_REFUSES}"
            yield _warned(BROKEN_MIXED_ENTRY, told, settings.path)
        for told in dict.fromkeys(" ".join(words_of(entry)) for entry in mixed):
            yield _warned(MIXED_ENTRY, f"{told} starts our hook and does something else; {_LEFT_ALONE}", settings.path)


def _gone(handlers: list[Json]) -> list[str]:
    named = dict.fromkeys(path for entry in handlers for path in scripts_of(entry))
    return [path for path in named if is_gone(path)]


def of_root(installed: list[Installed], places: Places) -> Iterator[Warned]:
    """Whether the hooks keep their sessions where we look."""
    if any(found["command"] for found in installed) and not places.is_hooks_root:
        told = f"hooks started here keep their sessions in {places.hooks_root}; {elsewhere(places.root)}"
        yield _warned(ROOT_ELSEWHERE, told, None)


def of_sight(installed: list[Installed], places: Places, *, plugin: bool) -> Iterator[Warned]:
    """Whether a client that is started here reads what is installed; one of several files that it reads is enough."""
    for host in HOSTS.values():
        there = [found for found in installed if found["host"] == host.name and found["command"]]
        everywhere = any(found["scope"] == USER for found in there) or (plugin and host.name == CLAUDE_CODE)
        if not there or everywhere or not is_out_of_sight(places, host):
            continue
        if not with_ours(Places(places.root, places.variables, places.here), host):
            told = f"a {host.name} started in {places.here} may not read this file; start it in"
            yield _warned(NOT_READ_HERE, f"{told} {places.project}, or install with --here", there[0]["file"])


def of_own_settings(faults: list[BadSetting]) -> Iterator[Warned]:
    """What our own settings say that means nothing: hooks pass over it."""
    for fault in faults:
        yield _warned(BAD_SETTING, f"{fault}; {fault.hint}", fault.origin if os.path.isabs(fault.origin) else None)


def elsewhere(root: str) -> str:
    """What it takes that hooks use ``root``."""
    return f"for {root}, set GAIA_SESSIONS_ROOT to it where the host is started"


def of_use(installed: list[Installed], heard: Heard, now: datetime, *, enabled: bool) -> Iterator[Warned]:
    """Whether what is installed was ever heard, each host by itself; switched off, it cannot be."""
    there = [found for found in installed if found["command"]]
    if there and not enabled:
        yield _warned(HOOKS_OFF, "the hooks are installed, and the setting hooks.enabled is off", None)
    for found in there if enabled else []:
        since = found["installed_at"]
        if not is_heard(found, heard) and (since is None or _is_due(found["host"], since, heard, now)):
            when = f" since {since}" if since else ""
            told = f"no event of {found['host']} has arrived in this project{when}; begin a conversation there"
            yield _warned(NEVER_FIRED, told, found["file"])


def is_heard(found: Installed, heard: Heard) -> bool:
    """Whether an event came from the host since our hooks were installed in this file."""
    return max(heard.get(found["host"], {}).values(), default="") >= (found["installed_at"] or "0")


def _is_due(host: str, since: str, heard: Heard, now: datetime) -> bool:
    """Until a conversation begins nothing can be heard: that takes a day, or less where another host was used."""
    others = [at for other, events in heard.items() if other != host for at in events.values()]
    return max(others, default="") >= since or now - read_time(since) > _LONG


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
        yield _warned(INSTALLED_TWICE, f"each event is sent by {', '.join(files)}; {_TWICE}", files[-1])
    elif files and plugin and host.name == CLAUDE_CODE:
        told = f"the plugin is enabled, and the settings have the hooks as well; {_TWICE}"
        yield _warned(INSTALLED_TWICE, told, files[0])
    for settings in read:
        groups = [(entry.event, entry.matcher) for entry in entries(settings.text) if is_ours(entry.handler)]
        if len(set(groups)) < len(groups):
            yield _warned(INSTALLED_TWICE, f"an event has more than one gaia-sessions entry; {_TWICE}", settings.path)


def _disabled(read: list[Settings]) -> Iterator[Warned]:
    for settings in read:
        if _members(settings.text.value).get("disableAllHooks") is True:
            yield _warned(ALL_HOOKS_DISABLED, "disableAllHooks is true: no hook runs, ours or another", settings.path)


def _rewriters(host: Host, read: list[Settings]) -> Iterator[Warned]:
    for settings in read:
        for entry in entries(settings.text):
            words = words_of(entry.handler)
            if entry.event != host.delegates or not words or is_ours(entry.handler) or mentions_us(entry.handler):
                continue
            if any(matches(entry.matcher, tool) for tool in host.delegation):
                told = (
                    "may rewrite delegations; of two hooks that do, the last to finish wins whole: "
                    "if it does not, all is well; if it does, let its matcher leave out " + ", ".join(host.delegation)
                )
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
        told = json.loads(external_file.read(path, LIMIT) or b"{}")
    except (ValueError, RecursionError, InvalidInput, StoreFailure):
        return []
    return list(_members(_members(told).get("plugins")))


def _members(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _warned(code: str, message: str, path: str | None) -> Warned:
    return {"code": code, "message": message, "file": path}
