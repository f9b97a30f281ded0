"""What can be found out about a run that nobody ended: its host's process, the log of the hooks, its transcript.

Owns the gathering and judges nothing. Looks only at what the run itself names, and reads no transcript: when
it was last written to says enough.
"""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime

from gaia_sessions.session.runs import conversation_of
from gaia_sessions.store.hook_log import MAX_LOGGED_ID_LENGTH
from gaia_sessions.system import processes

from .reconcile_rules import Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gaia_sessions.session.schema import Run

    ReadSessionEnds = Callable[[], Mapping[tuple[str, str], datetime]]
    """When main sessions ended, by their hosts and their ids as the log of the hooks has them."""


class EvidenceReader:
    """Tells of runs, each time anew, but for what the log says: that is asked for once, and only if need be."""

    __slots__ = ("_read_session_ends", "_session_ends")

    def __init__(self, read_session_ends: ReadSessionEnds) -> None:
        self._read_session_ends = read_session_ends
        self._session_ends: Mapping[tuple[str, str], datetime] | None = None

    def of(self, run: Run) -> Evidence:
        """What is known of ``run`` now."""
        over_at = self._end_of(run.get("host"), conversation_of(run))
        written_at = _written_at(run.get("transcript_path"))
        if "host_process" not in run:
            return Evidence(over_at=over_at, written_at=written_at)
        host_gone, host_statement = processes.gone_and_reason(run["host_process"])
        return Evidence(host_statement, host_gone=host_gone, over_at=over_at, written_at=written_at)

    def _end_of(self, host: str | None, host_session_id: str | None) -> datetime | None:
        if (
            host is None or host_session_id is None or len(host_session_id) >= MAX_LOGGED_ID_LENGTH
        ):  # a cut id is anybody's
            return None
        if self._session_ends is None:
            self._session_ends = self._read_session_ends()
        return self._session_ends.get((host, host_session_id))


def _written_at(path: str | None) -> datetime | None:
    """When the file at ``path`` was last written to; None if there is none, or it may not be looked at."""
    if path is None or not os.path.isabs(path):
        return None
    try:
        found = os.stat(path)
        return datetime.fromtimestamp(found.st_mtime, UTC) if stat.S_ISREG(found.st_mode) else None
    except (OSError, ValueError, OverflowError):  # a path from a record can be any text, and a time any number
        return None
