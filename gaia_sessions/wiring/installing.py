"""Putting our hooks into a host's settings, and taking them out again.

Owns what both amount to: a plan of changes from what the files say now. The plan is shown or carried out; asking
for what already holds plans nothing. Leaving gives the file back as it was if nobody changed it since, and takes
out what is ours and nothing else if somebody did.
"""

from __future__ import annotations

from gaia_sessions import config
from gaia_sessions.clock import write_time
from gaia_sessions.errors import BadArgument, InvalidInput, SettingsUnreadable
from gaia_sessions.stores import foreign

from . import consent, receipts
from .changes import Change, apply, difference, missing_folders
from .entries import allowed, cleared, disallowed, wired
from .hosts import CLAUDE_CODE, CODEX, HOSTS, PROJECT, USER
from .ours import command_for
from .receipts import LIMIT, Receipt
from .settings import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.strictjson import Json

    from .hosts import Places
    from .jsontext import Text
    from .settings import Settings

    class Answer(TypedDict):
        """What was done, or would be. rules: permissions granted or taken back. remarks: what to know, as codes."""

        action: str
        host: str
        scope: str
        file: str
        changed: list[str]
        dry_run: bool
        command: list[str]
        events: list[str]
        rules: list[str]
        backup: str | None
        remarks: list[str]
        diff: str


TRUST_HOOKS, TRUST_FOLDER, MACHINE_PATHS = "trust_hooks", "trust_folder", "machine_paths"
RULES, SETTING, MADE, SINCE = "rules", "setting", "made", "installed_at"


class Wish:
    """What was asked for. Raises ``BadArgument`` for what the host has not."""

    __slots__ = ("host", "report", "scope", "tools")

    def __init__(self, host: str, scope: str, *, tools: bool = False, report: bool = False) -> None:
        self.host = HOSTS[host]
        self.scope = scope
        self.tools = tools
        self.report = report
        if scope not in self.host.files:
            raise BadArgument("--" + scope, host, "--user or --project")
        if report and host != CLAUDE_CODE:
            raise BadArgument("--allow-report", host, "--host claude-code, which has such a rule,")


class Plan:
    """The changes that an answer speaks of."""

    __slots__ = ("answer", "changes")

    def __init__(self, answer: Answer, changes: list[Change]) -> None:
        self.answer = answer
        self.changes = changes


def install(places: Places, wish: Wish, now: datetime, *, dry_run: bool = False) -> Answer:
    """Our hooks are in the settings, once, for every event, and nothing else there is different.

    Raises ``SettingsUnreadable`` and ``BadSetting`` for a file that does not parse, which is left untouched, and
    ``StoreFailure`` for what the system refuses.
    """
    plan = _planned_install(places, wish, now)
    return _carried_out(plan, places, dry_run=dry_run)


def uninstall(places: Places, wish: Wish, *, dry_run: bool = False) -> Answer:
    """Nothing of ours is in the settings, and nothing else there is different. Raises what ``install`` raises."""
    plan = _planned_uninstall(places, wish)
    return _carried_out(plan, places, dry_run=dry_run)


def _planned_install(places: Places, wish: Wish, now: datetime) -> Plan:
    path = places.file_of(wish.host, wish.scope)
    settings, kept = load(path, wish.host), receipts.find(places.state, path)
    words = command_for(wish.host, tools=wish.tools)
    text, added = _wanted(settings, wish, words)
    changes = _planned_setting(places, wish.scope) if wish.report else []
    rules = list(dict.fromkeys([*(kept.texts(RULES) if kept else []), *added]))
    note: dict[str, Json] = {
        SINCE: write_time(now),
        RULES: list(rules),
        SETTING: changes[0].path if changes else kept.text(SETTING) if kept else None,
        MADE: list(missing_folders(path) or (kept.texts(MADE) if kept else [])),
    }
    after = settings.bytes_of(text)
    change = Change(path, settings.data, after, Receipt.of(_left(settings, kept), after or b"", note))
    answer = _answer("install", places, wish, words, rules)
    answer["remarks"] = _remarks(wish)
    return Plan(answer, [change, *changes])


def _wanted(settings: Settings, wish: Wish, words: list[str]) -> tuple[Text, list[str]]:
    """What the settings are to say, and the rules that are new in them."""
    try:
        text = wired(settings.text, wish.host, words, tools=wish.tools)
        if not wish.report:
            return text, []
        rule = consent.rule()
        granted = allowed(text, rule)
    except InvalidInput as error:
        raise SettingsUnreadable(settings.path, error.problem, error.where) from None
    return granted, [rule] if granted is not text else []


def _planned_setting(places: Places, scope: str) -> list[Change]:
    path = config.user_file(places.variables) if scope == USER else config.project_file(places.root)
    data = foreign.read(path, LIMIT)
    after = consent.granted(path, data)
    if after == data:
        return []
    return [Change(path, data, after, Receipt.of(data, after, {MADE: list(missing_folders(path))}))]


def _planned_uninstall(places: Places, wish: Wish) -> Plan:
    path = places.file_of(wish.host, wish.scope)
    settings, kept = load(path, wish.host), receipts.find(places.state, path)
    change = Change(path, settings.data, _left(settings, kept), made=kept.texts(MADE) if kept else [])
    changes = [change]
    setting = kept.text(SETTING) if kept else None
    if setting is not None:
        changes += _planned_withdrawal(places, setting)
    return Plan(_answer("uninstall", places, wish, [], kept.texts(RULES) if kept else []), changes)


def _planned_withdrawal(places: Places, path: str) -> list[Change]:
    data, kept = foreign.read(path, LIMIT), receipts.find(places.state, path)
    if data is None or kept is None:
        return []
    after = kept.before if kept.is_untouched(data) else consent.withdrawn(path, data)
    return [Change(path, data, after, made=kept.texts(MADE))]


def _left(settings: Settings, kept: Receipt | None) -> bytes | None:
    """What the file holds once we have left it."""
    if kept is not None and kept.is_untouched(settings.data):
        return kept.before
    try:
        text = cleared(settings.text)
        for rule in kept.texts(RULES) if kept else []:
            text = disallowed(text, rule)
    except InvalidInput as error:
        raise SettingsUnreadable(settings.path, error.problem, error.where) from None
    only_ours = kept is not None and kept.before is None and _is_empty(text)
    return None if only_ours else settings.bytes_of(text)


def _is_empty(text: Text) -> bool:
    return text.value == {} and text.text == text.plain  # no comment either


def _carried_out(plan: Plan, places: Places, *, dry_run: bool) -> Answer:
    """What the whole plan is made of was checked before the first file is written."""
    changed = [change for change in plan.changes if change.is_one]
    plan.answer["changed"] = [change.path for change in changed]
    plan.answer["dry_run"] = dry_run
    if dry_run:
        plan.answer["diff"] = "\n".join(line for change in changed for line in difference(change, places.project))
        return plan.answer
    if changed or plan.answer["action"] == "uninstall":
        for change in plan.changes:
            apply(change, places.state)
    if changed and changed[0].receipt is not None and plan.changes[0].before is not None:
        plan.answer["backup"] = receipts.folder_for(places.state, plan.answer["file"])
    return plan.answer


def _answer(action: str, places: Places, wish: Wish, words: list[str], rules: list[str]) -> Answer:
    return {
        "action": action,
        "host": wish.host.name,
        "scope": wish.scope,
        "file": places.file_of(wish.host, wish.scope),
        "changed": [],
        "dry_run": False,
        "command": words,
        "events": list(wish.host.heard(tools=wish.tools)) if words else [],
        "rules": rules,
        "backup": None,
        "remarks": [],
        "diff": "",
    }


def _remarks(wish: Wish) -> list[str]:
    remarks = [TRUST_HOOKS] if wish.host.name == CODEX else []
    if wish.report and wish.scope != USER:
        remarks.append(TRUST_FOLDER)
    return [*remarks, MACHINE_PATHS] if wish.scope == PROJECT else remarks
