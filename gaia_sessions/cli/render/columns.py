"""Text in the cells of a terminal: its width, the columns that have room, tables of figures."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    Column = TypeVar("Column")

GAP = 2
_LEAST_NAME = 12


def cells(text: str) -> int:
    """Returns how many cells ``text`` takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, room: int) -> str:
    """Returns ``text`` in exactly ``room`` cells, with an ellipsis if it does not fit."""
    if (length := cells(text)) <= room:
        return text + " " * (room - length)
    if text.isascii():
        return text[: room - 1] + "…" if room else ""
    from rich.cells import set_cell_size

    return set_cell_size(text, room - 1) + "…" if room else ""


def fit(
    longest: Mapping[Column, int], room: int, main: Column, giving_way: Iterable[tuple[Column, int, int]]
) -> dict[Column, int]:
    """Returns the width of each column, 0 for a column without room; ``main`` gets the room that the others leave.

    giving_way: the columns in the order in which they shrink, each with its least width (0: the column goes) and the
    width that ``main`` should have.
    """
    widths = {**longest, main: 0}
    for column, least, wanted in giving_way:
        missing = min(wanted, longest[main]) - _left(widths, room)
        if missing > 0:
            widths[column] = min(widths[column], max(least, widths[column] - missing)) if least else 0
    return {**widths, main: max(0, min(longest[main], _left(widths, room)))}


def _left(widths: Mapping[Column, int], room: int) -> int:
    return room - sum(width + GAP for width in widths.values() if width)


def table(
    rows: Sequence[Sequence[str]], room: int, *, left: Collection[int] = (), first_to_go: Iterable[int] = ()
) -> Iterator[str]:
    """Yields a line for each row, without empty columns; text is aligned right, except in the columns ``left``.

    room: 0 for no terminal.
    first_to_go: the columns that go, in this order, if not all fit; then the names are cut.
    """
    longest = dict(enumerate(max(map(cells, column)) for column in zip(*rows, strict=True)))
    widths = fit(longest, room, 0, [(place, 0, _LEAST_NAME) for place in first_to_go]) if room else longest
    widths[0] = max(widths[0], min(longest[0], _LEAST_NAME))
    shown = [(place, width, place in (0, *left)) for place, width in widths.items() if width]
    for row in rows:
        texts = [cut(row[place], width) if begins else row[place].rjust(width) for place, width, begins in shown]
        yield (" " * GAP).join(texts).rstrip()
