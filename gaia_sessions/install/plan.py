"""Putting our hooks into a host's settings, and taking them out again.

Owns what both amount to: a plan of changes from what the files say now. The plan is shown or carried out; asking
for what already holds plans nothing. Leaving gives the file back as it was if nobody changed it since, and takes
out what is ours and nothing else if somebody did.
"""

from __future__ import annotations

import os
from functools import partial

from gaia_sessions.errors import InvalidInput, SettingsUnreadable, UsageError
from gaia_sessions.hosts.registry import CLAUDE_CODE
from gaia_sessions.session.clock import format_time

from . import backups, notices, own_setting, permission
from .backups import Backup
from .changes import CREATED_FOLDERS, Change, apply_change, created_folders, diff_lines
from .entries import with_hooks, with_rule, without_rule
from .exclusive import SettingsLock
from .hook_command import command_for
from .json_text import parse
from .own_setting import RULES, SETTING
from .places import HOSTS, USER
from .settings import load
from .uninstall import content_after_uninstall, original_contents, other_installed_scopes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.jsonio.strict import Json

    from .git import Exclusion
    from .json_text import JsonText
    from .places import Places
    from .settings import Settings

    Announce = Callable[[list[str]], None]
    """Told of the files that are about to be written."""

    class InstallResult(TypedDict):
        """What was done, or would be. rules: permissions that are granted by us now, or were until an uninstall.

        withdrawn: those that an installation took back. remarks: what to know, as codes. elsewhere: the other scopes
        in which the host has hooks of ours. start_in: the folder that a client must be started in to read the file,
        none for a user's own. exclude: the line that git lacks to ignore the file, and where it belongs.
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
    """What was asked for. Raises ``UsageError`` for what the host has not."""

    __slots__ = ("host", "report", "scope", "tools")

    def __init__(self, host: str, scope: str, *, tools: bool = False, report: bool = False) -> None:
        self.host = HOSTS[host]
        self.scope = scope
        self.tools = tools
        self.report = report
        if scope not in self.host.files:
            raise UsageError(f"{host} has no {scope} settings", "name --user or --project")
        if report and host != CLAUDE_CODE:
            raise UsageError(f"only {CLAUDE_CODE} has a permission rule for one command", "leave out --allow-report")


class Plan:
    """The changes that an answer speaks of."""

    __slots__ = ("changes", "result")

    def __init__(self, result: InstallResult, changes: list[Change]) -> None:
        self.result = result
        self.changes = changes

    @property
    def effective_changes(self) -> list[Change]:
        """Those of them that change something."""
        return [change for change in self.changes if change.has_effect]


def install(
    places: Places, request: InstallRequest, now: datetime, *, dry_run: bool = False, announce: Announce | None = None
) -> InstallResult:
    """Our hooks are in the settings, once, for every event, and nothing else there is different.

    ``announce`` is told of what will be written just before it is.
    Raises ``SettingsUnreadable`` and ``BadSetting`` for a file that does not parse, which is left untouched, and
    ``StoreFailure`` for what the system refuses.
    """
    return _carry_out_plan(partial(_plan_install, places, request, now), places, announce, dry_run=dry_run)


def uninstall(places: Places, request: InstallRequest, *, dry_run: bool = False) -> InstallResult:
    """Nothing of ours is in the settings, and nothing else there is different. Raises what ``install`` raises."""
    return _carry_out_plan(partial(_plan_uninstall, places, request), places, None, dry_run=dry_run)


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
    result = _new_result(INSTALL, places, request, words, rules)
    result["withdrawn"] = withdrawn
    due = notices.install_notices(places, request.host, request.scope, text, report=request.report)
    result["remarks"], result["exclude"] = due
    result["start_in"] = None if request.scope == USER else places.project
    return Plan(result, [change, *setting_changes])


def _wanted_text(
    settings: Settings, backup: Backup | None, request: InstallRequest, words: list[str]
) -> tuple[JsonText, list[str], list[str]]:
    """What the settings are to say, which rules in there are ours, and which of ours are in there no longer."""
    rule = permission.permission_rule() if request.report else None
    our_rules = backup.texts(RULES) if backup else []
    withdrawn = [old for old in our_rules if old != rule]
    try:
        text = with_hooks(settings.text, request.host, words, tools=request.tools)
        for old in withdrawn:
            text = without_rule(text, old)
        if rule is None:
            return text, [], withdrawn
        with_permission = with_rule(text, rule)
    except InvalidInput as error:
        raise SettingsUnreadable(settings.path, error.problem, error.where) from None
    return with_permission, [rule] if with_permission is not text or rule in our_rules else [], withdrawn


def _plan_setting(places: Places, request: InstallRequest, backup: Backup | None) -> tuple[str | None, list[Change]]:
    if request.report:
        return own_setting.plan_turning_on(places, request.host, request.scope)
    return None, own_setting.plan_turning_off(
        places, request.host, request.scope, backup.text(SETTING) if backup else None
    )


def _plan_uninstall(places: Places, request: InstallRequest) -> Plan:
    path = places.file_of(request.host, request.scope)
    settings, backup = load(path, request.host), backups.find(places.state, path)
    content = content_after_uninstall(settings, backup)
    change = Change(path, settings.data, content, made=backup.texts(CREATED_FOLDERS) if backup else [])
    setting_changes = own_setting.plan_turning_off(
        places, request.host, request.scope, backup.text(SETTING) if backup else None
    )
    result = _new_result(UNINSTALL, places, request, [], backup.texts(RULES) if backup else [])
    result["remarks"] = notices.uninstall_notices(parse(content or b"", comments=request.host.comments))
    result["elsewhere"] = other_installed_scopes(places, request.host, request.scope)
    return Plan(result, [change, *setting_changes])


def _carry_out_plan(
    make_plan: Callable[[], Plan], places: Places, announce: Announce | None, *, dry_run: bool
) -> InstallResult:
    """What the whole plan is made of was checked before the first file is written, with nobody else of us at it.

    Where nothing is to be written and nothing of ours is kept, no folder is made for a lock either.
    """
    plan = make_plan()
    if dry_run:
        plan.result["diff"] = "\n".join(
            line for change in plan.effective_changes for line in diff_lines(change, places.project)
        )
    elif plan.effective_changes or os.path.lexists(places.state):
        with SettingsLock(places.state):
            plan = make_plan()
            if announce and plan.effective_changes:
                announce([change.path for change in plan.effective_changes])
            _apply_plan(plan, places.state)
    plan.result["changed"] = [change.path for change in plan.effective_changes]
    plan.result["dry_run"] = dry_run
    return plan.result


def _apply_plan(plan: Plan, state: str) -> None:
    if plan.effective_changes or plan.result["action"] == UNINSTALL:
        for change in plan.changes:
            apply_change(change, state)
    if plan.effective_changes and plan.effective_changes[0].backup is not None and plan.changes[0].before is not None:
        plan.result["backup"] = backups.folder_for(state, plan.result["file"])


def _new_result(
    action: str, places: Places, request: InstallRequest, words: list[str], rules: list[str]
) -> InstallResult:
    return {
        "action": action,
        "host": request.host.name,
        "scope": request.scope,
        "root": places.root,
        "file": places.file_of(request.host, request.scope),
        "changed": [],
        "dry_run": False,
        "command": words,
        "events": list(request.host.event_matchers(tools=request.tools)) if words else [],
        "rules": rules,
        "withdrawn": [],
        "backup": None,
        "remarks": [],
        "elsewhere": [],
        "start_in": None,
        "exclude": None,
        "diff": "",
    }
