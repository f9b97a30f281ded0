"""Warnings about installed hooks, each with a code that never changes.

The hooks are installed and no event came, a client started here does not read them, they are installed twice, they
cannot start, they are part of a command of the user's own, they are off, or another hook rewrites delegations too.
"""

from __future__ import annotations

import os
from datetime import timedelta

from gaia_sessions.hook import ALLOW_REPORT, ENFORCE
from gaia_sessions.hook.texts import TODOS, UPDATE
from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.settings import USER
from gaia_sessions.session.clock import parse_time

from .entries import MOST_OWN, by_hand, matches
from .executable import interpreter_of, unfit_python
from .hook_command import is_own_script, own_scripts, starts_script_directly, wanted_entry_of, words_of
from .installed_file import read_files
from .json_text import as_object
from .permission import commands_without_rule, own_rules
from .places import HOSTS, UNKNOWN_HOME, Places
from .scopes import files_with_hooks, is_unread_from_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.config import Config
    from gaia_sessions.config.sources import Fault
    from gaia_sessions.hosts.settings import HostSettings
    from gaia_sessions.jsonio.strict import Json

    from .installed_file import InstalledFile, InstallState

    class InstallWarning(TypedDict):
        """What may keep the hooks from working.

        code: one of the names below, for programs.
        message: what is wrong, for people.
        file: the path of the file that it is about; None if there is none.
        """

        code: str
        message: str
        file: str | None

    LastEvents = dict[str, dict[str, str]]
    """For each host by name, the time of the last occurrence of each event."""


NEVER_FIRED = "never_fired"
LIMITS_NOT_HELD = "limits_not_held"
COMMAND_NOT_ALLOWED = "command_not_allowed"
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
TOO_MANY = "too_many"
OLD_PYTHON = "old_python"
NOT_LOOKED_AT = "not_looked_at"

_REFUSAL_NOTE = "Python then exits with 2, which hosts treat as a refusal"
_DOES_NOTHING_NOTE = "the hooks then do nothing; install them again, or uninstall them"
_NOT_TOUCHED_NOTE = "install and uninstall do not change it"
_DUPLICATE_NOTE = "nothing is counted twice, but an event may start two hooks"
_LAX_NOTE = "lack --enforce, so they end the session of an agent that the others keep at its todos"

_ALLOWED_BY = f"install the hooks with {ALLOW_REPORT} {ENFORCE}"

_EVENT_DUE_AFTER = timedelta(days=1)


_WHAT_FOR = {UPDATE: "report", TODOS: "keep todos"}
"""What agents type the commands for that ``--allow-report`` allows."""


def home_warnings(places: Places, all_hosts: Iterable[HostSettings]) -> Iterator[InstallWarning]:
    """The warning of a user without a home, whose own settings of some hosts are not looked at."""
    names = [host.name for host in all_hosts if not places.knows(host, USER)]
    if names:
        yield _warning(NOT_LOOKED_AT, f"your own settings of {', '.join(names)}: HOME {UNKNOWN_HOME}", None)


def plugin_warnings(variables: Mapping[str, str]) -> Iterator[InstallWarning]:
    """The warning about the ``python3`` that a client starts for the plugin, with the PATH of this process."""
    if found := unfit_python(variables):
        message = f"the plugin records nothing: it needs Python 3.11 as python3, found {found}"
        yield _warning(OLD_PYTHON, f"{message}; disable the plugin, and install the hooks in its place", None)


def file_warnings(files: list[InstalledFile]) -> Iterator[InstallWarning]:
    """The warnings about each file by itself."""
    for file in files:
        if error := file.why_no_hooks():
            yield _warning(UNREADABLE_SETTINGS, f"{error}; its host may ignore the whole file", file.path)
        for what, own in (("entries start", file.own), ("rules allow", own_rules(file.text))):
            if len(own) > MOST_OWN:
                yield _warning(TOO_MANY, by_hand(what), file.path)
        for command in commands_without_rule(file.text) if ALLOW_REPORT in file.command else []:
            message = f"sub-agents would be asked for a permission each time they {_WHAT_FOR[command]}"
            yield _warning(COMMAND_NOT_ALLOWED, f"{message}: these hooks are of an earlier version", file.path)
        program = file.command[0] if file.command else ""
        interpreter = interpreter_of(program) if is_own_script(program) else program
        if interpreter and os.path.isabs(interpreter) and not _can_be_started(interpreter):
            yield _warning(MISSING_INTERPRETER, f"the file names {interpreter}, which cannot be started", file.path)


def _can_be_started(path: str) -> bool:
    try:
        return os.access(path, os.X_OK)
    except ValueError:  # a name that no file can have
        return False


def entry_warnings(files: list[InstalledFile]) -> Iterator[InstallWarning]:
    """The warnings about each entry by itself."""
    for file in files:
        own_handlers = [entry.handler for entry in file.own]
        mixed_handlers = [entry.handler for entry in file.mixed]
        harmless = [handler for handler in own_handlers if starts_script_directly(handler)]
        refusing = [handler for handler in own_handlers if not starts_script_directly(handler)]
        for handlers, consequence in ((refusing, _REFUSAL_NOTE), (harmless, _DOES_NOTHING_NOTE)):
            for path in _missing_scripts(handlers):
                yield _warning(MISSING_SCRIPT, f"the file names {path}, which does not exist; {consequence}", file.path)
        for path in _missing_scripts(mixed_handlers):
            message = f"a command of your own names {path}, which does not exist; {_REFUSAL_NOTE}"
            yield _warning(BROKEN_MIXED_ENTRY, message, file.path)
        for message in dict.fromkeys(" ".join(words_of(entry)) for entry in mixed_handlers):
            yield _warning(
                MIXED_ENTRY, f"{message} starts gaia-sessions and something else; {_NOT_TOUCHED_NOTE}", file.path
            )


def _missing_scripts(handlers: list[Json]) -> list[str]:
    scripts = dict.fromkeys(path for entry in handlers for path in own_scripts(entry))
    return [path for path in scripts if _is_missing(path)]


def _is_missing(path: str) -> bool:
    """Whether the file ``path`` does not exist; False for a path with a variable, which only a shell can expand."""
    return os.path.isabs(path) and not os.path.isfile(path)


def root_warnings(files: list[InstalledFile], places: Places) -> Iterator[InstallWarning]:
    """A warning if the hooks keep their sessions in another root than this one."""
    if any(file.own for file in files) and not places.is_hooks_root:
        advice = f"for {places.root}, set GAIA_SESSIONS_ROOT to it where the host is started"
        message = f"hooks started here keep their sessions in {places.hooks_root}; {advice}"
        yield _warning(ROOT_ELSEWHERE, message, None)


def visibility_warnings(files: list[InstalledFile], places: Places, *, plugin: bool) -> Iterator[InstallWarning]:
    """A warning for each host whose clients, started here, read none of the files with the hooks."""
    for host in HOSTS.values():
        present = [file for file in files if file.host is host and file.own]
        everywhere = any(file.scope == USER for file in present) or (plugin and host.name == CLAUDE_CODE)
        if not present or everywhere or not is_unread_from_here(places, host):
            continue
        if not files_with_hooks(read_files(Places(places.root, places.variables, places.here), host)):
            message = f"{host.name} started in {places.here} may not read the hooks in {present[0].path}; start it in"
            yield _warning(NOT_READ_HERE, f"{message} {places.project}, or install with --here", present[0].path)


def own_setting_warnings(faults: list[Fault]) -> Iterator[InstallWarning]:
    """A warning for each fault in the settings of gaia-sessions, which hooks ignore."""
    for fault in faults:
        yield _warning(BAD_SETTING, f"{fault}; {fault.hint}", fault.origin if os.path.isabs(fault.origin) else None)


def usage_warnings(
    installed: list[InstallState], last_events: LastEvents, now: datetime, *, enabled: bool
) -> Iterator[InstallWarning]:
    """A warning for each file whose host sent no event although one is due; if hooks are off, only that."""
    present = [found for found in installed if found["command"]]
    if present and not enabled:
        yield _warning(HOOKS_OFF, "the hooks are installed, but they are off by the setting hooks.enabled", None)
    for found in present if enabled else []:
        since = found["changed_at"]
        if not has_fired(found, last_events) and since and _is_event_due(found["host"], since, last_events, now):
            message = f"no event of {found['host']} was received in this project; start a conversation there"
            yield _warning(NEVER_FIRED, message, found["file"])


def limit_warnings(installed: list[InstallState], config: Config) -> Iterator[InstallWarning]:
    """A warning for each file whose hooks could hold the limits that are set, and do not, or would not let an agent."""
    names = config.enforced_settings
    holding = {found["host"] for found in installed if found["enforce"]}
    for found in installed if names and config.hooks else []:
        if found["command"] and HOSTS[found["host"]].enforced and found["host"] not in holding:
            message = f"the settings {', '.join(names)} are set, and the hooks of {found['host']} do not hold them"
            yield _warning(LIMITS_NOT_HELD, message, found["file"])
        elif config.limits_completion_check and found["enforce"] and not found["allow_report"]:
            message = (
                "agents are kept at work until they close their todos, and would be asked for a permission to do so"
            )
            yield _warning(COMMAND_NOT_ALLOWED, f"{message}; {_ALLOWED_BY}", found["file"])


def has_fired(found: InstallState, last_events: LastEvents) -> bool:
    """Whether the host ever sent an event, as far as the log goes back."""
    return found["host"] in last_events


def _is_event_due(host: str, since: str, last_events: LastEvents, now: datetime) -> bool:
    """Whether a conversation should have started by now: after a day, or once another host was used."""
    others = [at for other, events in last_events.items() if other != host for at in events.values()]
    return max(others, default="") >= since or now - parse_time(since) > _EVENT_DUE_AFTER


def settings_warnings(files: list[InstalledFile], *, plugin: bool) -> Iterator[InstallWarning]:
    """The warnings about the files of a host together, and about entries of others in them."""
    present = {file.host.name: None for file in files if file.own}
    with_plugin = {CLAUDE_CODE: None} if plugin else {}
    for host in (HOSTS[name] for name in present | with_plugin):
        of_host = [file for file in files if file.host is host]
        yield from _duplicate_warnings(of_host, plugin=plugin and host.name == CLAUDE_CODE)
        yield from _disabled_warnings(of_host)
        yield from _rewriter_warnings(host, of_host)


def _duplicate_warnings(files: list[InstalledFile], *, plugin: bool) -> Iterator[InstallWarning]:
    paths = [file.path for file in files if file.own]
    lax = [file.path for file in files if file.own and ENFORCE not in file.command]
    holds = len(lax) < len(paths)
    if len({os.path.realpath(path) for path in paths}) > 1:
        surplus = lax[-1] if lax and holds else paths[-1]
        note = f"those in {surplus} {_LAX_NOTE}" if lax and holds else _DUPLICATE_NOTE
        yield _warning(INSTALLED_TWICE, f"the hooks are in {' and '.join(paths)}; {note}", surplus)
    elif paths and plugin:
        note = f"those of the plugin {_LAX_NOTE}: disable it" if holds else _DUPLICATE_NOTE
        message = f"the plugin is enabled, and the settings contain the hooks too; {note}"
        yield _warning(INSTALLED_TWICE, message, None if holds else paths[0])
    for file in files:
        groups = {repr(wanted_entry_of(entry.event, entry.matcher, entry.handler)) for entry in file.own}
        if len(groups) < len(file.own):
            message = f"an event has more than one gaia-sessions entry; {_DUPLICATE_NOTE}"
            yield _warning(INSTALLED_TWICE, message, file.path)


def _disabled_warnings(files: list[InstalledFile]) -> Iterator[InstallWarning]:
    for file in files:
        if as_object(file.text.value).get("disableAllHooks") is True:
            yield _warning(ALL_HOOKS_DISABLED, "disableAllHooks is true: no hook runs", file.path)


def _rewriter_warnings(host: HostSettings, files: list[InstalledFile]) -> Iterator[InstallWarning]:
    for file in files:
        ours = {id(entry) for entry in (*file.own, *file.mixed)}
        for entry in file.entries:
            words = words_of(entry.handler)
            if entry.event != host.delegates or not words or id(entry) in ours:
                continue
            if any(matches(entry.matcher, tool) for tool in host.delegation):
                message = (
                    "may rewrite delegations, and of two hooks that do, only the last to finish takes effect: "
                    "if it does rewrite them, exclude from its matcher " + ", ".join(host.delegation)
                )
                yield _warning(REWRITER, f"{' '.join(words)} {message}", file.path)


def _warning(code: str, message: str, path: str | None) -> InstallWarning:
    return {"code": code, "message": message, "file": path}
