"""Text in the cells of a terminal: how many it takes, which columns of a table have room, tables of figures."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    Column = TypeVar("Column")
    """Its heading, or its place."""

GAP = 2
_LEAST_NAME = 12


def cells(text: str) -> int:
    """How many cells ``text`` takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, room: int) -> str:
    """``text`` in exactly ``room`` cells, with an ellipsis if it does not fit."""
    if (length := cells(text)) <= room:
        return text + " " * (room - length)
    if text.isascii():
        return text[: room - 1] + "…" if room else ""
    from rich.cells import set_cell_size

    return set_cell_size(text, room - 1) + "…" if room else ""


def fit(
    longest: Mapping[Column, int], room: int, main: Column, giving_way: Iterable[tuple[Column, int, int]]
) -> dict[Column, int]:
    """The width of each column, 0 for one that has no room; at ``longest`` nothing is cut.

    main: the column that has what the others leave. giving_way: columns in the order in which they give way to it, each
    with its least width, 0 if it goes, and how much of ``main`` it gives way to.
    """
    widths = {**longest, main: 0}
    for column, least, wanted in giving_way:
        missing = min(wanted, longest[main]) - _left(widths, room)
        if missing > 0:
            widths[column] = min(widths[column], max(least, widths[column] - missing)) if least else 0
    return {**widths, main: max(0, min(longest[main], _left(widths, room)))}


def _left(widths: Mapping[Column, int], room: int) -> int:
    """What the columns that are shown leave of ``room``, each with the gap behind it."""
    return room - sum(width + GAP for width in widths.values() if width)


def table(
    rows: Sequence[Sequence[str]], room: int, *, left: Collection[int] = (), first_to_go: Iterable[int] = ()
) -> Iterator[str]:
    """A line for each of ``rows``; figures end where their column ends, but in the columns ``left`` they begin it.

    A column in which nothing stands is left out.

    room: the columns of the terminal, 0 for none. first_to_go: which columns go where all do not fit, in this order;
    then the names are cut, but not to fewer than 12 cells.
    """
    longest = dict(enumerate(max(map(cells, column)) for column in zip(*rows, strict=True)))
    widths = fit(longest, room, 0, [(place, 0, _LEAST_NAME) for place in first_to_go]) if room else longest
    widths[0] = max(widths[0], min(longest[0], _LEAST_NAME))
    shown = [(place, width, place in (0, *left)) for place, width in widths.items() if width]
    for row in rows:
        texts = [cut(row[place], width) if begins else row[place].rjust(width) for place, width, begins in shown]
        yield (" " * GAP).join(texts).rstrip()
