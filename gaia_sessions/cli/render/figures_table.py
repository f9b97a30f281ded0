"""A table in plain text, of which the first column has names and the others have figures.

Owns what gives way where the terminal is narrow: names are cut, and then columns go.
"""

from __future__ import annotations

from .wrapped import cells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

_GAP, _LEAST_NAME = 2, 12


def table(
    rows: Sequence[Sequence[str]], room: int, *, left: Collection[int] = (), first_to_go: Iterable[int] = ()
) -> Iterator[str]:
    """A line for each of ``rows``; figures end where their column ends, those in the columns ``left`` begin it.

    A column in which nothing stands is left out.

    room: the columns of the terminal, 0 for none. first_to_go: which columns go where all do not fit, in this order.
    """
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    shown = _fit_columns(widths, room, first_to_go) if room else range(len(widths))
    for row in rows:
        figures = [_aligned(row[place], widths[place], begins=place in left) for place in shown[1:] if widths[place]]
        yield (" " * _GAP).join([_fit(row[0], widths[0]), *figures]).rstrip()


def _fit_columns(widths: list[int], room: int, first_to_go: Iterable[int]) -> list[int]:
    """The places of the columns that are shown in ``room``; what they leave is the width of the names then."""
    shown = [*range(len(widths))]
    least = min(_LEAST_NAME, widths[0])
    for place in first_to_go:
        if sum(widths[other] + _GAP for other in shown[1:]) + least > room:
            shown.remove(place)
    widths[0] = min(widths[0], max(least, room - sum(widths[other] + _GAP for other in shown[1:])))
    return shown


def _aligned(text: str, width: int, *, begins: bool) -> str:
    blanks = " " * (width - cells(text))
    return text + blanks if begins else blanks + text


def _fit(name: str, width: int) -> str:
    if cells(name) > width:
        from .tables import cut

        return cut(name, width)
    return _aligned(name, width, begins=True)
