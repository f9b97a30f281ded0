"""An operation on a server whose connection is lost is repeated, unless something of it is written."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions, SubAgentSession
from gaia_sessions.api import at
from gaia_sessions.errors import NotWritten
from gaia_sessions.postgres import schema
from gaia_sessions.postgres.connections import server_of
from tests.servers import Cut, cut_connections, empty_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def sessions() -> Sessions:
    return Sessions(empty_url())


def roles(sessions: Sessions, agent_id: str) -> list[str]:
    return [one["role"] for one in sessions.messages(agent_id) if isinstance(one, dict)]


def check_state(sessions: Sessions, agent_id: str) -> None:
    sessions.change_state(agent_id, add={"n": 1, "app:n": 1, "user:n": 1}, unset=iter(["old"]))
    assert sessions.state(agent_id)["state"] == {"n": 1, "app:n": 1, "user:n": 1}


def check_turn(sessions: Sessions, agent_id: str) -> None:
    said: Iterator[dict[str, str]] = ({"role": role, "content": "x"} for role in ("user", "assistant"))
    assert sessions.add_turn(agent_id, said)["turn"] == 1
    assert roles(sessions, agent_id) == ["user", "assistant"]


def check_child(sessions: Sessions, agent_id: str) -> None:
    child = sessions.create("child", parent_id=agent_id)
    assert [one["agent_id"] for one in sessions.children(agent_id)] == [child]


def check_removal(sessions: Sessions, agent_id: str) -> None:
    assert [one["agent_id"] for one in sessions.remove(iter([agent_id]), force=True)] == [agent_id]
    assert agent_id in [line["agent_id"] for line in sessions.store.figures() if line]


def check_send(sessions: Sessions, agent_id: str) -> None:
    talk = SubAgentSession(lambda messages: f"answer {len(messages)}", agent_id=agent_id, root=sessions.root)
    assert talk.send("hello")["text"] == "answer 1"
    assert roles(sessions, agent_id) == ["user", "assistant"]
    [run] = sessions.store.read(agent_id)["runs"]
    assert run["end"] == "returned"


@pytest.mark.parametrize("check", [check_state, check_turn, check_child, check_removal, check_send])
def test_an_operation_takes_effect_once_if_the_connection_is_cut_before_any_statement(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch, check: Callable[[Sessions, str], None]
) -> None:
    for number in count():
        user = f"u{number}"
        agent_id = sessions.create("root", app=f"app{number}", user=user, state={"old": 1})
        with monkeypatch.context() as patch:
            cut = Cut(patch, sessions.root, number)
            check(sessions, agent_id)
        if not cut.was_made:
            break
    assert number > 1


def test_the_first_write_of_a_process_looks_at_the_version_again_if_the_connection_is_cut(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_id = sessions.create("root")
    server_of(sessions.root)._checked = float("-inf")
    cut = Cut(monkeypatch, sessions.root, 0, schema)
    sessions.store.change(agent_id, lambda record: {**record, "purpose": "written"})
    assert cut.was_made
    assert sessions.store.read(agent_id)["purpose"] == "written"


def test_an_operation_that_has_written_something_is_not_repeated(sessions: Sessions) -> None:
    agent_id = sessions.create("root")

    def add_two(writing: Any) -> None:
        writing.change(agent_id, lambda record, _: {**record, "metadata": {"calls": str(len(calls))}})
        calls.append(1)
        with writing.store.open(agent_id) as session:
            cut_connections(sessions.root)
            session.commit({**session.record, "purpose": "not written"})

    calls: list[int] = []
    with pytest.raises(NotWritten):
        at.write(sessions, add_two)
    assert (calls, sessions.store.read(agent_id)["metadata"]) == ([1], {"calls": "0"})
    assert sessions.store.read(agent_id)["purpose"] != "not written"


def test_an_operation_is_repeated_until_the_store_would_not_wait_for_a_lock(sessions: Sessions) -> None:
    agent_id = sessions.create("root")
    impatient = Sessions(sessions.root, {"lock_timeout": 0.2})

    def always_cut(writing: Any) -> None:
        with writing.store.open(agent_id) as session:
            cut_connections(sessions.root)
            calls.append(1)
            session.commit({**session.record, "purpose": "not written"})

    calls: list[int] = []
    with pytest.raises(NotWritten, match="nothing is written"):
        at.write(impatient, always_cut)
    assert len(calls) > 1
