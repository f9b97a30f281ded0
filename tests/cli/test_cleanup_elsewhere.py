"""Cleanup where somebody else lives: any folder can be named as the root, and what is not ours stays untouched."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Gaia = Callable[..., Any]

THEIRS = {
    "src/a.py": "code",
    "web/state.json": "{}",
    "web/index.js": "code",
    "notes.txt": "note",
    ".notes.tmp": "note",
    ".notes.0123456789abcdef.tmp": "note",
    ".trash/keepme/doc.txt": "doc",
    ".trash/keepme.0123456789abcdef/doc.txt": "doc",
    ".stage/mine/doc.txt": "doc",
    ".stage/mine.0123456789abcdef/doc.txt": "doc",
    ".locks/precious": "lock",
    ".locks/yarn.lock": "lock",
    ".inbox/mail.json": "{}",
    ".inbox/20260108-180530-000000-01234567.json": "{}",
    ".index/complete": "mine",
    ".index/active/mine": "mine",
}


def fill(folder: str, files: dict[str, str]) -> None:
    """``files`` and the folders they are in, all of them old."""
    for name, text in files.items():
        Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
        Path(folder, name).write_text(text, encoding="utf-8")
    for path in Path(folder).rglob("*"):
        os.utime(path, (0, 0))


def left_of(folder: str, files: dict[str, str]) -> dict[str, str]:
    """What ``files`` hold by now, without those that are gone."""
    return {name: Path(folder, name).read_text("utf-8") for name in files if Path(folder, name).is_file()}


def test_a_cleanup_of_a_folder_that_never_was_a_root_leaves_it_as_it_is(gaia: Gaia, root: str, tree: Gaia) -> None:
    fill(root, {name: text for name, text in THEIRS.items() if not name.startswith((".locks", "web"))})
    Path(root, "linked").symlink_to("src")
    os.mkfifo(Path(root, "pipe"))
    before = tree()

    report = gaia("cleanup", "--corrupt", "--hours", "0", "--json").json

    assert {key: report[key] for key in ("removed", "corrupt", "failed", "swept")} == {
        "removed": [],
        "corrupt": [],
        "failed": [],
        "swept": [],
    }
    assert tree() == before


def test_what_others_have_in_a_folder_outlives_every_session_in_it(gaia: Gaia, root: str) -> None:
    fill(root, THEIRS)

    assert gaia("create", "--id", "a").code == 0
    assert gaia("create", "--id", "b").code == 0
    assert gaia("update", "b", "--error", "x").code == 0
    assert gaia("finalize", "b", "completed").code == 0
    report = gaia("cleanup", "--hours", "0", "--json").json

    assert (sorted(report["removed"]), report["failed"], report["swept"]) == (["a", "b"], [], [])
    assert left_of(root, THEIRS) == THEIRS
    assert not Path(root, ".gitignore").exists()
    assert sorted(os.listdir(Path(root, ".trash"))) == ["keepme", "keepme.0123456789abcdef"]


def test_a_folder_with_a_bad_state_file_and_more_is_reported_and_not_removed(gaia: Gaia, root: str) -> None:
    fill(root, THEIRS)

    ended = gaia("cleanup", "--corrupt", "--json")

    assert ended.code != 0
    assert b"web: cannot remove: it holds files that no session has" in ended.out + ended.err
    assert left_of(root, THEIRS) == THEIRS


@pytest.mark.parametrize("names", [(), ("events.jsonl",), (".state.json.0123456789abcdef.tmp", "report.json")])
def test_a_folder_with_nothing_but_own_names_is_a_corrupt_session(
    gaia: Gaia, root: str, names: tuple[str, ...]
) -> None:
    gaia("create", "--id", "a")
    Path(root, "torn").mkdir()
    fill(root, {f"torn/{name}": "x" for name in names})

    assert [one["agent_id"] for one in gaia("cleanup", "--json").json["corrupt"]] == ["torn"]
    assert gaia("cleanup", "--corrupt", "--json").json["removed"] == ["torn"]


def test_a_stranger_in_an_own_root_is_no_session_at_any_door(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "a")
    fill(root, {"src/a.py": "code"})

    assert [one["agent_id"] for one in gaia("list", "--json").json] == ["a"]
    assert gaia("get", "src").code == gaia("update", "src").code == 3
    assert gaia("cleanup", "--corrupt", "--json").json["corrupt"] == []
    assert Path(root, "src", "a.py").read_text("utf-8") == "code"


def test_an_empty_folder_becomes_an_own_root(gaia: Gaia, root: str) -> None:
    Path(root).mkdir()
    gaia("create", "--id", "a")
    left = Path(root, ".x.0123456789abcdef.tmp")
    left.write_bytes(b"")
    os.utime(left, (0, 0))

    assert Path(root, ".gitignore").read_bytes() == b"*\n"
    assert gaia("cleanup", "--json").json["swept"] == [str(left)]


def test_a_root_that_lost_its_mark_gets_it_back_with_the_next_session(gaia: Gaia, root: str, put: Gaia) -> None:
    gaia("create", "--id", "a")
    put("copied", idle=timedelta(hours=1))
    Path(root, ".gitignore").unlink()

    gaia("create", "--id", "b")

    assert Path(root, ".gitignore").read_bytes() == b"*\n"


@pytest.mark.parametrize("name", ["src/a.py", "README", ".inbox/mail.json", ".trash/keepme/x", ".locks/precious"])
def test_a_root_without_a_mark_that_holds_a_name_of_somebody_else_gets_none(gaia: Gaia, root: str, name: str) -> None:
    gaia("create", "--id", "a")
    Path(root, ".gitignore").unlink()
    fill(root, {name: "theirs"})

    gaia("create", "--id", "b")

    assert not Path(root, ".gitignore").exists()
    assert gaia("list").code == 0


def test_what_we_make_in_the_folder_of_somebody_else_is_kept_tidy(gaia: Gaia, root: str) -> None:
    """The folders that we make there carry a mark of their own."""
    fill(root, {"src/a.py": "code"})
    gaia("create", "--id", "a")
    left = [Path(root, ".locks", "gone.lock"), Path(root, "a", ".state.json.0123456789abcdef.tmp")]
    for path in left:
        path.write_bytes(b"")
        os.utime(path, (0, 0))
    staged = Path(root, ".stage", "gone.0123456789abcdef")
    staged.mkdir()
    os.utime(staged, (0, 0))

    assert sorted(gaia("cleanup", "--json").json["swept"]) == sorted(map(str, [*left, staged]))
    assert gaia("finalize", "a", "completed").code == 0
    assert gaia("cleanup", "--hours", "0", "--json").json["removed"] == ["a"]
    assert os.listdir(Path(root, ".trash")) == [".gitignore"]
    assert left_of(root, {"src/a.py": ""}) == {"src/a.py": "code"}


def test_a_folder_with_nothing_but_records_put_there_by_hand_becomes_an_own_root(
    gaia: Gaia, root: str, put: Gaia
) -> None:
    put("copied", idle=timedelta(minutes=1))
    assert gaia("update", "copied").code == 0

    gaia("create", "--id", "b")

    assert Path(root, ".gitignore").read_bytes() == b"*\n"
