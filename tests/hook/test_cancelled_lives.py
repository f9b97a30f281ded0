"""Captured lives of real sub-agents whose sessions are cancelled on the way: abandoned, their runs with their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from tests.hook.test_lives import LIVES, Life
from tests.hook.test_lives import lives as plain_lives

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RESUMED = ("resume", "message", "restart", "fork", "compact")
"""In the names of captures in which work goes on that had rested: cancelled work does not."""

UNREPORTED = ("late-hooks", "pre-missing-command")
"""Captures in which a session begins with the report of its end, and so is final before anybody can cancel it."""

CHOSEN = [life for life in LIVES if not any(word in str(life.id) for word in (*RESUMED, *UNREPORTED))]


class CancelledLife(Life):
    """A life in which somebody cancels each session without a parent as soon as it is there."""

    def tell(self, payload: dict[str, Any]) -> None:
        super().tell(payload)
        for line in gaia_sessions.list_sessions(active_only=True, root=str(self.root)):
            if "problem" not in line and "parent_id" not in line:
                gaia_sessions.Sessions(str(self.root)).cancel(line["agent_id"], "enough")


lives = plain_lives


@pytest.fixture
def cancelled_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CancelledLife]:
    return CancelledLife(tmp_path / "cancelled", monkeypatch)  # type: ignore[return-value]


def runs_of(life: Life) -> list[list[str]]:
    """What the records say of the ends of runs, and of no more."""
    return sorted([[run.get("end", "") for run in record["runs"]] for record in life.records()])


@pytest.mark.parametrize("capture", CHOSEN)
def test_l17_every_session_of_a_cancelled_tree_is_abandoned_and_its_run_keeps_its_end(
    capture: Path, lives: Any, cancelled_life: CancelledLife
) -> None:
    life = lives()
    life.live(life.lines(capture))

    cancelled_life.live(cancelled_life.lines(capture))

    assert cancelled_life.errors == []
    assert runs_of(cancelled_life) == runs_of(life)
    for record in cancelled_life.records():
        is_over = all("ended_at" in run for run in record["runs"])
        assert (record["phase"] == "abandoned") is is_over, record
