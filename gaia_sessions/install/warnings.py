"""What is doubtful about how things stand, each doubt under a code that stays the same.

Owns when a warning is due and what it says: the hooks are there and were never heard, a client started here would not
read them, they are there twice, they cannot start, they are part of a command of somebody's own, they are switched off,
or somebody else rewrites delegations too. Reads what was read; decides no exit.
"""

from __future__ import annotations

import os
from datetime import timedelta

from gaia_sessions.hosts.registry import CLAUDE_CODE
from gaia_sessions.hosts.settings import USER
from gaia_sessions.session.clock import parse_time

from .entries import all_entries, is_gone, matches
from .executable import interpreter_of
from .hook_command import is_mixed_entry, is_our_hook, is_our_script, our_scripts, starts_script_directly, words_of
from .json_text import as_object
from .places import HOSTS, Places
from .scopes import is_unread_from_here, scopes_with_our_hooks

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
        """``code`` for programs, ``message`` for people, ``file`` it is about, if one."""

        code: str
        message: str
        file: str | None

    ReadSettings = tuple[HostSettings, Settings]

    LastEvents = dict[str, dict[str, str]]
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

_REFUSAL_NOTE = "Python then ends with 2, which hosts take for a refusal"
_DOES_NOTHING_NOTE = "the hooks do nothing then; install them again, or uninstall them"
_NOT_TOUCHED_NOTE = "it is neither replaced nor taken out"
_DUPLICATE_NOTE = "nothing counts twice, but each event takes twice as long"

_EVENT_DUE_AFTER = timedelta(days=1)


def file_warnings(installed: list[InstalledFile]) -> Iterator[InstallWarning]:
    """What each file by itself gives to think of."""
    for found in installed:
        path, words = found["file"], found["command"]
        if found["problem"]:
            yield _warning(UNREADABLE_SETTINGS, f"{found['problem']}; the host passes over all of it", path)
        program = words[0] if words else ""
        interpreter = interpreter_of(program) if is_our_script(program) else program
        if interpreter and os.path.isabs(interpreter) and not os.access(interpreter, os.X_OK):
            yield _warning(MISSING_INTERPRETER, f"{interpreter} is named there and cannot be started", path)


def entry_warnings(read_settings: list[ReadSettings]) -> Iterator[InstallWarning]:
    """What each entry by itself gives to think of."""
    for _, settings in read_settings:
        all_of_file = all_entries(settings.text)
        our_handlers = [entry.handler for entry in all_of_file if is_our_hook(entry.handler)]
        mixed_handlers = [entry.handler for entry in all_of_file if is_mixed_entry(entry.handler)]
        for harmless, consequence in ((False, _REFUSAL_NOTE), (True, _DOES_NOTHING_NOTE)):
            for path in _gone_scripts(
                [handler for handler in our_handlers if starts_script_directly(handler) is harmless]
            ):
                yield _warning(MISSING_SCRIPT, f"{path} is named there and is gone; {consequence}", settings.path)
        for path in _gone_scripts(mixed_handlers):
            message = f"{path} is named beside something else and is gone; {_REFUSAL_NOTE}"
            yield _warning(BROKEN_MIXED_ENTRY, message, settings.path)
        for message in dict.fromkeys(" ".join(words_of(entry)) for entry in mixed_handlers):
            yield _warning(
                MIXED_ENTRY, f"{message} starts our hook and does something else; {_NOT_TOUCHED_NOTE}", settings.path
            )


def _gone_scripts(handlers: list[Json]) -> list[str]:
    scripts = dict.fromkeys(path for entry in handlers for path in our_scripts(entry))
    return [path for path in scripts if is_gone(path)]


def root_warnings(installed: list[InstalledFile], places: Places) -> Iterator[InstallWarning]:
    """Whether the hooks keep their sessions where we look."""
    if any(found["command"] for found in installed) and not places.is_hooks_root:
        message = f"hooks started here keep their sessions in {places.hooks_root}; {root_advice(places.root)}"
        yield _warning(ROOT_ELSEWHERE, message, None)


def visibility_warnings(installed: list[InstalledFile], places: Places, *, plugin: bool) -> Iterator[InstallWarning]:
    """Whether a client that is started here reads what is installed; one of several files that it reads is enough."""
    for host in HOSTS.values():
        present = [found for found in installed if found["host"] == host.name and found["command"]]
        everywhere = any(found["scope"] == USER for found in present) or (plugin and host.name == CLAUDE_CODE)
        if not present or everywhere or not is_unread_from_here(places, host):
            continue
        if not scopes_with_our_hooks(Places(places.root, places.variables, places.here), host):
            message = f"a {host.name} started in {places.here} may not read this file; start it in"
            yield _warning(NOT_READ_HERE, f"{message} {places.project}, or install with --here", present[0]["file"])


def own_setting_warnings(faults: list[BadSetting]) -> Iterator[InstallWarning]:
    """What our own settings say that means nothing: hooks pass over it."""
    for fault in faults:
        yield _warning(BAD_SETTING, f"{fault}; {fault.hint}", fault.origin if os.path.isabs(fault.origin) else None)


def root_advice(root: str) -> str:
    """What it takes that hooks use ``root``."""
    return f"for {root}, set GAIA_SESSIONS_ROOT to it where the host is started"


def usage_warnings(
    installed: list[InstalledFile], last_events: LastEvents, now: datetime, *, enabled: bool
) -> Iterator[InstallWarning]:
    """Whether what is installed was ever heard, each host by itself; switched off, it cannot be."""
    present = [found for found in installed if found["command"]]
    if present and not enabled:
        yield _warning(HOOKS_OFF, "the hooks are installed, and the setting hooks.enabled is off", None)
    for found in present if enabled else []:
        since = found["installed_at"]
        if not has_fired(found, last_events) and (
            since is None or _is_event_due(found["host"], since, last_events, now)
        ):
            when = f" since {since}" if since else ""
            message = f"no event of {found['host']} has arrived in this project{when}; begin a conversation there"
            yield _warning(NEVER_FIRED, message, found["file"])


def has_fired(found: InstalledFile, last_events: LastEvents) -> bool:
    """Whether an event came from the host since our hooks were installed in this file."""
    return max(last_events.get(found["host"], {}).values(), default="") >= (found["installed_at"] or "0")


def _is_event_due(host: str, since: str, last_events: LastEvents, now: datetime) -> bool:
    """Until a conversation begins nothing can be heard: that takes a day, or less where another host was used."""
    others = [at for other, events in last_events.items() if other != host for at in events.values()]
    return max(others, default="") >= since or now - parse_time(since) > _EVENT_DUE_AFTER


def settings_warnings(
    read_settings: list[ReadSettings], installed: list[InstalledFile], *, plugin: bool
) -> Iterator[InstallWarning]:
    """What the files together, and the entries of others in them, give to think of."""
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
        yield _warning(INSTALLED_TWICE, f"each event is sent by {', '.join(files)}; {_DUPLICATE_NOTE}", files[-1])
    elif files and plugin and host.name == CLAUDE_CODE:
        message = f"the plugin is enabled, and the settings have the hooks as well; {_DUPLICATE_NOTE}"
        yield _warning(INSTALLED_TWICE, message, files[0])
    for settings in read_settings:
        groups = [(entry.event, entry.matcher) for entry in all_entries(settings.text) if is_our_hook(entry.handler)]
        if len(set(groups)) < len(groups):
            yield _warning(
                INSTALLED_TWICE, f"an event has more than one gaia-sessions entry; {_DUPLICATE_NOTE}", settings.path
            )


def _disabled_warnings(read_settings: list[Settings]) -> Iterator[InstallWarning]:
    for settings in read_settings:
        if as_object(settings.text.value).get("disableAllHooks") is True:
            yield _warning(ALL_HOOKS_DISABLED, "disableAllHooks is true: no hook runs, ours or another", settings.path)


def _rewriter_warnings(host: HostSettings, read_settings: list[Settings]) -> Iterator[InstallWarning]:
    for settings in read_settings:
        for entry in all_entries(settings.text):
            words = words_of(entry.handler)
            if (
                entry.event != host.delegates
                or not words
                or is_our_hook(entry.handler)
                or is_mixed_entry(entry.handler)
            ):
                continue
            if any(matches(entry.matcher, tool) for tool in host.delegation):
                message = (
                    "may rewrite delegations; of two hooks that do, the last to finish wins whole: "
                    "if it does not, all is well; if it does, let its matcher leave out " + ", ".join(host.delegation)
                )
                yield _warning(REWRITER, f"{' '.join(words)} {message}", settings.path)


def _warning(code: str, message: str, path: str | None) -> InstallWarning:
    return {"code": code, "message": message, "file": path}
