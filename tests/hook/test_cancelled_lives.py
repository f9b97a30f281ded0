"""Captured lives whose sessions are cancelled midway: the sessions are abandoned, and the runs keep their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gaia_sessions
from tests.hook.test_lives import CAPTURES, Life, lives, of_captures, told_once

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

__all__ = ["lives"]  # a fixture

RESUMED = ("resume", "message", "restart", "fork", "compact")
"""Words in the names of captures in which work resumes; cancelled work does not resume."""

UNREPORTED = ("late-hooks", "pre-missing-command")
"""Captures in which a session begins with its end, so it is final before a cancellation."""

CHOSEN = [capture for capture in CAPTURES if not any(word in capture.stem for word in (*RESUMED, *UNREPORTED))]


class CancelledLife(Life):
    """A life in which each session without a parent is cancelled as soon as it exists."""

    def tell(self, payload: dict[str, Any]) -> None:
        super().tell(payload)
        for line in gaia_sessions.list_sessions(active_only=True, root=str(self.root)):
            if "problem" not in line and "parent_id" not in line:
                gaia_sessions.Sessions(str(self.root)).cancel(line["agent_id"], "enough")


def runs_of(life: Life) -> list[list[str]]:
    """The ends of the runs of each record."""
    return sorted([[run.get("end", "") for run in record["runs"]] for record in life.records()])


@of_captures(*CHOSEN)
def test_l17_every_session_of_a_cancelled_tree_is_abandoned_and_its_run_keeps_its_end(
    capture: Path, lives: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = CancelledLife(tmp_path / f"cancelled-{capture.parent.name}-{capture.stem}", monkeypatch)

    life.live(life.lines(capture))

    assert life.errors == []
    assert runs_of(life) == runs_of(told_once(capture, lives))
    for record in life.records():
        is_over = all("ended_at" in run for run in record["runs"])
        assert (record["phase"] == "abandoned") is is_over, record
