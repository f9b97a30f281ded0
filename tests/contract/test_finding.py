"""Contract of searches: scan, find, having."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any, cast

from gaia_sessions.session.runs import agent_alias, delegation_alias
from tests.contract.conftest import STATES, agree, bring_into, finished, in_every_state, noted
from tests.records import id_found
from tests.removals import deleted

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store
    from tests.contract.conftest import New


STRANGE = ["", " ", "a.b", "A.B", "../..", "/", "line\nbreak", "ünïcode", "%2f", "%", "x" * 300, "x" * 301, "con", "+"]


def test_a_scan_of_an_empty_store_yields_nothing(store: Store) -> None:
    assert list(store.scan()) == []
    assert list(store.scan(active_only=True)) == []
    assert list(store.scan(active_only=True, agent_name="Explore")) == []


def test_a_scan_yields_every_session_once_with_its_record(store: Store, new: New) -> None:
    records = {f"agent-{number}": new(f"agent-{number}", metadata={"number": number}) for number in range(20)}
    for record in records.values():
        store.create(record)

    found = list(store.scan())

    assert len(found) == len(records)
    assert dict(found) == records


def test_a_scan_for_active_sessions_omits_no_open_session(store: Store, new: New) -> None:
    everything = {}
    phases = ["initializing", "investigating", "planning", "approval", "executing", "validating", "failed"]
    for number, phase in enumerate(phases):
        everything[f"agent-{number}"] = new(f"agent-{number}", phase=phase)
    everything["newer"] = new("newer", schema=2, phase="resting")
    for record in everything.values():
        store.create(record)
    everything["agent-1"] = store.change("agent-1", finished)

    found = dict(store.scan(active_only=True))

    still_open = {"agent-0", "agent-2", "agent-3", "agent-4", "agent-5", "newer"}
    assert still_open <= found.keys() <= everything.keys()
    assert found == {agent_id: everything[agent_id] for agent_id in found}


def test_a_scan_for_an_agent_name_omits_no_active_session_of_that_agent(store: Store, new: New) -> None:
    for number, name in enumerate([*STRANGE, "Explore", "explore"]):
        store.create(new(f"agent-{number}", agent_name=name))

    for number, name in enumerate([*STRANGE, "Explore", "explore"]):
        found = dict(store.scan(active_only=True, agent_name=name))
        assert found[f"agent-{number}"] == new(f"agent-{number}", agent_name=name)


def test_a_reopened_session_is_active_again(store: Store, new: New) -> None:
    store.create(new())
    store.change("agent-1", finished)

    reopened = store.change("agent-1", lambda record: {**record, "phase": "approval"})

    assert dict(store.scan(active_only=True)) == {"agent-1": reopened}
    assert dict(store.scan(active_only=True, agent_name="Explore")) == {"agent-1": reopened}


def test_sessions_may_be_created_and_deleted_during_a_scan(store: Store, new: New) -> None:
    before = {f"agent-{number}": new(f"agent-{number}") for number in range(10)}
    for record in before.values():
        store.create(record)

    scan = store.scan()
    first, _ = next(scan)
    gone = sorted(before.keys() - {first})[:4]
    for agent_id in gone:
        deleted(store, agent_id, agree)
    store.create(new("later"))
    found = {first, *(agent_id for agent_id, _ in scan)}

    assert before.keys() - set(gone) <= found <= {*before, "later"}


def test_each_session_may_be_written_during_a_scan(store: Store, new: New) -> None:
    for number in range(5):
        store.create(new(f"agent-{number}"))

    scanned = [(agent_id, store.change(agent_id, noted, timeout=0)) for agent_id, _ in store.scan(active_only=True)]

    changed = {f"agent-{number}": new(f"agent-{number}", {"noted": True}, revision=2) for number in range(5)}
    assert (len(scanned), dict(scanned), dict(store.scan())) == (5, changed, changed)


def test_a_scan_does_not_hold_all_records_in_memory(store: Store, new: New) -> None:
    """The scan of twelve records of half a mebibyte uses less memory than eight of them."""
    size = 1 << 19
    for number in range(12):
        store.create(new(f"agent-{number}", purpose="x" * size))

    tracemalloc.start()
    try:
        count = sum(1 for _ in store.scan())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert count == 12
    assert peak < 8 * size


def test_a_key_that_no_session_has_finds_nothing(store: Store, new_with_run: New) -> None:
    assert id_found(store, delegation_alias("host", "tool")) is None

    store.create(new_with_run("agent-1", host_session_id="host", tool_use_id="tool"))

    assert id_found(store, delegation_alias("host", "other")) is None
    assert id_found(store, delegation_alias("other", "tool")) is None
    assert id_found(store, delegation_alias("tool", "host")) is None
    assert id_found(store, agent_alias("host", "tool")) is None


def test_an_open_or_final_session_is_found_by_each_of_its_keys_until_deletion(store: Store, new_with_run: New) -> None:
    delegation, agent = delegation_alias("host", "tool"), agent_alias("host", "child")

    def join(record: Record) -> Record:
        return {**record, "runs": [{**record["runs"][0], "host_agent_id": "child"}]}

    store.create(new_with_run("agent-1", host_session_id="host", tool_use_id="tool"))
    assert (store.find(delegation), store.find(agent)) == (store.read("agent-1"), None)

    for change in (join, finished):
        store.change("agent-1", change)
        assert [id_found(store, alias) for alias in (delegation, agent)] == ["agent-1", "agent-1"]

    deleted(store, "agent-1", agree)
    assert [id_found(store, alias) for alias in (delegation, agent)] == [None, None]


def test_having_returns_all_sessions_with_a_key(store: Store, new_with_run: New, new: New) -> None:
    key = delegation_alias("s", "t")
    assert store.having(key) == []
    for number in range(3):
        store.create(new_with_run(f"agent-{number}", host_session_id="s", tool_use_id="t"))
    store.create(new("other"))
    for _ in in_every_state(store):
        assert sorted(record["agent_id"] for record in store.having(key)) == ["agent-0", "agent-1", "agent-2"]


def test_a_session_is_not_found_by_the_keys_of_dropped_runs(store: Store, new: New) -> None:
    ended = {"ended_at": "2026-01-08T18:05:30.123456Z", "end": "stopped", "host_session_id": "h"}
    runs = [{"run": number, "tool_use_id": f"t{number}", "host_agent_id": "a", **ended} for number in range(1, 51)]
    store.create(new(runs=runs))
    store.create(new("agent-2", runs=[{"run": 1, "tool_use_id": "t1", **ended}]))
    last: Any = {"run": 51, "tool_use_id": "t51", **ended}

    kept = store.change("agent-1", lambda record: {**record, "runs": [*record["runs"], last]})

    assert (len(kept["runs"]), kept["runs_dropped"]) == (50, 1)
    assert store.read("agent-1") == kept
    assert id_found(store, delegation_alias("h", "t1")) == "agent-2"
    assert {id_found(store, delegation_alias("h", f"t{number}")) for number in range(2, 52)} == {"agent-1"}
    deleted(store, "agent-2", agree)
    assert id_found(store, delegation_alias("h", "t1")) is None
    assert id_found(store, agent_alias("h", "a")) == "agent-1"


def test_keys_with_strange_characters_are_distinguished_exactly(store: Store, new_with_run: New) -> None:
    """Keys that differ in case, length or the border between their parts are different."""
    keys = [(one, other) for one in STRANGE for other in STRANGE[:5]]
    for number, (one, other) in enumerate(keys):
        record = new_with_run(f"agent-{number}", host_session_id=one, tool_use_id=other)
        store.create(record)

    found = [id_found(store, delegation_alias(one, other)) for one, other in keys]

    assert found == [f"agent-{number}" for number in range(len(keys))]


def test_a_key_of_several_sessions_finds_the_newest_even_if_an_older_was_written_last(
    store: Store, new_with_run: New
) -> None:
    """An agent that is woken after its work has ended gets a new session. Its events belong to that session."""
    alias = agent_alias("host", "child")
    older = new_with_run("older", host_session_id="host", host_agent_id="child")
    newer = {**older, "agent_id": "newer", "created_at": "2026-01-08T19:00:00.000000Z"}
    oldest = {**older, "agent_id": "oldest", "created_at": "2026-01-08T20:00:00+03:00"}
    for state in STATES:
        for record in (older, newer, oldest):
            store.create(cast("Record", record))
        store.change("older", finished)
        bring_into(store, state)

        for found in ("newer", "older", "oldest"):
            assert id_found(store, alias) == found
            assert deleted(store, found, agree)
        assert id_found(store, alias) is None


def test_a_key_of_sessions_created_at_the_same_time_always_finds_the_same_session(
    store: Store, new_with_run: New
) -> None:
    alias = agent_alias("host", "child")
    for agent_id in ("b", "c", "a"):
        store.create(new_with_run(agent_id, host_session_id="host", host_agent_id="child"))
    for _ in in_every_state(store):
        assert id_found(store, alias) == "c"


def test_a_key_that_the_newest_session_loses_finds_the_older_session(store: Store, new_with_run: New) -> None:
    alias = agent_alias("host", "child")
    for agent_id, created in (("first", "2026-01-08T18:00:00.000000Z"), ("later", "2026-01-08T19:00:00.000000Z")):
        record = new_with_run(agent_id, host_session_id="host", host_agent_id="child")
        store.create(cast("Record", {**record, "created_at": created}))

    store.change("later", lambda record: {**record, "runs": [{"run": 1, "host_session_id": "host"}]})
    for _ in in_every_state(store):
        assert id_found(store, alias) == "first"


def test_a_scan_for_a_conversation_omits_no_open_session_that_its_end_concerns(store: Store, new: New) -> None:
    ended = {"ended_at": "2026-01-08T18:30:00.000000Z", "end": "stopped"}
    here: dict[str, object] = {"host_session_id": "here"}
    elsewhere: dict[str, object] = {"host_session_id": "elsewhere"}
    runs_of: dict[str, list[dict[str, object]]] = {
        "at work": [here],
        "rests": [{**here, **ended}],
        "works here still": [here, elsewhere],
        "waits for both": [here, {**elsewhere, **ended}],
        "went elsewhere": [{**here, **ended}, elsewhere],
        "never here": [elsewhere],
        "finished": [here],
    }
    ids = {name: name.replace(" ", "-") for name in runs_of}
    for name, runs in runs_of.items():
        store.create(new(ids[name], runs=[{"run": number, **run} for number, run in enumerate(runs, 1)]))
    store.create(new("without-runs"))
    store.change("finished", finished)
    for _ in in_every_state(store):
        found = dict(store.scan(active_only=True, host_session_id="here"))
        concerned = {ids[name] for name in ("at work", "rests", "works here still", "waits for both")}
        assert concerned <= found.keys() <= {*ids.values(), "without-runs"}
        assert found == {agent_id: store.read(agent_id) for agent_id in found}


def test_a_session_belongs_to_the_conversations_of_its_last_write(store: Store, new: New) -> None:
    def concerned(host_session_id: str) -> list[str]:
        return [agent_id for agent_id, _ in store.scan(active_only=True, host_session_id=host_session_id)]

    def with_another_run(record: Record) -> Record:
        ended: Run = {**record["runs"][0], "ended_at": "2026-01-08T18:30:00.000000Z", "end": "stopped"}
        return {**record, "runs": [ended, {"run": 2, "host_session_id": "second"}]}

    store.create(new(runs=[{"run": 1, "host_session_id": "first"}]))
    assert (concerned("first"), concerned("second")) == (["agent-1"], [])

    store.change("agent-1", with_another_run)
    assert (concerned("first"), concerned("second")) == ([], ["agent-1"])

    store.change("agent-1", finished)
    assert (concerned("first"), concerned("second")) == ([], [])

    store.change("agent-1", lambda record: {**record, "phase": "planning"})
    assert (concerned("first"), concerned("second")) == ([], ["agent-1"])

    deleted(store, "agent-1", agree)
    assert (concerned("first"), concerned("second")) == ([], [])


def test_conversations_with_strange_ids_are_distinguished_exactly(store: Store, new: New) -> None:
    for number, host_session_id in enumerate(STRANGE):
        store.create(new(f"agent-{number}", runs=[{"run": 1, "host_session_id": host_session_id}]))

    for number, host_session_id in enumerate(STRANGE):
        found = [agent_id for agent_id, _ in store.scan(active_only=True, host_session_id=host_session_id)]
        assert found == [f"agent-{number}"]
