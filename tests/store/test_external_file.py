"""Files of other programs: we change them whole, keep links and modes, and never overwrite newer content."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import StoreFailure, TooLarge
from gaia_sessions.store import atomic, external_file
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gaia_sessions.store.directory import Directory

CHANGED = "another program has just changed it"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "settings.json"


def entries(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_read_returns_the_content_up_to_the_limit_or_none_if_the_file_is_missing(file: Path) -> None:
    assert external_file.read(str(file), 10) is None
    assert external_file.read(str(file / "below"), 10) is None
    file.write_bytes(b"12345")
    assert external_file.read(str(file), 5) == b"12345"
    with pytest.raises(TooLarge):
        external_file.read(str(file), 4)


@table("held", [b"", b"old", None])
def test_a_file_is_replaced_if_it_still_has_the_content_that_was_read(
    new_folder: Callable[[], Path], held: bytes | None
) -> None:
    file = new_folder() / "settings.json"
    if held is not None:
        file.write_bytes(held)
    external_file.write(str(file), held, b"new")
    assert entries(file.parent) == {file.name: b"new"}


@table(
    ("read", "held"),
    [
        (b"", b"theirs"),
        (b"", None),
        (None, b""),
        (None, b"theirs"),
        (b"old", b""),
        (b"old", b"olden"),
        (b"old", b"own"),
        (b"old", None),
    ],
)
def test_a_file_with_other_content_than_was_read_is_not_replaced(
    new_folder: Callable[[], Path], read: bytes | None, held: bytes | None
) -> None:
    file = new_folder() / "settings.json"
    if held is not None:
        file.write_bytes(held)
    before = entries(file.parent)
    with pytest.raises(StoreFailure, match=CHANGED):
        external_file.write(str(file), read, b"ours")
    assert entries(file.parent) == before


@table(("read", "held"), [(b"", b"theirs"), (b"old", b"olden"), (b"old", b"own")])
def test_a_file_with_other_content_than_was_read_is_not_removed(
    new_folder: Callable[[], Path], read: bytes, held: bytes
) -> None:
    file = new_folder() / "settings.json"
    file.write_bytes(held)
    with pytest.raises(StoreFailure, match=CHANGED):
        external_file.remove(str(file), read)
    assert entries(file.parent) == {file.name: held}


def test_a_change_by_another_program_during_the_write_is_detected(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(b"")
    write_new = atomic.write_new

    def slowly(folder: Directory, *words: object, **options: object) -> None:
        write_new(folder, *words, **options)  # type: ignore[arg-type]  # passed on as they came
        file.write_bytes(b"theirs")

    monkeypatch.setattr(atomic, "write_new", slowly)
    with pytest.raises(StoreFailure, match=CHANGED):
        external_file.write(str(file), b"", b"ours")
    assert entries(file.parent) == {file.name: b"theirs"}


@table("mode", [0o600, 0o640, 0o666, 0o755])
def test_a_replaced_file_keeps_its_mode_despite_the_umask(new_folder: Callable[[], Path], mode: int) -> None:
    file = new_folder() / "settings.json"
    file.write_bytes(b"old")
    file.chmod(mode)
    before = os.umask(0o077)
    try:
        external_file.write(str(file), b"old", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == mode


@table(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_gets_its_mode_from_the_umask(new_folder: Callable[[], Path], umask: int, mode: int) -> None:
    file = new_folder() / "settings.json"
    before = os.umask(umask)
    try:
        external_file.write(str(file), None, b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_writing_to_a_link_changes_its_target_and_keeps_the_link(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles"
    target.write_bytes(b"old")
    file.symlink_to(target)
    external_file.write(str(file), b"old", b"new")
    assert (file.is_symlink(), target.read_bytes()) == (True, b"new")


def test_a_file_is_removed_if_it_still_has_the_content_that_was_read(file: Path) -> None:
    file.write_bytes(b"old")
    external_file.remove(str(file), b"old")
    assert entries(file.parent) == {}


def test_a_write_that_the_disk_does_not_confirm_leaves_the_old_content(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(5, "Input/output error")

    file.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StoreFailure, match="Input/output error"):
        external_file.write(str(file), b"old", b"new")
    assert entries(file.parent) == {file.name: b"old"}


def test_the_next_write_removes_old_temporary_files_of_killed_writers(file: Path) -> None:
    file.write_bytes(b"old")
    left, young, others = (
        file.with_name(name)
        for name in (f".{file.name}.{'a' * 16}.tmp", f".{file.name}.{'b' * 16}.tmp", f".x.{'a' * 16}.tmp")
    )
    for path in (left, young, others):
        path.write_bytes(b"torn")
    for path in (left, others):
        os.utime(path, (0, 0))
    external_file.write(str(file), b"old", b"new")
    assert [path.exists() for path in (left, young, others)] == [False, True, True]
