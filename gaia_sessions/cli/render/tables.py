"""Sessions as tables for a terminal. The one module to import rich; loaded only when stdout is a terminal.

Owns which columns fit, and which are shortened or dropped first (the purpose, then the agent; the others are shown
whole wherever they fit).
"""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from . import plain
from .short_ids import shorten_ids
from .words import safe, short_ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from os import terminal_size
    from typing import TextIO

    from rich.console import ConsoleOptions, RenderableType

    from gaia_sessions.usecases.listing import Line
    from gaia_sessions.usecases.tree import TreeLine

_STYLES = {
    "completed": "green",
    "failed": "red",
    "abandoned": "dim",
    "approval": "yellow",
    "planning": "yellow",
    "investigating": "yellow",
    "corrupt": "bold red",
    "unreadable": "bold red",
    "gone": "dim",
}


COLUMNS = ("id", "agent", "phase", "resume", "active", "purpose")
"""The columns, in their order."""

_FIXED_COLUMNS = ("resume", "phase", "active")
_MIN_WIDTH = 8
_MIN_ID_WIDTH = 12
_GAP = 2
_DEEPEST_LEVEL = 8
"""Whoever is further down is not indented further: the columns would be lost."""


class _SessionTable:
    """The list of sessions at any width: a line of headings and a line for each session."""

    def __init__(self, lines: Sequence[TreeLine], now: datetime, others: Iterable[str]) -> None:
        short = shorten_ids([line["agent_id"] for _, line in lines], others)
        self._rows = [
            _cells(_indentation(level) + safe(name), line, now)
            for name, (level, line) in zip(short, lines, strict=True)
        ]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        rows = self._rows
        widths, gap = fit_columns(_widths(rows), options.max_width)
        if "phase" not in widths:  # otherwise a final session would have an empty row
            rows = [{**row, "resume": row.get("resume") or row.get("phase", "")} for row in rows]
            widths, gap = fit_columns(_widths(rows), options.max_width)
        yield _one_line((" " * gap).join(cut(name, room) for name, room in widths.items()).rstrip(), "dim")
        for row in rows:
            is_read = "problem" not in row
            yield _row(row, widths, gap) if is_read else _problem_row(row, widths, gap, options.max_width)


def _widths(rows: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """The full width of each column with its heading; 0 for an empty column."""
    longest = {name: max(cell_len(row.get(name, "")) for row in rows) for name in COLUMNS}
    return {name: max(cells, len(name)) if cells else 0 for name, cells in longest.items()}


def fit_columns(full_widths: Mapping[str, int], room: int) -> tuple[dict[str, int], int]:
    """The width of each column that is shown, in order, and of the gap between them; the sum is at most ``room``.

    ``full_widths`` are the widths at which the columns are shown whole; 0 for an empty one.
    """
    widths = {"id": min(full_widths["id"], _MIN_ID_WIDTH, room)}
    for name in _FIXED_COLUMNS:
        if full_widths[name] and _total_width(widths, 1) + 1 + full_widths[name] <= room:
            widths[name] = full_widths[name]
    widths["id"] = min(full_widths["id"], widths["id"] + room - _total_width(widths, 1))
    gap = _GAP if _total_width(widths, _GAP) <= room else 1
    for name in ("agent", "purpose"):
        left = room - _total_width(widths, _GAP) - _GAP
        if not 0 < min(full_widths[name], _MIN_WIDTH) <= left:
            break
        widths[name] = min(full_widths[name], left)
    return {name: widths[name] for name in COLUMNS if name in widths}, gap


def _total_width(widths: Mapping[str, int], gap: int) -> int:
    return sum(widths.values()) + gap * (len(widths) - 1)


def session_table(lines: Sequence[TreeLine], now: datetime, others: Iterable[str] = ()) -> RenderableType:
    """The sessions, one line each, none wider than the terminal; each is indented by its level if there is room."""
    return _SessionTable(lines, now, others)


def _indentation(level: int) -> str:
    return "  " * min(level, _DEEPEST_LEVEL)


def _cells(short_id: str, line: Line, now: datetime) -> dict[str, str]:
    """The cells of a session; for one that cannot be read, only the id and the problem."""
    if "problem" in line:
        _, _, problem = safe(line["problem"], 500).rpartition(f"/{line['agent_id']}/state.json: ")
        return {"id": short_id, "status": line["status"], "problem": problem}
    notes = ", ".join(plain.session_notes(line))
    purpose = [f"({notes})"] if notes else []
    purpose += [safe(line["purpose"])] if line["purpose"] != plain.NO_PURPOSE else []
    cells = {
        "id": short_id,
        "agent": safe(line["agent_name"], 40),
        "phase": line["phase"],
        "resume": plain.state_text(line, now),
        "active": short_ago(line.get("last_activity", line["last_updated"]), now),
        "purpose": " ".join(purpose),
    }
    return cells if line.get("selected", True) else {**cells, "style": "dim"}


def _row(cells: Mapping[str, str], widths: Mapping[str, int], gap: int) -> Text:
    row = _one_line(style=cells.get("style", ""))
    for name, room in widths.items():
        cell = cut_id(cells[name], room) if name == "id" else cut(cells[name], room)
        row.append(cell + " " * gap, _STYLES.get(cells[name]) if name == "phase" else None)
    row.rstrip()
    return row


def _problem_row(cells: Mapping[str, str], widths: Mapping[str, int], gap: int, room: int) -> Text:
    status = cells["status"]
    row = _one_line(cut(f"{cut_id(cells['id'], widths['id'])}{' ' * gap}{status}: {cells['problem']}", room).rstrip())
    start = widths["id"] + gap
    row.stylize(_STYLES.get(status, ""), start, start + len(status))
    return row


def cut(text: str, room: int) -> str:
    """``text`` in exactly ``room`` cells, with an ellipsis if it does not fit."""
    cell = Text(text)
    cell.truncate(room, overflow="ellipsis", pad=True)
    return cell.plain


def cut_id(indented_id: str, room: int) -> str:
    """An id in exactly ``room`` cells, indented only as far as the whole id fits."""
    agent_id = indented_id.lstrip(" ")
    indent = min(len(indented_id) - len(agent_id), max(0, room - len(agent_id)))
    return " " * indent + cut_middle(agent_id, room - indent)


def cut_middle(agent_id: str, room: int) -> str:
    """``agent_id`` in exactly ``room`` cells, cut in the middle: similar ids differ at their beginning or their end."""
    if len(agent_id) <= room:
        return agent_id.ljust(room)
    end = (room - 1) // 2
    return agent_id[: room - 1 - end] + "…" + agent_id[len(agent_id) - end :]


def _one_line(text: str = "", style: str = "") -> Text:
    return Text(text, style, no_wrap=True, overflow="crop")


def render(renderable: RenderableType, terminal: TextIO, size: terminal_size) -> str:
    """``renderable`` as text for a terminal of that size, in colours if it has them and ``NO_COLOR`` is not set."""
    width, height = size
    console = Console(file=terminal, highlight=False, emoji=False, markup=False, width=width, height=height)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()
