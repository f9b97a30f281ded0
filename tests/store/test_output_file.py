"""The file with the output of a run: it is private and bounded, it follows no link, and it makes no run fail."""

from __future__ import annotations

import os
import pickle
import resource
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.doctor import own_files
from gaia_sessions.errors import StoreFailure
from gaia_sessions.session.record import new_record
from gaia_sessions.store import reading
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.import_source import open_source
from gaia_sessions.store.sweep import sweep_sessions
from tests.contract.test_outputs import numbered
from tests.removals import deleted
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.store.output_file import OutputFile

MIB = 1 << 20
NOW = datetime(2026, 1, 8, 19, 0, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    store = FileStore(f"{tmp_path}/root")
    store.create(new_record("one", "worker", "", {}, NOW))
    return store


@pytest.fixture
def path(store: FileStore) -> Path:
    return Path(store.output_path("one", 1))


def write(store: FileStore, data: bytes, number: int = 1) -> None:
    output = store.open_output(store.read("one"), number)
    output.write(data)
    output.close()


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_an_output_file_is_private_with_any_umask_even_while_it_is_written(
    store: FileStore, path: Path, umask: int
) -> None:
    old = os.umask(umask)
    try:
        output = store.open_output(store.read("one"), 1)
        modes = [stat.S_IMODE(path.stat().st_mode)]
        for _ in range(3):
            output.write(bytes(2 * MIB))
            modes.append(stat.S_IMODE(path.stat().st_mode))
        output.close()
    finally:
        os.umask(old)

    assert {*modes, stat.S_IMODE(path.stat().st_mode)} == {0o600}
    assert sorted(os.listdir(path.parent)) == ["output-1.log", "state.json"]


def test_the_path_of_an_output_is_absolute_even_if_the_root_is_relative(
    store: FileStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, b"hello")
    monkeypatch.chdir(Path(store.root).parent)
    assert FileStore("root").output_path("one", 1) == str(path)
    assert path.read_bytes() == b"hello"


def test_an_output_file_stays_within_its_largest_size_and_ends_with_the_latest_bytes(
    store: FileStore, path: Path
) -> None:
    written = numbered(6 * MIB)
    output = store.open_output(store.read("one"), 1)
    sizes = []
    for start in range(0, len(written), 99_983):
        output.write(written[start : start + 99_983])
        sizes.append(path.stat().st_size)
        with path.open("rb") as file:
            file.seek(-min(sizes[-1], 1000), os.SEEK_END)
            assert written[: start + 99_983].endswith(file.read())
    output.close()

    assert max(sizes) <= 3 * MIB + 100
    left_out = b"\n[gaia-sessions: %d bytes left out]\n" % (4 * MIB)
    assert path.read_bytes() == written[:MIB] + left_out + written[-MIB:]


def a_link(path: Path) -> None:
    path.symlink_to("elsewhere")


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to("nothing")


def a_folder(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("instead", [a_link, a_link_to_nothing, a_folder, a_pipe])
def test_a_link_folder_or_pipe_in_place_of_the_output_file_is_refused_and_stays(
    store: FileStore, path: Path, instead: Callable[[Path], None]
) -> None:
    elsewhere = path.with_name("elsewhere")
    elsewhere.write_bytes(b"of somebody")
    instead(path)
    before = os.lstat(path)

    with pytest.raises(StoreFailure, match=r"/one/output-1\.log: cannot create: output-1\.log is not a regular file"):
        store.open_output(store.read("one"), 1)
    with pytest.raises(StoreFailure, match=r"/one/output-1\.log: cannot read"):
        store.output(store.read("one"), 1)

    assert os.path.samestat(before, os.lstat(path))
    assert (elsewhere.read_bytes(), path.with_name("nothing").exists()) == (b"of somebody", False)


def test_a_link_put_in_place_of_an_open_output_file_is_replaced_and_not_followed(store: FileStore, path: Path) -> None:
    elsewhere = path.with_name("elsewhere")
    elsewhere.write_bytes(b"of somebody")
    output = store.open_output(store.read("one"), 1)
    path.unlink()
    path.symlink_to("elsewhere")

    output.write(b"hello")
    output.close()

    assert elsewhere.read_bytes() == b"of somebody"
    assert (path.is_symlink(), path.read_bytes()) == (False, b"hello")


def test_later_output_does_not_change_a_snapshot_made_by_hard_links(
    store: FileStore, path: Path, tmp_path: Path
) -> None:
    output = store.open_output(store.read("one"), 1)
    output.write(b"before")
    subprocess.run(["cp", "-al", store.root, tmp_path / "snapshot"], check=True)

    output.write(b" and after")
    output.close()

    assert (tmp_path / "snapshot" / "one" / "output-1.log").read_bytes() == b"before"
    assert path.read_bytes() == b"before and after"


def test_writing_output_of_a_deleted_session_leaves_no_file(store: FileStore, tmp_path: Path) -> None:
    output = store.open_output(store.read("one"), 1)
    output.write(b"before")
    deleted(store, "one", lambda _: True)

    for _ in range(5):
        output.write(bytes(MIB))
    output.close()

    assert [str(found) for found in tmp_path.rglob("*") if "one" in found.name or "output" in found.name] == []


@table("size", [0, 5, MIB, MIB + 1, 4 * MIB])
@table("more", [0, 5, MIB + 3, 2 * MIB])
def test_a_process_that_takes_over_an_output_writes_the_same_file_as_one_process(
    store: FileStore, path: Path, size: int, more: int
) -> None:
    whole = numbered(size + more)
    output = store.open_output(store.read("one"), 1)
    output.write(whole[:size])

    begin_copy(output, whole[size:])

    write(store, whole, 2)
    assert path.read_bytes() == store.output(store.read("one"), 2)


COPY = """
import pickle, sys
output, data = pickle.load(sys.stdin.buffer)
output.write(data)
output.close()
"""


def begin_copy(output: OutputFile, data: bytes, between: Callable[[], None] = lambda: None) -> None:
    """Hands ``output`` over, calls ``between``, and waits for a process that writes ``data``."""
    files = output.handed_over()
    given = pickle.dumps((output, data))
    between()
    subprocess.run([sys.executable, "-c", COPY], input=given, pass_fds=files or (), check=True)
    output.close()


def test_a_process_that_takes_over_an_output_does_not_write_into_a_newer_output_file(
    store: FileStore, path: Path
) -> None:
    output = store.open_output(store.read("one"), 1)
    output.write(b"of the first")

    begin_copy(output, numbered(4 * MIB), lambda: write(store, b"of another"))  # like a restored backup

    assert path.read_bytes() == b"of another"


def test_an_output_of_a_deleted_session_hands_over_no_files_and_writes_none(store: FileStore, path: Path) -> None:
    output = store.open_output(store.read("one"), 1)
    deleted(store, "one", lambda _: True)
    store.create(new_record("one", "worker", "", {}, NOW))

    assert output.handed_over() is None
    output.close()
    assert not path.exists()


def test_an_output_keeps_one_file_and_one_folder_open_until_it_is_closed(store: FileStore) -> None:
    before = len(os.listdir("/dev/fd"))
    output = store.open_output(store.read("one"), 1)
    for _ in range(5):
        output.write(bytes(MIB))
        assert len(os.listdir("/dev/fd")) == before + 2
    output.close()
    assert len(os.listdir("/dev/fd")) == before


OUTPUT_NAMES = ["output-1.log", "output-12.log", "output-999999999999999999.log"]
OTHER_NAMES = [
    *("output-0.log", "output-01.log", "output-.log", "output.log", "output--1.log", "output-+1.log", "output-1_0.log"),
    *("output-²3.log", "output-1000000000000000000.log", "output-1.log.bak", " output-1.log", "Output-1.log"),
    *("output-1.logs", "xoutput-1.log", "output-1.jsonl", "output-1 .log", "output-1e3.log", "output-\u06f1.log"),
]


@table("name", OUTPUT_NAMES)
def test_the_store_recognizes_names_of_output_files_and_of_their_unfinished_files(name: str) -> None:
    unfinished = f".{name}.0123456789abcdef.tmp"
    assert (reading.is_file_name(name), reading.is_own_name(name)) == (True, True)
    assert (reading.is_file_name(unfinished), reading.is_own_name(unfinished)) == (False, True)
    assert reading.unfinished([name, unfinished]) == [unfinished]


@table("name", OTHER_NAMES)
def test_the_store_does_not_recognize_names_that_only_resemble_output_files(name: str) -> None:
    assert (reading.is_file_name(name), reading.is_own_name(name)) == (False, False)
    assert not reading.is_own_name(f".{name}.0123456789abcdef.tmp")


def test_a_sweep_removes_unfinished_output_files_but_no_finished_ones(store: FileStore, path: Path) -> None:
    write(store, b"hello")
    left = path.with_name(".output-1.log.0123456789abcdef.tmp")
    for file in (left, path.with_name(".output-01.log.0123456789abcdef.tmp")):
        file.write_bytes(b"half")
        os.utime(file, (1, 1))
    os.utime(path, (1, 1))

    assert sweep_sessions(store.folder, datetime.now(UTC) + timedelta(hours=2)) == [str(left)]
    assert path.read_bytes() == b"hello"


def test_the_doctor_lists_output_files_and_makes_them_private(store: FileStore, path: Path) -> None:
    write(store, b"hello")
    path.chmod(0o644)
    path.with_name("output-01.log").touch(0o644)

    seen = {os.path.basename(entry.path) for entry in own_files.walk(store.root)}
    assert own_files.make_private(store.root, os.geteuid()) == 1

    assert {"output-1.log", "state.json"} <= seen
    assert "output-01.log" not in seen
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_import_copies_the_output_files_of_a_session(store: FileStore, tmp_path: Path) -> None:
    for number in (1, 12):
        write(store, b"run %d" % number, number)
    source, there = open_source(store.root), FileStore(f"{tmp_path}/there")
    source.remember(["one"])

    there.take_in(store.read("one"), source)

    assert [there.output(there.read("one"), number) for number in (1, 2, 12)] == [b"run 1", b"", b"run 12"]


def test_deleting_a_corrupt_session_deletes_its_output_files(store: FileStore, path: Path) -> None:
    write(store, b"hello")
    path.with_name("state.json").write_bytes(b"no record")

    assert deleted(store, "one", lambda _: True)

    assert not path.parent.exists()


FLOOD = """
import resource, sys
from gaia_sessions.store.file_store import FileStore
store = FileStore(sys.argv[1])
output = store.open_output(store.read("one"), 1)
piece = bytes(range(256)) * 256
output.write(piece)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(int(sys.argv[2]) * 16):
    output.write(piece)
output.close()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("mebibytes", [32, pytest.param(1024, marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_amount_of_output(store: FileStore, path: Path, mebibytes: int) -> None:
    words = [sys.executable, "-c", FLOOD, store.root, str(mebibytes)]
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    assert int(ended.stdout) < 16 << 10  # KiB
    assert path.stat().st_size < 2 * MIB + 100


def test_writing_many_small_pieces_takes_little_time(store: FileStore, path: Path) -> None:
    """The beginning of the file is not copied again for each piece."""
    output = store.open_output(store.read("one"), 1)
    began = time.process_time()
    for _ in range(100_000):
        output.write(b"x" * 16)
    assert time.process_time() - began < 5
    output.close()
    assert path.stat().st_size == 1_600_000


def test_an_output_file_that_cannot_grow_is_shortened_to_leave_room(store: FileStore, path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    output = store.open_output(store.read("one"), 1)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
        for _ in range(20):
            output.write(b"x" * (1 << 16))
        kept = path.stat().st_size
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        output.close()

    assert kept == 1 << 19
