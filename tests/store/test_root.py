"""The root: how it is created, and which names in it are sessions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.store import reading
from gaia_sessions.store import root as roots
from gaia_sessions.store.directory import Directory

if TYPE_CHECKING:
    from collections.abc import Iterator


def mode(path: Path | str) -> int:
    return Path(path).stat().st_mode & 0o777


@pytest.fixture
def _open_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_open_umask")
def test_a_new_root_is_private_and_the_folders_above_it_follow_the_umask(tmp_path: Path) -> None:
    with roots.make_root(f"{tmp_path}/project/.claude/session", durable=True) as made:
        assert made.names() == [".gitignore"]

    assert mode(tmp_path / "project/.claude/session") == 0o700
    assert [mode(tmp_path / "project"), mode(tmp_path / "project/.claude")] == [0o755, 0o755]


def test_an_existing_root_keeps_its_mode_and_its_files(root: str) -> None:
    Path(root).mkdir()
    Path(root).chmod(0o750)
    Path(root, "mine").write_bytes(b"mine")
    Path(root, ".gitignore").write_bytes(b"# edited by hand\n")

    with roots.make_root(root, durable=False):
        pass

    assert mode(root) == 0o750
    assert Path(root, "mine").read_bytes() == b"mine"
    assert Path(root, ".gitignore").read_bytes() == b"# edited by hand\n"


def test_sessions_are_folders_with_a_valid_id_and_links_to_folders_with_a_record(root: str) -> None:
    with roots.make_root(root, durable=False):
        pass
    for name in ("one", "Two.2", "agent-20260108-180530-0123abcd", ".locks", "con", "two words", "é"):
        Path(root, name).mkdir()
    Path(root, "one", "state.json").write_bytes(b"")
    Path(root, "file").write_bytes(b"")
    Path(root, "linked").symlink_to("one")
    Path(root, "linked-to-none").symlink_to("Two.2")
    Path(root, "dangling").symlink_to("nothing")
    os.mkfifo(Path(root, "pipe"))

    with Directory.at(root) as opened:
        assert sorted(reading.session_names(opened)) == ["Two.2", "agent-20260108-180530-0123abcd", "linked", "one"]
