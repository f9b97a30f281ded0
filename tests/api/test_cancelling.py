"""Cancellations in trees that change: sessions below a cancelled session are cancelled, in any order of events."""

from __future__ import annotations

import os
import tempfile
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaia_sessions import Sessions
from gaia_sessions.api import cancelling, cleaning, families, listing, removal
from gaia_sessions.api.reconciling import close_runs
from gaia_sessions.errors import LockTimeout, StoreFailure
from gaia_sessions.ingest.parent_session import with_parent_known
from gaia_sessions.session.clock import format_time
from gaia_sessions.store import MOST_ABOVE
from gaia_sessions.store.above import Above
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system.processes import describe
from tests.examples import examples
from tests.memory_store import MemoryStore
from tests.places import planned, writing
from tests.records import LIMITS, START, WHEN, record_with
from tests.removals import remove_if
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import RecordOrError, Store

IDS = list("abcdef")
ONE = st.sampled_from(IDS)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), ONE, st.none() | ONE),
        st.tuples(st.just("adopt"), ONE, ONE),
        st.tuples(st.just("cancel"), ONE, st.none()),
        st.tuples(st.just("remove"), ONE, st.none()),
        st.tuples(st.just("end"), ONE, st.none()),
    ),
    max_size=25,
)


class Model:
    """All sessions with their parents and cancellations, also after their removal."""

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}
        self.cancelled: dict[str, int] = {}
        self.removed: set[str] = set()

    def above(self, one: str) -> list[str]:
        found: list[str] = []
        parent = self.parents[one]
        while parent is not None:
            found.append(parent)
            parent = self.parents[parent]
        return found

    def first_cancelled(self, one: str) -> str | None:
        """The session, of this one and those above it, that was cancelled first."""
        found = [other for other in (one, *self.above(one)) if other in self.cancelled]
        return min(found, key=self.cancelled.__getitem__, default=None)


def play(store: Store, model: Model, number: int, step: tuple[str, str, str | None]) -> None:
    what, one, other = step
    if what == "begin":
        begin(store, model, one, other)
    elif one not in model.parents or one in model.removed:
        return
    elif what == "adopt":
        adopt(store, model, one, str(other))
    elif what == "cancel":
        if model.first_cancelled(one) is None:
            model.cancelled[one] = number
        cancelling.mark_cancelled(store, START + timedelta(seconds=number), one, f"step {number}", below=True)
    elif what == "end":
        store.change(one, lambda record: {**record, "phase": "completed"})
    elif model.first_cancelled(one) or one not in model.parents.values():
        assert remove_if(store, one, lambda *_: True, removal.Leaving(store, LATER, LIMITS))
        model.removed.add(one)


def begin(store: Store, model: Model, one: str, parent: str | None) -> None:
    if one not in model.parents and (parent is None or parent in model.parents.keys() - model.removed):
        above: Any = {"parent_id": parent} if parent else {}
        store.create({**record_with(**above), "agent_id": one})
        model.parents[one] = parent


def adopt(store: Store, model: Model, one: str, parent_id: str) -> None:
    if parent_id not in model.parents.keys() - model.removed:
        return
    parent = store.read(parent_id)
    store.change(one, lambda record: with_parent_known(store, record, parent))
    if model.parents[one] is None and one not in (parent_id, *model.above(parent_id)):
        model.parents[one] = parent_id


@settings(max_examples=examples(150))
@given(STEPS)
def test_sessions_below_a_cancelled_session_are_cancelled_in_any_order_of_steps(
    steps: list[tuple[str, str, str | None]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for store in (MemoryStore(), FileStore(f"{folder}/root", durable=False)):
            model = Model()
            for number, step in enumerate(steps):
                play(store, model, number, step)
                assert_as_in(model, store)


def assert_as_in(model: Model, store: Store) -> None:
    above = Above(store)
    for one in model.parents.keys() - model.removed:
        first = model.first_cancelled(one)
        record = store.read(one)
        found = Above(store).cancellation(record)
        assert found == above.cancellation(record) == cancelling.cancellation_and_above(store, one)[0]
        if first is None:
            assert found is None
            continue
        assert found is not None
        assert (found["reason"], found.get("by", one)) == (f"step {model.cancelled[first]}", first)


class Counted(MemoryStore):
    """Counts the records that are read and the IDs whose marks are read."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def read(self, agent_id: str) -> Record:
        self.looks += 1
        return super().read(agent_id)

    def marks(self, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        asked = list(agent_ids)
        self.looks += len(asked)
        return super().marks(asked)


def a_circle(count: int, **keys: Any) -> Counted:
    store = Counted()
    for number in reversed(range(count)):  # from below: a create reads all sessions above
        put(store, number, parent_id=f"s-{(number - 1) % count}", **keys)
    return store


def a_chain(count: int, **keys: Any) -> Counted:
    store = Counted()
    for number in reversed(range(1, count)):
        put(store, number, parent_id=f"s-{number - 1}", **keys)
    put(store, 0, **keys)
    return store


def put(store: Store, number: int, **changed: Any) -> None:
    store.create({**record_with(), "agent_id": f"s-{number}", **changed})  # type: ignore[typeddict-item]  # any keys


class Refusing(MemoryStore):
    """Fails to read one session, and the mark of another session."""

    def marks(self, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        asked = list(agent_ids)
        if "s-0" in asked and "s-1" in self.ids():
            raise StoreFailure("read", "s-0/cancelled.json", "Input/output error")
        return super().marks(asked)

    def scan(self, **wanted: Any) -> Iterator[tuple[str, RecordOrError]]:
        for agent_id, record in super().scan(**wanted):
            is_refused = agent_id == "s-1"
            yield agent_id, StoreFailure("read", "s-1/state.json", "Input/output error") if is_refused else record


def test_cleanup_keeps_a_session_whose_mark_is_unreadable_and_removes_the_others() -> None:
    store = Refusing()
    for number in (0, 2, 1):
        put(store, number, phase="completed")

    report = cleaning.remove_unused(store, cleaning.CleanupPolicy(LATER, 1, LIMITS, keep_days=7))

    assert report["kept"] == [{"agent_id": "s-0", "reason": "mark_unread"}]
    assert (report["removed"], [failed["agent_id"] for failed in report["failed"]]) == (["s-2"], ["s-1"])


LATER = START + timedelta(days=30)
PASSES: dict[str, Callable[[Store], object]] = {
    "list": lambda store: listing.listed(writing(store, LATER)),
    "tree": lambda store: families.tree(writing(store, LATER)),
    "reconcile": lambda store: close_runs(planned(store), LATER),
    "cleanup": lambda store: cleaning.remove_unused(
        planned(store), cleaning.CleanupPolicy(LATER, 1, LIMITS, keep_days=7)
    ),
}


@table("made", [a_circle, a_chain])
@table("name", PASSES)
def test_commands_look_at_each_session_a_few_times_in_chains_and_circles(name: str, made: Any) -> None:
    store = made(100)
    store.looks = 0
    PASSES[name](store)
    assert store.looks <= 100 * 8


GONE: Any = {**(describe(os.getpid()) or {}), "pid": 2**22 + 1}  # larger than every pid


@table(("made", "number"), [(a_circle, MOST_ABOVE), (a_chain, MOST_ABOVE), (a_chain, 4 * MOST_ABOVE)])
@table("keys", [{}, {"runs": [{"run": 1, "host": "claude-code", "started_at": WHEN, "host_process": GONE}]}])
def test_reconcile_ends_cancelled_sessions_of_long_chains_with_a_few_looks_each(
    made: Any, number: int, keys: dict[str, Any]
) -> None:
    store = made(number, **keys)
    cancelling.mark_cancelled(store, START, "s-0", "enough", below=True)
    store.looks = 0

    report = close_runs(store, LATER)

    assert store.looks <= number * 7
    phases = {store.read(f"s-{one}")["phase"] for one in range(number)}
    assert (phases, report["failed"]) == ({"abandoned"}, [])


def test_reconcile_does_not_end_a_new_session_with_the_id_of_a_cancelled_one(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(str(tmp_path / "root"), durable=False)
    put(store, 0)
    cancelling.mark_cancelled(store, START, "s-0", "enough", below=True)
    proved = Above.proved_cancellation

    def then_made_anew(above: Above, record: Record) -> object:
        found = proved(above, record)
        remove_if(store, "s-0", lambda *_: True, removal.Leaving(store, LATER, LIMITS))
        put(store, 0, created_at=format_time(LATER))
        return found

    monkeypatch.setattr(Above, "proved_cancellation", then_made_anew)

    assert close_runs(store, LATER)["abandoned"] == []
    assert store.read("s-0")["phase"] == "investigating"


def test_a_locked_session_is_not_removed(tmp_path: Any) -> None:
    store = FileStore(str(tmp_path / "root"), durable=False)
    put(store, 0)
    with store.open("s-0"), pytest.raises(LockTimeout):
        remove_if(store, "s-0", lambda *_: True, removal.Leaving(store, LATER, LIMITS))
    assert store.has("s-0")


def test_no_session_is_created_below_a_locked_parent(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_LOCK_TIMEOUT", "0")
    sessions = Sessions(str(tmp_path / "root"))
    parent_id = sessions.create()
    with FileStore(sessions.root).open(parent_id), pytest.raises(LockTimeout):
        sessions.create(parent_id=parent_id)
    assert [line["agent_id"] for line in sessions.list()] == [parent_id]
