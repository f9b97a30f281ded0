"""Lets tests skip the time that a hook waits for a late line of a transcript."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from gaia_sessions.hosts import agent_files

if TYPE_CHECKING:
    import pytest


def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at a file the clock moves by one second, without a sleep."""
    seconds = count(2**40)
    monkeypatch.setattr(agent_files, "sleep", lambda _: None)
    monkeypatch.setattr(agent_files, "monotonic", lambda: next(seconds))
