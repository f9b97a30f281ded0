"""Contract of single records: create, read, change, ids, has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import InvalidId, InvalidInput, NewerSchema, SessionExists, SessionFinal, SessionNotFound
from gaia_sessions.errors import TooLarge as RecordTooLarge
from gaia_sessions.jsonio import strict
from gaia_sessions.session.record import encode
from tests.contract.conftest import check_missing, everything, never, not_planned, noted, untouched
from tests.removals import deleted
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store
    from tests.contract.conftest import New


def filled_to(size: int, record: Record) -> Record:
    """Returns the record with a purpose that makes its document exactly ``size`` bytes long."""
    rest = size - len(encode({**record, "purpose": ""}))
    return {**record, "purpose": "x" * rest}


def test_a_created_record_is_read_back_with_the_same_keys_in_the_same_order(store: Store, new: New) -> None:
    record = new(
        metadata={"ticket": "T-1", "nested": {"list": [1, 2.5, None, True, "ünïcode \n line"]}},
        purpose="bell \x07 escape \x1b[2J delete \x7f csi \x9b2J",
    )

    store.create(record)

    assert store.read("agent-1") == record
    assert list(store.read("agent-1")) == list(record)


def test_unknown_keys_survive_creation_and_change(store: Store, new: New) -> None:
    store.create(new(hats=["a", {"b": None}]))

    store.change("agent-1", noted)

    assert store.read("agent-1") == new(metadata={"noted": True}, hats=["a", {"b": None}], revision=2)


def test_an_existing_id_cannot_be_created_again_and_its_record_stays(store: Store, new: New) -> None:
    records = {"agent-1": new(purpose="first"), "agent-2": new("agent-2", phase="completed")}
    for agent_id, record in records.items():
        store.create(record)

        with pytest.raises(SessionExists) as refused:
            store.create(new(agent_id, purpose="second"))

        assert refused.value.agent_id == agent_id
    assert everything(store) == records


@not_planned
def test_changing_a_record_in_memory_does_not_change_the_stored_record(store: Store, new: New) -> None:
    record = new(metadata={"list": [1]})
    store.create(record)
    record["metadata"]["list"] = "changed by the caller"
    assert store.read("agent-1") == new(metadata={"list": [1]})
    returned = store.change("agent-1", noted)

    returned["metadata"].clear()
    store.read("agent-1")["metadata"].clear()
    for _ in range(2):
        for _, found in store.scan():
            assert isinstance(found, dict)
            assert found["metadata"] == {"list": [1], "noted": True}
            found["metadata"].clear()

    assert store.read("agent-1") == new(metadata={"list": [1], "noted": True}, revision=2)


def test_an_id_exists_from_creation_to_deletion_and_a_part_of_it_never_does(store: Store, new: New) -> None:
    for agent_id in ("agent-1", "agent-12", "Agent-1"):
        store.create(new(agent_id))
    there = sorted(store.ids())

    deleted(store, "agent-12", lambda _found: True)

    assert there == ["Agent-1", "agent-1", "agent-12"]
    assert sorted(store.ids()) == ["Agent-1", "agent-1"]
    known = {agent_id: store.has(agent_id) for agent_id in ("agent-1", "Agent-1", "agent-12", "agent", "AGENT-1")}
    assert known == {"agent-1": True, "Agent-1": True, "agent-12": False, "agent": False, "AGENT-1": False}
    with pytest.raises(SessionNotFound) as missing:
        store.read("agent-12")
    assert missing.value.agent_id == "agent-12"


def test_a_store_that_was_never_written_to_has_no_sessions(store: Store) -> None:
    assert (store.ids(), store.has("agent-1")) == ([], False)
    check_missing(store, "agent-1")
    assert everything(store) == {}


BAD_IDS = ["", ".", "..", "../agent-1", "/etc/passwd", "a/b", ".locks", "con", "nul.txt", "a.", "a\n", "é", "x" * 129]


@table("bad", BAD_IDS)
def test_every_method_refuses_an_invalid_id(store: Store, new: New, bad: str) -> None:
    if not store.has("agent-1"):
        store.create(new())
    asked: list[Callable[[], object]] = [
        lambda: store.has(bad),
        lambda: store.create(new(bad)),
        lambda: store.read(bad),
        lambda: store.change(bad, never),
        lambda: deleted(store, bad, never),
        lambda: store.append(bad, "events.jsonl", [{}]),
        lambda: list(store.entries(bad, "events.jsonl")),
    ]

    for ask in asked:
        with pytest.raises(InvalidId):
            ask()

    assert everything(store) == {"agent-1": new()}


def test_a_record_at_the_limit_is_stored_and_a_larger_one_leaves_its_id_free(store: Store, new: New) -> None:
    largest = filled_to(strict.DOCUMENT_LIMIT, new())
    store.create(largest)

    with pytest.raises(RecordTooLarge):
        store.create(filled_to(strict.DOCUMENT_LIMIT + 1, new("agent-2")))
    assert everything(store) == {"agent-1": largest}

    store.create(new("agent-2", purpose="small"))
    assert everything(store) == {"agent-1": largest, "agent-2": new("agent-2", purpose="small")}


def test_a_change_is_returned_and_stored_with_the_next_revision(store: Store, new: New) -> None:
    store.create(new())

    returned = store.change("agent-1", noted)

    assert returned == new(metadata={"noted": True}, revision=2)
    assert store.read("agent-1") == returned


def test_every_change_sees_the_result_of_the_change_before(store: Store, new: New) -> None:
    store.create(new(metadata={"seen": []}))

    def see(record: Record) -> Record:
        seen = record["metadata"]["seen"]
        assert isinstance(seen, list)
        return {**record, "metadata": {"seen": [*seen, record["revision"]]}}

    for _ in range(5):
        store.change("agent-1", see)

    assert store.read("agent-1") == new(metadata={"seen": [1, 2, 3, 4, 5]}, revision=6)


def test_a_change_touches_no_other_session(store: Store, new: New) -> None:
    for agent_id in ("agent-1", "agent-2", "agent-3"):
        store.create(new(agent_id))

    store.change("agent-2", noted)

    changed = new("agent-2", metadata={"noted": True}, revision=2)
    assert everything(store) == {"agent-1": new("agent-1"), "agent-2": changed, "agent-3": new("agent-3")}


def test_a_rule_that_returns_its_record_writes_nothing_and_an_equal_copy_is_written(store: Store, new: New) -> None:
    store.create(new())

    assert store.change("agent-1", untouched) == new()
    assert store.read("agent-1") == new()

    store.change("agent-1", lambda record: {**record})

    assert store.read("agent-1") == new(revision=2)


@not_planned
def test_an_error_raised_by_a_rule_passes_through_and_nothing_is_written(store: Store, new: New) -> None:
    store.create(new())
    errors = [LookupError("why"), SessionFinal("agent-1", "failed"), InvalidInput("why"), KeyboardInterrupt()]

    def refuse(record: Record) -> Record:
        record["metadata"]["scribbled"] = True
        raise raised

    for raised in errors:
        with pytest.raises(type(raised)) as passed:
            store.change("agent-1", refuse)

        assert passed.value is raised
        assert everything(store) == {"agent-1": new()}
    assert store.change("agent-1", noted) == new(metadata={"noted": True}, revision=2)


def test_a_record_with_a_newer_schema_is_read_and_never_rewritten(store: Store, new: New) -> None:
    newer = new(schema=2, phase={"what": "only later versions know"})
    store.create(newer)

    with pytest.raises(NewerSchema) as refused:
        store.change("agent-1", never)

    assert (refused.value.agent_id, refused.value.schema) == ("agent-1", 2)
    assert store.read("agent-1") == newer
    assert everything(store) == {"agent-1": newer}


def test_a_change_that_is_too_large_or_unreadable_is_refused_and_the_record_stays(store: Store, new: New) -> None:
    store.create(new())

    for purpose in ("half of a pair \ud800", "a NUL \0"):
        with pytest.raises(InvalidInput):
            store.change("agent-1", lambda record: {**record, "purpose": purpose})  # noqa: B023  # called at once
    with pytest.raises(RecordTooLarge):
        store.change("agent-1", lambda record: filled_to(strict.DOCUMENT_LIMIT + 1, record))

    assert everything(store) == {"agent-1": new()}
