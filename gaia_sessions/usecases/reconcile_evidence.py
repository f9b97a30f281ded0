"""The evidence on a run without an end: the process of its host, the log of the hooks, the time of its transcript.

Owns how each is examined, and what counts as not known.
"""

from __future__ import annotations

from gaia_sessions.session.runs import conversation_of
from gaia_sessions.store.hook_log import MAX_LOGGED_ID_LENGTH
from gaia_sessions.system import processes, written_at

from .reconcile_rules import Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from gaia_sessions.session.run_ends import ReportedEnd
    from gaia_sessions.session.schema import Run

    ReadSessionEnds = Callable[[], Mapping[tuple[str, str], datetime]]
    """Reads when main sessions ended, by host and session id as the log of the hooks has them."""

    ReadEndInFiles = Callable[[Run], ReportedEnd | None]
    """Reads how a run ended from the files that its host keeps about the agent; None if they do not say."""


def _no_session_ends() -> Mapping[tuple[str, str], datetime]:
    return {}


def _no_end(_: Run) -> ReportedEnd | None:
    return None


class EvidenceReader:
    """Gathers the evidence on runs, afresh for each call; only the log is read at most once, and only if needed."""

    __slots__ = ("_read_end_in_files", "_read_session_ends", "_session_ends")

    def __init__(
        self, read_session_ends: ReadSessionEnds = _no_session_ends, read_end_in_files: ReadEndInFiles = _no_end
    ) -> None:
        self._read_session_ends = read_session_ends
        self._read_end_in_files = read_end_in_files
        self._session_ends: Mapping[tuple[str, str], datetime] | None = None

    def of(self, run: Run) -> Evidence:
        """The evidence on ``run`` as it is now."""
        over_at = self._end_of(run.get("host"), conversation_of(run))
        written = written_at(run.get("transcript_path"))
        reported = self._read_end_in_files(run)
        if "host_process" not in run:
            return Evidence(over_at=over_at, written_at=written, reported=reported)
        host_gone, statement = processes.gone_and_reason(run["host_process"], "its host")
        return Evidence(statement, host_gone=host_gone, over_at=over_at, written_at=written, reported=reported)

    def _end_of(self, host: str | None, host_session_id: str | None) -> datetime | None:
        if host is None or host_session_id is None:
            return None
        if len(host_session_id) >= MAX_LOGGED_ID_LENGTH:  # the log cuts such ids, and a cut id is not unique
            return None
        if self._session_ends is None:
            self._session_ends = self._read_session_ends()
        return self._session_ends.get((host, host_session_id))
