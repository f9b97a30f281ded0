"""The leases of runs on a server, as this process last saw them.

A store that reads a record notes the leases of its open runs here, for those who ask whether a run has ended.
"""

from __future__ import annotations

from gaia_sessions.session.clock import UTC, datetime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Seen = tuple[bool, float | None]
    """Whether the lease was valid by the server's clock, and when the run last wrote output, in seconds since 1970."""

_MOST = 10_000
_seen: dict[str, Seen] = {}


def note(asked: Iterable[str], found: Mapping[str, Seen]) -> None:
    """Notes what the server says about the leases that it was asked for."""
    if len(_seen) > _MOST:  # a service runs for months
        for lease in [*_seen][: _MOST // 2]:
            _seen.pop(lease, None)
    for lease in asked:
        _seen[lease] = found.get(lease, (False, None))


def is_valid(lease: str) -> bool | None:
    """Returns whether the lease was valid when it was last seen; None if it was never seen."""
    return _seen.get(lease, (None, None))[0]


def written_at(lease: str) -> datetime | None:
    """Returns when the run with this lease last wrote output; None if that is unknown."""
    seconds = _seen.get(lease, (None, None))[1]
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
