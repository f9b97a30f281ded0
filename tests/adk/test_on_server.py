"""The session service on a server: many conversations at once, lost connections, and connections given back."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from google.adk.errors import StaleSessionError
from google.adk.errors.session_not_found_error import SessionNotFoundError

from gaia_sessions.errors import StoreFailure
from gaia_sessions.postgres.connections import _MOST_CONNECTIONS
from tests.adk.parts import PATIENCE, Adk, run, said
from tests.servers import Cut, cut_connections, empty_url, shared_server

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from gaia_sessions.adk import GaiaSessionService


CONVERSATIONS = 16


@pytest.fixture
def url() -> str:
    return empty_url()


@pytest.fixture
def adk(url: str) -> Adk:
    return Adk(url)


def connections(url: str) -> int:
    """How many connections of ours the server has."""
    ask = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'gaia-sessions'"
    with psycopg.connect(url, autocommit=True) as connection:
        [[number]] = connection.execute(ask)
    return int(number)


def run_in_threads(work: Coroutine[Any, Any, None]) -> None:
    """Runs ``work`` with more threads than there are connections."""

    async def with_threads() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(CONVERSATIONS))
        await work

    run(with_threads())


async def incremented(service: GaiaSessionService, session_id: str) -> None:
    """Adds one to a key of the session, of its user and of its app; loads and tries again if the session is stale."""
    who: dict[str, Any] = {"app_name": "app", "user_id": "u1", "session_id": session_id}
    while True:
        session = await service.get_session(**who)
        assert session is not None
        delta = {key: session.state.get(key, 0) + 1 for key in ("n", "app:n", "user:n")}
        try:
            await service.append_event(session, said(delta=delta))
        except StaleSessionError:
            continue
        return


def test_no_increment_of_many_conversations_at_once_is_lost_and_few_connections_are_open(url: str, adk: Adk) -> None:
    most = 0

    async def converse() -> None:
        nonlocal most
        ids = [f"s{number}" for number in range(CONVERSATIONS)]
        for session_id in ids:
            await adk.service.create_session(app_name="app", user_id="u1", session_id=session_id)
        work = asyncio.gather(*(incremented(adk.service, session_id) for session_id in ids for _ in range(2)))
        while not work.done():
            most = max(most, await asyncio.to_thread(connections, url))
        await work

    run_in_threads(converse())
    assert 1 < most <= _MOST_CONNECTIONS
    states = [adk.loaded(f"s{number}").state for number in range(CONVERSATIONS)]
    assert states == [{"n": 2, "app:n": 2 * CONVERSATIONS, "user:n": 2 * CONVERSATIONS}] * CONVERSATIONS
    check_all_connections_end(url)


def check_all_connections_end(url: str) -> None:
    end = time.monotonic() + PATIENCE
    while connections(url):
        assert time.monotonic() < end
        time.sleep(0.05)


def create(adk: Adk, session_id: str) -> None:
    assert adk.create(session_id, n=1, app__n=1).state["app:n"] == 1


def append(adk: Adk, session_id: str) -> None:
    session = adk.loaded(f"{session_id} before")
    adk.append(session, said("hello", n=1, app__n=2, user__n=3))
    again = adk.loaded(f"{session_id} before")
    assert (again, again.state) == (session, {"n": 1, "app:n": 2, "user:n": 3})


def delete(adk: Adk, session_id: str) -> None:
    adk.delete(f"{session_id} before")
    assert adk.get(f"{session_id} before") is None


@pytest.mark.parametrize("act", [create, append, delete])
def test_a_call_takes_effect_once_if_the_connection_is_cut_before_any_statement(
    url: str, adk: Adk, monkeypatch: pytest.MonkeyPatch, act: Callable[[Adk, str], None]
) -> None:
    for number in count():
        adk.create(f"{number} before")
        with monkeypatch.context() as patch:
            cut = Cut(patch, url, number)
            act(adk, str(number))
        if not cut.was_made:
            break
        adk.delete(f"{number} before")
    assert number > 1


def test_no_increment_is_lost_or_doubled_while_connections_are_cut_again_and_again(url: str, adk: Adk) -> None:
    async def converse() -> None:
        ids = [f"s{number}" for number in range(4)]
        for session_id in ids:
            await adk.service.create_session(app_name="app", user_id="u1", session_id=session_id)
        work = asyncio.gather(*(incremented(adk.service, session_id) for session_id in ids for _ in range(5)))
        while not work.done():
            await asyncio.to_thread(cut_connections, url)
            await asyncio.sleep(0.05)
        await work

    run_in_threads(converse())
    assert [adk.loaded(f"s{number}").state for number in range(4)] == [{"n": 5, "app:n": 20, "user:n": 20}] * 4


def test_a_session_that_is_deleted_during_an_append_is_gone(url: str, adk: Adk) -> None:
    async def delete_while_appending() -> None:
        who: dict[str, Any] = {"app_name": "app", "user_id": "u1", "session_id": "s1"}
        for _ in range(20):
            session = await adk.service.create_session(**who)
            appending = adk.service.append_event(session, said("hello", n=1, app__n=1))
            [appended, deleted] = await asyncio.gather(
                appending, adk.service.delete_session(**who), return_exceptions=True
            )
            assert deleted is None
            assert not isinstance(appended, BaseException) or isinstance(appended, SessionNotFoundError)
            assert await adk.service.get_session(**who) is None

    run(delete_while_appending())
    check_all_connections_end(url)


def test_cancelled_calls_give_their_connections_back(url: str, adk: Adk) -> None:
    adk.create("s1")

    async def cancel_all() -> None:
        who: dict[str, Any] = {"app_name": "app", "user_id": "u1"}
        for number in range(40):
            calls: list[Coroutine[Any, Any, object]] = [
                adk.service.get_session(**who, session_id="s1"),
                adk.service.create_session(**who, session_id=f"n{number}", state={"app:n": number}),
                adk.service.list_sessions(**who),
                adk.service.delete_session(**who, session_id=f"n{number - 1}"),
            ]
            started = [asyncio.create_task(one) for one in calls]
            await asyncio.sleep(number % 4 * 0.002)
            for task in started:
                task.cancel()
            await asyncio.gather(*started, return_exceptions=True)

    run(cancel_all())
    check_all_connections_end(url)
    assert adk.create("s2", app__n=-1).state["app:n"] == -1


@pytest.mark.slow
def test_a_call_waits_for_a_server_that_restarts_and_fails_with_our_error_if_it_stays_away(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, adk = shared_server(), Adk(url)
    session = adk.create("s1")

    async def append_while_stopped() -> None:
        server.stop("immediate")
        appending = asyncio.create_task(adk.service.append_event(session, said("hello", n=1)))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(server.start)
        await appending

    run(append_while_stopped())
    assert adk.loaded() == session
    monkeypatch.setenv("GAIA_SESSIONS_LOCK_TIMEOUT", "0.1")
    impatient = Adk(url)
    server.stop()
    try:
        acts: list[Callable[[], object]] = [
            lambda: impatient.get("s1"),
            lambda: impatient.create("s2"),
            lambda: impatient.append(session, said("late")),
            lambda: impatient.delete("s1"),
            impatient.ids,
        ]
        for act in acts:
            with pytest.raises(StoreFailure):
                act()
    finally:
        server.start()
    assert adk.loaded() == session
