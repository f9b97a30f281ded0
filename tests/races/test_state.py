"""Many processes change the state of one session, one app and one user: no acknowledged change is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Callable

    Start = Callable[..., Any]

SIZES = [(3, 8), pytest.param(8, 50, marks=pytest.mark.slow)]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_LOCK_TIMEOUT", "120")
    monkeypatch.setenv("GAIA_SESSIONS_DURABILITY", "fast")


@pytest.mark.parametrize(("processes", "times"), SIZES)
def test_no_state_key_that_many_processes_set_is_lost(root: str, race: Start, processes: int, times: int) -> None:
    agent_id = Sessions(root).create()
    race([("sets_keys", root, agent_id, number, times) for number in range(processes)]).results()
    expected = {f"key.{number}.{turn}": turn for number in range(processes) for turn in range(times)}
    found = Sessions(root).state(agent_id)
    assert (found["state"], found["revision"]) == (expected, processes * times + 1)


@pytest.mark.parametrize(("processes", "times"), [(4, 8), *SIZES[1:]])
def test_increments_of_own_and_shared_keys_by_many_processes_are_exact(
    root: str, race: Start, processes: int, times: int
) -> None:
    sessions = Sessions(root)
    two = [sessions.create(app="kb", user="u1") for _ in range(2)]
    race([("counts", root, two[number % 2], times) for number in range(processes)]).results()
    every = processes * times
    for agent_id in two:
        expected = {"plain": every // 2, "app:n": every, "user:n": 2 * every}
        assert sessions.state(agent_id)["state"] == expected


@pytest.mark.parametrize(("processes", "times"), SIZES[:1])
def test_concurrent_app_events_count_exactly_because_overtaken_writers_are_refused(
    root: str, race: Start, processes: int, times: int
) -> None:
    sessions = Sessions(root)
    agent_id = sessions.create(app="kb", user="u1")
    race([("adds_events", root, agent_id, times)] * processes).results()
    every = processes * times
    assert sessions.state(agent_id)["state"] == {"n": every, "app:n": every}
    assert len(list(sessions.messages(agent_id))) == every
