"""Sessions below their parents: a row for each with its branches, and the sums above each tree."""

from __future__ import annotations

from gaia_sessions.errors import plural
from gaia_sessions.session.state import STATES, WAITING, WENT_WRONG

from .budgets import token_count
from .plain import agent_and_purpose, problem_text, state_cell, tree_notes
from .words import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gaia_sessions.api.families import TreeLine
    from gaia_sessions.api.listing import Line, Sums
    from gaia_sessions.session.schema import Below

DEEPEST = 8
"""At most this many branches are drawn before a session, however deep the session is."""


def plain_tree(tree: Sequence[TreeLine]) -> Iterator[str]:
    """Yields a line for each session, with its whole ID and two spaces between columns."""
    for (level, line), drawn in zip(tree, branches([level for level, _ in tree], DEEPEST), strict=True):
        yield from heading(line) if level == 0 else ()
        if "problem" in line:
            cells = [problem_text(line), line["status"], "-"]
        else:
            name = " ".join([*tree_notes(line), agent_and_purpose(line["agent_name"], line["purpose"])])
            cells = [name, state_cell(line), token_count(line["tokens"]) if "tokens" in line else "-"]
        yield drawn + "  ".join([*cells, safe(line["agent_id"])])


def heading(line: Line) -> list[str]:
    """Returns the line above a tree: the sums, if the tree has several sessions."""
    sums = line["sums"]
    return [sums_line(sums)] if sums["sessions"] > 1 else []


def sums_line(sums: Sums) -> str:
    """Returns ``3 sessions, 48,200 tokens (1 reported none): 1 waiting, 2 completed``."""
    tokens = token_count(sums["tokens"]) if "tokens" in sums else "no tokens reported"
    unreported = f" ({sums['unreported']:,} reported none)" if sums["unreported"] and "tokens" in sums else ""
    return f"{plural(sums['sessions'], 'session')}, {tokens}{unreported}: {_counts(sums['states'])}"


def agents_line(below: Below) -> str:
    """Returns ``3 agents, 48,200 tokens: 1 crashed, 2 completed``."""
    tokens = token_count(below["tokens"]) if "tokens" in below else "no tokens reported"
    return f"{plural(below['agents'], 'agent')}, {tokens}: {_counts(below['states'])}"


def _counts(states: Mapping[str, int]) -> str:
    order = dict.fromkeys([WAITING, *WENT_WRONG, *STATES, *states])
    return ", ".join(f"{states[state]} {safe(state)}" for state in order if state in states)


def branches(levels: Sequence[int], deepest: int) -> list[str]:
    """Returns the branches before each row: at most ``deepest``, and an ellipsis if there are more."""
    drawn = []
    goes_on: list[bool] = []  # for each level: whether a later row has the same parent
    for level in reversed(levels):
        goes_on += [False] * (level + 1 - len(goes_on))
        first = max(1, level + 1 - deepest)
        lines = ["│  " if goes_on[column] else "   " for column in range(first, level)]
        lines += ["├─ " if goes_on[level] else "└─ "] if level else []
        drawn.append("… " * (first > 1) + "".join(lines))
        goes_on[level:] = [True]
    return drawn[::-1]
