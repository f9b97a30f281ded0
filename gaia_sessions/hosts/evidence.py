"""What the machine and the hosts' files say about a record now: which processes are gone, when the agent last wrote."""

from __future__ import annotations

import os
import stat

from gaia_sessions.session.clock import UTC, datetime
from gaia_sessions.session.runs import latest_run_with_file
from gaia_sessions.system import gone_runs

from . import host_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Record, Run

    class Evidence(TypedDict):
        """What the policy must know about a session and the record does not say."""

        dead_runs: frozenset[int]
        written_at: datetime | None


def file_written_at(host: str | None, path: Json) -> datetime | None:
    """Returns when the file of ``host`` at ``path`` was last written; None if it does not exist."""
    try:
        fd, found = host_files.open_file(host, path)
    except OSError:
        return None
    os.close(fd)
    return _time_of(found)


def evidence_of(record: Record) -> Evidence:
    """Returns the runs of ``record`` whose processes are gone, and when its agent last wrote to its files."""
    return {"dead_runs": gone_runs(record), "written_at": latest_write(record)}


def latest_write(record: Record) -> datetime | None:
    """Returns when the files of the latest run with files were last written; None if the work is over."""
    run = latest_run_with_file(record)
    return written_at(run) if run else None


def written_at(run: Run) -> datetime | None:
    """Returns when the agent of ``run`` last wrote to its transcript, or its command to its output."""
    if "lease" in run.get("wrapper", ()):
        from gaia_sessions.system import leases  # no run of a host has one

        return leases.written_at(run["wrapper"]["lease"])
    transcript = file_written_at(run.get("host"), run["transcript_path"]) if "transcript_path" in run else None
    output = _output_written_at(run["output_path"]) if "output_path" in run else None
    return max(filter(None, (transcript, output)), default=None)


def _output_written_at(path: str) -> datetime | None:
    try:
        # In a record that was read, this is the store's own path.
        found = os.stat(path, follow_symlinks=False)
    except (OSError, ValueError):
        return None
    return _time_of(found) if stat.S_ISREG(found.st_mode) else None


def _time_of(found: os.stat_result) -> datetime | None:
    try:
        return datetime.fromtimestamp(found.st_mtime, UTC)
    except (ValueError, OverflowError, OSError):
        return None
