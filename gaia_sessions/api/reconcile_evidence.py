"""The evidence on a run without an end: the process and the files of its host, and the log of the hooks."""

from __future__ import annotations

from gaia_sessions.hosts import end_in_files
from gaia_sessions.hosts.evidence import written_at
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.host_events import SESSION_END
from gaia_sessions.session.runs import (
    CLIENT_IS_OVER,
    client_of,
    conversation_of,
    is_own_run,
    process_of,
)
from gaia_sessions.session.verdicts import Evidence
from gaia_sessions.store.hook_log import MAX_LOGGED_ID_LENGTH
from gaia_sessions.store.hook_log_reader import LOG_NAMES, read_log
from gaia_sessions.system import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.schema import Run

    HostSession = tuple[str, str]
    """A conversation: the name of its host, and its ID, shortened as in the log."""


_WHETHER_IT_RUNS = {
    True: f"{{}} {CLIENT_IS_OVER}",
    False: "{} runs",
    None: "it is unknown whether {} still runs",
}


class EvidenceReader:
    """Gathers the evidence on runs, again for each call; the log is read once, and only if needed."""

    __slots__ = ("_root", "_session_ends")

    def __init__(self, root: str | None) -> None:
        self._root = root
        self._session_ends: dict[HostSession, datetime] | None = None

    def of(self, run: Run) -> Evidence:
        """Returns the evidence on ``run`` as it is now."""
        is_of_host = not is_own_run(run)  # only the wrapper of a command knows its state
        over_at = self._end_of(run.get("host"), conversation_of(run)) if is_of_host else None
        reported = end_in_files(run) if is_of_host else None
        written, process = written_at(run), process_of(run)
        if process is None:
            return Evidence(over_at=over_at, written_at=written, reported=reported)
        host_gone, how_known = processes.gone_and_reason(process)
        statement = f"{_WHETHER_IT_RUNS[host_gone].format(client_of(run))}: {how_known}"
        return Evidence(statement, host_gone=host_gone, over_at=over_at, written_at=written, reported=reported)

    def _end_of(self, host: str | None, host_session_id: str | None) -> datetime | None:
        if host is None or host_session_id is None:
            return None
        if len(host_session_id) >= MAX_LOGGED_ID_LENGTH:  # the log cuts such IDs, and a cut ID is not unique
            return None
        if self._session_ends is None:
            self._session_ends = _ended_host_sessions(self._root) if self._root else {}
        return self._session_ends.get((host, host_session_id))


def _ended_host_sessions(root: str) -> dict[HostSession, datetime]:
    """Returns when each conversation ended, if its last event was its end."""
    # In one log, the order of lines counts and not their times, because clocks are set back.
    last_events: dict[HostSession, tuple[datetime, bool]] = {}
    for name in LOG_NAMES:
        for host_session, event in _last_events(root, name).items():
            last_events[host_session] = max(last_events.get(host_session, event), event)
    return {host_session: at for host_session, (at, is_end) in last_events.items() if is_end}


def _last_events(root: str, name: str) -> dict[HostSession, tuple[datetime, bool]]:
    """Returns the time of the last event of each conversation in the log, and whether that event was the end."""
    last: dict[HostSession, tuple[datetime, bool]] = {}
    for line in read_log(root, name):
        host, session, kinds = line.get("host"), line.get("host_session_id", line.get("session_id")), line.get("kinds")
        try:
            event = parse_time(line.get("at")), isinstance(kinds, list) and SESSION_END in kinds
        except ValueError:
            continue
        if isinstance(host, str) and isinstance(session, str):
            last[host, session] = event
    return last
