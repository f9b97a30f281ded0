"""Readers see sessions as the next writer will leave them: waiting events count, and stay in the inbox."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.api import at, records
from gaia_sessions.api.cleaning import CleanupPolicy, remove_unused
from gaia_sessions.api.foresight import foreseen, open_sessions
from gaia_sessions.api.reconciling import close_runs
from gaia_sessions.api.sessions import Sessions
from gaia_sessions.config import Config
from gaia_sessions.errors import SessionNotFound
from gaia_sessions.ingest.consumption import count_ended_runs
from gaia_sessions.ingest.deferred import apply_deferred
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import new_record
from gaia_sessions.store.file_store import FileStore
from tests.frozen import FrozenPlan
from tests.hook.conftest import ASKS, own_host, stopped_while_held
from tests.hook.test_lives import CAPTURES, Life, of_captures
from tests.removals import deleted
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.hook.conftest import Host


def listed(host: Host, **wanted: Any) -> dict[str, Any]:
    return {line["agent_id"]: line for line in gaia_sessions.list_sessions(root=str(host.root), **wanted)}


def previewed(host: Host, agent_id: str) -> Any:
    return at.read(Sessions(str(host.root)), records.as_applied, agent_id)


def left(host: Host, agent_id: str) -> Any:
    """The record that the next writer leaves."""
    gaia_sessions.create_session(agent_id="next-writer", root=str(host.root))
    return host.records()[agent_id]


def test_an_agent_whose_start_waits_in_the_inbox_is_listed_as_at_work(host: Host) -> None:
    host.begin()
    before = host.tree(host.root)
    assert [event["kind"] for event in host.deferred()] == ["start"]

    [(agent_id, line)] = listed(host, active_only=True).items()

    assert (line["phase"], line["running"], line["resume"]["reason"]) == ("investigating", True, "running")
    assert listed(host, phases=["initializing"]) == {}
    sessions = Sessions(str(host.root))
    assert (sessions.get(agent_id), sessions.show(agent_id)["phase"]) == (host.record(), "investigating")
    assert host.record()["phase"] == "initializing"
    assert host.tree(host.root) == before


def test_a_preview_is_the_record_that_the_next_writer_leaves(host: Host) -> None:
    agent_id = stopped_while_held(host, ASKS)

    planned = previewed(host, agent_id)

    assert planned == left(host, agent_id)
    assert (planned["phase"], host.waiting()) == ("approval", [])


def test_a_new_conversation_is_offered_work_whose_pause_waits_in_the_inbox(host: Host) -> None:
    agent_id = host.delegate()
    with host.held(agent_id):
        host.stop(message=ASKS)
        told = host.hear(host.event_payload("SessionStart", source="startup"))
        assert len(host.waiting()) == 1
    assert f"[gaia-sessions: resume {agent_id}]" in told["additionalContext"]


def test_several_sessions_are_previewed_together(host: Host) -> None:
    for number in range(3):
        host.begin(f"toolu_{number}", f"a{number}")
    with host.held(host.work("toolu_9", "a9")):
        host.hear(host.event_payload("SessionEnd", reason="other"))

    planned = {agent_id: line["phase"] for agent_id, line in listed(host).items()}
    gaia_sessions.create_session(agent_id="next-writer", root=str(host.root))

    left = {agent_id: record["phase"] for agent_id, record in host.records().items() if agent_id != "next-writer"}
    assert planned == left
    assert len(left) == 4


class Counted(FileStore):
    """Counts how often the inbox is listed and how many events are read."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.calls: Counter[str] = Counter()

    def waiting(self) -> Any:
        self.calls["waiting"] += 1
        return super().waiting()

    def deferred(self, names: Any = None) -> Any:
        found = list(super().deferred(names))
        self.calls["read"] += len(found)
        return iter(found)


@table("sessions", [1, 3])
@own_host
def test_a_list_looks_at_the_inbox_once_and_reads_each_event_once(host: Host, sessions: int) -> None:
    for number in range(sessions):
        host.begin(f"toolu_{number}", f"a{number}")
    store, now = FileStore(str(host.root), durable=False), datetime.now(UTC)
    for number in range(20):
        strange: Any = {"kind": "stop", "at": format_time(now), "host_session_id": "s", "host_agent_id": f"b{number}"}
        store.defer(strange, now)
    waiting = len(host.waiting())
    counted = Counted(str(host.root))

    found = dict(foreseen(counted, now, Config({})).scan())

    assert len(found) == sessions
    assert counted.calls == {"waiting": 1, "read": waiting}


class Overtaken(FileStore):
    """Between the listing and the reading of the inbox, another process applies the events."""

    def deferred(self, names: Any = None) -> Any:
        apply_deferred(FileStore(self.root), datetime.now(UTC), Config({}))
        self.meanwhile()
        return super().deferred(names)

    def meanwhile(self) -> None: ...


class Deleting(Overtaken):
    def meanwhile(self) -> None:
        for agent_id, _ in FileStore(self.root).scan():
            deleted(FileStore(self.root), agent_id, lambda _: True)


@pytest.fixture
def paused(host: Host) -> str:
    """The id of a session whose pause waits in the inbox."""
    return stopped_while_held(host, ASKS)


def test_a_list_includes_an_event_that_is_applied_while_it_reads(host: Host, paused: str) -> None:
    found: dict[str, Any] = dict(foreseen(Overtaken(str(host.root)), datetime.now(UTC), Config({})).scan())
    assert {agent_id: record["phase"] for agent_id, record in found.items()} == {paused: "approval"}


def test_a_list_omits_a_session_that_is_deleted_while_it_reads(host: Host, paused: str) -> None:
    sessions = foreseen(Deleting(str(host.root)), datetime.now(UTC), Config({}))
    assert list(sessions.scan()) == []
    with pytest.raises(SessionNotFound):
        sessions.read(paused)


def test_a_dry_run_of_a_cleanup_reports_what_the_cleanup_does(host: Host, paused: str) -> None:
    host.edit(paused, last_updated=format_time(datetime.now(UTC) - timedelta(hours=30)))
    told = gaia_sessions.cleanup_sessions(dry_run=True, root=str(host.root))
    done = gaia_sessions.cleanup_sessions(root=str(host.root))
    assert {**told, "dry_run": False, "swept": done["swept"]} == done
    assert (done["removed"], list(host.records())) == ([], [paused])


class Watched(Life):
    """Before each line, the preview is compared with a real write on a copy of the root."""

    looks = 0

    def tell(self, payload: dict[str, Any]) -> None:
        if self.root.exists():
            self.look(FileStore(str(self.root)), datetime.now(UTC))
        super().tell(payload)

    def look(self, store: FileStore, now: datetime) -> None:
        if not store.waiting():
            return
        planned = dict(foreseen(store, now, Config({})).scan())
        copy = self.folder / f"copy-{self.looks}"
        shutil.copytree(self.root, copy)
        writer = FileStore(str(copy), durable=False)
        apply_deferred(writer, now, Config({}))
        assert {agent_id: writer.read(agent_id) for agent_id in planned} == planned
        self.looks += 1


class WatchedAsValues(Life):
    """Before each line, all operations on plans run on records that cannot be changed in place."""

    def tell(self, payload: dict[str, Any]) -> None:
        now = datetime.now(UTC) + timedelta(days=30)
        plan: Any = foreseen(FileStore(str(self.root)), datetime.now(UTC), Config({}))
        close_runs(plan, now, str(self.root))
        count_ended_runs(plan)
        remove_unused(plan, CleanupPolicy(now, 1, Config({}).limits, keep_days=1))
        super().tell(payload)


@of_captures(*CAPTURES)
def test_no_operation_on_a_plan_changes_a_record_in_place(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a plan can hand out its records without copies."""
    monkeypatch.setattr("gaia_sessions.store.planned.Plan", FrozenPlan)
    life = WatchedAsValues(tmp_path / capture.parent.name / capture.stem, monkeypatch)
    life.live(life.lines(capture))
    assert life.errors == []


@of_captures(*CAPTURES)
def test_before_every_captured_event_the_preview_is_what_the_next_writer_leaves(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Watched(tmp_path / capture.parent.name / capture.stem, monkeypatch)
    life.live(life.lines(capture))
    assert life.errors == []
    assert life.looks > 0 or capture.stem != "parallel"


def two(host: Host) -> str:
    """One agent works in the background; another delegation never started, and the main stop that says so waits."""
    host.work("toolu_b", "b1")
    host.hear(host.launching("toolu_b", "b1"))
    before = set(host.records())
    asked = {"description": "Plan", "prompt": "Plan it", "subagent_type": "Plan"}
    host.hear(host.delegation("toolu_x", tool_input=asked))
    [never_started] = set(host.records()) - before
    with host.held(never_started):
        host.hear(host.pausing("b1"))
    assert [event["kind"] for event in host.deferred()] == ["main_stop"]
    return never_started


def test_a_preview_of_one_session_is_the_record_that_the_next_writer_leaves(host: Host) -> None:
    agent_id = two(host)
    planned = previewed(host, agent_id)
    assert (planned["phase"], listed(host)[agent_id]["phase"]) == ("abandoned", "abandoned")
    assert planned == left(host, agent_id)


def test_a_list_of_one_agent_type_also_applies_waiting_events(host: Host) -> None:
    agent_id = two(host)
    planned = listed(host, active_only=True, agent_name="Plan")
    assert left(host, agent_id)["phase"] == "abandoned"
    assert planned == {}


@pytest.fixture
def reopened(host: Host) -> str:
    """A completed session whose agent went on because of another hook, and asks for approval in a waiting stop."""
    agent_id = host.work()
    host.stop()
    assert host.record()["phase"] == "completed"
    with host.held(agent_id):
        host.stop(message=ASKS, stop_hook_active=True)
    assert len(host.waiting()) == 1
    return agent_id


def test_a_session_that_a_waiting_stop_reopens_is_listed_as_open(host: Host, reopened: str) -> None:
    assert previewed(host, reopened)["phase"] == "approval"
    assert gaia_sessions.should_resume(reopened, root=str(host.root))
    assert list(listed(host, active_only=True)) == [reopened]


def test_a_new_conversation_is_offered_a_session_that_a_waiting_stop_reopens(host: Host, reopened: str) -> None:
    with host.held(reopened):
        told = host.hear(host.event_payload("SessionStart", source="startup"))
    assert told is not None
    assert f"[gaia-sessions: resume {reopened}]" in told["additionalContext"]


def test_an_agent_whose_waking_still_waits_is_listed_as_at_work(host: Host) -> None:
    agent_id = host.work()
    host.stop()
    with host.held(agent_id):
        host.hear(host.starting())
    waited = len(host.waiting())
    planned = {line["phase"] for line in listed(host, active_only=True).values()}
    gaia_sessions.create_session(agent_id="next-writer", root=str(host.root))
    real = {r["phase"] for i, r in host.records().items() if i != "next-writer" and r["phase"] == "investigating"}
    assert (waited, planned) == (waited, real)


def test_a_preview_joins_a_waiting_stop_through_its_waiting_start(host: Host) -> None:
    host.begin()
    [agent_id] = host.records()
    elsewhere = host.folder / "host" / "another.jsonl"
    stop = host.ending(message=ASKS, session_id="another", transcript_path=str(elsewhere))
    stop["agent_transcript_path"] = str(elsewhere.with_suffix("") / "subagents" / "agent-a1.jsonl")
    with host.held(agent_id):
        host.run("every_event", stop)
    assert [event["kind"] for event in host.deferred()] == ["start", "stop"]

    planned, line = previewed(host, agent_id), listed(host)[agent_id]

    assert (line["phase"], planned["phase"]) == ("approval", "approval")
    assert planned == left(host, agent_id)


def test_a_late_event_of_a_dropped_run_changes_neither_preview_nor_record(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    store = FileStore(str(tmp_path / "s"), durable=False)
    run: Any = {"run": 60, "host_session_id": "c", "started_at": format_time(now)}
    record: Any = {**new_record("s-1", "Explore", "general", {}, now), "phase": "investigating", "runs": [run]}
    store.create(record | {"runs_dropped": 59})
    old = {"at": format_time(now), "kind": "stop", "run": 3, "evidence": {"host_agent_id": "old"}}
    store.append("s-1", "events.jsonl", [old])  # type: ignore[list-item]
    late: Any = {"kind": "stop", "at": format_time(now), "host_session_id": "c", "host_agent_id": "old"}
    store.defer(late | {"marker_phase": "approval", "marker_id": "s-1", "has_message": True, "last_message": "?"}, now)

    planned = foreseen(store, now, Config({})).read("s-1")
    apply_deferred(store, now, Config({}))

    assert store.read("s-1")["phase"] == "investigating"
    assert planned == store.read("s-1")


@pytest.fixture
def dense(host: Host) -> str:
    """The id of a session whose record would be too long if it were written again with indentation."""
    agent_id = host.delegate()
    file = host.root / agent_id / "state.json"
    deep = json.loads("[" * 50 + ",".join("1" * 15_000) + "]" * 50)
    record = {**json.loads(file.read_bytes()), "metadata": {"a": deep}}
    with host.held(agent_id):
        host.stop(message=ASKS)
    file.write_text(json.dumps(record, separators=(",", ":")), encoding="utf-8")
    # This write cannot apply the event, which stays in the inbox.
    gaia_sessions.create_session(agent_id="other", root=str(host.root))
    assert file.stat().st_size < 1 << 20
    assert len(host.waiting()) == 1
    return agent_id


def test_a_session_that_cannot_be_previewed_breaks_no_list_and_no_dry_run(host: Host, dense: str) -> None:
    root = str(host.root)

    assert set(listed(host)) == {dense, "other"}
    assert gaia_sessions.explain_resume(dense, root=root)["agent_id"] == dense
    gaia_sessions.Sessions(root).reconcile(dry_run=True)
    gaia_sessions.cleanup_sessions(0, dry_run=True, root=root)


@pytest.mark.usefixtures("dense")
def test_a_session_that_cannot_be_previewed_does_not_hide_others_from_a_conversation(host: Host) -> None:
    gaia_sessions.update_state("other", "planning", root=str(host.root))
    host.edit("other", runs=[{"run": 1, "host": "claude-code", "end": "stopped", "ended_at": host.ago()}])
    told = host.hear(host.event_payload("SessionStart", source="startup"))
    assert told is not None
    assert "[gaia-sessions: resume other]" in told["additionalContext"]


@table("kind", ["main_stop", "session_end"])
def test_without_an_index_neither_preview_nor_writer_changes_an_ended_session(tmp_path: Path, kind: str) -> None:
    """An index finds only open sessions; without an index, the search finds all sessions."""
    now, store = datetime.now(UTC), FileStore(f"{tmp_path}/{kind}", durable=False)
    run: Any = {"run": 1, "host_session_id": "c", "tool_use_id": "t", "claimed_at": format_time(now)}
    ended: Any = {**new_record("s-1", "Explore", "-", {}, now), "phase": "failed", "runs": [run]}
    store.create(ended)
    shutil.rmtree(f"{store.root}/.index")
    store.defer({"kind": kind, "at": format_time(now), "host_session_id": "c"}, now)

    planned = dict(foreseen(store, now, Config({})).scan())
    apply_deferred(store, now, Config({}))

    assert planned == dict(store.scan())
    assert planned["s-1"] == ended


def test_a_late_hook_lists_sessions_without_waiting_events(host: Host) -> None:
    now, store = datetime.now(UTC), FileStore(str(host.root), durable=False)
    for number in range(20):
        run: Any = {"run": 1, "host_session_id": "c", "claimed_at": format_time(now), "tool_use_id": f"t{number}"}
        store.create({**new_record(f"s-{number:02}", "Explore", "general", {}, now), "runs": [run]})
    for _ in range(30):
        store.defer({"kind": "session_end", "at": format_time(now), "host_session_id": "c"}, now)
    looks = 0

    def is_late() -> bool:
        nonlocal looks
        looks += 1
        return looks > 1

    found = dict(open_sessions(store, now, Config({}), is_late, None))

    assert (len(found), {record["phase"] for record in found.values()}) == (20, {"initializing"})  # type: ignore[index]


def test_previewed_children_of_a_session_have_their_waiting_events_applied(host: Host) -> None:
    now, store = datetime.now(UTC), FileStore(str(host.root), durable=False)
    for number in range(20):
        store.create({**new_record(f"s-{number:02}", "Explore", "-", {}, now), "parent_id": f"s-{number % 2:02}"})
        event: Any = {"kind": "finalize", "at": format_time(now), "agent_id": f"s-{number:02}", "outcome": "completed"}
        store.defer(event, now)

    found = foreseen(store, now, Config({})).children(["s-01"])

    assert sorted((record["agent_id"], record["phase"]) for record in found) == [
        (f"s-{number:02}", "completed") for number in range(1, 20, 2)
    ]


def test_many_waiting_ends_of_one_conversation_scan_its_sessions_once(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        host.work(f"toolu_{number}", f"a{number}")
    store, now = FileStore(str(host.root), durable=False), datetime.now(UTC)
    for _ in range(9):
        store.defer({"kind": "main_stop", "at": format_time(now), "host_session_id": host.SESSION, "running": []}, now)
    scans: list[Any] = []
    scan = FileStore.scan

    def counted(self: FileStore, **asked: Any) -> Any:
        scans.append(asked)
        return scan(self, **asked)

    monkeypatch.setattr(FileStore, "scan", counted)

    found = dict(foreseen(store, now, Config({})).scan())

    assert (len(found), len([asked for asked in scans if asked.get("host_session_id")])) == (3, 1)


# Sessions that a waiting event begins


def held_delegation(host: Host) -> None:
    """The delegation waits because its lock is held."""
    with host.key_held("toolu_1"):
        host.hear(host.delegation())


def agent_named_late(host: Host) -> None:
    """The journal of a workflow names the agent only after its start was reported."""
    folder = host.agents / "workflows" / "wf_0a1b2c3d-4e5"
    folder.mkdir(parents=True)
    host.hear(host.starting())
    entry = {"type": "started", "key": "v2:abc", "agentId": "a1", "label": "alpha"}
    (folder / "journal.jsonl").write_text(json.dumps(entry) + "\n", encoding="utf-8")


def many_at_once(host: Host) -> None:
    """Two delegations of the same moment wait."""
    now = datetime.now(UTC)
    with host.key_held("toolu_1"), host.key_held("toolu_2"), pytest.MonkeyPatch.context() as patched:
        patched.setattr("gaia_sessions.hook.run.utc_now", lambda: now)
        host.hear(host.delegation())
        host.hear(host.delegation("toolu_2"))


@table("wait", [held_delegation, agent_named_late, many_at_once])
@own_host
def test_a_session_that_a_waiting_event_begins_keeps_one_id(
    host: Host, wait: Callable[[Host], None], gaia: Callable[..., str]
) -> None:
    wait(host)
    assert host.records() == {}
    seen, again = list(listed(host)), list(listed(host))
    shown = [json.loads(gaia(host, "show", agent_id, "--json")) for agent_id in seen]
    assert gaia_sessions.get_session(seen[0], root=str(host.root)) is None

    written = json.loads(gaia(host, "update", seen[0], "--json"))

    assert again == seen
    assert [record["agent_id"] for record in shown] == seen
    assert written["agent_id"] == seen[0]
    assert (set(host.records()), host.waiting()) == (set(seen), [])


def test_a_workflow_agent_that_its_journal_names_late_is_listed_as_at_work(host: Host) -> None:
    agent_named_late(host)

    [line] = listed(host).values()
    planned = previewed(host, line["agent_id"])

    assert (line["purpose"], line["phase"], line["running"]) == ("alpha", "investigating", True)
    assert (planned["runs"][0]["workflow"]["key"], planned["agent_name"]) == ("v2:abc", "Explore")
    assert planned["runs"][0]["transcript_path"] == str(host.agents / "workflows/wf_0a1b2c3d-4e5/agent-a1.jsonl")
    assert planned == left(host, line["agent_id"])


def test_a_workflow_journal_older_than_the_waiting_start_is_not_read(host: Host) -> None:
    agent_named_late(host)
    journal = host.agents / "workflows/wf_0a1b2c3d-4e5/journal.jsonl"
    written = journal.stat().st_mtime

    os.utime(journal, (written, written - 60))
    assert listed(host) == {}

    os.utime(journal, (written, written))
    assert len(listed(host)) == 1


def test_a_session_of_a_waiting_event_can_be_shown_by_partial_id_and_cancelled(
    host: Host, gaia: Callable[..., str]
) -> None:
    agent_named_late(host)
    [agent_id] = listed(host)

    assert json.loads(gaia(host, "show", agent_id[-8:], "--json"))["agent_id"] == agent_id
    assert host.records() == {}

    [cancelled] = json.loads(gaia(host, "cancel", agent_id, "--json"))["cancelled"]
    assert (cancelled["agent_id"], cancelled["new"]) == (agent_id, True)
    assert list(host.records()) == [agent_id]
