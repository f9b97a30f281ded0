"""Writing files: a file is old or new, whole and private, and is acknowledged once it is on the disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import StoreFailure
from gaia_sessions.session.record import new_record
from gaia_sessions.store import atomic
from gaia_sessions.store.file_store import FileStore
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.store.directory import Directory

pytestmark = pytest.mark.usefixtures("on_disk")

LINES = b'{"number": 1}\n{"number": 2}\n'

DOES = """
import sys
from datetime import UTC, datetime
from gaia_sessions.errors import SessionsError
from gaia_sessions.session.record import new_record
from gaia_sessions.store.file_store import FileStore
store = FileStore(sys.argv[1])
try:
    if sys.argv[2] == "change":
        store.change("one", lambda record: {**record, "purpose": "changed"})
    elif sys.argv[2] == "create":
        store.create(new_record("two", "Explore", "-", {}, datetime.now(UTC)))
    elif sys.argv[2] == "append":
        store.append("one", "events.jsonl", [{"number": 2, "fill": "x" * 5000}])
    else:
        store.defer({"kind": "stop"}, datetime.now(UTC))
except SessionsError as error:
    sys.exit(error.exit_code)
"""


def prepared(folder: Path, now: datetime) -> FileStore:
    """Makes a store that has all its folders and one session with a journal."""
    store = FileStore(f"{folder}/root")
    store.create(new_record("one", "Explore", "-", {}, now))
    store.append("one", "events.jsonl", [{"number": 1}])
    store.defer({"kind": "finalize"}, now)
    return store


def run(act: str, root: str, *options: str) -> int:
    """Returns the exit code of ``act`` under strace with ``options``."""
    if which("strace") is None:
        pytest.skip("needs strace to refuse a call")
    command = ["strace", "-qq", "-e", "signal=none", *options, sys.executable, "-B", "-c", DOES, root, act]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in completed.stderr
    return completed.returncode


def content(root: str) -> dict[str, bytes]:
    """Returns the files of the sessions and of the inbox."""
    files = [path for path in Path(root).rglob("*") if path.is_file()]
    hidden = (".index", ".locks", ".stage")
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in files
        if path.relative_to(root).parts[0] not in hidden
    }


@table("durable", [True, False])
def test_a_replaced_file_is_whole_and_private_and_leaves_no_temporary_file(
    folder: Directory,
    durable: bool,  # noqa: FBT001  # given by name
) -> None:
    Path(folder.path, "state.json").write_bytes(b"a longer old one")
    Path(folder.path, "state.json").chmod(0o644)

    atomic.replace(folder, "state.json", b"new", durable=durable)

    assert os.listdir(folder.path) == ["state.json"]
    assert Path(folder.path, "state.json").read_bytes() == b"new"
    assert Path(folder.path, "state.json").stat().st_mode & 0o777 == 0o600


def test_a_file_larger_than_one_write_is_written_whole(folder: Directory) -> None:
    data = os.urandom(1 << 20)

    atomic.replace(folder, "state.json", data, durable=False)

    assert Path(folder.path, "state.json").read_bytes() == data


def test_a_link_in_the_place_of_a_file_is_replaced_and_never_followed(folder: Directory, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"kept")
    Path(folder.path, "state.json").symlink_to(victim)

    atomic.replace(folder, "state.json", b"new", durable=False)

    assert victim.read_bytes() == b"kept"
    assert not Path(folder.path, "state.json").is_symlink()
    assert Path(folder.path, "state.json").read_bytes() == b"new"


def test_a_folder_in_place_of_a_file_stays_and_no_temporary_file_remains(folder: Directory) -> None:
    Path(folder.path, "state.json").mkdir()

    with pytest.raises(StoreFailure) as refused:
        atomic.replace(folder, "state.json", b"new", durable=False)

    assert os.listdir(folder.path) == ["state.json"]
    assert (refused.value.action, refused.value.path) == ("write", f"{folder.path}/state.json")


def test_writing_a_new_file_never_overwrites_an_existing_file(folder: Directory) -> None:
    Path(folder.path, "one").write_bytes(b"kept")

    with pytest.raises(FileExistsError):
        atomic.write_new(folder, "one", b"new", durable=False)

    assert Path(folder.path, "one").read_bytes() == b"kept"


@table("torn", [b'{"number": 0', b"\x00\x00", b"{}\n{"])
def test_an_append_ends_a_torn_line_before_it_adds_new_lines(folder: Directory, torn: bytes) -> None:
    Path(folder.path, "events.jsonl").write_bytes(torn)

    atomic.append(folder, "events.jsonl", LINES, durable=False)

    assert Path(folder.path, "events.jsonl").read_bytes() == torn + b"\n" + LINES


@table("whole", [b"", b"{}\n", b"{}\n\n"])
def test_an_append_after_a_whole_line_only_adds_lines(folder: Directory, whole: bytes) -> None:
    Path(folder.path, "events.jsonl").write_bytes(whole)

    atomic.append(folder, "events.jsonl", LINES, durable=True)

    assert Path(folder.path, "events.jsonl").read_bytes() == whole + LINES


def test_a_journal_that_is_a_link_is_refused(folder: Directory, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"kept")
    Path(folder.path, "events.jsonl").symlink_to(victim)

    with pytest.raises(StoreFailure):
        atomic.append(folder, "events.jsonl", LINES, durable=False)

    assert victim.read_bytes() == b"kept"


@pytest.mark.parametrize(("end", "whole"), [(None, b'{"a": 1}\ntorn\n'), (9, b'{"a": 1}\n')], ids=["torn", "cut"])
def test_an_append_to_a_hard_linked_journal_does_not_change_the_other_name(
    folder: Directory, end: int | None, whole: bytes
) -> None:
    before = b'{"a": 1}\ntorn'
    second, journal = Path(folder.path, "second"), Path(folder.path, "events.jsonl")
    second.write_bytes(before)
    second.chmod(0o644)
    journal.hardlink_to(second)

    atomic.append(folder, "events.jsonl", LINES, durable=True, end=end)

    assert (second.read_bytes(), second.stat().st_mode & 0o777) == (before, 0o644)
    assert (journal.read_bytes(), journal.stat().st_mode & 0o777) == (whole + LINES, 0o600)
    assert sorted(os.listdir(folder.path)) == ["events.jsonl", "second"]


def test_a_hard_linked_journal_larger_than_one_copied_piece_is_copied_whole(
    folder: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "_COPIED_BYTES", 7)
    journal = Path(folder.path, "events.jsonl")
    journal.write_bytes(b"x" * 100 + b"\n")
    os.link(journal, f"{folder.path}/second")

    atomic.append(folder, "events.jsonl", LINES, durable=False)

    assert journal.read_bytes() == b"x" * 100 + b"\n" + LINES


def test_a_journal_that_is_a_pipe_is_refused_without_waiting(folder: Directory) -> None:
    os.mkfifo(f"{folder.path}/events.jsonl")

    with pytest.raises(StoreFailure):
        atomic.append(folder, "events.jsonl", LINES, durable=False)


@table(
    ("act", "order"),
    [
        ("change", ["fsync", "write", "fsync", "rename", "fsync"]),
        ("create", ["write", "write", "fsync", "fsync", "rename", "fsync"]),  # index entries come first
        ("append", ["write", "fdatasync", "fsync"]),
        ("defer", ["write", "fsync", "rename", "fsync"]),
    ],
)
def test_the_store_writes_syncs_and_renames_in_order_before_it_answers(
    new_folder: Callable[[], Path], now: datetime, act: str, order: list[str]
) -> None:
    store = prepared(new_folder(), now)
    log = new_folder() / "log"

    assert run(act, store.root, "-o", str(log), "-e", "trace=write,fsync,fdatasync,/^rename") == 0

    seen = [line.partition("(")[0] for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    assert [call.removesuffix("2").removesuffix("at") for call in seen] == order
    assert [name for name in content(store.root) if name.endswith(".tmp")] == []


SYNC_FAILS = "fsync,fdatasync:error=EIO"


REFUSALS = [
    ("change", SYNC_FAILS),
    ("create", "/^rename:error=EIO"),
    ("append", "write:error=ENOSPC"),
    ("defer", SYNC_FAILS + ":when=1"),
]
OTHER_REFUSALS = [
    (act, fault)
    for act in ("change", "create", "append", "defer")
    for fault in (SYNC_FAILS, SYNC_FAILS + ":when=1", "write:error=ENOSPC", "/^rename:error=EIO")
    if (act, fault) not in [*REFUSALS, ("append", "/^rename:error=EIO")]
]


@pytest.mark.parametrize("refusals", [REFUSALS, pytest.param(OTHER_REFUSALS, marks=pytest.mark.slow)])
def test_a_refused_write_changes_no_file_and_leaves_the_session_unlocked(
    new_folder: Callable[[], Path], now: datetime, refusals: list[tuple[str, str]]
) -> None:
    for act, fault in refusals:
        store = prepared(new_folder(), now)
        before = content(store.root)

        assert (act, fault, run(act, store.root, "-e", f"inject={fault}")) == (act, fault, 8)

        assert content(store.root) == before
        assert store.change("one", lambda record: {**record})["revision"] == 2


@table(("act", "last"), [("change", 3), ("create", 3), ("defer", 2)])
def test_an_unconfirmed_change_is_applied_with_exit_code_9(
    new_folder: Callable[[], Path], now: datetime, act: str, last: int
) -> None:
    store = prepared(new_folder(), now)
    before = content(store.root)

    assert run(act, store.root, "-e", f"inject=fsync:error=EIO:when={last}") == 9

    assert content(store.root) != before


def test_an_unconfirmed_append_has_exit_code_8_if_refused_and_9_if_applied(tmp_path: Path, now: datetime) -> None:
    store = prepared(tmp_path, now)
    before = list(store.entries("one", "events.jsonl"))

    code = run("append", store.root, "-e", "inject=fsync:error=EIO")

    assert (code, len(list(store.entries("one", "events.jsonl")))) in [(8, len(before)), (9, len(before) + 1)]
