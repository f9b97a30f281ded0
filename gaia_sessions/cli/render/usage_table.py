"""The tokens that each agent type used, as a table in plain text."""

from __future__ import annotations

from gaia_sessions.errors import plural

from .columns import table
from .words import Hint, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.api.listing import Sums
    from gaia_sessions.api.sums import UsageByAgent

_HEADINGS = ["agent", "sessions", "tokens", "unreported", "of budget"]
_UNREPORTED, _OF_BUDGET = 3, 4


def table_of_agents(usage: UsageByAgent, room: int) -> Iterator[str]:
    """Yields a line for each agent and one for all, then what is unknown; ``room``: columns, 0 without a terminal."""
    several = [usage["total"]] if len(usage["agents"]) > 1 else []
    sums = [*(agent["sums"] for agent in usage["agents"]), *several]
    names = [*(safe(agent["agent_name"]) for agent in usage["agents"]), "all agents"][: len(sums)]
    rows = [_HEADINGS, *([name, *_sum_cells(of_name)] for name, of_name in zip(names, sums, strict=True))]
    yield from table(rows, room, left=[_OF_BUDGET], first_to_go=[_UNREPORTED, _OF_BUDGET])
    total = usage["total"]
    if total["unreported"]:
        yield f"{total['unreported']:,} of {plural(total['sessions'], 'session')} reported no tokens"
    if usage["unread"]:
        yield Hint(f"{plural(usage['unread'], 'session')} cannot be read: `gaia-sessions list` says why")


def _sum_cells(sums: Sums) -> list[str]:
    tokens = f"{sums['tokens']:,}" if "tokens" in sums else "-"
    return [f"{sums['sessions']:,}", tokens, f"{sums['unreported']:,}" if sums["unreported"] else "-", _of_budget(sums)]


def _of_budget(sums: Sums) -> str:
    """Returns ``72%, 1 at its limit``, from the sessions that have a budget and reported tokens."""
    if "budgets" not in sums:
        return "-"
    used = sums["budgets"]
    reached = f", {used['limit_reached']:,} at its limit" if used["limit_reached"] else ""
    return f"{used['tokens'] * 100 // max(1, used['max_tokens']):,}%{reached}"
