"""When a file of an agent was last written to."""

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
        (1 << 40, None),  # in a year that datetime does not have
    ],
)
def test_a_file_was_written_when_the_system_says_so(talks: Path, seconds: int, written_at: datetime | None) -> None:
    path = talks / "agent.jsonl"
    path.touch()
    os.utime(path, (seconds, seconds))
    assert file_written_at(CLAUDE_CODE, str(path)) == written_at


def test_what_is_no_file_of_the_host_was_never_written(talks: Path) -> None:
    (talks / "agent.jsonl").touch()
    (talks / "link").symlink_to("agent.jsonl")
    for name in ("gone", "link", ".", ""):
        assert file_written_at(CLAUDE_CODE, f"{talks}/{name}") is None
    assert file_written_at(None, f"{talks}/agent.jsonl") is None
