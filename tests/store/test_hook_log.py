"""The log of the hooks: its rotation to the old file, and hard links to the log."""

from __future__ import annotations

import fcntl
import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.store import hook_log

if TYPE_CHECKING:
    from pathlib import Path

    from gaia_sessions.store.directory import Directory


def test_a_log_that_cannot_be_reopened_after_its_rotation_raises_the_error_of_the_system(
    folder: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook_log.append_log_line(folder, "a.log", b"one\n", limit=4)
    rename = os.rename

    def rename_and_stand_in_the_way(*names: Any, **folders: Any) -> None:
        rename(*names, **folders)
        folder.add("a.log")

    monkeypatch.setattr(os, "rename", rename_and_stand_in_the_way)
    with pytest.raises(IsADirectoryError):  # and not an error about a closed descriptor
        hook_log.append_log_line(folder, "a.log", b"two\n", limit=4)

    assert (tmp_path / "a.log.old").read_bytes() == b"one\n"


def test_a_hard_linked_log_becomes_the_old_file_and_is_not_written_to(folder: Directory, tmp_path: Path) -> None:
    hook_log.append_log_line(folder, "a.log", b"one\n", limit=100)
    os.link(tmp_path / "a.log", tmp_path / "second")

    for line in (b"two\n", b"three\n"):
        hook_log.append_log_line(folder, "a.log", line, limit=100)

    assert (tmp_path / "second").read_bytes() == (tmp_path / "a.log.old").read_bytes() == b"one\n"
    assert (tmp_path / "a.log").read_bytes() == b"two\nthree\n"


@pytest.mark.parametrize("has_second_name", [False, True])
def test_a_log_that_another_process_rotates_is_written_to_unless_it_is_hard_linked(
    folder: Directory, tmp_path: Path, *, has_second_name: bool
) -> None:
    (tmp_path / "a.log").write_bytes(b"full\n")
    if has_second_name:
        os.link(tmp_path / "a.log", tmp_path / "second")
    with (tmp_path / "a.log").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="rotating") if has_second_name else nullcontext():
            hook_log.append_log_line(folder, "a.log", b"two\n", limit=1)

    assert (tmp_path / "a.log").read_bytes() == (b"full\n" if has_second_name else b"full\ntwo\n")
