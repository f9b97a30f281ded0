"""Sessions as tables, drawn with rich; loaded only if stdout is a terminal. The purpose is always shown."""

from __future__ import annotations

from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style

from gaia_sessions.session.record import NO_PURPOSE

from . import plain
from .columns import GAP, cells, cut, fit
from .short_ids import shorten_ids
from .words import left_text, overlap_text, safe, seen_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import TextIO

    from gaia_sessions.api.listing import Line

_STYLES = {
    "waiting": "bold yellow",
    "failed": "red",
    "error": "red",
    "crashed": "red",
    "completed": "green",
    "cancelled": "dim",
    "abandoned": "dim",
    "corrupt": "bold red",
    "unreadable": "bold red",
    "newer": "bold red",
    "moving": "bold yellow",
    "gone": "dim",
}
"""The style of each state or status."""

COLUMNS = ("id", "state", "share", "left", "agent", "purpose", "seen")
"""The names of the columns, in order."""

_LONGEST_STATE = 19
_LEAST_ID, _LEAST_STATE, _LEAST_PURPOSE = 8, 9, 12
_NARROWEST_WITH_AGENT = 70
_GIVING_WAY = (("agent", 0), ("state", _LEAST_STATE), ("id", _LEAST_ID), ("seen", 0), ("left", 0), ("share", 0))
"""The columns that shrink until the purpose has its least width, each with its least width; with 0, the column goes."""


def session_table(lines: Sequence[Line], now: datetime, others: Iterable[str], terminal: TextIO, columns: int) -> str:
    """Returns a table of sessions, at most ``columns`` wide; no short ID is a part of an ID in ``others``."""
    return drawn(_segments(lines, short_ids_of(lines, others), now, columns), terminal, columns)


def short_ids_of(lines: Iterable[Line], others: Iterable[str]) -> list[str]:
    return [safe(name) for name in shorten_ids([line["agent_id"] for line in lines], others)]


def drawn(segments: Iterable[Segment], terminal: TextIO, columns: int) -> str:
    """Returns the text of ``segments``, in colours if the terminal has colours."""
    console = Console(file=terminal, width=columns)
    with console.capture() as captured:
        console.print(Segments(segments))
    return captured.get()


def _segments(lines: Sequence[Line], short_ids: Sequence[str], now: datetime, room: int) -> Iterator[Segment]:
    most = max(_LEAST_ID, room // 4)
    rows = [
        {"id": cut_middle(name, most), **_texts(line, now, room)} for line, name in zip(lines, short_ids, strict=True)
    ]
    widths = fit_columns({name: _longest(name, [row.get(name, "") for row in rows]) for name in COLUMNS}, room)
    heading = (" " * GAP).join(cut(name, width) for name, width in widths.items())
    yield Segment(heading.rstrip() + "\n", Style.parse("dim"))
    for row in rows:
        start = cut_middle(row["id"], widths["id"]).ljust(widths["id"]) + " " * GAP
        yield from _problem_row(start, row, room) if "problem" in row else _row(start, row, widths)
        yield Segment.line()


def _longest(heading: str, texts: Sequence[str]) -> int:
    """Returns the width of the column in characters of a terminal; 0 if the column is empty."""
    longest = max(map(cells, texts))
    return max(longest, len(heading)) if longest else 0


def fit_columns(longest: Mapping[str, int], room: int) -> dict[str, int]:
    """Returns the width of each shown column; ``longest`` has the width of uncut columns, 0 for an empty one."""
    agent = longest["agent"] if room >= _NARROWEST_WITH_AGENT else 0
    most = {**longest, "state": min(longest["state"], most_of_state(room)), "agent": agent}
    to_least_purpose = [(name, least, _LEAST_PURPOSE) for name, least in _GIVING_WAY]
    # the agent shrinks first, to a sixth of the room, until the whole purpose is shown
    widths = fit(most, room, "purpose", [("agent", room // 6, longest["purpose"]), *to_least_purpose])
    return {name: width for name, width in widths.items() if width}


def most_of_state(room: int) -> int:
    return max(_LEAST_STATE, min(_LONGEST_STATE, room // 4))


def _texts(line: Line, now: datetime, room: int) -> dict[str, str]:
    """Returns the text in each column except the ID; only the problem if the record cannot be read."""
    if "problem" in line:
        return {"status": line["status"], "problem": plain.problem_text(line)}
    return {
        "state": plain.state_cell(line),
        "share": overlap_text(line["overlap"]) if "overlap" in line else "",
        "left": "" if "turns" in line else left_text(line["resume"], now),
        "agent": safe(line["agent_name"], room),
        "purpose": "-" if line["purpose"] == NO_PURPOSE else safe(line["purpose"], room),
        "seen": seen_text(line.get("last_activity", line["last_updated"]), now),
    }


def _row(start: str, row: Mapping[str, str], widths: Mapping[str, int]) -> Iterator[Segment]:
    state, *others = [cut(row[name], width) for name, width in widths.items() if name != "id"]
    yield Segment(start)
    yield Segment(state, state_style(row["state"]))
    yield Segment("".join(" " * GAP + text for text in others).rstrip())


def state_style(state: str) -> Style:
    return Style.parse(_STYLES.get(state.partition(":")[0], ""))


def _problem_row(start: str, row: Mapping[str, str], room: int) -> Iterator[Segment]:
    status = row["status"]
    yield Segment(start)
    yield Segment(status, state_style(status))
    yield Segment(cut(f": {row['problem']}", max(0, room - len(start + status))).rstrip())


def cut_middle(agent_id: str, room: int) -> str:
    """Cuts ``agent_id`` in the middle to ``room`` cells: similar IDs differ at the beginning or the end."""
    if len(agent_id) <= room:
        return agent_id
    end = (room - 1) // 2
    return agent_id[: room - 1 - end] + "…" + agent_id[len(agent_id) - end :]
