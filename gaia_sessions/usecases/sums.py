"""Several sessions together: how many, in which states, and the tokens that were reported of them.

A session counts once, by its own record: what it used is not in the record of its parent.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .listing import BudgetUse, Line, Sums

_LARGEST = (1 << 63) - 1
"""The largest number that JSON is written with."""


def sums_of(line: Line) -> Sums:
    """The sums of one session; of the line of a parent that was not selected, those of none."""
    if not line.get("selected", True):
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
    """The sum of all ``parts``; a sum of tokens ends at what JSON can hold."""
    total: Sums = {"sessions": 0, "states": {}, "unreported": 0}
    for part in parts:
        total["sessions"] += part["sessions"]
        total["unreported"] += part["unreported"]
        for state, count in part["states"].items():
            total["states"][state] = total["states"].get(state, 0) + count
        if "tokens" in part:
            total["tokens"] = min(total.get("tokens", 0) + part["tokens"], _LARGEST)
        if "budgets" in part:
            total["budgets"] = _added(total.get("budgets"), part["budgets"])
    return total


def _added(first: BudgetUse | None, second: BudgetUse) -> BudgetUse:
    if first is None:
        return second
    return {
        "sessions": first["sessions"] + second["sessions"],
        "tokens": min(first["tokens"] + second["tokens"], _LARGEST),
        "max_tokens": min(first["max_tokens"] + second["max_tokens"], _LARGEST),
        "limit_reached": first["limit_reached"] + second["limit_reached"],
    }
