"""What the sessions of each kind of agent used, as a table in plain text."""

from __future__ import annotations

from gaia_sessions.errors import plural

from .words import safe
from .wrapped import cells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.usecases.listing import Sums
    from gaia_sessions.usecases.sums import UsageByAgent

_HEADINGS = ["agent", "sessions", "tokens", "unreported", "of budget"]


def table_of_agents(usage: UsageByAgent, longest_name: int) -> Iterator[str]:
    """A line for each agent, one for several together, and how many sessions reported no tokens or cannot be read."""
    several = [usage["total"]] if len(usage["agents"]) > 1 else []
    sums = [*(agent["sums"] for agent in usage["agents"]), *several]
    names = [*(safe(agent["agent_name"], longest_name) for agent in usage["agents"]), "all agents"][: len(sums)]
    rows = [_HEADINGS, *([name, *_sum_cells(of_name)] for name, of_name in zip(names, sums, strict=True))]
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    for name, *figures, of_budget in rows:
        right = [figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=False)]
        yield "  ".join([name + " " * (widths[0] - cells(name)), *right, of_budget]).rstrip()
    total = usage["total"]
    if total["unreported"]:
        yield f"{total['unreported']:,} of {plural(total['sessions'], 'session')} reported no tokens"
    if usage["unread"]:
        yield f"{plural(usage['unread'], 'session')} cannot be read: `gaia-sessions list` says why"


def _sum_cells(sums: Sums) -> list[str]:
    tokens = f"{sums['tokens']:,}" if "tokens" in sums else "-"
    return [f"{sums['sessions']:,}", tokens, f"{sums['unreported']:,}" if sums["unreported"] else "-", _of_budget(sums)]


def _of_budget(sums: Sums) -> str:
    """``72%, 1 at its limit``: of the budgets of those sessions that have one and reported tokens."""
    if "budgets" not in sums:
        return "-"
    used = sums["budgets"]
    reached = f", {used['limit_reached']:,} at its limit" if used["limit_reached"] else ""
    return f"{used['tokens'] * 100 // max(1, used['max_tokens']):,}%{reached}"
