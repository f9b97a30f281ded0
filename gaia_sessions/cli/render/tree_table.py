"""A tree of sessions, drawn with rich; loaded only if stdout is a terminal."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style

from gaia_sessions.session.record import NO_PURPOSE

from .columns import GAP, cells, cut, fit
from .plain import problem_text, state_cell, tree_notes
from .tables import cut_middle, drawn, most_of_state, short_ids_of, state_style
from .trees import DEEPEST, branches, heading
from .words import safe
from .wrapped import wrap_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TextIO

    from gaia_sessions.api.families import TreeLine
    from gaia_sessions.api.listing import Line

_NAME = "agent: purpose"
_COLUMNS = (_NAME, "state", "tokens", "id")
_LEAST_NAME, _LEAST_AGENT = 20, 8
# If there is no room, branches and agents are cut before purposes, and the IDs last.
_GIVING_WAY = (("tokens", 0, _LEAST_NAME), ("state", 0, _LEAST_NAME))
_BRANCH = 3
"""The width of a branch, in cells."""


def tree_table(tree: Sequence[TreeLine], others: Iterable[str], terminal: TextIO, columns: int) -> str:
    """Returns a table of trees with sums, at most ``columns`` wide; no short ID is a part of an ID in ``others``."""
    return drawn(_segments(tree, short_ids_of([line for _, line in tree], others), columns), terminal, columns)


def _segments(tree: Sequence[TreeLine], short_ids: Sequence[str], room: int) -> Iterator[Segment]:
    rows = [{**_texts(line), "id": name} for (_, line), name in zip(tree, short_ids, strict=True)]
    titles = {title: title for title in _COLUMNS}
    longest = {title: max(cells(row.get(title, "")) for row in [titles, *rows]) for title in _COLUMNS}
    longest |= {_NAME: room, "state": min(longest["state"], most_of_state(room)), "id": min(longest["id"], room // 2)}
    widths = fit(longest, room, _NAME, _GIVING_WAY)
    deepest = min(DEEPEST, max(0, widths[_NAME] - _LEAST_NAME) // _BRANCH)
    for row, (_, line), drawn_before in zip(rows, tree, branches([level for level, _ in tree], deepest), strict=True):
        row[_NAME] = drawn_before + _name(line, widths[_NAME] - len(drawn_before))
    widths[_NAME] = min(widths[_NAME], max(cells(row[_NAME]) for row in [titles, *rows]))
    yield from _row(titles, widths, Style.parse("dim"))
    for (level, line), row in zip(tree, rows, strict=True):
        if level == 0:
            yield from (Segment(wrap_line(text, room) + "\n", Style.parse("bold")) for text in heading(line))
        yield from _row(row, widths, None if line.get("selected", True) else Style.parse("dim"))


def _texts(line: Line) -> dict[str, str]:
    if "problem" in line:
        return {"state": line["status"], "tokens": "-"}
    return {"state": state_cell(line), "tokens": f"{line['tokens']:,}" if "tokens" in line else "-"}


def _name(line: Line, room: int) -> str:
    """Returns the agent and the purpose; if there is no room for both, the agent gets a third of the room."""
    if "problem" in line:
        return problem_text(line)
    notes, agent = "".join(f"{note} " for note in tree_notes(line)), safe(line["agent_name"])
    if line["purpose"] == NO_PURPOSE:
        return notes + agent
    purpose = f": {safe(line['purpose'])}"
    most = max(_LEAST_AGENT, room // 3, room - cells(notes + purpose))
    return notes + (agent if cells(agent) <= most else cut(agent, most)) + purpose


def _row(row: Mapping[str, str], widths: Mapping[str, int], style: Style | None) -> Iterator[Segment]:
    name, state, tokens, agent_id = (widths[title] for title in _COLUMNS)
    gap = " " * GAP
    yield Segment(cut(row[_NAME], name), style)
    yield Segment(gap + cut(row["state"], state) if state else "", style or state_style(row["state"]))
    yield Segment(gap + cut(row["tokens"].rjust(tokens), tokens) if tokens else "", style)
    yield Segment((gap if name else "") + cut_middle(row["id"], agent_id) + "\n", style)
