"""Open directories: they follow no link, and their errors name the path."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import pytest

from gaia_sessions.errors import StoreFailure
from gaia_sessions.store.directory import Directory, NotAFile, TooBig, translate_errors
from tests.table import table


def test_make_creates_private_directories_at_every_level_only_once(folder: Directory) -> None:
    with folder.make("one", "two", "three") as made:
        assert made.path == f"{folder.path}/one/two/three"
    with folder.make("one", "two", "three") as second, folder.below("one", "two", "three") as below:
        assert os.fstat(second.fd).st_ino == os.fstat(below.fd).st_ino

    for names in ("one", "one/two", "one/two/three"):
        assert Path(folder.path, names).stat().st_mode & 0o777 == 0o700


def test_opening_a_missing_directory_does_not_create_it(folder: Directory) -> None:
    with pytest.raises(FileNotFoundError):
        folder.below("one")

    assert folder.names() == []


def test_no_directory_is_reached_through_a_link(folder: Directory, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    Path(folder.path, "real").mkdir()
    Path(folder.path, "link").symlink_to(elsewhere)
    Path(folder.path, "real", "link").symlink_to(elsewhere)

    for names in (("link",), ("link", "inside"), ("real", "link")):
        for step in (Directory.below, Directory.make):
            with pytest.raises(NotADirectoryError):
                step(folder, *names)

    assert list(elsewhere.iterdir()) == []


def test_an_open_directory_stays_the_same_after_it_is_renamed_and_replaced(folder: Directory) -> None:
    Path(folder.path, "one").mkdir()
    with folder.below("one") as one:
        Path(folder.path, "one").rename(f"{folder.path}/two")
        Path(folder.path, "one").mkdir()
        with one.make("inside"):
            pass

    assert Path(folder.path, "two", "inside").is_dir()
    assert not Path(folder.path, "one", "inside").exists()


@table("size", [0, 1, 4095, 70_000, 200_000])
def test_a_file_is_read_whole_up_to_exactly_the_limit(folder: Directory, size: int) -> None:
    data = os.urandom(size)
    Path(folder.path, "file").write_bytes(data)

    assert folder.read("file", size) == data
    if size:
        with pytest.raises(TooBig):
            folder.read("file", size - 1)


def test_only_a_regular_file_is_read_and_a_pipe_is_refused_without_waiting(folder: Directory) -> None:
    Path(folder.path, "folder").mkdir()
    os.mkfifo(f"{folder.path}/pipe")
    Path(folder.path, "file").write_bytes(b"secret")
    Path(folder.path, "link").symlink_to("file")

    for name in ("folder", "pipe"):
        with pytest.raises(NotAFile):
            folder.read(name, 10)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        folder.read("link", 10)


def test_a_link_to_nothing_counts_as_an_existing_name(folder: Directory) -> None:
    Path(folder.path, "link").symlink_to("nothing")

    assert (folder.has("link"), folder.has("nothing")) == (True, False)
    assert folder.inode("nothing") is None


def test_opening_directories_leaves_no_descriptor_open_even_if_it_fails(folder: Directory) -> None:
    gc.collect()  # closes the roots of stores of earlier tests
    before = os.listdir("/proc/self/fd")

    with folder.make("one", "two", "three"):
        pass
    for names in (("one", "two", "missing"), ("missing", "two"), ("one", "missing", "three")):
        with pytest.raises(FileNotFoundError):
            folder.below(*names)
    with pytest.raises(NotAFile):
        folder.read("one", 10)

    assert os.listdir("/proc/self/fd") == before


def test_an_os_error_becomes_a_store_failure_with_action_path_and_reason() -> None:
    with pytest.raises(StoreFailure) as refused, translate_errors("write", "/some/where"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert (refused.value.action, refused.value.path) == ("write", "/some/where")
    assert refused.value.reason == os.strerror(errno.ENOSPC)


def test_any_other_error_is_not_translated() -> None:
    with pytest.raises(LookupError), translate_errors("write", "/some/where"):
        raise LookupError
