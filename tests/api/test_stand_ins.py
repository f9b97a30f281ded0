"""Stand-ins in files for sessions on a server, and what is below them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions
from gaia_sessions.api import at, stand_ins
from gaia_sessions.errors import SessionExists
from gaia_sessions.runner.stand_in import StandIn
from gaia_sessions.session.record import new_record
from gaia_sessions.system import utc_now
from gaia_sessions.system.project_root import FILES_VARIABLE
from tests.servers import empty_url

if TYPE_CHECKING:
    from pathlib import Path

    from gaia_sessions.session.schema import Record, Run

NOW = utc_now()


@pytest.fixture
def files(tmp_path: Path) -> Sessions:
    return Sessions(str(tmp_path / "files"))


def on_server(agent_id: str = "outer", hours: float = 0, **keys: Any) -> Record:
    """A record of a session on a server that was created some ``hours`` ago."""
    record = new_record(agent_id, "reviewer", "auth", {}, NOW - timedelta(hours=hours))
    return {**record, **keys}  # type: ignore[typeddict-item]  # keys of a record


def put(files: Sessions, *family: Record) -> None:
    at.write(files, stand_ins.put, family)


def stored(files: Sessions, agent_id: str = "outer") -> Any:
    return files.get(agent_id)


def with_run_below(files: Sessions, agent_id: str) -> None:
    files.create("Explore", agent_id=agent_id, parent_id="outer")
    run: Run = {"run": 1, "host": "claude-code", "started_at": stored(files)["last_updated"]}
    with files.store as store:
        store.change(agent_id, lambda record: {**record, "runs": [run]})


def test_a_stand_in_has_what_limits_and_places_the_agents_below(files: Sessions) -> None:
    put(files, on_server("top", max_depth=3), on_server(parent_id="top", allowed_tools=["Read"], max_tokens=5))

    names = ("stand_in", "phase", "parent_id", "max_depth", "allowed_tools", "max_tokens")
    found = {one: {name: record[name] for name in names if name in record} for one, record in records(files).items()}
    assert found == {
        "top": {"stand_in": True, "phase": "completed", "max_depth": 3},
        "outer": {"stand_in": True, "phase": "completed", "parent_id": "top", "allowed_tools": ["Read"]},
    }


def records(files: Sessions) -> dict[str, Any]:
    return {agent_id: stored(files, agent_id) for agent_id in ("top", "outer")}


def test_a_stand_in_that_is_there_counts_as_used_now(files: Sessions) -> None:
    put(files, on_server(hours=2))
    with files.store as store:
        store.change("outer", lambda record: {**record, "last_updated": record["created_at"]})
    put(files, on_server(hours=2))

    assert stored(files)["last_updated"] > stored(files)["created_at"]


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["made anew", "cancelled"])
def test_a_stand_in_that_is_cancelled_or_of_an_earlier_session_is_replaced(
    files: Sessions, *, is_cancelled: bool
) -> None:
    put(files, on_server(hours=2))
    files.create("Explore", agent_id="below", parent_id="outer")
    if is_cancelled:
        files.cancel("outer")
    put(files, on_server(hours=2 if is_cancelled else 1))

    assert files.cancellation("outer") is None
    assert (files.cancellation("below") is not None) == is_cancelled
    assert [line["agent_id"] for line in files.children("outer")] == ["below"]


def test_another_session_with_the_id_is_left_alone_and_a_copy_of_the_session_serves(files: Sessions) -> None:
    files.create("mine", agent_id="outer")
    before = stored(files)
    with pytest.raises(SessionExists):
        put(files, on_server(hours=2))
    put(files, {**on_server(), "created_at": before["created_at"]})  # it was imported from here

    assert stored(files) == before


def test_only_agents_that_began_in_the_run_are_summed_up(files: Sessions) -> None:
    put(files, on_server())
    with_run_below(files, "a1")
    files.create("Explore", agent_id="never-ran", parent_id="outer")
    put(files, on_server(), on_server("nested", parent_id="outer"))

    assert at.read(files, stand_ins.below, "outer", NOW)["agents"] == 1
    assert at.read(files, stand_ins.below, "outer", NOW + timedelta(hours=1)) == {"agents": 0, "states": {}}


def test_only_a_stand_in_with_nothing_below_is_removed(files: Sessions) -> None:
    put(files, on_server())
    files.create("Explore", agent_id="below", parent_id="outer")
    for agent_id in ("outer", "below", "nobody"):
        at.write(files, stand_ins.remove_if_alone, agent_id)
    assert (stored(files)["stand_in"], stored(files, "below") is None) == (True, False)

    files.remove(["below"], force=True)
    at.write(files, stand_ins.remove_if_alone, "outer")
    assert stored(files) is None


def test_the_wrapper_puts_cancels_and_ends_a_stand_in(files: Sessions, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    server = Sessions(empty_url())
    server.create("reviewer", agent_id="outer")
    server.cancel("outer", "wrong branch")
    with server.store as store:
        record = store.read("outer")
    run: Any = {"run": 1, "started_at": record["created_at"], "wrapper": {}}
    told: list[tuple[str, str]] = []
    stand_in = StandIn(server, {**record, "runs": [run]}, {FILES_VARIABLE: files.root}, has_client=False)

    stand_in.put(lambda event, fact="": told.append((event, fact)))  # type: ignore[arg-type]  # a teller
    with_run_below(files, "a1")
    stand_in.cancel({"at": record["created_at"], "reason": "wrong branch"})
    mark: Any = files.cancellation("a1")
    below: Any = stand_in.end(None)

    assert (told, mark["by"], mark["reason"]) == ([], "outer", "wrong branch")
    assert below["agents"] == 1
