"""A root with foreign files: commands remove only files with names that only the store gives."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.hook.run import main
from gaia_sessions.hosts import HOOK
from tests.calls import call
from tests.cli.conftest import fresh_table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia

THEIRS = {
    "src/a.py": "code",
    "web/index.js": "code",
    "agent-20260108-180530-0123abcd/notes.txt": "notes",
    "state.json": "{}",
    "events.jsonl": "{",
    ".gitignore": "node_modules\n",
    ".notes.tmp": "note",
    ".notes.0123456789abcdef.tmp": "note",
    ".state.json.0123456789abcdef.tmp": "note",
    ".trash/keepme/doc.txt": "doc",
    ".trash/.keepme.0123456789abcdef/doc.txt": "doc",
    ".stage/mine/doc.txt": "doc",
    ".stage/.mine.0123456789abcdef/doc.txt": "doc",
    ".locks/precious": "lock",
    ".locks/yarn.lock": "lock",
    ".inbox/mail.json": "{}",
    ".inbox/.mail.json.0123456789abcdef.tmp": "{}",
    ".index/mine": "mine",
    ".index/active/.mine": "mine",
    ".index/name/.mine/also mine": "mine",
    ".logs/app.txt": "said",
    "mine/.notes.0123456789abcdef.tmp": "in a session of ours",
    "mine/folder/notes.txt": "in a session of ours",
}


@pytest.fixture(params=["anywhere", "in a project"])
def shared(request: pytest.FixtureRequest, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A root with old foreign files and links; ``mine`` is a session in it."""
    if request.param == "in a project":
        root = str(tmp_path / "project" / ".claude" / "session")
        monkeypatch.setenv("GAIA_SESSIONS_ROOT", root)
    outside = {"precious": "precious", "cancelled.json": "{}"}
    fill(str(tmp_path / "outside"), outside)
    fill(root, THEIRS)
    for name in ("linked", ".linked", "mine/linked", "agent-20260108-180530-0123abce"):
        Path(root, name).symlink_to(tmp_path / "outside")
    os.mkfifo(Path(root, "pipe"))
    return root


def fill(folder: str, files: dict[str, str]) -> None:
    """Writes ``files`` with their folders, all of them old and open to others."""
    for name, text in files.items():
        Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
        Path(folder, name).write_text(text, encoding="utf-8")
    for path in Path(folder).rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (0, 0))


def left_of(folder: str) -> dict[str, tuple[str, int]]:
    """Text and mode of each foreign file that still exists in ``folder`` or behind its links."""
    names = [*THEIRS, "linked", "linked/precious", "linked/cancelled.json", "mine/linked", "pipe"]
    return {name: seen(Path(folder, name)) for name in names if os.path.lexists(Path(folder, name))}


def seen(path: Path) -> tuple[str, int]:
    return (path.read_text("utf-8") if path.is_file() else "", path.lstat().st_mode)


def state_of(agent_id: str, phase: str) -> str:
    moment = (datetime.now(UTC) - timedelta(days=9)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    texts = {"agent_id": agent_id, "agent_name": "x", "purpose": "x", "created_at": moment, "last_updated": moment}
    rest: dict[str, Any] = {"phase": phase, "metadata": {}, "resume_ready": True, "history": [], "error_count": 0}
    return json.dumps({**texts, **rest, "last_error": None})


def hook(payload: dict[str, Any], root: str) -> None:
    environment = {**os.environ, "GAIA_SESSIONS_ROOT": root}
    assert call(lambda: main(HOOK, []), json.dumps(payload).encode(), environment, ".").code == 0


DELEGATION = {
    "hook_event_name": "PreToolUse",
    "session_id": "s-1",
    "tool_name": "Agent",
    "tool_use_id": "toolu_1",
    "tool_input": {"description": "look", "prompt": "look", "subagent_type": "Explore"},
}
STOP = {"hook_event_name": "SubagentStop", "session_id": "s-1", "agent_id": "a1", "last_assistant_message": "Done."}


def test_commands_and_hooks_do_not_change_foreign_files_in_the_root(gaia: Gaia, shared: str, tmp_path: Path) -> None:
    Path(shared, "mine", "state.json").write_text(state_of("mine", "approval"), encoding="utf-8")
    fill(str(tmp_path / "import"), {"b/state.json": state_of("b", "approval"), "b/notes.txt": "notes"})
    before = left_of(shared)

    for words in (
        ("doctor", "--fix"),
        ("create", "--id", "a"),
        ("update", "mine", "--phase", "planning"),
        ("import", str(tmp_path / "import")),
        ("cancel", "b"),
        ("transcript", "a", "--append", "user", "Hello."),
        ("finalize", "a", "completed"),
        ("reconcile",),
        ("list",),
        ("doctor", "--fix"),
    ):
        assert gaia(*words).code in (0, 1), words
    hook(DELEGATION, shared)
    hook(STOP, shared)
    gone = gaia("cleanup", "--hours", "0", "--corrupt", "--json").json

    assert (sorted(gone["removed"])[:2], gone["failed"], gone["swept"]) == (["a", "b"], [], [])
    assert left_of(shared) == before


def test_cleanup_does_not_change_a_folder_that_never_was_a_root(gaia: Gaia, root: str, tree: Gaia) -> None:
    fill(root, {name: text for name, text in THEIRS.items() if not name.startswith(".locks")})
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


@pytest.mark.parametrize("content", ["{}", "{", "not ours"])
def test_cleanup_corrupt_removes_only_files_with_names_of_the_store(gaia: Gaia, shared: str, content: str) -> None:
    own = ["state.json", "events.jsonl", "cancelled.json", "transcript.jsonl", "transcript-2.jsonl"]
    own += ["transcript-aside.jsonl", ".state.json.0123456789abcdef.tmp"]
    fill(shared, {f"mine/{name}": content for name in own})
    before = left_of(shared)

    assert [one["agent_id"] for one in gaia("cleanup", "--json").json["corrupt"]] == ["mine"]
    assert left_of(shared) == before
    assert gaia("cleanup", "--corrupt", "--json").json["removed"] == ["mine"]

    assert left_of(shared) == before
    assert sorted(os.listdir(Path(shared, "mine"))) == [".notes.0123456789abcdef.tmp", "folder", "linked"]
    assert gaia("get", "mine").code == 3


def test_cleanup_corrupt_keeps_a_folder_that_has_the_name_of_a_store_file(gaia: Gaia, root: str) -> None:
    fill(root, {"torn/state.json": "x", "torn/events.jsonl": "x", "torn/transcript.jsonl/notes.txt": "notes"})

    assert gaia("cleanup", "--corrupt", "--json").json["removed"] == ["torn"]
    assert [str(path.relative_to(root)) for path in sorted(Path(root, "torn").rglob("*"))] == [
        "torn/transcript.jsonl",
        "torn/transcript.jsonl/notes.txt",
    ]
    assert gaia("list", "--json").json == []


@fresh_table("names", [(), ("events.jsonl",), (".state.json.0123456789abcdef.tmp", "cancelled.json")])
def test_cleanup_corrupt_removes_the_whole_folder_if_it_has_only_store_files(
    gaia: Gaia, root: str, names: tuple[str, ...]
) -> None:
    fill(root, {f"torn/{name}": "x" for name in ("state.json", *names)})

    assert gaia("cleanup", "--corrupt", "--json").json["removed"] == ["torn"]
    assert not Path(root, "torn").exists()


def test_a_folder_without_a_record_is_not_a_session_for_any_command(gaia: Gaia, shared: str) -> None:
    gaia("create", "--id", "a")
    folders = {
        "none": (),
        "code": ("src/a.py",),
        "told": ("events.jsonl", "transcript.jsonl"),
        "end": ("cancelled.json",),
    }
    for folder, names in folders.items():
        Path(shared, folder).mkdir()
        fill(shared, {f"{folder}/{name}": "x" for name in names})

        assert [one["agent_id"] for one in gaia("list", "--json").json] == ["a"]
        assert [gaia(word, folder).code for word in ("get", "update", "cancel")] == [3, 3, 3]
        assert gaia("cleanup", "--corrupt", "--json").json["corrupt"] == []
        assert all(Path(shared, folder, name).read_text("utf-8") == "x" for name in names)


def test_a_link_to_a_session_is_reported_and_stays(gaia: Gaia, root: str, tmp_path: Path) -> None:
    gaia("create", "--id", "a")
    fill(str(tmp_path / "real"), {"state.json": state_of("b", "approval")})
    Path(root, "b").symlink_to(tmp_path / "real")

    assert [one["agent_id"] for one in gaia("cleanup", "--json").json["corrupt"]] == ["b"]
    ended = gaia("cleanup", "--corrupt", "--hours", "0", "--json")

    assert ended.code == 8
    assert b"b: cannot remove: not a folder, but a link or a file" in ended.out + ended.err
    assert Path(root, "b", "state.json").is_file()


def test_only_new_or_empty_roots_and_project_roots_get_a_gitignore(gaia: Gaia, root: str, tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("new", "empty", "used", "project/.claude/session")}
    for name, path in places.items():
        if name != "new":
            path.mkdir(parents=True)
    for name in ("used", "project/.claude/session"):
        fill(str(places[name]), {"src/a.py": "code"})

    for path in places.values():
        assert gaia("create", "--root", str(path)).code == 0

    assert [name for name, path in places.items() if (path / ".gitignore").is_file()] == [
        "new",
        "empty",
        "project/.claude/session",
    ]
    assert not Path(root).exists()


def test_create_finishes_a_root_whose_creator_was_killed(gaia: Gaia, root: str) -> None:
    left = Path(root, "..gitignore.0123456789abcdef.tmp")
    fill(root, {left.name: ""})

    gaia("create", "--id", "a")

    assert Path(root, ".gitignore").read_bytes() == b"*\n"
    assert gaia("cleanup", "--json").json["swept"] == [str(left)]


def test_a_folder_with_a_record_of_another_program_keeps_its_mode(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "a")
    fill(root, {"web/state.json": '{"theme": "dark"}', "web/index.html": "hello"})

    assert b"fixed modes: 4 made private" in gaia("doctor", "--fix").out
    assert [(path.name, path.stat().st_mode & 0o777) for path in sorted(Path(root, "web").rglob("*"))] == [
        ("index.html", 0o644),
        ("state.json", 0o644),
    ]
    assert Path(root, "web").stat().st_mode & 0o777 == 0o755
