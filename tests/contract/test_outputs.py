"""Contract of the output of runs: open_output, output, output_path."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import InvalidId, SessionNotFound
from tests.contract.conftest import not_planned
from tests.removals import deleted
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.store.port import Store
    from tests.contract.conftest import New

pytestmark = not_planned


LATER = "2026-01-09T00:00:00.000000Z"
MIB = 1 << 20
SIZES = [0, 1, MIB - 1, MIB, MIB + 1, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 3 * MIB - 1, 3 * MIB, 3 * MIB + 1, 5 * MIB + 7]


def numbered(size: int) -> bytes:
    """Returns ``size`` bytes without repeated pieces."""
    return _numbered()[:size]


@cache
def _numbered() -> bytes:
    return b"".join(b"%015d\n" % number for number in range(6 * MIB // 16))


def kept(written: bytes) -> bytes:
    left_out = len(written) - 2 * MIB
    if left_out <= 0:
        return written
    return b"%b\n[gaia-sessions: %d bytes left out]\n%b" % (written[:MIB], left_out, written[-MIB:])


@table("piece", [99_983, 16 * MIB])
@table("size", SIZES)
def test_the_first_and_last_mebibyte_are_stored_with_the_number_of_bytes_left_out(
    store: Store, new: New, size: int, piece: int
) -> None:
    agent_id = f"agent-{size}-{piece}"
    store.create(new(agent_id))
    written = numbered(size)

    output = store.open_output(store.read(agent_id), 3)
    for start in range(0, size, piece):
        output.write(written[start : start + piece])
    output.close()
    output.close()

    assert store.output(store.read(agent_id), 3) == kept(written)
    deleted(store, agent_id, lambda _: True)


def test_each_run_has_its_own_output_and_it_can_be_read_before_the_end(store: Store, new: New) -> None:
    for agent_id in ("agent-1", "agent-2"):
        store.create(new(agent_id))
    outputs = {
        (agent_id, run): store.open_output(store.read(agent_id), run)
        for agent_id in ("agent-1", "agent-2")
        for run in (1, 2)
    }

    for (agent_id, run), output in outputs.items():
        output.write(f"{agent_id} in run {run}".encode())
        output.write(b", and on")

    expected = {(agent_id, run): f"{agent_id} in run {run}, and on".encode() for agent_id, run in outputs}
    until = time.monotonic() + 20  # on a server, the last second may be missing
    while (found := {one: store.output(new(one[0]), one[1]) for one in outputs}) != expected:
        assert time.monotonic() < until, found
    for output in outputs.values():
        output.close()


def test_output_is_empty_at_first_and_writing_it_changes_nothing_else(store: Store, new: New) -> None:
    store.create(new())
    assert store.output(store.read("agent-1"), 1) == b""

    output = store.open_output(store.read("agent-1"), 1)
    output.write(b"hello")
    output.close()

    assert (store.output(store.read("agent-1"), 1), store.output(store.read("agent-1"), 2)) == (b"hello", b"")
    assert store.read("agent-1") == new()
    assert list(store.messages("agent-1")) == list(store.entries("agent-1", "events.jsonl")) == []


def test_an_output_that_is_opened_again_begins_empty(store: Store, new: New) -> None:
    store.create(new())
    first = store.open_output(store.read("agent-1"), 1)
    first.write(b"longer than the second")
    first.close()

    store.open_output(store.read("agent-1"), 1).close()

    assert store.output(store.read("agent-1"), 1) == b""


@table("size", [0, 5, 4 * MIB])
def test_an_output_that_is_handed_over_keeps_its_bytes(store: Store, new: New, size: int) -> None:
    agent_id = f"agent-{size}"
    store.create(new(agent_id))
    output = store.open_output(store.read(agent_id), 1)
    output.write(numbered(size))

    output.handed_over()
    stored = store.output(store.read(agent_id), 1)
    output.close()

    assert (stored, store.output(store.read(agent_id), 1)) == (kept(numbered(size)),) * 2


def test_output_of_a_deleted_session_does_not_appear_in_a_new_session_with_that_id(store: Store, new: New) -> None:
    first, second = new(), new(created_at=LATER)
    store.create(first)
    output = store.open_output(first, 1)
    output.write(b"before")
    deleted(store, "agent-1", lambda _: True)
    store.create(second)

    output.write(numbered(4 * MIB))
    output.close()

    assert store.output(second, 1) == b""


def test_the_record_of_another_session_with_the_same_id_gives_no_access_to_output(store: Store, new: New) -> None:
    first, second = new(), new(created_at=LATER)
    store.create(second)
    output = store.open_output(second, 1)
    output.write(b"of the second")
    output.close()

    for ask in (store.output, store.open_output):
        with pytest.raises(SessionNotFound):
            ask(first, 1)

    assert (store.output(second, 1), store.output({**second, "revision": 9}, 1)) == (b"of the second",) * 2


def test_a_session_that_does_not_exist_has_no_output(store: Store, new: New) -> None:
    for ask in (store.output, store.open_output):
        with pytest.raises(SessionNotFound):
            ask(new(), 1)


@table("agent_id", ["../etc", "", "a/b"])
def test_an_invalid_id_is_refused(store: Store, new: New, agent_id: str) -> None:
    for ask in (store.open_output, store.output):
        with pytest.raises(InvalidId):
            ask(new(agent_id), 1)
    with pytest.raises(InvalidId):
        store.output_path(agent_id, 1)


def test_the_path_of_an_output_contains_the_session_and_the_run(store: Store) -> None:
    paths = {store.output_path(agent_id, run) for agent_id in ("agent-1", "agent-2") for run in (1, 12)}
    ends = {f"{agent_id}/output-{run}.log" for agent_id in ("agent-1", "agent-2") for run in (1, 12)}
    assert paths == {None} or {"/".join(path.rsplit("/")[-2:]) for path in filter(None, paths)} == ends
