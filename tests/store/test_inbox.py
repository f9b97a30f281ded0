"""The files of the inbox: their names sort by time, and a bad file stops no other event."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from gaia_sessions.config import Config
from gaia_sessions.errors import InvalidInput
from gaia_sessions.ingest.deferred import apply_deferred
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import new_record
from gaia_sessions.store.file_store import FileStore
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.session.host_events import Event


def event(number: int) -> Event:
    return {"kind": "stop", "host_agent_id": str(number)}


def test_the_file_names_of_waiting_events_sort_by_their_times(root: str, store: FileStore, now: datetime) -> None:
    for number, jump in enumerate([timedelta(), timedelta(microseconds=1), timedelta(seconds=1), timedelta(days=400)]):
        store.defer(event(number), now + jump)

    names = sorted(path.name for path in Path(root, ".inbox").iterdir())

    assert [json.loads(Path(root, ".inbox", name).read_bytes()) for name in names] == [event(n) for n in range(4)]
    assert [name for name, _ in store.deferred()] == names


def test_an_event_that_arrives_late_is_sorted_by_its_own_time(store: FileStore, now: datetime) -> None:
    store.defer(event(2), now)
    store.defer(event(1), now - timedelta(hours=1))

    assert [found for _, found in store.deferred()] == [event(1), event(2)]


def test_an_unreadable_event_is_yielded_as_an_error_and_can_be_dismissed(
    root: str, store: FileStore, now: datetime
) -> None:
    store.defer(event(1), now)
    Path(root, ".inbox", "20260101-000000-000000-00000000.json").write_bytes(b"[]")
    store.defer(event(2), now + timedelta(seconds=1))

    [(name, bad), *others] = store.deferred()
    store.dismiss(name)

    assert isinstance(bad, InvalidInput)
    assert [found for _, found in others] == [event(1), event(2)]
    assert [found for _, found in store.deferred()] == [event(1), event(2)]


def test_an_unfinished_file_in_the_inbox_is_not_an_event(root: str, store: FileStore, now: datetime) -> None:
    store.defer(event(1), now)
    Path(root, ".inbox", ".20260101-000000-000000-00000000.json.0123456789abcdef.tmp").write_bytes(b"{")

    assert [found for _, found in store.deferred()] == [event(1)]


FOREIGN = [
    "settings.json",
    "20260101-000000-000000-0000000g.json",
    "20260101-000000-00000x-00000000.json",
    "2026-101-000000-000000-00000000.json",
    "20260101-000000-000000-00000000-notes.json",
    "20260101-000000-000000-00000000.json.json",
]


def test_a_foreign_file_in_the_inbox_is_neither_applied_nor_removed(root: str, store: FileStore, now: datetime) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))
    waiting: Event = {"kind": "finalize", "at": format_time(now), "agent_id": "one", "outcome": "completed"}
    store.defer(event(1), now)
    for name in FOREIGN:
        Path(root, ".inbox", name).write_text(json.dumps(waiting), encoding="utf-8")

    applied = apply_deferred(store, now, Config({}))
    for name in FOREIGN:
        store.dismiss(name)

    assert [line.partition(" ")[2] for line in applied] == ["dropped: at: missing"]
    assert list(store.deferred()) == []
    assert store.read("one")["phase"] == "initializing"
    assert [json.loads(Path(root, ".inbox", name).read_bytes()) for name in FOREIGN] == [waiting] * len(FOREIGN)


@table("stranger", ["notes.txt", ".locks/precious"])
def test_events_stored_in_a_root_with_foreign_files_are_read_and_dismissed(
    new_folder: Callable[[], Path], now: datetime, stranger: str
) -> None:
    root = f"{new_folder()}/root"
    store = FileStore(root, durable=False)
    Path(root, stranger).parent.mkdir(parents=True)
    Path(root, stranger).write_bytes(b"theirs")
    store.defer(event(1), now)

    [(name, found)] = store.deferred()
    store.dismiss(name)

    assert (found, list(store.deferred())) == (event(1), [])


def test_in_an_inbox_with_a_foreign_file_only_events_are_read_and_removed(
    root: str, store: FileStore, now: datetime
) -> None:
    mail = Path(root, ".inbox", "mail.json")
    mail.parent.mkdir(parents=True)
    mail.write_bytes(b"{}")

    name = store.defer(event(1), now)
    assert list(store.deferred()) == [(name, event(1))]
    for waiting in ("mail.json", name):
        store.dismiss(waiting)

    assert os.listdir(mail.parent) == ["mail.json"]
