"""The connection to the server is cut at each message of each operation: it is done once or not at all."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import Sessions
from gaia_sessions.errors import DurabilityUnknown, SessionsError
from gaia_sessions.postgres.store import PostgresStore
from gaia_sessions.session.updates import Change
from gaia_sessions.store import document_lock_key
from tests.faults.proxy import AFTER, BEFORE, CUTS, Proxy
from tests.servers import empty_url, shared_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Act = Callable[[Sessions], object]

TURN = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "Seen."}]


def _any(_message: bytes) -> bool:
    return True


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    empty_url()
    proxy = Proxy(shared_server().folder)
    yield proxy
    proxy.close()


def direct() -> Sessions:
    return Sessions(shared_server().url)


def _make() -> None:
    sessions = direct()
    sessions.create("worker", agent_id="above")
    sessions.create("worker", agent_id="one", parent_id="above", app="kb", user="u1")


def _count_document(sessions: Sessions) -> None:
    """Counts in a document that no session owns, as every writer of documents does: under the lock of its key."""
    with sessions.store as store, store.lock_key(document_lock_key(("kb",))), store.open("one") as session:
        found = store.document(("kb",))
        state = {"n": found["state"]["n"] + 1 if found else 1}  # type: ignore[operator]  # it is a number
        session.commit(session.record, documents={("kb",): {"scope": ["kb"], "revision": 1, "state": state}})


def _defer(sessions: Sessions) -> None:
    with sessions.store as store:
        store.defer({"kind": "finalize", "at": "2026-01-08T18:05:30Z", "agent_id": "none", "outcome": "failed"}, _now())


def _now() -> datetime:
    return datetime.now(UTC)


def _count(sessions: Sessions) -> None:
    with sessions.store as store:
        store.change("one", lambda record: Change({**record, "purpose": record["purpose"] + "+"}, [{"one": "more"}]))


ACTS: dict[str, Act] = {
    "count": _count,
    "create a child": lambda sessions: sessions.create("worker", parent_id="above"),
    "add to shared keys": lambda sessions: sessions.change_state("one", add={"n": 1, "app:n": 1, "user:n": 1}),
    "write a document under the lock of its key": _count_document,
    "add a turn": lambda sessions: sessions.add_turn("one", TURN),
    "update": lambda sessions: sessions.update("one", "planning"),
    "put an event into the inbox": _defer,
    "remove": lambda sessions: sessions.remove(["one"], force=True),
}

BLOCKS = {*ACTS} - {"count", "put an event into the inbox"}
"""Acts that decide in a block of their own: such a block is not repeated by the store."""


def standing() -> dict[str, object]:
    """What stands in the database, without times and without IDs that were given by chance."""
    store = PostgresStore(shared_server().url)
    records = {record["agent_id"]: record for _, record in store.scan() if not isinstance(record, SessionsError)}
    return {
        "sessions": len(records),
        "children": len(store.children(["above"])),
        "waiting": len(store.waiting()),
        "documents": [document and document["state"] for document in map(store.document, [("kb",), ("kb", "u1")])],
        **{
            agent_id: (
                records[agent_id]["revision"],
                records[agent_id]["purpose"],
                records[agent_id].get("session_state"),
                len(list(store.entries(agent_id, "events.jsonl"))),
                [one if isinstance(one, SessionsError) else one["content"] for one in store.messages(agent_id)],
            )
            for agent_id in ("above", "one")
            if agent_id in records
        },
    }


def outcome_of(act: Act, proxy: Proxy) -> str:
    """``done`` or ``refused``, after a check that this is the truth."""
    before = standing()
    try:
        act(Sessions(proxy.url))
    except DurabilityUnknown as error:
        return f"{error!r} although the server can be asked"
    except SessionsError as error:
        return "refused" if standing() == before else f"{error!r}, but done: {before} {standing()}"
    return "done"


def _expected(act: Act, proxy: Proxy) -> tuple[dict[str, object], int]:
    """What stands after the act without a cut, and how many messages the act sends."""
    empty_url()
    _make()
    proxy.cut(BEFORE, 10**6, _any)
    act(Sessions(proxy.url))
    return standing(), len(proxy.messages)


@pytest.mark.parametrize("moment", CUTS)
@pytest.mark.parametrize("name", ACTS)
def test_an_act_whose_commit_is_cut_is_done_once_or_refused(proxy: Proxy, name: str, moment: str) -> None:
    expected, _ = _expected(ACTS[name], proxy)
    empty_url()
    _make()
    proxy.cut(moment)

    outcome = outcome_of(ACTS[name], proxy)
    assert outcome == "done" or (outcome == "refused" and moment != AFTER and name in BLOCKS), outcome
    assert (outcome == "refused" or standing() == expected, proxy.cuts) == (True, {moment: 1})


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTS)
def test_an_act_that_is_cut_at_any_message_is_done_once_or_refused(proxy: Proxy, name: str) -> None:
    expected, count = _expected(ACTS[name], proxy)
    outcomes = {}
    for moment in CUTS:
        for number in range(1, count + 1):
            empty_url()
            _make()
            proxy.cut(moment, number, _any)
            outcomes[moment, number] = outcome = outcome_of(ACTS[name], proxy)
            assert outcome in {"done", "refused"}, (moment, number, outcome)
            assert outcome == "refused" or standing() == expected, (moment, number)
    assert "done" in outcomes.values()
