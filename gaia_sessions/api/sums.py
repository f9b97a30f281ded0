"""Several sessions together: how many, in which states, and the tokens that were reported."""

from __future__ import annotations

from gaia_sessions.jsonio.strict import LARGEST_INTEGER

from .listing import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypedDict, Unpack

    from .at import Reading
    from .listing import BudgetUse, Line, Sums, Wanted

    class AgentUsage(TypedDict):
        """The sessions with one agent name together."""

        agent_name: str
        sums: Sums

    class UsageByAgent(TypedDict):
        """What sessions used.

        Keys:
            agents: the agent name that used most comes first.
            unread: how many other sessions cannot be read.
        """

        agents: list[AgentUsage]
        total: Sums
        unread: int


def usage_by_agent(at: Reading, **wanted: Unpack[Wanted]) -> UsageByAgent:
    """Returns what sessions used, in all and for each agent name.

    Takes the arguments of ``list``, and raises its errors. Without ``app``, the sessions of every app are included.
    Each session is included once, with the tokens that count against its budget. The tokens of a parent do not include
    those of its children.
    """
    by_name: dict[str, list[Sums]] = {}
    unread = 0
    asked: Wanted = {"every_app": "app" not in wanted, **wanted}
    for line in listed(at, **asked)[0]:
        if "problem" in line:
            unread += 1
        else:
            by_name.setdefault(line["agent_name"], []).append(sums_of(line))
    agents: list[AgentUsage] = [{"agent_name": name, "sums": total_of(parts)} for name, parts in by_name.items()]
    agents.sort(key=_most_first)
    return {"agents": agents, "total": total_of(agent["sums"] for agent in agents), "unread": unread}


def _most_first(agent: AgentUsage) -> tuple[int, int, str]:
    return -agent["sums"].get("tokens", -1), -agent["sums"]["sessions"], agent["agent_name"]


def sums_of(line: Line) -> Sums:
    """Returns the sums of one session; a parent that was not selected, or a stand-in, counts as none."""
    if not line.get("selected", True) or "stand_in" in line:
        return total_of(())
    if "problem" in line:
        return {"sessions": 1, "states": {line["status"]: 1}, "unreported": 1}
    states = {line.get("state", line["status"]): 1}
    if "tokens" not in line:
        return {"sessions": 1, "states": states, "unreported": 1}
    tokens, most = line["tokens"], line.get("max_tokens")
    sums: Sums = {"sessions": 1, "states": states, "tokens": tokens, "unreported": 0}
    if most is not None:
        sums["budgets"] = {"sessions": 1, "tokens": tokens, "max_tokens": most, "limit_reached": int(tokens >= most)}
    return sums


def total_of(parts: Iterable[Sums]) -> Sums:
    """Returns the sum of all ``parts``; tokens stop at the largest integer in JSON."""
    total: Sums = {"sessions": 0, "states": {}, "unreported": 0}
    for part in parts:
        total["sessions"] += part["sessions"]
        total["unreported"] += part["unreported"]
        for state, count in part["states"].items():
            total["states"][state] = total["states"].get(state, 0) + count
        if "tokens" in part:
            total["tokens"] = min(total.get("tokens", 0) + part["tokens"], LARGEST_INTEGER)
        if "budgets" in part:
            total["budgets"] = _added(total.get("budgets"), part["budgets"])
    return total


def _added(first: BudgetUse | None, second: BudgetUse) -> BudgetUse:
    if first is None:
        return second
    return {
        "sessions": first["sessions"] + second["sessions"],
        "tokens": min(first["tokens"] + second["tokens"], LARGEST_INTEGER),
        "max_tokens": min(first["max_tokens"] + second["max_tokens"], LARGEST_INTEGER),
        "limit_reached": first["limit_reached"] + second["limit_reached"],
    }
