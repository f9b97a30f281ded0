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
from gaia_sessions.session.clock import write_time

from . import backup, own_setting, permission, remarks
from .backup import Receipt
from .changes import MADE, Change, apply, difference, folders_made
from .entries import allowed, disallowed, wired
from .exclusive import Exclusive
from .hook_command import command_for
from .json_text import parse
from .own_setting import RULES, SETTING
from .places import HOSTS, USER
from .settings import load
from .uninstall import installed_beside, left_by, originals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.jsonio.strict import Json

    from .json_text import Text
    from .places import Places
    from .settings import Settings
    from .versioned import Exclusion

    Announce = Callable[[list[str]], None]
    """Told of the files that are about to be written."""

    class Answer(TypedDict):
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

SINCE = "installed_at"


class Wish:
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

    __slots__ = ("answer", "changes")

    def __init__(self, answer: Answer, changes: list[Change]) -> None:
        self.answer = answer
        self.changes = changes

    @property
    def real(self) -> list[Change]:
        """Those of them that change something."""
        return [change for change in self.changes if change.is_one]


def install(
    places: Places, wish: Wish, now: datetime, *, dry_run: bool = False, announce: Announce | None = None
) -> Answer:
    """Our hooks are in the settings, once, for every event, and nothing else there is different.

    ``announce`` is told of what will be written just before it is.
    Raises ``SettingsUnreadable`` and ``BadSetting`` for a file that does not parse, which is left untouched, and
    ``StoreFailure`` for what the system refuses.
    """
    return _carried_out(partial(_planned_install, places, wish, now), places, announce, dry_run=dry_run)


def uninstall(places: Places, wish: Wish, *, dry_run: bool = False) -> Answer:
    """Nothing of ours is in the settings, and nothing else there is different. Raises what ``install`` raises."""
    return _carried_out(partial(_planned_uninstall, places, wish), places, None, dry_run=dry_run)


def _planned_install(places: Places, wish: Wish, now: datetime) -> Plan:
    path = places.file_of(wish.host, wish.scope)
    settings, kept = load(path, wish.host), backup.find(places.state, path)
    words = command_for(wish.host, tools=wish.tools)
    text, rules, withdrawn = _wanted(settings, kept, wish, words)
    setting, more = _planned_setting(places, wish, kept)
    note: dict[str, Json] = {
        SINCE: write_time(now),
        RULES: list(rules),
        SETTING: setting,
        MADE: list(folders_made(path, places.files_of(wish.host), places.state)),
    }
    after = settings.bytes_of(text)
    change = Change(path, settings.data, after, Receipt.of(*originals(settings, kept), after or b"", note))
    answer = _answer(INSTALL, places, wish, words, rules)
    answer["withdrawn"] = withdrawn
    due = remarks.on_installing(places, wish.host, wish.scope, text, report=wish.report)
    answer["remarks"], answer["exclude"] = due
    answer["start_in"] = None if wish.scope == USER else places.project
    return Plan(answer, [change, *more])


def _wanted(
    settings: Settings, kept: Receipt | None, wish: Wish, words: list[str]
) -> tuple[Text, list[str], list[str]]:
    """What the settings are to say, which rules in there are ours, and which of ours are in there no longer."""
    rule = permission.rule() if wish.report else None
    given = kept.texts(RULES) if kept else []
    withdrawn = [old for old in given if old != rule]
    try:
        text = wired(settings.text, wish.host, words, tools=wish.tools)
        for old in withdrawn:
            text = disallowed(text, old)
        if rule is None:
            return text, [], withdrawn
        granted = allowed(text, rule)
    except InvalidInput as error:
        raise SettingsUnreadable(settings.path, error.problem, error.where) from None
    return granted, [rule] if granted is not text or rule in given else [], withdrawn


def _planned_setting(places: Places, wish: Wish, kept: Receipt | None) -> tuple[str | None, list[Change]]:
    if wish.report:
        return own_setting.turned_on(places, wish.host, wish.scope)
    return None, own_setting.turned_off(places, wish.host, wish.scope, kept.text(SETTING) if kept else None)


def _planned_uninstall(places: Places, wish: Wish) -> Plan:
    path = places.file_of(wish.host, wish.scope)
    settings, kept = load(path, wish.host), backup.find(places.state, path)
    left = left_by(settings, kept)
    change = Change(path, settings.data, left, made=kept.texts(MADE) if kept else [])
    more = own_setting.turned_off(places, wish.host, wish.scope, kept.text(SETTING) if kept else None)
    answer = _answer(UNINSTALL, places, wish, [], kept.texts(RULES) if kept else [])
    answer["remarks"] = remarks.on_leaving(parse(left or b"", comments=wish.host.comments))
    answer["elsewhere"] = installed_beside(places, wish.host, wish.scope)
    return Plan(answer, [change, *more])


def _carried_out(planned: Callable[[], Plan], places: Places, announce: Announce | None, *, dry_run: bool) -> Answer:
    """What the whole plan is made of was checked before the first file is written, with nobody else of us at it.

    Where nothing is to be written and nothing of ours is kept, no folder is made for a lock either.
    """
    plan = planned()
    if dry_run:
        plan.answer["diff"] = "\n".join(line for change in plan.real for line in difference(change, places.project))
    elif plan.real or os.path.lexists(places.state):
        with Exclusive(places.state):
            plan = planned()
            if announce and plan.real:
                announce([change.path for change in plan.real])
            _apply(plan, places.state)
    plan.answer["changed"] = [change.path for change in plan.real]
    plan.answer["dry_run"] = dry_run
    return plan.answer


def _apply(plan: Plan, state: str) -> None:
    if plan.real or plan.answer["action"] == UNINSTALL:
        for change in plan.changes:
            apply(change, state)
    if plan.real and plan.real[0].receipt is not None and plan.changes[0].before is not None:
        plan.answer["backup"] = backup.folder_for(state, plan.answer["file"])


def _answer(action: str, places: Places, wish: Wish, words: list[str], rules: list[str]) -> Answer:
    return {
        "action": action,
        "host": wish.host.name,
        "scope": wish.scope,
        "root": places.root,
        "file": places.file_of(wish.host, wish.scope),
        "changed": [],
        "dry_run": False,
        "command": words,
        "events": list(wish.host.heard(tools=wish.tools)) if words else [],
        "rules": rules,
        "withdrawn": [],
        "backup": None,
        "remarks": [],
        "elsewhere": [],
        "start_in": None,
        "exclude": None,
        "diff": "",
    }
