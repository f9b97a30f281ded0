"""Events about more runs than one call of a hook has time for: later calls do the rest.

``tests/faults/test_long_events.py`` kills such a call; ``tests/hook/test_long_events.py`` runs the real program.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from gaia_sessions.api.foresight import foreseen, foreseen_by_hook
from gaia_sessions.config import Config
from gaia_sessions.errors import StoreFailure
from gaia_sessions.hook import apply_each
from gaia_sessions.ingest import AT_ONCE, Terms
from gaia_sessions.ingest.deferred import apply_deferred
from gaia_sessions.ingest.dispatch import handle_event
from gaia_sessions.ingest.several import IN_ONE_FILE, hold
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from tests.ingest.conftest import own_folder
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.open_session import OpenSession

NOW = utc_now()
MINUTE = timedelta(minutes=1)
WORKFLOW = {"run_id": "wf_1"}
MANY = 3 * AT_ONCE
LONG = ("session_end", "session_left", "main_stop", "killed workflow")


class Watched(FileStore):
    """The store of a hook; it notes how many events wait at each change."""

    def __init__(self, root: str) -> None:
        super().__init__(root, durable=False, seconds_left=lambda: 60.0)
        self.waiting_at_changes: list[int] = []

    def open(self, agent_id: str, *, timeout: float | None = None) -> OpenSession:
        self.waiting_at_changes.append(len(self.waiting()))
        return super().open(agent_id, timeout=timeout)


def event_at(minutes: float, **fields: Any) -> Event:
    base = {"at": format_time(NOW + minutes * MINUTE), "host": "claude-code", "host_session_id": "h1"}
    return {**base, **fields}  # type: ignore[typeddict-item]  # the kind is in fields


def tell(store: FileStore, event: Event, should_stop: Callable[[], bool] = lambda: False) -> str:
    return handle_event(store, event, Terms(parse_time(event["at"]), Config({}), 1.0, should_stop)).word


def start_of(number: int, agent: str = "a", **fields: Any) -> dict[str, Any]:
    keys = {"agent_name": "sub", "purpose": f"agent {number}", "workflow": {**WORKFLOW, "key": f"k{number}"}}
    return {"kind": "start", "host_agent_id": f"{agent}{number}", **keys, **fields}


def populate(root: Path, kind: str, agents: int) -> Watched:
    """Creates ``agents`` running agents for an end of this ``kind``; a workflow has its own session as well."""
    store = FileStore(str(root), durable=False)
    if kind == "killed workflow":
        tell(store, event_at(0, kind="delegate", tool_use_id="t", agent_name="workflow", purpose="flow"))
        launch = {"kind": "start", "launch": True, "background": True, "host_agent_id": "w1", "tool_use_id": "t"}
        tell(store, event_at(0, **launch, agent_name="workflow", workflow=WORKFLOW))
        for number in range(agents):
            tell(store, event_at(0, **start_of(number)))
        return Watched(str(root))
    for number in range(agents):
        keys = {"agent_name": "Explore", "tool_use_id": f"t{number}"}
        tell(store, event_at(0, kind="delegate", purpose=f"agent {number}", **keys))
        tell(store, event_at(0, kind="start", host_agent_id=f"a{number}", **keys))
    return Watched(str(root))


def end_of(kind: str, minutes: float = 1) -> Event:
    if kind == "killed workflow":
        keys = {"host_agent_id": "w1", "tool_use_id": "t", "outcome": "abandoned"}
        return event_at(minutes, kind="notification", **keys)
    return event_at(minutes, kind=kind, **({"running": []} if kind == "main_stop" else {}))


def open_agents(store: FileStore) -> int:
    return sum("ended_at" not in record["runs"][-1] for record in agents_in(store))


def agents_in(store: FileStore) -> list[Record]:
    records = [store.read(agent_id) for agent_id in store.ids()]
    return [record for record in records if record["agent_name"] != "workflow"]


def stop_after(looks: int) -> Callable[[], bool]:
    """A clock that says after ``looks`` calls that the time is over."""
    asked = count(1)
    return lambda: next(asked) > looks


@table("kind", LONG)
@own_folder
def test_an_event_about_many_runs_is_in_the_inbox_from_the_first_change_to_the_last(kind: str, tmp_path: Path) -> None:
    store = populate(tmp_path / "root", kind, MANY)

    tell(store, end_of(kind))

    assert (open_agents(store), store.waiting()) == (0, [])
    assert set(store.waiting_at_changes) == {1}
    assert len(store.waiting_at_changes) == MANY + (kind == "killed workflow")


@table("kind", LONG)
@own_folder
def test_an_event_that_changes_few_runs_writes_no_inbox_file(kind: str, tmp_path: Path) -> None:
    store = populate(tmp_path / "root", kind, AT_ONCE)

    tell(store, end_of(kind))

    assert (open_agents(store), set(store.waiting_at_changes)) == (0, {0})


def test_an_event_that_changes_none_of_many_runs_opens_no_session(tmp_path: Path) -> None:
    store = populate(tmp_path / "root", "session_end", MANY)
    tell(store, end_of("session_end"))
    store.waiting_at_changes.clear()

    assert tell(store, end_of("session_end", 2)) == "known"
    assert store.waiting_at_changes == []


@table("kind", LONG)
@own_folder
def test_each_call_settles_more_runs_of_a_long_event_and_changes_none_twice(kind: str, tmp_path: Path) -> None:
    store = populate(tmp_path / "root", kind, MANY)
    workflow = kind == "killed workflow"

    looks = AT_ONCE + 4 + kind.startswith("main") + MANY * (kind == "session_left")
    assert tell(store, end_of(kind), stop_after(looks)) == "deferred"
    left = [open_agents(store)]
    while store.waiting():
        assert len(left) < 20 * MANY
        looks = (
            MANY // 2 + 2 + MANY * (kind == "session_left")
        )  # this kind first looks which agents run in the background
        apply_deferred(store, NOW + 2 * MINUTE, Config({}), stop_after(looks))
        left.append(open_agents(store))
        if left[-1] == 0:  # the call had no time to see that all runs have ended
            apply_deferred(store, NOW + 2 * MINUTE, Config({}))

    assert left[0] == MANY - AT_ONCE - 4
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0
    assert len(store.waiting_at_changes) == MANY + workflow
    journals = [list(store.entries(record["agent_id"], "events.jsonl")) for record in agents_in(store)]
    ends = [[entry for entry in entries if isinstance(entry, dict) and "end" in entry] for entries in journals]
    assert [len(entries) for entries in ends] == [1] * MANY


def test_a_half_applied_event_is_not_dropped_even_after_days(tmp_path: Path) -> None:
    store = populate(tmp_path / "root", "session_end", MANY)
    assert tell(store, end_of("session_end"), stop_after(AT_ONCE + 1)) == "deferred"

    [outcome] = apply_deferred(store, NOW + timedelta(days=3), Config({}), stop_after(MANY // 2))
    assert outcome.endswith("waits: busy")
    assert apply_deferred(store, NOW + timedelta(days=3), Config({}))[0].endswith(" settled")
    assert (open_agents(store), store.waiting()) == (0, [])


@table("kind", ["session_end", "killed workflow"])
@own_folder
def test_a_reader_sees_a_half_applied_event_as_fully_applied(kind: str, tmp_path: Path) -> None:
    store = populate(tmp_path / "root", kind, MANY)
    tell(store, end_of(kind), stop_after(AT_ONCE + 1))
    assert open_agents(store) > 0

    scanned = dict(foreseen(store, NOW + MINUTE, Config({})).scan())
    seen = [record for record in scanned.values() if not isinstance(record, Exception)]

    assert len(seen) == MANY + (kind == "killed workflow")
    assert all("ended_at" in record["runs"][-1] for record in seen)
    some = agents_in(store)[0]["agent_id"]
    read = foreseen_by_hook(store, some, NOW + MINUTE, Config({}), stop_after(10 * MANY)).read(some)
    assert "ended_at" in read["runs"][-1]


def test_the_rest_of_a_conversations_end_does_not_end_runs_that_began_later(tmp_path: Path) -> None:
    store = populate(tmp_path / "root", "session_end", MANY)
    tell(store, end_of("session_end"), stop_after(AT_ONCE + 1))
    paused = next(record for record in agents_in(store) if "ended_at" in record["runs"][-1])["agent_id"]

    keys = {"agent_name": "Explore", "tool_use_id": "again"}
    tell(store, event_at(2, kind="delegate", purpose="agent", resume=[paused], **keys))
    tell(store, event_at(2, kind="start", host_agent_id="again", **keys))
    tell(store, event_at(2, kind="delegate", purpose="new", agent_name="Explore", tool_use_id="new"))
    tell(store, event_at(2, kind="start", host_agent_id="new", agent_name="Explore", tool_use_id="new"))
    apply_deferred(store, NOW + 3 * MINUTE, Config({}))

    at_work = [record for record in agents_in(store) if "ended_at" not in record["runs"][-1]]
    assert sorted(record["runs"][-1]["host_agent_id"] for record in at_work) == ["again", "new"]
    assert [run.get("end") for run in store.read(paused)["runs"]] == ["ended_with_host", None]


@table("is_killed_again", [False, True])
@own_folder
def test_the_rest_of_a_workflows_end_does_not_end_agents_that_started_later(
    tmp_path: Path, *, is_killed_again: bool
) -> None:
    store = populate(tmp_path / "root", "killed workflow", MANY)
    tell(store, end_of("killed workflow"), stop_after(AT_ONCE + 1))
    again = {"agent_name": "workflow", "tool_use_id": "t2", "workflow": WORKFLOW}
    tell(store, event_at(2, kind="delegate", purpose="flow", **again))
    tell(store, event_at(2, kind="start", launch=True, background=True, host_agent_id="w2", **again))
    for number in range(MANY):
        tell(store, event_at(2, **start_of(number, "b")))
    if is_killed_again:
        held_back = end_of("killed workflow", 3)
        tell(store, {**held_back, "host_agent_id": "w2", "tool_use_id": "t2"}, stop_after(0))
    name = store.waiting()[0][0]

    [(_, first)] = store.deferred([name])
    assert isinstance(first, dict)
    assert first["at"] == format_time(NOW + MINUTE)
    tell(store, event_at(1, kind="notification", host_agent_id="w1", tool_use_id="t", outcome="abandoned"))
    before = [record["runs"][-1] for record in agents_in(store)]
    assert sum("ended_at" not in run for run in before) == MANY

    apply_deferred(store, NOW + 4 * MINUTE, Config({}))

    open_after = [record for record in agents_in(store) if "ended_at" not in record["runs"][-1]]
    assert len(open_after) == (0 if is_killed_again else MANY)
    assert store.waiting() == []


def ends_of_agents(number: int) -> list[Event]:
    ends = [
        event_at(1, kind="notification", host_agent_id=f"a{agent}", outcome="completed", purpose="p" * 200)
        for agent in range(number)
    ]
    return [*ends, event_at(1, kind="notification", host_agent_id="w1", tool_use_id="t", outcome="completed")]


def test_many_events_of_one_payload_share_an_inbox_file_until_all_are_applied(tmp_path: Path) -> None:
    store = populate(tmp_path / "root", "killed workflow", MANY)

    def apply(event: Event) -> tuple[str, int]:
        return tell(store, event), len(store.waiting())

    applied, _ = apply_each(store, ends_of_agents(MANY), NOW, stop_after(AT_ONCE), apply)
    assert applied == [("finalized", 1)] * AT_ONCE
    assert (open_agents(store), len(store.waiting())) == (MANY - AT_ONCE, 1)

    apply_deferred(store, NOW + 2 * MINUTE, Config({}), stop_after(1 + AT_ONCE + 5))
    assert (open_agents(store), len(store.waiting())) == (MANY - AT_ONCE - 5, 1)
    assert apply_deferred(store, NOW + 2 * MINUTE, Config({}))[0].endswith(" applied")

    assert (open_agents(store), store.waiting()) == (0, [])
    assert {record["phase"] for record in map(store.read, store.ids())} == {"completed"}
    assert len({record["revision"] for record in agents_in(store)}) == 1  # no record was written twice


def test_many_events_that_are_applied_in_time_leave_the_inbox_empty(tmp_path: Path) -> None:
    store = populate(tmp_path / "root", "killed workflow", MANY)

    told = apply_each(store, ends_of_agents(MANY), NOW, lambda: False, partial(tell, store))

    assert (told, store.waiting()) == ((["finalized"] * (MANY + 1), []), [])


def test_many_events_wait_until_the_one_that_failed_is_applied(tmp_path: Path) -> None:
    store = populate(tmp_path / "root", "killed workflow", MANY)
    failure = StoreFailure("write", "state.json", "No space left on device")

    def apply(event: Event) -> str:
        if event["host_agent_id"] == "a3":
            raise failure
        return tell(store, event)

    assert apply_each(store, ends_of_agents(MANY), NOW, lambda: False, apply) == (["finalized"] * MANY, [failure])

    assert (open_agents(store), len(store.waiting())) == (1, 1)
    assert apply_deferred(store, NOW + MINUTE, Config({}))[0].endswith(" applied")
    assert (open_agents(store), store.waiting()) == (0, [])


def test_many_events_are_not_dropped_if_one_is_refused_for_over_a_day(tmp_path: Path) -> None:
    store = populate(tmp_path / "root", "killed workflow", MANY)
    hold(store, ends_of_agents(MANY), NOW)
    (tmp_path / "root" / agents_in(store)[0]["agent_id"] / "cancelled.json").mkdir()

    [outcome] = apply_deferred(store, NOW + timedelta(days=2), Config({}))

    assert outcome.endswith("waits: busy")
    assert (open_agents(store), len(store.waiting())) == (1, 1)


@table(("length", "files"), [(10, 3), (4000, 9)])
@own_folder
def test_events_are_packed_into_few_inbox_files_in_their_order(length: int, files: int, tmp_path: Path) -> None:
    store = FileStore(str(tmp_path / "root"), durable=False)
    events = [event_at(1, kind="notification", error="x" * length, summary=str(n)) for n in range(2 * IN_ONE_FILE + 1)]

    hold(store, events, NOW)

    kept = [event for _, event in store.deferred()]
    assert [one for together in kept for one in together["events"]] == events  # type: ignore[index, union-attr]
    assert len(kept) <= files
    assert apply_deferred(store, NOW + MINUTE, Config({}), lambda: True) == []


def test_events_that_cannot_be_deferred_are_applied_even_if_the_time_is_over(tmp_path: Path) -> None:
    class Full(Watched):
        def defer(self, event: Event, now: Any) -> str:  # noqa: ARG002
            raise StoreFailure("defer to", self.root, "No space left on device")

    populate(tmp_path / "root", "killed workflow", MANY)
    store = Full(str(tmp_path / "root"))

    apply_each(store, ends_of_agents(MANY), NOW, lambda: True, partial(tell, store))

    assert open_agents(store) == 0


def test_a_scan_with_little_time_begins_at_a_different_session_each_time(tmp_path: Path) -> None:
    populate(tmp_path / "root", "session_end", MANY)
    firsts = set()
    for _ in range(60):
        store = FileStore(str(tmp_path / "root"), seconds_left=lambda: 1.0)
        firsts.add(next(iter(store.scan(active_only=True, host_session_id="h1")))[0])
    assert len(firsts) > MANY // 3

    assert tell(store, end_of("session_end"), lambda: True) == "deferred"
    assert (open_agents(store), len(store.waiting())) == (MANY, 1)
