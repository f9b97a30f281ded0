"""Installs the hooks in a host's settings, and uninstalls them.

Both make a plan from the current file, and then show or write the plan. No copy of the file is stored: removing is the
exact inverse of adding.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import InvalidInput, SettingsUnreadable, StoreFailure, UsageError
from gaia_sessions.hosts import CLAUDE_CODE, CODEX
from gaia_sessions.hosts.settings import PROJECT, USER
from gaia_sessions.store import external_file
from gaia_sessions.store.directory import translate_errors

from .entries import is_as_installed, with_hooks, without_hooks
from .hook_command import command_for
from .installed_file import InstalledFile, read_files
from .patch import patch_lines
from .permission import own_rules, permission_rules, with_rules
from .places import HOSTS
from .scopes import default_scope, refuse_second

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypedDict

    from gaia_sessions.jsonio.strict import Json

    from .json_text import JsonText
    from .places import Places

    class EntryByHand(TypedDict):
        """An entry that starts our hook and that a person wrote."""

        event: str
        entry: dict[str, Json]  # the group of the entry, without other entries

    class InstallResult(TypedDict):
        """What was done, or would be done."""

        action: str
        host: str
        scope: str
        root: str
        file: str
        changed: bool
        dry_run: bool
        command: list[str]
        events: list[str]
        by_hand: list[EntryByHand]  # entries that are gone
        rules: list[str]  # permissions that were added
        withdrawn: list[str]  # permissions that were removed
        remarks: list[str]  # some of REMARKS
        elsewhere: list[str]  # other scopes with hooks, after an uninstall
        diff: str


INSTALL, UNINSTALL = "install", "uninstall"
TRUST_HOOKS, TRUST_FOLDER, MACHINE_PATHS = REMARKS = "trust_hooks", "trust_folder", "machine_paths"


class InstallRequest:
    """What the user asked for. If ``scope`` is None, the scope that has the hooks, or else the default, is used."""

    __slots__ = ("action", "enforce", "host", "report", "scope")

    def __init__(
        self,
        action: str,
        host: str,
        scope: str | None = None,
        *,
        report: bool = False,
        enforce: bool = False,
    ) -> None:
        self.action = action
        self.host = HOSTS[host]
        self.scope = scope
        self.report = report
        self.enforce = enforce
        if scope not in (None, *self.host.files):
            raise UsageError(f"{host} has no {scope} settings", "use --user or --project")
        if report and host != CLAUDE_CODE:
            raise UsageError(f"--allow-report works only with {CLAUDE_CODE}", "omit --allow-report")
        if enforce and not self.host.enforced:
            raise UsageError(f"--enforce does not work with {host}", "omit --enforce")


class Plan:
    """The change of a settings file from ``before`` to ``after`` (None means no file), and the result."""

    __slots__ = ("after", "before", "path", "result")

    def __init__(self, file: InstalledFile, after: bytes | None, result: InstallResult) -> None:
        self.path = file.path
        self.before = file.data
        self.after = after
        self.result: InstallResult = {**result, "changed": after != self.before}

    def write(self) -> None:
        """Makes the change durably. Raises ``StoreFailure`` if the file has changed since it was read."""
        if self.after is not None:
            with translate_errors("create the folder of", self.path):
                external_file.make_folders(os.path.dirname(os.path.realpath(self.path)))
            external_file.write(self.path, self.before, self.after)
        elif self.before is not None:
            external_file.remove(self.path, self.before)
            try:
                os.rmdir(os.path.dirname(self.path))
            except OSError:  # it has other content
                return


def carry_out(
    places: Places, request: InstallRequest, announce: Callable[[str], None], *, dry_run: bool = False
) -> InstallResult:
    """Carries out the request; with ``dry_run`` only finds the difference. Returns the result."""
    plan = make_plan(places, request)
    if dry_run:
        lines = patch_lines(plan.path, plan.before, plan.after, places.project) if plan.result["changed"] else ()
        return {**plan.result, "dry_run": True, "diff": "\n".join(lines)}
    if plan.result["changed"] and request.action == INSTALL:
        announce(plan.path)
    while plan.result["changed"]:
        try:
            plan.write()
            break
        except StoreFailure:  # if somebody changed the file meanwhile, read the file again
            again = make_plan(places, request)
            if again.before == plan.before:
                raise
            plan = again
    return plan.result


def make_plan(places: Places, request: InstallRequest) -> Plan:
    """Returns the plan that fulfils ``request`` and changes nothing else in the settings."""
    files = read_files(places, request.host)
    scope = request.scope or default_scope(request.host, files)
    if request.action == INSTALL:
        refuse_second(files, scope)
    file = next((file for file in files if file.scope == scope), None) or InstalledFile(places, request.host, scope)
    if file.error:
        raise file.error
    try:
        if request.action == INSTALL:
            return _plan_install(places, request, file)
        return _plan_uninstall(places, file, [other.scope for other in files if other.own and other is not file])
    except InvalidInput as error:
        raise SettingsUnreadable(file.path, error.problem, error.where) from None


def _plan_install(places: Places, request: InstallRequest, file: InstalledFile) -> Plan:
    words = command_for(request.host, reports=request.report, enforce=request.enforce)
    rules = permission_rules() if request.report else []
    text = with_rules(with_hooks(file.text, request.host, words), rules)
    result = _new_result(places, file, request.action)
    result["command"], result["events"] = words, request.host.wired_events()
    result["by_hand"] = _by_hand(file)
    result["rules"] = rules
    result["withdrawn"] = [rule for rule in own_rules(file.text) if rule not in rules]
    remarks = {
        TRUST_HOOKS: file.host.name == CODEX,
        TRUST_FOLDER: request.report and file.scope != USER,
        MACHINE_PATHS: file.scope == PROJECT,
    }
    result["remarks"] = [code for code, is_due in remarks.items() if is_due]
    return Plan(file, _content(file, text), result)


def _plan_uninstall(places: Places, file: InstalledFile, elsewhere: list[str]) -> Plan:
    text = with_rules(without_hooks(file.text), [])
    result = _new_result(places, file, UNINSTALL)
    result["by_hand"], result["withdrawn"] = _by_hand(file), own_rules(file.text)
    result["elsewhere"] = elsewhere
    return Plan(file, _content(file, text), result)


def _content(file: InstalledFile, text: JsonText) -> bytes | None:
    """Returns the content of ``file`` with ``text``; None, for no file, if nothing is left, not even a comment."""
    if text is file.text:
        return file.data
    return None if text.value == {} and text.text == text.plain else text.text.encode()


def _by_hand(file: InstalledFile) -> list[EntryByHand]:
    return [
        {"event": entry.event, "entry": {**entry.group, "hooks": [entry.handler]}}
        for entry in file.own
        if not is_as_installed(entry, file.host)
    ]


def _new_result(places: Places, file: InstalledFile, action: str) -> InstallResult:
    return {
        "action": action,
        "host": file.host.name,
        "scope": file.scope,
        "root": places.root,
        "file": file.path,
        "changed": False,
        "dry_run": False,
        "command": [],
        "events": [],
        "by_hand": [],
        "rules": [],
        "withdrawn": [],
        "remarks": [],
        "elsewhere": [],
        "diff": "",
    }
