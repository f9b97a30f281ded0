"""Trees: many processes at once change what is above or below one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gaia_sessions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Start = Callable[..., Any]


def test_l19_of_eight_processes_that_begin_a_child_at_once_five_do(race: Start, tmp_path: Path) -> None:
    """L19: all or nothing, and nobody is refused who has a place."""
    root = str(tmp_path / "root")
    parent_id = gaia_sessions.create_session(root=root)

    told = race([["creates_below", root, parent_id]] * 8).results()

    created = sorted(one for one in told if one != "too many")
    assert (len(created), told.count("too many")) == (5, 3)
    assert sorted(line["agent_id"] for line in gaia_sessions.session_children(parent_id, root=root)) == created
