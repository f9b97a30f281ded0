"""Whoever looks sees sessions as the next writer will leave them: what waits in the inbox counts, and stays there."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.api import Sessions
from gaia_sessions.clock import write_time
from gaia_sessions.config import Config
from gaia_sessions.errors import SessionNotFound
from gaia_sessions.lifecycle.news import apply_deferred
from gaia_sessions.lifecycle.preview import Preview
from gaia_sessions.stores.files import FileStore
from tests.hooks.test_lives import CAPTURES, IDS, Life

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hooks.conftest import Host

ASKS = "[gaia-sessions: approval] shall I?"


def listed(host: Host, **wanted: Any) -> dict[str, Any]:
    return {line["agent_id"]: line for line in gaia_sessions.list_sessions(root=str(host.root), **wanted)}


def previewed(host: Host, agent_id: str) -> Any:
    return Sessions(str(host.root)).preview(agent_id)


def left_by_the_next_writer(host: Host) -> Any:
    """What the next writer leaves of the only record there is."""
    gaia_sessions.create_session(agent_id="next-writer", root=str(host.root))
    records = host.records()
    del records["next-writer"]
    [record] = records.values()
    return record


def test_an_agent_whose_start_still_waits_is_listed_as_at_work(host: Host) -> None:
    host.begin()
    before = host.tree(host.root)
    assert [event["kind"] for event in host.deferred()] == ["start"]

    [(agent_id, line)] = listed(host, active_only=True).items()

    assert (line["phase"], line["running"], line["resume"]["reason"]) == ("investigating", True, "running")
    assert listed(host, phases=["initializing"]) == {}
    assert gaia_sessions.get_session(agent_id, root=str(host.root)) == host.record()
    assert host.record()["phase"] == "initializing"
    assert host.tree(host.root) == before


def test_a_preview_is_the_record_that_the_next_writer_leaves(host: Host) -> None:
    agent_id = host.delegate()
    with host.held(agent_id):
        host.stop(message=ASKS)

    foreseen = previewed(host, agent_id)

    assert foreseen == left_by_the_next_writer(host)
    assert (foreseen["phase"], host.waiting()) == ("approval", [])


def test_a_conversation_that_begins_is_offered_work_whose_pause_still_waits(host: Host) -> None:
    agent_id = host.delegate()
    with host.held(agent_id):
        host.stop(message=ASKS)
        told = host.hear(host.news("SessionStart", source="startup"))
        assert len(host.waiting()) == 1
    assert f"[gaia-sessions: resume {agent_id}]" in told["additionalContext"]


def test_several_sessions_are_previewed_together(host: Host) -> None:
    for number in range(3):
        host.begin(f"toolu_{number}", f"a{number}")
    with host.held(host.work("toolu_9", "a9")):
        host.hear(host.news("SessionEnd", reason="other"))

    foreseen = {agent_id: line["phase"] for agent_id, line in listed(host).items()}
    gaia_sessions.create_session(agent_id="next-writer", root=str(host.root))

    left = {agent_id: record["phase"] for agent_id, record in host.records().items() if agent_id != "next-writer"}
    assert foreseen == left
    assert len(left) == 4


class Counted(FileStore):
    """Counts how often the inbox is looked at, and what is read of it."""

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


@pytest.mark.parametrize("sessions", [1, 3])
def test_a_list_looks_at_the_inbox_once_and_reads_only_what_concerns_its_sessions(host: Host, sessions: int) -> None:
    for number in range(sessions):
        host.begin(f"toolu_{number}", f"a{number}")
    store, now = FileStore(str(host.root), durable=False), datetime.now(UTC)
    for number in range(20):
        strange: Any = {"kind": "stop", "at": write_time(now), "host_session_id": "s", "host_agent_id": f"b{number}"}
        store.defer(strange, now)
    waiting = len(host.waiting()) - 20
    counted = Counted(str(host.root))

    found = dict(Preview(counted, now, Config({})).scan())

    assert len(found) == sessions
    assert counted.calls == {"waiting": 1, "read": waiting}


class Overtaken(FileStore):
    """Somebody applies what waits, and then does something else, after it was seen to wait."""

    def deferred(self, names: Any = None) -> Any:
        apply_deferred(FileStore(self.root), datetime.now(UTC), Config({}))
        self.meanwhile()
        return super().deferred(names)

    def meanwhile(self) -> None: ...


class Deleting(Overtaken):
    def meanwhile(self) -> None:
        for agent_id, _ in FileStore(self.root).scan():
            FileStore(self.root).delete(agent_id, lambda _: True)


@pytest.fixture
def paused(host: Host) -> str:
    """The id of a session whose pause waits in the inbox."""
    agent_id = host.delegate()
    with host.held(agent_id):
        host.stop(message=ASKS)
    return agent_id


def test_what_is_applied_while_somebody_lists_is_listed_all_the_same(host: Host, paused: str) -> None:
    found: dict[str, Any] = dict(Preview(Overtaken(str(host.root)), datetime.now(UTC), Config({})).scan())
    assert {agent_id: record["phase"] for agent_id, record in found.items()} == {paused: "approval"}


def test_what_is_deleted_while_somebody_lists_is_not_there(host: Host, paused: str) -> None:
    sessions = Preview(Deleting(str(host.root)), datetime.now(UTC), Config({}))
    assert list(sessions.scan()) == []
    with pytest.raises(SessionNotFound):
        sessions.read(paused)


def test_a_dry_run_of_a_cleanup_judges_what_the_real_one_will(host: Host, paused: str) -> None:
    host.edit(paused, last_updated=write_time(datetime.now(UTC) - timedelta(hours=30)))
    told = gaia_sessions.cleanup_sessions(dry_run=True, root=str(host.root))
    done = gaia_sessions.cleanup_sessions(root=str(host.root))
    assert {**told, "dry_run": False, "swept": done["swept"]} == done
    assert (done["removed"], list(host.records())) == ([], [paused])


class Watched(Life):
    """Before each line somebody looks, and the next writer does what was foreseen, on a copy of the root."""

    looks = 0

    def tell(self, payload: dict[str, Any]) -> None:
        if self.root.exists():
            self.look(FileStore(str(self.root)), datetime.now(UTC))
        super().tell(payload)

    def look(self, store: FileStore, now: datetime) -> None:
        if not store.waiting():
            return
        foreseen = dict(Preview(store, now, Config({})).scan())
        copy = self.folder / f"copy-{self.looks}"
        shutil.copytree(self.root, copy)
        writer = FileStore(str(copy), durable=False)
        apply_deferred(writer, now, Config({}))
        assert {agent_id: writer.read(agent_id) for agent_id in foreseen} == foreseen
        self.looks += 1


@pytest.mark.parametrize("capture", CAPTURES, ids=IDS)
def test_at_every_moment_of_a_real_life_a_preview_is_what_the_next_writer_leaves(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Watched(tmp_path, monkeypatch)
    life.live(life.lines(capture))
    assert life.errors == []
    assert life.looks > 0 or capture.stem != "parallel"
