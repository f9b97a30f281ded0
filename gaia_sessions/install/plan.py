"""Installing the hooks in a host's settings, and uninstalling them.

Owns what each of the two changes, as a plan that is made from the files as they are now and then shown or applied. A
plan for what already holds changes nothing. An uninstall restores a file that nobody changed since the installation,
and otherwise removes only what was installed.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from gaia_sessions.errors import InvalidInput, SettingsUnreadable, UsageError
from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.settings import USER
from gaia_sessions.session.clock import format_time

from . import backups, notices, permission
from .backups import Backup
from .changes import CREATED_FOLDERS, Change, apply_change, created_folders, diff_lines
from .entries import with_hooks, with_rule, without_rule
from .hook_command import command_for
from .json_text import parse
from .permission import RULES, SETTING
from .places import HOSTS
from .scopes import other_installed_scopes, refuse_second
from .settings import SettingsLock, load
from .uninstall import content_after_uninstall, original_contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.jsonio.strict import Json

    from .git import Exclusion
    from .json_text import JsonText
    from .places import Places
    from .settings import Settings

    class InstallResult(TypedDict):
        """What was done, or would be.

        rules: the permissions that an installation adds, or an uninstall removes.
        withdrawn: the permissions that an installation removes.
        remarks: codes of ``notices``.
        elsewhere: the other scopes in which the host has the hooks.
        start_in: the folder in which a client must be started to read the file; None for a user's own settings.
        exclude: the line that makes git ignore the file, and where to add it.
        """

        action: str
        host: str
        scope: str
        root: str
        file: str
        changed: list[str]
        dry_run: bool
        command: list[str]
        events: list[str]
        rules: list[str]
        withdrawn: list[str]
        backup: str | None
        remarks: list[str]
        elsewhere: list[str]
        start_in: str | None
        exclude: Exclusion | None
        diff: str


INSTALL, UNINSTALL = "install", "uninstall"

INSTALLED_AT = "installed_at"


class InstallRequest:
    """What the user asked for. Raises ``UsageError`` for a scope or an option that the host does not have."""

    __slots__ = ("action", "host", "report", "scope", "tools")

    def __init__(self, action: str, host: str, scope: str, *, tools: bool = False, report: bool = False) -> None:
        self.action = action
        self.host = HOSTS[host]
        self.scope = scope
        self.tools = tools
        self.report = report
        if scope not in self.host.files:
            raise UsageError(f"{host} has no {scope} settings", "use --user or --project")
        if report and host != CLAUDE_CODE:
            raise UsageError(f"only {CLAUDE_CODE} has a permission rule for one command", "omit --allow-report")


class Plan:
    """The changes for one request, the first of them to the settings file, and the result that describes them."""

    __slots__ = ("_effective", "_places", "_result", "changes")

    def __init__(self, places: Places, result: InstallResult, changes: list[Change]) -> None:
        self.changes = changes
        self._effective = [change for change in changes if change.has_effect]
        self._places = places
        self._result: InstallResult = {**result, "changed": [change.path for change in self._effective]}

    @property
    def changed_files(self) -> list[str]:
        """The files that the plan changes."""
        return self._result["changed"]

    def preview(self) -> InstallResult:
        """The result of a dry run, with the difference; writes nothing."""
        lines = (line for change in self._effective for line in diff_lines(change, self._places.project))
        return {**self._result, "dry_run": True, "diff": "\n".join(lines)}

    def apply(self) -> InstallResult:
        """Writes the changes; the result. Raises ``StoreFailure``. An uninstall drops backups in any case."""
        if self._effective or self._result["action"] == UNINSTALL:
            for change in self.changes:
                apply_change(change, self._places.state)
        if self._effective and self._effective[0].backup is not None and self.changes[0].before is not None:
            self._result["backup"] = backups.folder_for(self._places.state, self._result["file"])
        return self._result


def carry_out(
    places: Places, request: InstallRequest, now: datetime, announce: Callable[[list[str]], None], *, dry_run: bool
) -> InstallResult:
    """Does what was asked for, or with ``dry_run`` finds the difference; the result.

    An installation calls ``announce`` with the files that it is about to write. Raises ``HooksElsewhere`` if another
    scope of this project has the hooks, ``StoreFailure``, and what ``locked_plan`` raises.
    """
    if request.action == INSTALL:
        refuse_second(places, request.host, request.scope)
    if dry_run:
        return make_plan(places, request, now).preview()
    with locked_plan(places, request, now) as plan:
        if plan.changed_files and request.action == INSTALL:
            announce(plan.changed_files)
        return plan.apply()


def make_plan(places: Places, request: InstallRequest, now: datetime) -> Plan:
    """The changes after which ``request`` holds, and nothing else in the settings is different; writes nothing.

    Raises ``SettingsUnreadable`` and ``BadSetting`` for a file that does not parse, and ``StoreFailure`` for what the
    system refuses.
    """
    return _plan_install(places, request, now) if request.action == INSTALL else _plan_uninstall(places, request)


@contextmanager
def locked_plan(places: Places, request: InstallRequest, now: datetime) -> Iterator[Plan]:
    """The plan for ``request``, to be applied in the ``with`` block: until its end no other process changes settings.

    Everything that the plan depends on is checked before the first file is written. Where there is nothing to write
    and no backup to drop, no folder is created for a lock. Raises what ``make_plan`` raises, and ``LockTimeout``.
    """
    plan = make_plan(places, request, now)
    if not plan.changed_files and not os.path.lexists(places.state):
        yield plan
        return
    with SettingsLock(places.state):
        yield make_plan(places, request, now)


def _plan_install(places: Places, request: InstallRequest, now: datetime) -> Plan:
    path = places.file_of(request.host, request.scope)
    settings, backup = load(path, request.host), backups.find(places.state, path)
    words = command_for(request.host, tools=request.tools)
    text, rules, withdrawn = _wanted_text(settings, backup, request, words)
    setting, setting_changes = _plan_setting(places, request, backup)
    note: dict[str, Json] = {
        INSTALLED_AT: format_time(now),
        RULES: list(rules),
        SETTING: setting,
        CREATED_FOLDERS: list(created_folders(path, places.files_of(request.host), places.state)),
    }
    after = settings.bytes_of(text)
    change = Change(path, settings.data, after, Backup.of(*original_contents(settings, backup), after or b"", note))
    result = _new_result(places, request, words, rules)
    result["withdrawn"] = withdrawn
    due = notices.install_notices(places, request.host, request.scope, text, report=request.report)
    result["remarks"], result["exclude"] = due
    result["start_in"] = None if request.scope == USER else places.project
    return Plan(places, result, [change, *setting_changes])


def _wanted_text(
    settings: Settings, backup: Backup | None, request: InstallRequest, words: list[str]
) -> tuple[JsonText, list[str], list[str]]:
    """The new text of the settings, the rules in it that were added, and the earlier ones that it no longer has."""
    rule = permission.permission_rule() if request.report else None
    own_rules = backup.texts(RULES) if backup else []
    withdrawn = [old for old in own_rules if old != rule]
    try:
        text = with_hooks(settings.text, request.host, words, tools=request.tools)
        for old in withdrawn:
            text = without_rule(text, old)
        if rule is None:
            return text, [], withdrawn
        with_permission = with_rule(text, rule)
    except InvalidInput as error:
        raise SettingsUnreadable(settings.path, error.problem, error.where) from None
    return with_permission, [rule] if with_permission is not text or rule in own_rules else [], withdrawn


def _plan_setting(places: Places, request: InstallRequest, backup: Backup | None) -> tuple[str | None, list[Change]]:
    """The file in which the setting was turned on and is on after the request, and the changes to that file."""
    if request.report:
        return permission.plan_turning_on(places, request.host, request.scope)
    path = backup.text(SETTING) if backup else None
    return None, permission.plan_turning_off(places, request.host, request.scope, path)


def _plan_uninstall(places: Places, request: InstallRequest) -> Plan:
    path = places.file_of(request.host, request.scope)
    settings, backup = load(path, request.host), backups.find(places.state, path)
    content = content_after_uninstall(settings, backup)
    change = Change(path, settings.data, content, created=backup.texts(CREATED_FOLDERS) if backup else [])
    _, setting_changes = _plan_setting(places, request, backup)
    result = _new_result(places, request, [], backup.texts(RULES) if backup else [])
    result["remarks"] = notices.uninstall_notices(parse(content or b"", comments=request.host.comments))
    result["elsewhere"] = other_installed_scopes(places, request.host, request.scope)
    return Plan(places, result, [change, *setting_changes])


def _new_result(places: Places, request: InstallRequest, words: list[str], rules: list[str]) -> InstallResult:
    return {
        "action": request.action,
        "host": request.host.name,
        "scope": request.scope,
        "root": places.root,
        "file": places.file_of(request.host, request.scope),
        "changed": [],
        "dry_run": False,
        "command": words,
        "events": request.host.wired_events(tools=request.tools) if words else [],
        "rules": rules,
        "withdrawn": [],
        "backup": None,
        "remarks": [],
        "elsewhere": [],
        "start_in": None,
        "exclude": None,
        "diff": "",
    }
