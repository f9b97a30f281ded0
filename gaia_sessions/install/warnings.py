"""Warnings about installed hooks, each with a code that never changes.

Owns when a warning is due and what it says: the hooks are installed and no event came, a client started here does not
read them, they are installed twice, they cannot start, they are part of a command of the user's own, they are disabled,
or another hook rewrites delegations too.
"""

from __future__ import annotations

import os
from datetime import timedelta

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.settings import USER
from gaia_sessions.session.clock import parse_time

from .entries import all_entries, is_missing, matches, own_entries
from .executable import interpreter_of
from .hook_command import (
    is_mixed_entry,
    is_own_hook,
    is_own_script,
    own_scripts,
    starts_script_directly,
    wanted_entry_of,
    words_of,
)
from .json_text import as_object
from .places import HOSTS, Places
from .scopes import is_unread_from_here, scopes_with_hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.errors import BadSetting
    from gaia_sessions.hosts.settings import HostSettings
    from gaia_sessions.jsonio.strict import Json

    from .installed_file import InstalledFile
    from .settings import Settings

    class InstallWarning(TypedDict):
        """What may keep the hooks from working.

        code: one of the names below, for programs.
        message: what is wrong, for people.
        file: the path of the file that it is about; None if there is none.
        """

        code: str
        message: str
        file: str | None

    ReadSettings = tuple[HostSettings, Settings]

    LastEvents = dict[str, dict[str, str]]
    """For each host by name, the time of the last occurrence of each event."""


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

_REFUSAL_NOTE = "Python then exits with 2, which hosts treat as a refusal"
_DOES_NOTHING_NOTE = "the hooks then do nothing; install them again, or uninstall them"
_NOT_TOUCHED_NOTE = "install and uninstall do not change it"
_DUPLICATE_NOTE = "nothing is counted twice, but an event may start two hooks"

_EVENT_DUE_AFTER = timedelta(days=1)


def file_warnings(installed: list[InstalledFile]) -> Iterator[InstallWarning]:
    """The warnings about each file by itself."""
    for found in installed:
        path, words = found["file"], found["command"]
        if found["problem"]:
            yield _warning(UNREADABLE_SETTINGS, f"{found['problem']}; the host ignores the whole file", path)
        program = words[0] if words else ""
        interpreter = interpreter_of(program) if is_own_script(program) else program
        if interpreter and os.path.isabs(interpreter) and not os.access(interpreter, os.X_OK):
            yield _warning(MISSING_INTERPRETER, f"the file names {interpreter}, which cannot be started", path)


def entry_warnings(read_settings: list[ReadSettings]) -> Iterator[InstallWarning]:
    """The warnings about each entry by itself."""
    for _, settings in read_settings:
        all_of_file = all_entries(settings.text)
        own_handlers = [entry.handler for entry in all_of_file if is_own_hook(entry.handler)]
        mixed_handlers = [entry.handler for entry in all_of_file if is_mixed_entry(entry.handler)]
        for harmless, consequence in ((False, _REFUSAL_NOTE), (True, _DOES_NOTHING_NOTE)):
            for path in _missing_scripts(
                [handler for handler in own_handlers if starts_script_directly(handler) is harmless]
            ):
                yield _warning(
                    MISSING_SCRIPT, f"the file names {path}, which does not exist; {consequence}", settings.path
                )
        for path in _missing_scripts(mixed_handlers):
            message = f"a command of your own names {path}, which does not exist; {_REFUSAL_NOTE}"
            yield _warning(BROKEN_MIXED_ENTRY, message, settings.path)
        for message in dict.fromkeys(" ".join(words_of(entry)) for entry in mixed_handlers):
            yield _warning(
                MIXED_ENTRY, f"{message} starts gaia-sessions and something else; {_NOT_TOUCHED_NOTE}", settings.path
            )


def _missing_scripts(handlers: list[Json]) -> list[str]:
    scripts = dict.fromkeys(path for entry in handlers for path in own_scripts(entry))
    return [path for path in scripts if is_missing(path)]


def root_warnings(installed: list[InstalledFile], places: Places) -> Iterator[InstallWarning]:
    """A warning if the hooks keep their sessions in another root than this one."""
    if any(found["command"] for found in installed) and not places.is_hooks_root:
        message = f"hooks started here keep their sessions in {places.hooks_root}; {root_advice(places.root)}"
        yield _warning(ROOT_ELSEWHERE, message, None)


def visibility_warnings(installed: list[InstalledFile], places: Places, *, plugin: bool) -> Iterator[InstallWarning]:
    """A warning for each host whose clients, started here, read none of the files with the hooks."""
    for host in HOSTS.values():
        present = [found for found in installed if found["host"] == host.name and found["command"]]
        everywhere = any(found["scope"] == USER for found in present) or (plugin and host.name == CLAUDE_CODE)
        if not present or everywhere or not is_unread_from_here(places, host):
            continue
        if not scopes_with_hooks(Places(places.root, places.variables, places.here), host):
            message = f"{host.name} started in {places.here} may not read this file; start it in"
            yield _warning(NOT_READ_HERE, f"{message} {places.project}, or install with --here", present[0]["file"])


def own_setting_warnings(faults: list[BadSetting]) -> Iterator[InstallWarning]:
    """A warning for each fault in the settings of gaia-sessions, which hooks ignore."""
    for fault in faults:
        yield _warning(BAD_SETTING, f"{fault}; {fault.hint}", fault.origin if os.path.isabs(fault.origin) else None)


def root_advice(root: str) -> str:
    """The advice on how to make hooks use ``root``."""
    return f"for {root}, set GAIA_SESSIONS_ROOT to it where the host is started"


def usage_warnings(
    installed: list[InstalledFile], last_events: LastEvents, now: datetime, *, enabled: bool
) -> Iterator[InstallWarning]:
    """A warning for each file whose hooks sent no event although one is due; if hooks are disabled, only that."""
    present = [found for found in installed if found["command"]]
    if present and not enabled:
        yield _warning(HOOKS_OFF, "the hooks are installed, but the setting hooks.enabled is off", None)
    for found in present if enabled else []:
        since = found["installed_at"]
        if not has_fired(found, last_events) and (
            since is None or _is_event_due(found["host"], since, last_events, now)
        ):
            when = f" since {since}" if since else ""
            message = f"no event of {found['host']} was received in this project{when}; start a conversation there"
            yield _warning(NEVER_FIRED, message, found["file"])


def has_fired(found: InstalledFile, last_events: LastEvents) -> bool:
    """Whether the host sent an event since the hooks were installed in this file."""
    return max(last_events.get(found["host"], {}).values(), default="") >= (found["installed_at"] or "0")


def _is_event_due(host: str, since: str, last_events: LastEvents, now: datetime) -> bool:
    """Whether a conversation should have started by now: after a day, or once another host was used."""
    others = [at for other, events in last_events.items() if other != host for at in events.values()]
    return max(others, default="") >= since or now - parse_time(since) > _EVENT_DUE_AFTER


def settings_warnings(
    read_settings: list[ReadSettings], installed: list[InstalledFile], *, plugin: bool
) -> Iterator[InstallWarning]:
    """The warnings about the files of a host together, and about entries of others in them."""
    present = {found["host"]: None for found in installed if found["command"]}
    with_plugin = {CLAUDE_CODE: None} if plugin else {}
    for host in (HOSTS[name] for name in present | with_plugin):
        of_host = [settings for other, settings in read_settings if other is host]
        yield from _duplicate_warnings(host, of_host, installed, plugin=plugin)
        yield from _disabled_warnings(of_host)
        yield from _rewriter_warnings(host, of_host)


def _duplicate_warnings(
    host: HostSettings, read_settings: list[Settings], installed: list[InstalledFile], *, plugin: bool
) -> Iterator[InstallWarning]:
    files = [found["file"] for found in installed if found["host"] == host.name and found["command"]]
    if len({os.path.realpath(path) for path in files}) > 1:
        yield _warning(INSTALLED_TWICE, f"the hooks are in {' and '.join(files)}; {_DUPLICATE_NOTE}", files[-1])
    elif files and plugin and host.name == CLAUDE_CODE:
        message = f"the plugin is enabled, and the settings contain the hooks too; {_DUPLICATE_NOTE}"
        yield _warning(INSTALLED_TWICE, message, files[0])
    for settings in read_settings:
        groups = [wanted_entry_of(entry.event, entry.matcher, entry.handler) for entry in own_entries(settings.text)]
        if len(set(groups)) < len(groups):
            yield _warning(
                INSTALLED_TWICE, f"an event has more than one gaia-sessions entry; {_DUPLICATE_NOTE}", settings.path
            )


def _disabled_warnings(read_settings: list[Settings]) -> Iterator[InstallWarning]:
    for settings in read_settings:
        if as_object(settings.text.value).get("disableAllHooks") is True:
            yield _warning(ALL_HOOKS_DISABLED, "disableAllHooks is true: no hook runs", settings.path)


def _rewriter_warnings(host: HostSettings, read_settings: list[Settings]) -> Iterator[InstallWarning]:
    for settings in read_settings:
        for entry in all_entries(settings.text):
            words = words_of(entry.handler)
            if (
                entry.event != host.delegates
                or not words
                or is_own_hook(entry.handler)
                or is_mixed_entry(entry.handler)
            ):
                continue
            if any(matches(entry.matcher, tool) for tool in host.delegation):
                message = (
                    "may rewrite delegations, and of two hooks that do, only the last to finish takes effect: "
                    "if it does rewrite them, exclude from its matcher " + ", ".join(host.delegation)
                )
                yield _warning(REWRITER, f"{' '.join(words)} {message}", settings.path)


def _warning(code: str, message: str, path: str | None) -> InstallWarning:
    return {"code": code, "message": message, "file": path}
