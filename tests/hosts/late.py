"""What a hook waits for in a transcript, without waiting."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from gaia_sessions.hosts import agent_files

if TYPE_CHECKING:
    import pytest


def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at what is late a second goes by, of which nobody notices anything."""
    seconds = count(2**40)
    monkeypatch.setattr(agent_files, "sleep", lambda _: None)
    monkeypatch.setattr(agent_files, "monotonic", lambda: next(seconds))
