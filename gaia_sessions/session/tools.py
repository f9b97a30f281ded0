"""Which tools the agent of a session may use: ``allowed = (requested and available) - blocked``.

Every list above an agent must have the tool, so a session below can allow fewer tools, never more.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.errors import InvalidInput, shorten

from .checks import check_string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TypedDict

    from .schema import Record

    class ToolChoice(TypedDict):
        """The requested tools, each once and in their order.

        Keys:
            blocked: tools that no sub-agent may use.
            unavailable: other tools that are not in ``available``, or not on a list that limits the agent.
            reasons: why ``blocked`` and ``unavailable`` tools were left out.
        """

        allowed: list[str]
        blocked: list[str]
        unavailable: list[str]
        reasons: dict[str, str]

    class ToolAnswer(TypedDict):
        """Whether the agent of a session may use a tool.

        Keys:
            reason: why not; None if the tool is allowed.
            usable_tools: all tools that the agent can use; None if it can use every tool that is not blocked.
        """

        agent_id: str
        tool: str
        allowed: bool
        reason: str | None
        usable_tools: list[str] | None


ALWAYS_BLOCKED = ("delegate_to_sub_agent", "send_file_to_user")
"""Tools that no sub-agent may use, whatever the settings say."""

_HOW_TO_TYPE = "type the name as its client does"

LONGEST_NAME = 200
MOST_TOOLS = 500
"""The most names in one list: with more names, a record would have no room for the end of its session."""


class ToolRules:
    """The rules for every session: the ``blocked`` tools, and the tools that each type of agent can use."""

    __slots__ = ("_by_type", "blocked")

    def __init__(self, blocked: Iterable[str] = (), by_type: Mapping[str, Collection[str]] | None = None) -> None:
        self.blocked = frozenset((*ALWAYS_BLOCKED, *blocked))
        self._by_type = by_type or {}  # by case-folded type of agent

    def lists_of(self, record: Record) -> Iterator[tuple[str, Collection[str]]]:
        """Yields each list that limits the agent of ``record``, after words that name the list."""
        if "allowed_tools" in record:
            yield f"the tools of {record['agent_id']}", record["allowed_tools"]
        yield from self.lists_of_type(record["agent_name"])

    def lists_of_type(self, agent_name: str) -> Iterator[tuple[str, Collection[str]]]:
        """Yields the list that limits all agents of this type, if there is one, after words that name the list."""
        of_type = self._by_type.get(agent_name.casefold())
        if of_type is not None:
            yield f"the tools that the setting limits.tools gives {agent_name}", of_type


def chosen_tools(
    requested: Iterable[str],
    available: Iterable[str] | None,
    rules: ToolRules,
    above: Iterable[Record] = (),
    agent_name: str | None = None,
) -> ToolChoice:
    """Chooses from the ``requested`` tools those that an agent below the sessions ``above`` is allowed to use."""
    names = _checked_names(requested, "tools")
    if not names:
        raise InvalidInput("the list of tools is empty", hint="name at least one tool, or leave the list out")
    lists = [] if agent_name is None else [*rules.lists_of_type(agent_name)]
    lists += [one for record in above for one in rules.lists_of(record)]
    lists += [] if available is None else [("the tools that are available", _checked_names(available, "available"))]
    lists = [(whose, dict.fromkeys(tools)) for whose, tools in lists]
    choice: ToolChoice = {"allowed": [], "blocked": [], "unavailable": [], "reasons": {}}
    for name in names:
        reason = _reason_against(name, lists, rules)
        kind = "allowed" if reason is None else "blocked" if name in rules.blocked else "unavailable"
        choice[kind].append(name)  # type: ignore[literal-required]  # one of its keys
        if reason is not None:
            choice["reasons"][name] = reason
    if not choice["allowed"]:
        raise errors.NoToolsLeft(names, _in_all(lists), [*choice["reasons"].values()])
    return choice


def may_use(name: str, records: Iterable[Record], rules: ToolRules) -> ToolAnswer:
    """Says whether the agent of the first record may use the tool ``name``; the other ``records`` are above it."""
    records = [*records]
    if _is_name(name):
        reason = _reason_against(name, [one for record in records for one in rules.lists_of(record)], rules)
    else:
        reason = f"{_no_name(name)}: {_HOW_TO_TYPE}"
    return {
        "agent_id": records[0]["agent_id"],
        "tool": name,
        "allowed": reason is None,
        "reason": reason,
        "usable_tools": usable_tools(records, rules),
    }


def usable_tools(records: Iterable[Record], rules: ToolRules) -> list[str] | None:
    """Returns the tools that the agent of the first record can use; None means all tools that are not blocked."""
    # A name that no tool can have is left out: a client would read ``Read,Bash`` as two tools.
    allowed = _in_all([one for record in records for one in rules.lists_of(record)])
    return None if allowed is None else [tool for tool in allowed if tool not in rules.blocked and _is_name(tool)]


def _reason_against(name: str, lists: Iterable[tuple[str, Collection[str]]], rules: ToolRules) -> str | None:
    """Says why an agent that these ``lists`` limit must not use the tool; None if it is allowed to."""
    if name in rules.blocked:
        return f"{name} is blocked for sub-agents"
    return next((f"{name} is not among {whose}" for whose, tools in lists if name not in tools), None)


def _in_all(lists: Sequence[tuple[str, Collection[str]]]) -> list[str] | None:
    """Returns the names that every list has, in the order of the first list; None if there is no list."""
    if not lists:
        return None
    first, *others = (dict.fromkeys(tools) for _, tools in lists)
    return [name for name in first if all(name in other for other in others)]


def _is_name(name: object) -> bool:
    return _why_no_name(name) is None


def _why_no_name(name: object) -> str | None:
    """Says why no tool can have this name; None if a tool can have it."""
    if not isinstance(name, str):
        return "it is not a text"
    if not name:
        return "it is empty"
    if len(name) > LONGEST_NAME:
        return f"it has more than {LONGEST_NAME} characters"
    if "," in name:
        return "it has a comma"
    if name.split() != [name]:
        return "it has white space"
    return None if name.isprintable() else "it has a character that cannot be shown"


def _no_name(name: object) -> str:
    return f"{shorten(repr(name))} cannot be the name of a tool ({_why_no_name(name)})"


def _checked_names(names: Iterable[str], where: str) -> list[str]:
    """Checks ``names``, and returns each name once."""
    if isinstance(names, str | bytes):
        raise InvalidInput("must be a list of names, not a text", where)
    checked = []
    for name in names:
        check_string(name, where)
        if not _is_name(name):
            raise InvalidInput(_no_name(name), where, _HOW_TO_TYPE)
        checked.append(name)
    found = [*dict.fromkeys(checked)]
    if len(found) > MOST_TOOLS:
        raise InvalidInput(f"has {len(found):,} names; the limit is {MOST_TOOLS}", where)
    return found
