"""The same facts as renderables for a terminal. The one door to rich; imported only when stdout is one."""

from __future__ import annotations

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from . import plain
from .words import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from typing import TextIO

    from rich.console import RenderableType

    from gaia_sessions.policy import Decision
    from gaia_sessions.shape import CorruptSummary, Record, Summary

_STYLES = {
    "completed": "green",
    "failed": "red",
    "abandoned": "dim",
    "approval": "yellow",
    "planning": "yellow",
    "investigating": "yellow",
    "corrupt": "bold red",
    "unreadable": "bold red",
}


def listed(lines: Iterable[Summary | CorruptSummary], now: datetime) -> RenderableType:
    """The table of sessions."""
    table = _table("session", "agent", "phase", "last activity", "")
    for line in lines:
        name, phase, activity, remarks = plain.columns(line, now)
        cells = (Text(line["agent_id"]), Text(name), Text(phase, _STYLES.get(phase, "")), Text(activity), Text(remarks))
        table.add_row(*cells)
    return table


def shown(record: Record, decision: Decision, now: datetime) -> RenderableType:
    """One session: its facts, its phases as a timeline, its runs."""
    head = Text.assemble((record["agent_id"], "bold"), f"  {safe(record['agent_name'])}, {safe(record['purpose'])}")
    parts: list[RenderableType] = [head, _pairs(plain.facts(record, decision, now)), Text("phases", "bold")]
    parts.append(_pairs(plain.timeline(record)))
    if record.get("runs"):
        parts += [Text("runs", "bold"), *(Text(f"  {line}") for line in plain.runs(record))]
    return Group(*parts)


def drawn(renderable: RenderableType, terminal: TextIO) -> str:
    """``renderable`` as text for ``terminal``: in its width, in colours if it has them and ``NO_COLOR`` is not set."""
    console = Console(file=terminal, highlight=False, emoji=False, markup=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def _pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for name, value in pairs:
        grid.add_row(Text(f"  {name}", "dim"), Text(value))
    return grid


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, heading in enumerate(headings):
        table.add_column(heading, no_wrap=number == 0, overflow="fold")
    return table
