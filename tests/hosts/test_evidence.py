"""When the host last wrote to a file of an agent."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.evidence import file_written_at
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path


@table(
    ("seconds", "written_at"),
    [
        (1_700_000_000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (1 << 40, None),  # datetime does not have this year
    ],
)
def test_the_write_time_of_a_file_is_its_modification_time(
    talks: Path, seconds: int, written_at: datetime | None
) -> None:
    path = talks / "agent.jsonl"
    path.touch()
    os.utime(path, (seconds, seconds))
    assert file_written_at(CLAUDE_CODE, str(path)) == written_at


def test_a_path_that_is_not_a_host_file_has_no_write_time(talks: Path) -> None:
    (talks / "agent.jsonl").touch()
    (talks / "link").symlink_to("agent.jsonl")
    for name in ("gone", "link", ".", ""):
        assert file_written_at(CLAUDE_CODE, f"{talks}/{name}") is None
    assert file_written_at(None, f"{talks}/agent.jsonl") is None
