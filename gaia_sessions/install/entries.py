"""The entries of gaia-sessions in the text of a host's settings: how they are found, added and removed.

Owns the structure that all these hosts share (``hooks``: event: groups with a matcher and handlers), and that each
entry of ours stands in a group of its own. Groups, arrays and objects that a removal leaves empty are removed too.
Raises ``InvalidInput`` where the settings have another structure.
"""

from __future__ import annotations

import os
import re

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio.strict import json_type_of

from .hook_command import entries_for, is_own_hook, new_handler, own_scripts
from .json_edit import append_value, remove_element, replace_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.settings import HostSettings
    from gaia_sessions.jsonio.strict import Json

    from .json_text import Element, JsonText

    Group = dict[str, Json]
    """A matcher and its handlers, as they stand in the settings."""

HOOKS = "hooks"

_MATCHERS_OF_ALL = (None, "", "*")
_NAME_LIST = re.compile(r"[A-Za-z0-9_\-,| ]+")
_LONGEST_MATCHER = 500


class HookEntry:
    """One handler: its event, the number of its group within the event, and its number within the group, from 0."""

    __slots__ = ("event", "group", "group_number", "handler", "matcher", "number")

    def __init__(self, event: str, group_number: int, number: int, *, group: dict[str, Json], handler: Json) -> None:
        self.event = event
        self.group_number = group_number
        self.number = number
        self.group = group
        self.matcher = group.get("matcher")
        self.handler = handler


def all_entries(text: JsonText) -> list[HookEntry]:
    """Every handler of every event, own or not, in the order of the file; values of another type are left out."""
    hooks = text.value.get(HOOKS) if isinstance(text.value, dict) else None
    return [
        HookEntry(event, group_number, number, group=group, handler=found)
        for event, groups in (hooks.items() if isinstance(hooks, dict) else ())
        for group_number, group in enumerate(groups if isinstance(groups, list) else ())
        if isinstance(group, dict)
        for number, found in enumerate(_handlers(group))
    ]


def own_entries(text: JsonText) -> list[HookEntry]:
    """The handlers that start a hook of gaia-sessions."""
    return [entry for entry in all_entries(text) if is_own_hook(entry.handler)]


def has_dead_entry(text: JsonText) -> bool:
    """Whether an own entry names a script that does not exist."""
    return any(is_missing(path) for entry in own_entries(text) for path in own_scripts(entry.handler))


def is_missing(path: str) -> bool:
    """Whether the file ``path`` does not exist; False for a path with a variable, which only a shell can expand."""
    return os.path.isabs(path) and not os.path.isfile(path)


def with_hooks(text: JsonText, host: HostSettings, words: list[str], *, tools: bool) -> JsonText:
    """``text`` with the entries that ``host`` wants, each in a group of its own, and no other own entry."""
    wanted: dict[str, list[Group]] = {}
    for entry in entries_for(host, words, tools=tools):
        wanted.setdefault(entry.event, []).append(_group(entry.matcher, new_handler(host, words, entry)))
    for event in {entry.event: None for entry in own_entries(text) if entry.event not in wanted}:
        text = _without_event(text, event)
    for event, groups in wanted.items():
        text = _with_groups(text, event, groups)
    return text


def without_hooks(text: JsonText) -> JsonText:
    """``text`` without any own entry."""
    for event in {entry.event: None for entry in own_entries(text)}:
        text = _without_event(text, event)
    return text


def with_rule(text: JsonText, rule: str) -> JsonText:
    """``text`` with ``rule`` among the allowed permissions."""
    text, permissions = _with_member(text, text.start, "permissions", {})
    text, rules = _with_member(text, permissions, "allow", [])
    elements, _ = text.elements(rules)
    return text if any(element.value == rule for element in elements) else append_value(text, rules, rule)


def has_rule(text: JsonText, rule: str) -> bool:
    """Whether ``rule`` is among the allowed permissions."""
    return rule in allowed_rules(text)


def allowed_rules(text: JsonText) -> list[Json]:
    """The allowed permissions."""
    permissions = text.value.get("permissions") if isinstance(text.value, dict) else None
    rules = permissions.get("allow") if isinstance(permissions, dict) else None
    return rules if isinstance(rules, list) else []


def without_rule(text: JsonText, rule: str) -> JsonText:
    """``text`` without ``rule`` among the allowed permissions."""
    permissions = _member(text, text.start, "permissions", {})
    rules = _member(text, permissions.value_start, "allow", []) if permissions else None
    if permissions is None or rules is None or not isinstance(rules.value, list) or rule not in rules.value:
        return text
    if len(rules.value) > 1 or text.has_comments(rules.value_start):
        return remove_element(text, rules.value_start, rules.value.index(rule))
    return _without_member(text, ["permissions", "allow"])


def matches(matcher: Json, tool: str) -> bool:
    """Whether ``matcher`` of a host selects ``tool``: it is empty, a list of names, or a regular expression."""
    if matcher in _MATCHERS_OF_ALL:
        return True
    if not isinstance(matcher, str) or len(matcher) > _LONGEST_MATCHER:
        return False
    if _NAME_LIST.fullmatch(matcher):
        return tool in [name.strip() for name in re.split("[,|]", matcher)]
    try:
        return re.search(matcher, tool) is not None
    except re.error:
        return False


def _group(matcher: Json, handler: Json) -> Group:
    return {"hooks": [handler]} if matcher is None else {"matcher": matcher, "hooks": [handler]}


def _with_groups(text: JsonText, event: str, wanted: list[Group]) -> JsonText:
    """``text`` with these own groups of ``event``, which take the places of those that are there."""
    existing = [entry for entry in own_entries(text) if entry.event == event]
    if [_group(entry.matcher, entry.handler) for entry in existing] == wanted:
        return text
    if not all(_is_replaceable(text, entry) for entry in existing):
        text, existing = _without_event(text, event), []
    for entry in reversed(existing[len(wanted) :]):
        text = _without_entry(text, entry)
    for entry, group in zip(existing, wanted, strict=False):
        text = replace_value(text, text.elements(_groups(text, event))[0][entry.group_number], group)
    for group in wanted[len(existing) :]:
        text, hooks = _with_member(text, text.start, HOOKS, {})
        text, groups = _with_member(text, hooks, event, [])
        text = append_value(text, groups, group)
    return text


def _is_replaceable(text: JsonText, entry: HookEntry) -> bool:
    """Whether the group of ``entry`` has no other handler, and no comment."""
    old = text.elements(_groups(text, entry.event))[0][entry.group_number]
    return len(_handlers(entry.group)) == 1 and text.text[old.start : old.end] == text.plain[old.start : old.end]


def _without_event(text: JsonText, event: str) -> JsonText:
    """``text`` without the own handlers of ``event``; the last goes first, so that the other numbers stay valid."""
    for entry in reversed([entry for entry in own_entries(text) if entry.event == event]):
        text = _without_entry(text, entry)
    return text


def _without_entry(text: JsonText, entry: HookEntry) -> JsonText:
    groups = _groups(text, entry.event)
    group_elements, _ = text.elements(groups)
    group = group_elements[entry.group_number].value_start
    handlers = text.member(group, "hooks")
    if handlers is None:
        return text
    if len(_handlers(entry.group)) > 1 or text.has_comments(group) or text.has_comments(handlers.value_start):
        return remove_element(text, handlers.value_start, entry.number)
    if len(group_elements) > 1 or text.has_comments(groups):
        return remove_element(text, groups, entry.group_number)
    return _without_member(text, [HOOKS, entry.event])


def _without_member(text: JsonText, path: list[str]) -> JsonText:
    """``text`` without the member at ``path``, and without the objects above it that are then empty."""
    holder = text.start
    holders = [holder]
    for key in path[:-1]:
        member = text.member(holder, key)
        if member is None:
            return text
        holder = member.value_start
        holders.append(holder)
    while len(path) > 1 and len(text.elements(holders[-1])[0]) == 1 and not text.has_comments(holders[-1]):
        path = path[:-1]
        holders.pop()
    elements, _ = text.elements(holders[-1])
    number = next(number for number, element in enumerate(elements) if element.key == path[-1])
    return remove_element(text, holders[-1], number)


def _groups(text: JsonText, event: str) -> int:
    """The position of the array of groups of ``event``, which must exist."""
    hooks = text.member(text.start, HOOKS)
    groups = text.member(hooks.value_start, event) if hooks else None
    if groups is None:
        raise InvalidInput("changed while it was read", event)
    return groups.value_start


def _with_member(text: JsonText, start: int, key: str, empty: Json) -> tuple[JsonText, int]:
    """``text`` with a member ``key`` in the object at ``start``, ``empty`` if it is new; the position of its value."""
    found = _member(text, start, key, empty)
    if found is None:
        text = append_value(text, start, empty, key)
        found = _member(text, start, key, empty)
    return text, found.value_start if found else start


def _member(text: JsonText, start: int, key: str, empty: Json) -> Element | None:
    found = text.member(start, key)
    if found is not None and type(found.value) is not type(empty):
        raise InvalidInput(f"{key!a} is {json_type_of(found.value)}, not {json_type_of(empty)}")
    return found


def _handlers(group: dict[str, Json]) -> list[Json]:
    found = group.get("hooks")
    return found if isinstance(found, list) else []
