"""Which tools the agent of a session may use.

Owns the filter, ``allowed = (requested and available) - blocked``, and the answer for one tool: every list above it
must have the tool, so that whoever is below may narrow what is allowed, and never widen it. Names are compared exactly,
and hosts' own. The rule and the two names that are always blocked are those of the users' document on the life cycle of
sub-agents. Pure.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput, NoToolsLeft

from .checks import check_string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import TypedDict

    from .schema import Record

    class ToolChoice(TypedDict):
        """What became of the tools that were requested, each list in the order of the request and without repetition.

        allowed: what the agent may use. blocked: what no sub-agent may use. unavailable: what is not there, or what a
        session above does not have.
        """

        allowed: list[str]
        blocked: list[str]
        unavailable: list[str]

    class ToolAnswer(TypedDict):
        """Whether the agent of a session may use a tool. reason: why not, in words; None if it may.

        allowed_tools: all that it may use; None if it may use whatever is not blocked.
        """

        agent_id: str
        tool: str
        allowed: bool
        reason: str | None
        allowed_tools: list[str] | None


ALWAYS_BLOCKED = ("delegate_to_sub_agent", "send_file_to_user")
"""What no sub-agent may use, whatever the settings say: the document's ``BLOCKED_SUB_AGENT_TOOLS``."""

LONGEST_NAME = 200
MOST_TOOLS = 500
"""Of one list: a record has room for it, and for the end of the work."""


class ToolRules:
    """What holds for every session: ``blocked`` tools, and the tools ``by_type`` of agent, whose names are folded."""

    __slots__ = ("_by_type", "blocked")

    def __init__(self, blocked: Iterable[str] = (), by_type: Mapping[str, Collection[str]] | None = None) -> None:
        self.blocked = frozenset((*ALWAYS_BLOCKED, *blocked))
        self._by_type = by_type or {}

    def lists_of(self, record: Record) -> Iterator[tuple[str, Collection[str]]]:
        """Each list that limits the agent of ``record``, with the words for whose it is."""
        if "allowed_tools" in record:
            yield f"the tools of {record['agent_id']}", record["allowed_tools"]
        of_type = self._by_type.get(record["agent_name"].casefold())
        if of_type is not None:
            yield f"the tools that the setting limits.tools gives {record['agent_name']}", of_type


def chosen_tools(
    requested: Iterable[str], available: Iterable[str] | None, rules: ToolRules, above: Iterable[Record] = ()
) -> ToolChoice:
    """What of ``requested`` an agent may use that is given ``available`` (None: all), below the sessions ``above``.

    Raises ``InvalidInput`` for an empty request and a name that is none, ``NoToolsLeft`` if nothing is allowed.
    """
    names = _checked_names(requested, "tools")
    if not names:
        raise InvalidInput("the list of tools is empty", hint="name at least one tool, or leave the list out")
    offered = None if available is None else _checked_names(available, "available")
    lists = [tools for record in above for _, tools in rules.lists_of(record)]
    lists += [] if offered is None else [offered]
    choice: ToolChoice = {"allowed": [], "blocked": [], "unavailable": []}
    for name in names:
        is_there = all(name in allowed for allowed in lists)
        kind = "blocked" if name in rules.blocked else "allowed" if is_there else "unavailable"
        choice[kind].append(name)  # type: ignore[literal-required]  # one of its keys
    if not choice["allowed"]:
        raise NoToolsLeft(names, _in_all(lists))
    return choice


def may_use(name: str, records: Iterable[Record], rules: ToolRules) -> ToolAnswer:
    """Whether an agent may use the tool ``name``: that of the first of ``records``, below the others."""
    records = [*records]
    missing = [whose for record in records for whose, tools in rules.lists_of(record) if name not in tools]
    reason = f"is not among {missing[0]}" if missing else None
    if name in rules.blocked:
        reason = "is blocked for sub-agents"
    return {
        "agent_id": records[0]["agent_id"],
        "tool": name,
        "allowed": reason is None,
        "reason": reason,
        "allowed_tools": allowed_tools(records, rules),
    }


def allowed_tools(records: Iterable[Record], rules: ToolRules) -> list[str] | None:
    """All tools that the agent of the first of ``records`` may use, below the others; None for all but blocked ones."""
    allowed = _in_all([tools for record in records for _, tools in rules.lists_of(record)])
    return None if allowed is None else [tool for tool in allowed if tool not in rules.blocked]


def _in_all(lists: list[Collection[str]]) -> list[str] | None:
    """What every list has, in the order of the first one; None if there is no list."""
    return [name for name in lists[0] if all(name in others for others in lists)] if lists else None


def _checked_names(names: Iterable[str], where: str) -> list[str]:
    """``names`` without repetition; raises ``InvalidInput``."""
    if isinstance(names, str | bytes):
        raise InvalidInput("must be a list of names, not a text", where)
    checked = []
    for name in names:
        check_string(name, where)
        if not name or name != name.strip() or "," in name or not name.isprintable() or len(name) > LONGEST_NAME:
            raise InvalidInput(
                f"{name[:LONGEST_NAME]!r} is not the name of a tool", where, "type it as its client does"
            )
        checked.append(name)
    found = [*dict.fromkeys(checked)]
    if len(found) > MOST_TOOLS:
        raise InvalidInput(f"has {len(found):,} names; at most {MOST_TOOLS} fit", where)
    return found
