"""Imports of sessions from other folders: which files are copied, what is refused, and how open runs end."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.api import at
from gaia_sessions.errors import NoSuchFolder, SessionNotFound, StoreFailure
from gaia_sessions.session import index_keys
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import new_record
from gaia_sessions.session.runs import with_claimed_run, with_start
from gaia_sessions.store import index
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.import_source import Source
from gaia_sessions.store.output_file import LARGEST_FILE
from tests.figures import left
from tests.table import table
from tests.transcripts import begin_anew

if TYPE_CHECKING:
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record, Run

NOW = datetime.now(UTC)
KEYS: Run = {"host": "claude-code", "host_session_id": "s-1", "tool_use_id": "toolu_1"}


@pytest.fixture
def there(tmp_path: Path) -> str:
    return str(tmp_path / "there")


@pytest.fixture
def here(tmp_path: Path) -> str:
    return str(tmp_path / "here")


def create(root: str, agent_id: str, phase: str = "planning", **created: Any) -> Path:
    gaia_sessions.create_session("worker", "some work", agent_id=agent_id, root=root, **created)
    gaia_sessions.update_state(agent_id, phase, root=root)
    return Path(root, agent_id)


def create_at_work(root: str, agent_id: str, phase: str = "investigating") -> Path:
    """A session with a run that started five minutes ago and has no end."""
    began = datetime.now(UTC) - timedelta(minutes=5)
    record = with_claimed_run(new_record(agent_id, "worker", "some work", {}, began), KEYS, began)
    record = with_start(record, record["runs"][-1], {"started_at": format_time(began), "host_agent_id": "a1"}, began)
    FileStore(root).create({**record, "phase": phase, "resume_ready": phase != "executing"})
    return Path(root, agent_id)


def news_of(agent: str, **fields: Any) -> Event:
    """An event of the conversation ``s-1`` about ``agent``."""
    keys = {"host": "claude-code", "host_session_id": "s-1", "host_agent_id": agent}
    return {"at": format_time(NOW), **keys, **fields}  # type: ignore[typeddict-item]


def everything_in(top: str) -> dict[str, tuple[int, int, int]]:
    """The mode, the time and the inode of everything below ``top``."""
    found = {path: path.lstat() for path in [Path(top), *Path(top).rglob("*")]}
    return {str(path): (status.st_mode, status.st_mtime_ns, status.st_ino) for path, status in found.items()}


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def said(agent_id: str, root: str) -> list[str]:
    messages = list(gaia_sessions.Sessions(root).messages(agent_id))
    assert [message for message in messages if not isinstance(message, dict)] == []
    return [message["content"] for message in messages if isinstance(message, dict)]


def record_of(root: str, agent_id: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(Path(root, agent_id, "state.json").read_bytes())
    return record


def test_an_import_copies_every_own_file_of_a_session_and_makes_it_private(here: str, there: str) -> None:
    folder = create(there, "a")
    gaia_sessions.Sessions(there).add_message("a", "user", "first")
    begin_anew(FileStore(there), "a")
    gaia_sessions.Sessions(there).add_message("a", "user", "second")
    FileStore(there).append("a", "events.jsonl", [{"at": "then"}])
    folder.joinpath("transcript-aside.jsonl").write_bytes(b"{}\n")
    folder.joinpath("cancelled.json").write_text('{"at": "2026-01-08T18:10:15Z", "below": false}', encoding="utf-8")
    folder.joinpath("notes.txt").write_text("mine", encoding="utf-8")
    folder.joinpath(".state.json.0123456789abcdef.tmp").write_bytes(b"{")
    folder.joinpath("transcript.jsonl.bak").symlink_to("/etc/passwd")
    folder.joinpath("more").mkdir()
    for path in folder.iterdir():
        if not path.is_symlink():
            path.chmod(0o777)
    before = everything_in(there)
    files = files_of(Path(shutil.copytree(folder, f"{there}-copy", ignore=shutil.ignore_patterns("more", "*.bak"))))

    assert gaia_sessions.Sessions(here).import_from(there)["imported"] == ["a"]

    assert everything_in(there) == before
    taken = files_of(Path(here, "a"))
    assert taken.keys() == files.keys() - {"notes.txt", ".state.json.0123456789abcdef.tmp"}
    assert len(taken) >= 6
    assert {name for name in taken if taken[name] != files[name]} == {"state.json"}
    status = [path.lstat() for path in Path(here, "a").iterdir()]
    assert {(stat.S_IMODE(one.st_mode), one.st_nlink, stat.S_ISREG(one.st_mode)) for one in status} == {
        (0o600, 1, True)
    }
    assert stat.S_IMODE(Path(here, "a").stat().st_mode) == 0o700
    assert said("a", here) == ["second"]


def test_figures_of_removed_sessions_are_not_imported(here: str, there: str) -> None:
    create(there, "one")
    create(there, "gone")
    gaia_sessions.Sessions(there).remove(["gone"], force=True)
    before = everything_in(there)

    assert gaia_sessions.Sessions(here).import_from(there)["imported"] == ["one"]

    assert (everything_in(there), left(FileStore(here))) == (before, {})
    assert {agent_id for agent_id, _ in left(FileStore(there))} == {"gone"}


def test_the_first_message_after_an_import_has_the_next_number(here: str, there: str) -> None:
    create(there, "a")
    gaia_sessions.Sessions(there).add_message("a", "user", "first")
    begin_anew(FileStore(there), "a")
    gaia_sessions.Sessions(here).import_from(there)
    assert gaia_sessions.Sessions(here).add_message("a", "user", "second")["seq"] == 2
    begin_anew(FileStore(here), "a")
    archived = {path.read_bytes().count(b"\n") for path in Path(here, "a").glob("transcript*") if path.stat().st_size}
    assert archived == {1}
    assert len([path for path in Path(here, "a").glob("transcript*") if path.stat().st_size]) == 2


def test_an_imported_record_names_its_source_and_has_the_next_revision(here: str, there: str) -> None:
    create(there, "a")
    before = record_of(there, "a")

    gaia_sessions.Sessions(here).import_from(there)

    assert record_of(here, "a") == {**before, "revision": 3, "imported_from": there}
    assert gaia_sessions.should_resume("a", root=here)
    assert gaia_sessions.update_state("a", "executing", root=here)["revision"] == 4


def test_a_link_in_an_imported_folder_is_not_followed_to_a_root(here: str, there: str, tmp_path: Path) -> None:
    create(there, "of-another-project")
    (tmp_path / "session").symlink_to(there)
    for number, linked in enumerate((".claude", ".claude/session")):
        came = tmp_path / f"artifact-{number}"
        (came / linked).parent.mkdir(parents=True)
        target = there if linked.endswith("session") else Path(there).parent
        (came / linked).symlink_to(target)
        assert gaia_sessions.Sessions(here).import_from(str(came))["imported"] == []


def test_paths_processes_and_worktrees_of_a_run_are_not_imported(here: str, there: str) -> None:
    session = create(there, "work")
    record = json.loads((session / "state.json").read_bytes())
    then = record["created_at"]
    place = {"preset": "claude", "id": "--settings={}", "cwd": "/evil", "generation": 0, "seq": 0}
    elsewhere = {
        "conversation": place,
        "host_process": {"pid": 1, "lock": "/evil"},
        "transcript_path": "/evil/a.jsonl",
        "output_path": "/evil/out",
        "worktree": {"path": "/evil", "branch": "--help"},
    }
    kept = {"run": 1, "started_at": then, "ended_at": then, "end": "stopped", "last_message": "Done."}
    of_command = {**kept, "run": 2, "exit_code": 0, "wrapper": {"pid": 1, "lock": "/evil", "lock_folder": "1:1"}}
    record["runs"] = [{**kept, **elsewhere, "host": "claude-code"}, {**of_command, **elsewhere}]
    (session / "state.json").write_text(json.dumps(record), encoding="utf-8")

    assert gaia_sessions.Sessions(here).import_from(there)["imported"] == ["work"]

    runs = gaia_sessions.Sessions(here).store.read("work")["runs"]
    assert runs == [{**kept, "host": "claude-code"}, {**of_command, "wrapper": {}}]


@table(("phase", "after"), [("investigating", "investigating"), ("executing", "abandoned")])
def test_an_imported_run_without_an_end_is_lost_and_the_phase_decides_about_resuming(
    here: str, there: str, phase: str, after: str
) -> None:
    here, there = f"{here}-{phase}", f"{there}-{phase}"
    create_at_work(there, "a", phase)

    gaia_sessions.Sessions(here).import_from(there)

    record = record_of(here, "a")
    (run,) = record["runs"]
    assert (record["phase"], run["end"], "ended_at" in run) == (after, "lost", True)
    assert run["detail"] == "it had no end when its session was imported"
    assert record["last_updated"] == record_of(there, "a")["last_updated"]
    assert gaia_sessions.should_resume("a", root=here) == (after == "investigating")
    assert "ended_at" not in record_of(there, "a")["runs"][0]


def test_cancelled_sessions_are_imported_as_abandoned_with_their_marks(here: str, there: str) -> None:
    create(there, "above")
    create(there, "below", parent_id="above")
    create_at_work(there, "solo", "planning")
    create(there, "other")
    create(there, "done")
    gaia_sessions.finalize_session("done", "completed", root=there)
    gaia_sessions.Sessions(there).cancel("above", "enough")
    for agent_id in ("solo", "done"):
        gaia_sessions.Sessions(there).cancel(agent_id)

    gaia_sessions.Sessions(here).import_from(os.path.join(there, "below"), there)

    phases = {agent_id: record_of(here, agent_id)["phase"] for agent_id in ("above", "below", "done", "other", "solo")}
    ended = dict.fromkeys(("above", "below", "solo"), "abandoned")
    assert phases == {**ended, "done": "completed", "other": "planning"}
    marks = {path.parent.name for path in Path(here).glob("*/cancelled.json")}
    assert marks == {"above", "solo", "done"}


def test_only_sessions_that_a_waiting_event_may_change_are_not_imported(here: str, there: str) -> None:
    for agent_id in ("a", "b", "c"):
        create_at_work(there, agent_id) if agent_id == "a" else create(there, agent_id)
    FileStore(there).defer(news_of("a1", kind="stop", last_message="Done.", has_message=True), NOW)
    ending: Event = {"kind": "finalize", "at": format_time(NOW), "agent_id": "b", "outcome": "failed"}
    FileStore(there).defer(ending, NOW)
    before = everything_in(there)

    for dry_run in (True, False):
        report = gaia_sessions.Sessions(here).import_from(there, dry_run=dry_run)
        assert (report["imported"], report["waiting"]) == (["c"], {there: 2})
        assert [(one["agent_id"], one["reason"]) for one in report["failed"]] == [("a", "io_error"), ("b", "io_error")]
        assert all(
            one["detail"].endswith("an event waits there that could change the session") for one in report["failed"]
        )
    assert (everything_in(there), FileStore(here).ids(), FileStore(here).waiting()) == (before, ["c"], [])

    gaia_sessions.Sessions(there).reconcile()
    report = gaia_sessions.Sessions(here).import_from(there)
    assert (report["imported"], report["already_there"], report["waiting"]) == (["a", "b"], ["c"], {})
    assert [record_of(here, agent_id)["phase"] for agent_id in ("a", "b")] == ["completed", "failed"]


def test_a_waiting_event_of_an_unknown_session_stops_the_import_of_every_session(here: str, there: str) -> None:
    create(there, "a")
    FileStore(there).defer(news_of("a1", kind="main_stop", running=[f"agent-{n}" for n in range(20)]), NOW)
    assert [keys for _, keys in FileStore(there).waiting()] == [""]
    report = gaia_sessions.Sessions(here).import_from(there)
    assert (report["imported"], [one["agent_id"] for one in report["failed"]]) == ([], ["a"])


def test_a_session_that_only_a_waiting_event_begins_is_not_imported(here: str, there: str) -> None:
    create(there, "b")
    of_workflow = {"agent_name": "Explore", "workflow": {"run_id": "w-1", "key": "k"}}
    FileStore(there).defer(news_of("a9", kind="start", **of_workflow), NOW)
    assert len(list(gaia_sessions.list_sessions(root=there))) == 2

    report = gaia_sessions.Sessions(here).import_from(there)

    assert (report["imported"], report["failed"], report["waiting"]) == (["b"], [], {there: 1})


def test_the_index_finds_imported_sessions(here: str, there: str) -> None:
    create_at_work(there, "a")
    gaia_sessions.Sessions(here).import_from(there)
    with Directory.at(here) as root:
        assert index.is_complete(root)
        for key in index_keys.keys_of(record_of(here, "a")):  # type: ignore[arg-type]
            assert index.ids_under(root, key) == ["a"]
    assert [line["agent_id"] for line in gaia_sessions.list_sessions(active_only=True, root=here)] == ["a"]


def test_if_several_folders_have_an_id_the_first_one_is_imported(here: str, there: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    create(there, "a")
    create(there, "b")
    create(str(project / ".claude" / "session"), "b", "executing")
    create(str(project / ".claude" / "session"), "c")
    create(here, "c", "approval")
    kept = files_of(Path(here, "c"))
    for dry_run in (True, False):
        report = gaia_sessions.Sessions(here).import_from(there, project, dry_run=dry_run)
        assert report["directories"] == [there, str(project / ".claude" / "session")]
        assert (report["imported"], report["already_there"], report["failed"]) == (["a", "b"], ["b", "c"], [])
    assert record_of(here, "b")["phase"] == "planning"
    assert files_of(Path(here, "c")) == kept


def test_a_folder_of_several_named_sessions_is_reported_once(here: str, there: str) -> None:
    for name in ("a", "b"):
        create(there, name)
    report = gaia_sessions.Sessions(here).import_from(Path(there, "a"), Path(there, "b"))
    assert (report["directories"], report["imported"]) == ([there], ["a", "b"])


def test_no_folder_is_imported_if_one_of_them_cannot_be_read(here: str, there: str, tmp_path: Path) -> None:
    create(there, "a")
    with pytest.raises(NoSuchFolder):
        gaia_sessions.Sessions(here).import_from(there, tmp_path / "nowhere")
    other = tmp_path / "other"
    create(str(other), "b")
    other.joinpath(".inbox").symlink_to(there)
    with pytest.raises(StoreFailure):
        gaia_sessions.Sessions(here).import_from(there, other)
    assert not os.path.exists(here)


def test_an_import_does_not_change_an_existing_session_even_if_it_is_corrupt(here: str, there: str) -> None:
    create(there, "a")
    Path(here, "a").mkdir(parents=True)
    Path(here, "a", "state.json").write_text("{", encoding="utf-8")
    for dry_run in (True, False):
        assert gaia_sessions.Sessions(here).import_from(there, dry_run=dry_run)["already_there"] == ["a"]
    assert files_of(Path(here, "a")) == {"state.json": b"{"}


class CreatedMeanwhile(FileStore):
    """A store in which another import creates a session right after it was not found."""

    def read(self, agent_id: str) -> Record:
        try:
            return super().read(agent_id)
        except SessionNotFound:
            create(self.root, agent_id)
            raise


def test_a_session_that_another_import_creates_meanwhile_is_already_there(
    here: str, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(there, "a")
    monkeypatch.setattr(at, "open_store", lambda root, _: CreatedMeanwhile(root))
    report = gaia_sessions.Sessions(here).import_from(there)
    assert (report["imported"], report["already_there"], report["failed"]) == ([], ["a"], [])


def test_a_foreign_folder_with_the_same_name_is_reported_and_not_changed(here: str, there: str) -> None:
    create(there, "a")
    Path(here, "a").mkdir(parents=True)
    Path(here, "a", "notes").write_text("mine", encoding="utf-8")
    for dry_run in (True, False):
        report = gaia_sessions.Sessions(here).import_from(there, dry_run=dry_run)
        assert [(one["agent_id"], one["reason"]) for one in report["failed"]] == [("a", "io_error")]
    assert files_of(Path(here, "a")) == {"notes": b"mine"}


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def hanging_link(path: Path) -> None:
    path.symlink_to("nowhere")


def folder(path: Path) -> None:
    path.mkdir()


def unix_socket(path: Path) -> None:
    here = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


def sparse(path: Path) -> None:
    path.write_bytes(b"{}\n" * 10_000)
    os.truncate(path, 1 << 20)


KINDS = [fifo, link, hanging_link, folder, unix_socket, sparse]


@table("name", ["transcript.jsonl", "transcript-7.jsonl", "output-1.log", "events.jsonl", "transcript-aside.jsonl"])
@table("make", KINDS)
def test_a_session_with_an_irregular_file_is_not_imported(here: str, there: str, name: str, make: Any) -> None:
    here, there = (f"{one}-{name}-{make.__name__}" for one in (here, there))
    create(there, "a")
    create(there, "b")
    path = Path(there, "a", name)
    path.unlink(missing_ok=True)
    make(path)
    reports = [gaia_sessions.Sessions(here).import_from(there, dry_run=dry_run) for dry_run in (True, False)]
    assert [report["imported"] for report in reports] == [["b"], ["b"]]
    (failed,) = reports[-1]["failed"]
    assert (failed["agent_id"], failed["detail"].startswith(str(path))) == ("a", True)
    assert sorted(path.name for path in Path(here).glob("[!.]*")) == ["b"]
    assert list(Path(here, ".stage").iterdir()) == []


def test_a_session_with_an_oversized_output_is_not_imported(here: str, there: str) -> None:
    for agent_id, size in (("a", LARGEST_FILE), ("b", LARGEST_FILE + 1)):
        create(there, agent_id)
        Path(there, agent_id, "output-1.log").write_bytes(b"x" * size)
    report = gaia_sessions.Sessions(here).import_from(there)
    assert (report["imported"], [one["agent_id"] for one in report["failed"]]) == (["a"], ["b"])
    assert f"an output has at most {LARGEST_FILE} bytes" in report["failed"][0]["detail"]


def test_a_session_is_not_imported_if_the_disk_has_no_room(
    here: str, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(there, "a")
    gaia_sessions.Sessions(there).add_message("a", "user", "x" * 10_000)
    fields = [*os.statvfs(there)]
    fields[4] = 1  # f_bavail
    monkeypatch.setattr(os, "fstatvfs", lambda _fd: os.statvfs_result(fields))
    report = gaia_sessions.Sessions(here).import_from(there)
    assert (report["imported"], [one["reason"] for one in report["failed"]]) == ([], ["io_error"])
    assert "the disk has less free space" in report["failed"][0]["detail"]


def test_a_hard_linked_file_is_copied_and_not_shared(here: str, there: str, tmp_path: Path) -> None:
    create(there, "a")
    gaia_sessions.Sessions(there).add_message("a", "user", "first")
    os.link(Path(there, "a", "transcript.jsonl"), tmp_path / "second")
    gaia_sessions.Sessions(here).import_from(there)
    gaia_sessions.Sessions(here).add_message("a", "user", "second")
    assert (tmp_path / "second").read_bytes().count(b"\n") == 1


class WrittenMeanwhile(Source):
    """A source in which somebody writes to the session right after its first copy."""

    times = 1

    def _copy_files(self, agent_id: str, session: Directory, target: Directory | None, *, durable: bool) -> None:
        super()._copy_files(agent_id, session, target, durable=durable)
        if self.times:
            type(self).times -= 1
            gaia_sessions.Sessions(self.root).add_message(agent_id, "user", "one more")


def test_only_a_session_that_is_written_during_the_copy_is_not_imported(
    here: str, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(there, "a")
    create(there, "b")
    monkeypatch.setattr("gaia_sessions.store.import_source.Source", WrittenMeanwhile)

    report = gaia_sessions.Sessions(here).import_from(there)

    assert (report["imported"], [one["agent_id"] for one in report["failed"]]) == (["b"], ["a"])
    assert "another process is writing to it" in report["failed"][0]["detail"]
    assert gaia_sessions.Sessions(here).import_from(there)["imported"] == ["a"]


def test_a_copy_made_beside_a_writer_has_all_messages_that_its_record_counts(there: str, tmp_path: Path) -> None:
    create(there, "a")
    is_over = threading.Event()

    def write() -> None:
        while not is_over.is_set():
            gaia_sessions.Sessions(there).add_message("a", "user", "x" * 1000)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(10):
            here = str(tmp_path / f"here-{number}")
            if gaia_sessions.Sessions(here).import_from(there)["imported"]:
                assert len(said("a", here)) == record_of(here, "a").get("last_seq", 0)
    finally:
        is_over.set()
        writer.join()


def test_folders_below_and_above_the_root_can_be_imported(here: str, tmp_path: Path) -> None:
    create(here, "a")
    below = os.path.join(here, "moved")
    create(below, "b")
    above = str(tmp_path)
    assert gaia_sessions.Sessions(here).import_from(below)["imported"] == ["b"]
    assert gaia_sessions.Sessions(here).import_from(here)["already_there"] == ["a", "b"]
    assert gaia_sessions.Sessions(here).import_from(above)["imported"] == []
