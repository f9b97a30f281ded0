"""The check of the hooks: why a host does not call each hook exactly once, with a code, a sentence and a command.

``hooks install``, ``hooks status`` and ``doctor`` show this one list.
"""

from __future__ import annotations

import os
from datetime import timedelta

from gaia_sessions.config import origin_of, project_file
from gaia_sessions.errors import StoreFailure
from gaia_sessions.hook import ALLOW_REPORT, ENFORCE
from gaia_sessions.hosts import CLAUDE_CODE, CODEX
from gaia_sessions.hosts.settings import USER
from gaia_sessions.install.executable import hook_program, unfit_python
from gaia_sessions.install.installed_file import ABSENT, read_files
from gaia_sessions.install.places import HOSTS, UNKNOWN_HOME, Places
from gaia_sessions.install.scopes import files_with_hooks, is_unread_from_here
from gaia_sessions.install.status import InstalledHooks
from gaia_sessions.session.clock import parse_time

from .findings import NOT_CHECKED, PROBLEM, WARNING, finding, ok, own_command, setting_faults, undo_command
from .hook_files import (
    BROKEN_MIXED_ENTRY,
    COMMAND_NOT_ALLOWED,
    DUPLICATE_NOTE,
    INSTALLED_TWICE,
    MIXED_ENTRY,
    TOO_MANY,
    command_for_root,
    file_findings,
    install_command,
    install_options,
    rest_findings,
    told,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.config import Config
    from gaia_sessions.config.sources import Fault
    from gaia_sessions.hosts.settings import HostSettings
    from gaia_sessions.install.installed_file import InstallState
    from gaia_sessions.install.status import LastEvents

    from .findings import Finding
    from .hook_files import HookFinding
    from .inspection import Inspection

    class HookStatus(TypedDict):
        """The status of the hooks of one project."""

        root: str
        enabled: bool  # by our settings
        plugin: bool  # whether Claude Code enables it
        installed: list[InstallState]
        last_received: dict[str, str]  # times by event, from the log
        heard_from: dict[str, dict[str, str]]  # the same by host
        warnings: list[HookFinding]


NOT_LOOKED_AT = "not_looked_at"
OLD_PYTHON = "old_python"
BAD_SETTING = "bad_setting"
ROOT_ELSEWHERE = "root_elsewhere"
NOT_READ_HERE = "not_read_here"
HOOKS_OFF = "hooks_off"
NEVER_FIRED = "never_fired"
LIMITS_NOT_HELD = "limits_not_held"
NOT_INSTALLED = "not_installed"

LEFT_BY_UNINSTALL = frozenset([BROKEN_MIXED_ENTRY, MIXED_ENTRY, NOT_LOOKED_AT])
"""What an uninstall leaves, or does not look at."""

_LAX_NOTE = "lack --enforce, so they end the session while the other hooks make the agent continue"
_EVENT_DUE_AFTER = timedelta(days=1)


def hooks(inspection: Inspection) -> list[Finding]:
    """Returns the state of the hooks in the settings of every host."""
    places = Places(inspection.root, inspection.environ)
    status = hook_status(places, inspection.now, (inspection.config, inspection.faults))
    present = [found for found in status["installed"] if found["state"] != ABSENT]
    states = [f"{found['host']} ({found['scope']}): {found['state']}" for found in present]
    states += ["the plugin is enabled"] * status["plugin"]
    return [
        finding("hooks", found["state"], found["message"], found["fix"])
        for found in status["warnings"]
        if found["code"] != BAD_SETTING  # settings have their own check
    ] or [ok("hooks", "; ".join(states))]


def hook_status(
    places: Places,
    now: datetime,
    settings: tuple[Config, list[Fault]],
    hosts: Collection[HostSettings] = tuple(HOSTS.values()),
) -> HookStatus:
    """Returns the status of the hooks of ``hosts`` at ``now``; ``settings`` are our settings and the faults in them."""
    installed = InstalledHooks(places, hosts)
    config, faults = settings
    found = [
        *_of_homes(installed),
        *_of_plugin(installed),
        *_of_settings(faults),
        *(one for file, state in installed.files.items() for one in file_findings(places, file, state)),
        *_of_rest(installed),
        *_of_root(installed),
        *_of_folders(installed),
        *(_of_silence(installed, now) if config.hooks else _of_switch(installed)),
        *(_of_limits(installed, config) if config.hooks else ()),
        *_of_several(installed),
        *_of_none(installed),
    ]
    # an installation does not change these files, so they get no other finding
    left_alone = {one["file"] for one in found if one["code"] == TOO_MANY}
    return {
        "root": places.root,
        "enabled": config.hooks,
        "plugin": installed.plugin,
        "installed": [*installed.files.values()],
        "last_received": installed.last_received,
        "heard_from": installed.last_events,
        "warnings": [one for one in found if one["code"] == TOO_MANY or one["file"] not in left_alone],
    }


def _of_homes(hooks: InstalledHooks) -> Iterator[HookFinding]:
    unknown = ", ".join(host.name for host in hooks.hosts if not hooks.places.knows(host, USER))
    if unknown:
        yield told(NOT_LOOKED_AT, NOT_CHECKED, f"your own settings of {unknown}, because HOME {UNKNOWN_HOME}")


def _of_plugin(hooks: InstalledHooks) -> Iterator[HookFinding]:
    """Checks the ``python3`` that a client starts for the plugin, with the PATH of this process."""
    if hooks.plugin and (python := unfit_python(hooks.places.variables)):
        message = f"the plugin records nothing: it needs Python 3.11 or later as python3, found {python}"
        advice = "disable the plugin, and install the hooks instead"
        fix = command_for_root(hooks.places, "hooks", "install")
        yield told(OLD_PYTHON, PROBLEM, f"{message}; {advice}", fix=fix)


def _of_settings(faults: list[Fault]) -> Iterator[HookFinding]:
    """Finds the faults in our settings, which hooks ignore."""
    for origin, text, fix in setting_faults(faults):
        yield told(BAD_SETTING, PROBLEM, text, origin if os.path.isabs(origin) else None, fix)


def _of_rest(hooks: InstalledHooks) -> Iterator[HookFinding]:
    """Finds what else is wrong in the settings files of each host that has hooks of ours."""
    present = {file.host.name for file in hooks.own} | ({CLAUDE_CODE} if hooks.plugin else set())
    for file in hooks.files:
        if file.host.name in present:
            yield from rest_findings(file)


def _of_root(hooks: InstalledHooks) -> Iterator[HookFinding]:
    places = hooks.places
    if hooks.own and not places.is_hooks_root:
        message = f"hooks started here store sessions in {places.hooks_root}"
        advice = f"to use {places.root}, start the client with GAIA_SESSIONS_ROOT set to that folder"
        yield told(ROOT_ELSEWHERE, WARNING, f"{message}; {advice}")


def _of_folders(hooks: InstalledHooks) -> Iterator[HookFinding]:
    """Finds hosts whose clients, started here, read no file with the hooks."""
    places = hooks.places
    for host in hooks.hosts:
        own = hooks.own_of(host)
        everywhere = any(file.scope == USER for file in own) or (hooks.plugin and host.name == CLAUDE_CODE)
        if not own or everywhere or not is_unread_from_here(places, host):
            continue
        if not files_with_hooks(read_files(Places(places.root, places.variables, places.here), host)):
            message = f"{host.name} started in {places.here} may not read the hooks in {own[0].path}"
            advice = f"start it in {places.project}, or install with --here"
            fix = own_command(places.variables, "hooks", "install", "--here", *install_options(own[0]))
            yield told(NOT_READ_HERE, PROBLEM, f"{message}; {advice}", own[0].path, fix)


def _of_switch(hooks: InstalledHooks) -> Iterator[HookFinding]:
    """Finds that our settings turn the hooks off."""
    if hooks.own:
        root, variables = hooks.places.root, hooks.places.variables
        fix = undo_command(origin_of("hooks", root, variables) or project_file(root))
        message = "the hooks are installed, but the setting hooks.enabled turns them off"
        yield told(HOOKS_OFF, PROBLEM, message, fix=fix)


def _of_silence(hooks: InstalledHooks, now: datetime) -> Iterator[HookFinding]:
    """Finds files whose host should have sent an event, but the log has none."""
    for file in hooks.own:
        host, since = file.host.name, hooks.files[file]["changed_at"]
        if host in hooks.last_events or not since or not _is_event_due(since, hooks.last_events, now):
            continue
        if file.scope == USER or not hooks.places.is_hooks_root:  # the events can go to another project
            why = "no event was received in this project yet"
            yield told(
                NEVER_FIRED, NOT_CHECKED, f"whether {host} calls the hooks in {file.path}, because {why}", file.path
            )
        else:
            trust = "the hooks there with /hooks" if host == CODEX else "its folder"
            advice = f"start {host} in {os.path.dirname(os.path.dirname(file.path))}, and trust {trust}"
            yield told(NEVER_FIRED, PROBLEM, f"the hooks of {host} in {file.path} never ran: {advice}", file.path)


def _is_event_due(since: str, last_events: LastEvents, now: datetime) -> bool:
    """Returns whether a conversation should have started: a day has passed, or another host was used since then."""
    latest = max((at for events in last_events.values() for at in events.values()), default="")
    return latest >= since or now - parse_time(since) > _EVENT_DUE_AFTER


def _of_limits(hooks: InstalledHooks, config: Config) -> Iterator[HookFinding]:
    """Finds files whose hooks do not enforce limits that are set, or do not let agents close todos."""
    names = ", ".join(config.enforced_settings)
    holding = {file.host.name for file in hooks.own if ENFORCE in file.command}
    for file in hooks.own if names else []:
        if file.host.enforced and file.host.name not in holding:
            message = f"the hooks of {file.host.name} do not enforce these limits: {names}"
            yield told(LIMITS_NOT_HELD, WARNING, message, file.path, install_command(hooks.places, file, ENFORCE))
        elif config.limits_completion_check and ENFORCE in file.command and ALLOW_REPORT not in file.command:
            message = "agents are kept at work until they close their todos, but they need a permission to close one"
            fix = install_command(hooks.places, file, ALLOW_REPORT)
            yield told(COMMAND_NOT_ALLOWED, WARNING, message, file.path, fix)


def _of_several(hooks: InstalledHooks) -> Iterator[HookFinding]:
    """Finds hosts that get the hooks from several places, with the command that removes one of them."""
    for host in hooks.hosts:
        own = hooks.own_of(host)
        lax = [file for file in own if ENFORCE not in file.command]
        surplus = None
        if len({os.path.realpath(file.path) for file in own}) > 1:
            is_lax = 0 < len(lax) < len(own)
            surplus = lax[-1] if is_lax else own[-1]
            note = f"those in {surplus.path} {_LAX_NOTE}" if is_lax else DUPLICATE_NOTE
            message = f"the hooks are in {' and '.join(file.path for file in own)}; {note}"
        elif own and hooks.plugin and host.name == CLAUDE_CODE:
            surplus = own[0] if lax else None
            note = DUPLICATE_NOTE if lax else f"those of the plugin {_LAX_NOTE}; disable the plugin"
            message = f"the plugin is enabled, and the settings contain the hooks too; {note}"
        else:
            continue
        if surplus is None:
            yield told(INSTALLED_TWICE, WARNING, message)
        else:
            words = "hooks", "uninstall", "--host", host.name, f"--{surplus.scope}"
            yield told(INSTALLED_TWICE, PROBLEM, message, surplus.path, command_for_root(hooks.places, *words))


def _of_none(hooks: InstalledHooks) -> Iterator[HookFinding]:
    """Finds that there are no hooks, with the command that installs hooks, or why that command would fail."""
    if hooks.plugin or any(state["state"] != ABSENT for state in hooks.files.values()):
        return
    message = "no hooks are installed here, so what agents do is not recorded"
    try:
        hook_program()
    except StoreFailure as error:
        yield told(NOT_INSTALLED, WARNING, f"{message}, and {error.reason}: {error.hint}")
    else:
        fix = command_for_root(hooks.places, "hooks", "install")
        yield told(NOT_INSTALLED, WARNING, message, fix=fix)
