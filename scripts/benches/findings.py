"""The result of one measurement, as a row of the table and as JSON.

A value over the limit breaks it; a value equal to the limit does not.
"""

from __future__ import annotations

from typing import NamedTuple

_WIDTHS = (62, 12, 10)


class Finding(NamedTuple):
    """One figure and its limit, both in ``unit``; None if the figure has no limit."""

    what: str
    measured: float
    limit: float | None
    unit: str = "x"

    @property
    def ok(self) -> bool:
        """Whether the limit holds."""
        return self.limit is None or self.measured <= self.limit

    def row(self) -> str:
        """Returns a row of the table."""
        limit = "-" if self.limit is None else f"{self.limit:g} {self.unit}"
        return _row(self.what, f"{self.measured:.3g} {self.unit}", limit, "ok" if self.ok else "BROKEN")

    def as_json(self) -> dict[str, object]:
        """Returns the finding as an element of the JSON array."""
        return {**self._asdict(), "ok": self.ok}


def _row(what: str, measured: str, limit: str, ok: str) -> str:
    return " | ".join([what.ljust(_WIDTHS[0]), measured.rjust(_WIDTHS[1]), limit.rjust(_WIDTHS[2]), ok])


HEADING = _row("what", "measured", "limit", "ok") + "\n" + "-|-".join("-" * width for width in (*_WIDTHS, 6))
