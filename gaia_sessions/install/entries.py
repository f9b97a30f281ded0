"""The entries of gaia-sessions in the text of a host's settings: how they are found, added and removed.

The settings of all hosts have one structure: ``hooks`` has events, an event has groups, a group has a matcher and
handlers. Each entry of ours is in a group of its own.
"""

from __future__ import annotations

import re

from gaia_sessions.errors import InvalidInput

from .hook_command import arguments_of, is_own_hook, new_handler, words_of
from .json_edit import remove_element, with_value, without_value
from .json_text import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.settings import HostSettings
    from gaia_sessions.jsonio.strict import Json

    from .json_text import JsonText

    Group = dict[str, Json]
    """A matcher and its handlers, as the settings have them."""

HOOKS = "hooks"

_MATCHERS_OF_ALL = (None, "", "*")
_NAME_LIST = re.compile(r"[A-Za-z0-9_\-,| ]+")
_LONGEST_MATCHER = 500
_ANY = r"(?:\.[*+])?"
_NAME = r"\^?(?:[\w-]|\.[*+])*\$?"
_NAMES = rf"(?:{_NAME}(?:\|{_NAME})*|{_ANY}\((?:\?:)?{_NAME}(?:\|{_NAME})*\){_ANY})"
_KNOWN_FORM = re.compile(rf"\^?{_NAMES}\$?|\^?\(\?!{_NAMES}\$?\){_ANY}\$?", re.ASCII)
_MOST_REPEATS = 4

MOST_OWN = 100
"""The most entries or rules that we remove from one file: after each removal, the whole file is read again."""


def by_hand(what: str) -> str:
    """Returns the message about a file with more than ``MOST_OWN`` entries or rules of ours."""
    return f"more than {MOST_OWN} {what} gaia-sessions: remove them by hand"


class HookEntry:
    """One handler, with its event, the number of its group in the event, and its number in the group, from 0."""

    __slots__ = ("event", "group", "group_number", "handler", "matcher", "number")

    def __init__(self, event: str, group_number: int, number: int, *, group: Group, handler: Json) -> None:
        self.event = event
        self.group_number = group_number
        self.number = number
        self.group = group
        self.matcher = group.get("matcher")
        self.handler = handler


def all_entries(text: JsonText) -> list[HookEntry]:
    """Returns every handler of every event in the order of the file; values of other types are left out."""
    return [
        HookEntry(event, group_number, number, group=group, handler=found)
        for event, groups in as_object(as_object(text.value).get(HOOKS)).items()
        for group_number, group in enumerate(groups if isinstance(groups, list) else ())
        if isinstance(group, dict)
        for number, found in enumerate(_handlers(group))
    ]


def own_entries(text: JsonText) -> list[HookEntry]:
    """Returns the handlers that start a hook of gaia-sessions and nothing else."""
    return [entry for entry in all_entries(text) if is_own_hook(entry.handler)]


def with_hooks(text: JsonText, host: HostSettings, words: list[str]) -> JsonText:
    """Returns ``text`` with the entries that ``host`` needs for the command ``words``, and no other entry of ours."""
    wanted = wanted_groups(host, words)
    existing = [(entry.event, entry.group) for entry in own_entries(text)]
    if sorted(existing, key=_event_of) == sorted(wanted, key=_event_of):
        return text
    text = without_hooks(text)
    for event, group in wanted:
        text = with_value(text, (HOOKS, event), group)
    return text


def without_hooks(text: JsonText) -> JsonText:
    """Returns ``text`` without any entry of ours."""
    entries = own_entries(text)
    if len(entries) > MOST_OWN:
        raise InvalidInput(by_hand("entries start"), HOOKS)
    for entry in reversed(entries):  # so the other numbers stay valid
        text = _without_entry(text, entry)
    return text


def wanted_groups(host: HostSettings, words: list[str]) -> list[tuple[str, Group]]:
    """Returns the events and groups that an installation of the command ``words`` writes."""
    told = arguments_of(words)
    entries = host.entries(enforce=told["enforce"])
    return [(entry.event, _group(entry.matcher, new_handler(host, words, entry))) for entry in entries]


def is_as_installed(entry: HookEntry, host: HostSettings) -> bool:
    """Returns whether an installation would write our ``entry`` exactly like this; if not, a person wrote it."""
    return (entry.event, entry.group) in wanted_groups(host, words_of(entry.handler))


def matches(matcher: Json, tool: str) -> bool:
    """Returns whether ``matcher``, which is empty, a list of names or a regular expression, selects ``tool``."""
    if matcher in _MATCHERS_OF_ALL:
        return True
    if not isinstance(matcher, str):
        return False
    if _NAME_LIST.fullmatch(matcher):
        return tool in [name.strip() for name in re.split("[,|]", matcher)]
    # Any other expression could run forever, so it counts as an expression that selects the tool.
    return not _is_tried(matcher) or re.search(matcher, tool) is not None


def _is_tried(matcher: str) -> bool:
    repeats = matcher.count("*") + matcher.count("+")
    is_short = len(matcher) <= _LONGEST_MATCHER and repeats <= _MOST_REPEATS
    return is_short and _KNOWN_FORM.fullmatch(matcher) is not None


def _group(matcher: Json, handler: Json) -> Group:
    return {"hooks": [handler]} if matcher is None else {"matcher": matcher, "hooks": [handler]}


def _event_of(entry: tuple[str, Group]) -> str:
    return entry[0]


def _without_entry(text: JsonText, entry: HookEntry) -> JsonText:
    path: list[str | int] = [HOOKS, entry.event, entry.group_number]
    *_, (group, _), (handlers, number) = text.way_to([*path, HOOKS, entry.number])
    if len(_handlers(entry.group)) > 1 or text.has_comments(group) or text.has_comments(handlers):
        return remove_element(text, handlers, number)
    return without_value(text, path)


def _handlers(group: dict[str, Json]) -> list[Json]:
    found = group.get("hooks")
    return found if isinstance(found, list) else []
