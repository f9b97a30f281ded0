"""The figures that a removed session leaves."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions
from gaia_sessions.api import app_sessions, removal
from gaia_sessions.api.cancelling import mark_cancelled
from gaia_sessions.api.cleaning import CleanupPolicy, remove_unused
from gaia_sessions.api.figures_of_all import stats
from gaia_sessions.errors import DurabilityUnknown, FiguresLost, StoreFailure
from gaia_sessions.session.clock import format_time
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from tests.figures import counted, left, standing_figures, unread
from tests.places import planned, writing
from tests.records import LIMITS, moved, record_with
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gaia_sessions.session.schema import Record

NOW = utc_now()
OLD = format_time(NOW - timedelta(days=40))
BETWEEN, LATER = (format_time(NOW - timedelta(days=days)) for days in (30, 20))
FILE = ".stats.jsonl"


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """Four old sessions (two have ended, one is open, one belongs to an app) and a young one."""
    store = FileStore(f"{tmp_path}/root", durable=False)
    put(store, "done", phase="completed", history=[moved("investigating", "completed", OLD)], purpose="secret words")
    put(store, "failed", phase="failed", history=[moved("planning", "failed", OLD)], last_error=_error("secret words"))
    put(store, "open", error_count=3)
    put(store, "app", phase="completed", app="kb", user="u1")
    put(store, "young", at=format_time(NOW))
    return store


def put(store: FileStore, agent_id: str, at: str = OLD, **changed: Any) -> Record:
    times = {"created_at": at, "last_updated": at}
    record = {**record_with(), "agent_id": agent_id, "agent_name": "Explore", **times, **changed}
    store.create(record)  # type: ignore[arg-type]  # with keys of a record
    return store.read(agent_id)


def _error(message: str) -> dict[str, str]:
    return {"message": message, "timestamp": OLD}


def policy(hours: float = 1, **more: Any) -> CleanupPolicy:
    return CleanupPolicy(NOW, hours, LIMITS, keep_days=0, **more)


def by_cleanup(store: FileStore) -> Sequence[str]:
    return remove_unused(store, policy())["removed"]


def by_rm(store: FileStore) -> Sequence[str]:
    removed, failed = removal.remove_named(writing(store, NOW), ["done", "open"], force=True)
    assert failed == []
    return [one["agent_id"] for one in removed]


def by_app(store: FileStore) -> Sequence[str]:
    app_sessions.remove(store, NOW, LIMITS, "kb", "u1", "app")
    return ["app"]


@pytest.mark.parametrize(
    ("act", "gone"),
    [(by_cleanup, ["done", "failed", "open"]), (by_rm, ["done", "open"]), (by_app, ["app"])],
)
def test_each_removed_session_leaves_its_figures_and_no_text(
    store: FileStore, act: Callable[[FileStore], Sequence[str]], gone: list[str]
) -> None:
    expected = {(agent_id, OLD): standing_figures(store, NOW)[agent_id, OLD] for agent_id in gone}
    before = counted(store)

    assert sorted(act(store)) == gone

    assert (left(store), unread(store)) == (expected, 0)
    assert counted(store) == before | dict.fromkeys(expected, "left")
    lines = Path(store.root, FILE).read_bytes()
    assert b"secret" not in lines
    assert lines.count(b"\n") == len(gone)


def test_a_dry_run_writes_no_figures(store: FileStore) -> None:
    plan = planned(store)
    assert remove_unused(plan, policy())["removed"] != []
    assert (left(plan), left(store)) == ({}, {})
    assert not Path(store.root, FILE).exists()


def test_a_cleanup_writes_all_figures_at_once_before_the_first_removal(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    add = store.add_figures

    def noted(figures: Sequence[Mapping[str, object]]) -> None:
        seen.append((len(figures), len(store.ids())))
        add(figures)

    monkeypatch.setattr(store, "add_figures", noted)
    assert len(remove_unused(store, policy())["removed"]) == 3
    assert seen == [(3, 5)]


@pytest.mark.parametrize("act", [by_cleanup, by_rm])
def test_a_session_that_changed_after_its_figures_leaves_new_figures(
    store: FileStore, act: Callable[[FileStore], Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    add = store.add_figures
    wanted: list[Any] = []

    def changed_meanwhile(figures: Sequence[Mapping[str, object]]) -> None:
        add(figures)
        if not wanted:
            store.change("open", lambda record: {**record, "phase": "failed", "error_count": 7})
            wanted.append(standing_figures(store, NOW)["open", OLD])

    monkeypatch.setattr(store, "add_figures", changed_meanwhile)
    assert "open" in act(store)
    assert [left(store)["open", OLD]] == wanted
    assert (wanted[0]["state"], wanted[0]["errors"]) == ("failed", 7)


@pytest.mark.parametrize("act", [by_cleanup, by_rm])
def test_a_session_cancelled_after_its_figures_leaves_figures_as_cancelled(
    store: FileStore, act: Callable[[FileStore], Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    add = store.add_figures
    written: list[int] = []

    def cancelled_meanwhile(figures: Sequence[Mapping[str, object]]) -> None:
        add(figures)
        written.append(len(figures))
        if len(written) == 1:
            mark_cancelled(store, NOW, "open", "not needed", below=False)

    monkeypatch.setattr(store, "add_figures", cancelled_meanwhile)
    gone = act(store)
    found = left(store)["open", OLD]
    assert (found["state"], found["ended_at"]) == ("cancelled", format_time(NOW))
    assert written == [len(gone), 1]


def test_older_figures_that_are_written_last_do_not_count(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    add = store.add_figures

    def after_another(figures: Sequence[Mapping[str, object]]) -> None:
        monkeypatch.setattr(store, "add_figures", add)
        store.change("open", lambda record: {**record, "phase": "failed", "revision": record["revision"] + 1})
        by_rm(store)
        add(figures)

    monkeypatch.setattr(store, "add_figures", after_another)
    by_cleanup(store)
    total = stats(writing(store, NOW))["total"]
    assert (total["outcomes"]["failed"], total["removed"]) == (2, 0)
    assert left(store)["open", OLD]["state"] == "failed"


def test_a_session_that_stays_after_its_figures_counts_by_its_record(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = store.add_figures

    def used_meanwhile(figures: Sequence[Mapping[str, object]]) -> None:
        add(figures)
        store.change("open", lambda record: {**record, "last_updated": format_time(NOW)})

    monkeypatch.setattr(store, "add_figures", used_meanwhile)
    assert sorted(remove_unused(store, policy())["removed"]) == ["done", "failed"]
    assert counted(store)["open", OLD] == "there"
    monkeypatch.undo()

    later = CleanupPolicy(NOW + timedelta(days=1), 1, LIMITS, keep_days=0)
    store.change("open", lambda record: {**record, "error_count": 9})
    assert "open" in remove_unused(store, later)["removed"]
    assert (left(store)["open", OLD]["errors"], counted(store)["open", OLD]) == (9, "left")


@table("phase", ["completed", "failed", "abandoned", "investigating", "approval"])
@table("at", [OLD, LATER])
def test_a_mark_changes_the_figures_as_it_changes_the_state_of_the_session(
    store: FileStore, phase: str, at: str
) -> None:
    agent_id = f"marked-{phase}-{at[:4]}{at[5:7]}"
    put(store, agent_id, phase=phase, history=[moved("planning", phase, BETWEEN)])
    mark: Any = {"at": at, "below": True}
    store.mark(agent_id, lambda _: mark)
    expected = standing_figures(store, NOW)[agent_id, OLD]

    removal.remove_named(writing(store, NOW), [agent_id], force=True)

    assert left(store)[agent_id, OLD] == expected


def test_a_new_session_with_a_removed_id_counts_beside_the_removed_one(store: FileStore) -> None:
    by_rm(store)
    again = put(store, "done", at=format_time(NOW))
    assert {key: how for key, how in counted(store).items() if key[0] == "done"} == {
        ("done", OLD): "left",
        ("done", again["created_at"]): "there",
    }


def test_corrupt_and_newer_records_leave_no_figures(store: FileStore) -> None:
    state = Path(store.root, "done", "state.json")
    state.write_bytes(b"{")
    newer = Path(store.root, "app", "state.json")
    newer.write_text(json.dumps({**json.loads(newer.read_bytes()), "schema": 99}), encoding="utf-8")

    assert "done" in remove_unused(store, policy(corrupt=True))["removed"]
    app_sessions.remove(store, NOW, LIMITS, "kb", "u1", "app")
    assert {agent_id for agent_id, _ in left(store)} == {"failed", "open"}


def test_a_store_without_figures_removes_the_same_sessions_and_writes_none(store: FileStore) -> None:
    none = FileStore(store.root, durable=False, keeps_figures=False)
    assert sorted(remove_unused(none, policy())["removed"]) == ["done", "failed", "open"]
    assert not Path(store.root, FILE).exists()


def test_the_file_of_figures_may_be_deleted_at_any_time(store: FileStore) -> None:
    by_rm(store)
    Path(store.root, FILE).unlink()
    assert left(store) == {}
    by_cleanup(store)
    assert {agent_id for agent_id, _ in left(store)} == {"failed"}


def _is_folder(path: Path) -> None:
    path.mkdir()


def _is_link(path: Path) -> None:
    path.symlink_to("done/state.json")


def _is_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("make", [_is_folder, _is_link, _is_pipe])
@pytest.mark.parametrize("act", [by_cleanup, by_rm, by_app])
def test_figures_that_cannot_be_written_are_one_warning_and_stop_no_removal(
    store: FileStore, act: Callable[[FileStore], Sequence[str]], make: Callable[[Path], None]
) -> None:
    make(Path(store.root, FILE))
    with pytest.warns(FiguresLost, match=rf"could not be stored: .*{FILE}") as caught:
        gone = act(store)
    assert [type(one.message) for one in caught] == [FiguresLost]
    assert {*gone} & {*store.ids()} == set()
    with pytest.raises(StoreFailure, match=FILE):
        list(store.figures())


def test_figures_that_may_be_lost_are_one_warning_and_later_ones_are_written(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = store.add_figures

    def unsure(figures: Sequence[Mapping[str, object]]) -> None:
        add(figures)
        if store.read("open")["phase"] != "failed":
            store.change("open", lambda record: {**record, "phase": "failed"})
        raise DurabilityUnknown(store.root, "Input/output error")

    monkeypatch.setattr(store, "add_figures", unsure)
    with pytest.warns(FiguresLost, match="the figures of removed sessions may be lost after a power failure") as caught:
        by_rm(store)
    assert len(caught) == 1
    assert left(store)["open", OLD]["state"] == "failed"


@table("words", [("rm", "done"), ("cleanup",)])
def test_keep_figures_in_the_settings_file_switches_figures_off(tmp_path: Path, words: tuple[str, ...]) -> None:
    root = f"{tmp_path}/{words[0]}"
    put(FileStore(root), "done", phase="completed")
    Path(root, ".config.toml").write_text("keep_figures = false\n", encoding="utf-8")
    sessions = Sessions(root)
    assert (sessions.remove(["done"]) if words[1:] else sessions.cleanup()["removed"]) != []
    assert not Path(root, FILE).exists()
