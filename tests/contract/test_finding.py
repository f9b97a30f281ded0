"""What every store promises of many records: scan, find."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

from gaia_sessions.runs import agent_alias, delegation_alias

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.shape import Record
    from gaia_sessions.stores.port import Store

    New = Callable[..., Record]

STRANGE = ["", " ", "a.b", "A.B", "../..", "/", "line\nbreak", "ünïcode", "%2f", "%", "x" * 300, "x" * 301, "con", "+"]


def finished(record: Record) -> Record:
    return {**record, "phase": "completed"}


def agree(_found: object) -> bool:
    return True


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


def test_a_scan_of_the_active_leaves_out_none_that_is_not_final(store: Store, new: New) -> None:
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


def test_a_scan_for_a_name_leaves_out_no_active_session_of_that_name(store: Store, new: New) -> None:
    for number, name in enumerate([*STRANGE, "Explore", "explore"]):
        store.create(new(f"agent-{number}", agent_name=name))

    for number, name in enumerate([*STRANGE, "Explore", "explore"]):
        found = dict(store.scan(active_only=True, agent_name=name))
        assert found[f"agent-{number}"] == new(f"agent-{number}", agent_name=name)


def test_a_session_reopened_is_active_again(store: Store, new: New) -> None:
    store.create(new())
    store.change("agent-1", finished)

    reopened = store.change("agent-1", lambda record: {**record, "phase": "approval"})

    assert dict(store.scan(active_only=True)) == {"agent-1": reopened}
    assert dict(store.scan(active_only=True, agent_name="Explore")) == {"agent-1": reopened}


def test_sessions_may_come_and_go_during_a_scan(store: Store, new: New) -> None:
    before = {f"agent-{number}": new(f"agent-{number}") for number in range(10)}
    for record in before.values():
        store.create(record)

    scan = store.scan()
    first, _ = next(scan)
    gone = sorted(before.keys() - {first})[:4]
    for agent_id in gone:
        store.delete(agent_id, agree)
    store.create(new("later"))
    found = {first, *(agent_id for agent_id, _ in scan)}

    assert before.keys() - set(gone) <= found <= {*before, "later"}


def test_a_scan_holds_one_record_at_a_time(store: Store, new: New) -> None:
    """Twelve records of half a megabyte each pass through memory that would not hold them together."""
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


def test_nothing_is_found_by_a_key_nobody_has(store: Store, new_with_run: New) -> None:
    assert store.find(delegation_alias("host", "tool")) is None

    store.create(
        new_with_run("agent-1", host_session_id="host", tool_use_id="tool"), [delegation_alias("host", "tool")]
    )

    assert store.find(delegation_alias("host", "other")) is None
    assert store.find(delegation_alias("other", "tool")) is None
    assert store.find(delegation_alias("tool", "host")) is None
    assert store.find(agent_alias("host", "tool")) is None


def test_a_session_is_found_by_the_key_it_was_created_with(store: Store, new_with_run: New) -> None:
    alias = delegation_alias("host", "tool")

    store.create(new_with_run("agent-1", host_session_id="host", tool_use_id="tool"), [alias])

    assert store.find(alias) == "agent-1"


def test_a_session_is_found_by_a_key_it_was_given_by_a_change(store: Store, new_with_run: New) -> None:
    created = new_with_run("agent-1", host_session_id="host", tool_use_id="tool")
    store.create(created, [delegation_alias("host", "tool")])

    def join(record: Record) -> Record:
        return {**record, "runs": [{**record["runs"][0], "host_agent_id": "child"}]}

    store.change("agent-1", join, aliases=[agent_alias("host", "child")])

    assert store.find(agent_alias("host", "child")) == "agent-1"
    assert store.find(delegation_alias("host", "tool")) == "agent-1"


def test_a_final_session_is_found_by_its_keys(store: Store, new_with_run: New) -> None:
    created = new_with_run("agent-1", host_session_id="host", tool_use_id="tool")
    store.create(created, [delegation_alias("host", "tool")])

    store.change("agent-1", finished)

    assert store.find(delegation_alias("host", "tool")) == "agent-1"


def test_a_deleted_session_is_found_no_more(store: Store, new_with_run: New) -> None:
    created = new_with_run("agent-1", host_session_id="host", tool_use_id="tool", host_agent_id="child")
    aliases = [delegation_alias("host", "tool"), agent_alias("host", "child")]
    store.create(created, aliases)

    store.delete("agent-1", agree)

    assert [store.find(alias) for alias in aliases] == [None, None]


def test_keys_are_told_apart_exactly_whatever_is_in_them(store: Store, new_with_run: New) -> None:
    """By case, by where one part ends and the next begins, by length: no two of them meet."""
    keys = [(one, other) for one in STRANGE for other in STRANGE[:5]]
    for number, (one, other) in enumerate(keys):
        record = new_with_run(f"agent-{number}", host_session_id=one, tool_use_id=other)
        store.create(record, [delegation_alias(one, other)])

    found = [store.find(delegation_alias(one, other)) for one, other in keys]

    assert found == [f"agent-{number}" for number in range(len(keys))]
