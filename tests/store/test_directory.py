"""An open directory: names below it, never through a link, and errors with their path."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import pytest

from gaia_sessions.errors import StoreFailure
from gaia_sessions.store.directory import Directory, NotAFile, TooBig, translate_errors
from tests.table import table


def test_what_is_made_is_there_at_every_level_private_and_made_once(folder: Directory) -> None:
    with folder.make("one", "two", "three") as made:
        assert made.path == f"{folder.path}/one/two/three"
    with folder.make("one", "two", "three") as second, folder.below("one", "two", "three") as below:
        assert os.fstat(second.fd).st_ino == os.fstat(below.fd).st_ino

    for names in ("one", "one/two", "one/two/three"):
        assert Path(folder.path, names).stat().st_mode & 0o777 == 0o700


def test_what_is_not_there_is_not_made_by_looking(folder: Directory) -> None:
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


def test_a_directory_stays_the_same_when_its_name_leads_elsewhere(folder: Directory) -> None:
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


def test_only_a_regular_file_is_read_and_a_pipe_makes_nobody_wait(folder: Directory) -> None:
    Path(folder.path, "folder").mkdir()
    os.mkfifo(f"{folder.path}/pipe")
    Path(folder.path, "file").write_bytes(b"secret")
    Path(folder.path, "link").symlink_to("file")

    for name in ("folder", "pipe"):
        with pytest.raises(NotAFile):
            folder.read(name, 10)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        folder.read("link", 10)


def test_anything_at_all_is_there_even_a_link_to_nothing(folder: Directory) -> None:
    Path(folder.path, "link").symlink_to("nothing")

    assert (folder.has("link"), folder.has("nothing")) == (True, False)
    assert folder.inode("nothing") is None


def test_walking_leaves_no_descriptor_open_whether_it_arrives_or_not(folder: Directory) -> None:
    gc.collect()  # other tests may have left a store to it, which has its root open
    before = os.listdir("/proc/self/fd")

    with folder.make("one", "two", "three"):
        pass
    for names in (("one", "two", "missing"), ("missing", "two"), ("one", "missing", "three")):
        with pytest.raises(FileNotFoundError):
            folder.below(*names)
    with pytest.raises(NotAFile):
        folder.read("one", 10)

    assert os.listdir("/proc/self/fd") == before


def test_an_error_of_the_system_becomes_a_failure_with_what_where_and_why() -> None:
    with pytest.raises(StoreFailure) as refused, translate_errors("write", "/some/where"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert (refused.value.action, refused.value.path) == ("write", "/some/where")
    assert refused.value.reason == os.strerror(errno.ENOSPC)


def test_every_other_error_passes_untranslated() -> None:
    with pytest.raises(LookupError), translate_errors("write", "/some/where"):
        raise LookupError
