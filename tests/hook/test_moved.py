"""Hooks beside a move of their sessions to a server: nothing disturbs the host, or changes a moved session."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions
from gaia_sessions.session.runs import aliases_of
from gaia_sessions.store.settled import settled
from tests.hook.conftest import ASKS
from tests.servers import empty_url

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hook.conftest import Host


@pytest.fixture
def url() -> str:
    return empty_url()


def test_a_session_that_a_hook_paused_moves_and_late_events_of_its_agent_are_silent(host: Host, url: str) -> None:
    agent_id = host.work()
    host.stop(message=ASKS)
    root = str(host.root)
    assert Sessions(root).copy_to(url)["moved"] == [agent_id]
    moved = Sessions(url).get(agent_id)

    host.stop(message="Done after all.")
    host.hear(host.starting("a1"))
    host.hear(host.starting("a2"))

    assert Sessions(url).get(agent_id) == moved
    assert agent_id not in host.records()


def test_after_a_move_back_the_events_of_its_agent_change_the_session(host: Host, url: str, tmp_path: Path) -> None:
    agent_id = host.work()
    host.stop(message=ASKS)
    for source, target in ((str(host.root), url), (url, str(tmp_path / "new"))):
        Sessions(source).copy_to(target)
        with Sessions(target).store as store:
            found = [[one["agent_id"] for one in store.having(alias)] for alias in aliases_of(store.read(agent_id))]
        assert found == [[agent_id]] * len(found)
        assert found
    shutil.rmtree(host.root)
    shutil.move(tmp_path / "new", host.root)

    host.hear(host.starting("a1"))
    host.stop(message="Done after all.")

    record = host.records()[agent_id]
    assert (record["phase"], record["runs"][-1]["last_message"]) == ("completed", "Done after all.")
    assert [*host.records()] == [agent_id]


def test_an_event_of_a_session_that_is_being_moved_gets_a_session_of_its_own(host: Host, url: str) -> None:
    agent_id = host.work()
    host.stop(message=ASKS)
    root = str(host.root)
    moving: Any = {"source": root, "target": url, "token": "t"}
    with Sessions(root).store as store, store.open(agent_id) as session, Sessions(url).store as there:
        session.set_moving(moving)
        files = store.files(agent_id)
        there.put(agent_id, {"state.json": files["state.json"], **settled(store.read(agent_id), files)})

    host.stop(message="Done after all.")

    [new] = host.records().keys() - {agent_id}
    assert host.records()[new]["runs"][0]["last_message"] == "Done after all."
    report = Sessions(root).copy_to(url)
    assert (report["moved"], report["copied"], report["failed"]) == ([agent_id], [new], [])
    assert (host.records()[new]["phase"], Sessions(url).show(agent_id)["phase"]) == ("completed", "approval")
