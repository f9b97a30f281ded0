"""Links that lead out of the root, at any name of the store: nothing outside is written, removed or changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from gaia_sessions.errors import EXPORT_ROOT_COMMAND
from gaia_sessions.hook.run import main
from gaia_sessions.hosts import HOOK
from gaia_sessions.install.places import Places
from gaia_sessions.store.file_store import FileStore
from tests import commands
from tests.calls import call
from tests.faults import worker
from tests.faults.conftest import copy
from tests.index_files import shard_of
from tests.table import table
from tests.transcripts import begin_anew

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.calls import Ran
    from tests.faults.conftest import Run, Tree

    TreeOf = Callable[[str | Path], Tree]

pytestmark = pytest.mark.filterwarnings("ignore::gaia_sessions.errors.FiguresLost")  # a link is in place of their file

NAMES = (
    "agent-1",
    "agent-1/state.json",
    "agent-1/events.jsonl",
    "agent-1/transcript.jsonl",
    "agent-1/transcript-1.jsonl",
    ".locks",
    ".locks/agent-1.lock",
    ".locks/.index.lock",
    ".stage",
    ".trash",
    ".index",
    *(str(shard_of("", *key)) for key in (("active",), ("name", "worker"), ("conversation", "s-1"))),
    ".index/complete",
    ".inbox",
    ".logs",
    ".logs/pre_delegate.log",
    ".logs/subagent_stop.log",
    ".gitignore",
    ".stats.jsonl",
)
FILES = [name for name in NAMES if Path(name).suffix or name.endswith("complete")]
OPERATIONS = (
    ("create", "agent-new"),
    ("update", "agent-1"),
    ("append", "agent-1"),
    ("add-message", "agent-1"),
    ("empty-transcript", "agent-1"),
    ("messages", "agent-1"),
    ("entries", "agent-1"),
    ("get", "agent-1"),
    ("should-resume", "agent-1"),
    ("list",),
    ("finalize", "agent-1"),
    ("cleanup",),
    ("cleanup", "corrupt"),
)
DELEGATION = {
    "hook_event_name": "PreToolUse",
    "session_id": "s-1",
    "tool_name": "Agent",
    "tool_use_id": "toolu_1",
    "tool_input": {"description": "look", "subagent_type": "Explore"},
}
DOCUMENTED = {0, 3, 4, 6, 8}
TWO_HOURS = 7200


@pytest.fixture(scope="session")
def lived_in_before(prepared: str) -> str:
    populated = copy(prepared, f"{prepared}-lived-in")
    for content in ("archived", "said"):
        begin_anew(FileStore(populated), "agent-1")
        gaia_sessions.Sessions(populated).add_message("agent-1", "user", content)
    hook("pre_delegate", populated, DELEGATION)
    hook("subagent_stop", populated, {"agent_id": "agent-2"})
    for place in (".stage/agent-9.0123456789abcdef", ".trash/agent-9.0123456789abcdef"):
        folder = Path(populated, place)
        folder.mkdir(parents=True)
        (folder / "state.json").write_bytes(b"{}")
    waiting = Path(populated, ".inbox")
    waiting.mkdir(exist_ok=True)
    (waiting / "20260108-180530-000000-01234567.json").write_bytes(b"{}")
    FileStore(populated).add_figures([{"agent_id": "agent-9"}])
    Path(populated, ".locks", "agent-9.lock").touch()
    Path(populated, "agent-1", ".state.json.0123456789abcdef.tmp").touch()
    for path in Path(populated).rglob("*"):
        aged = path.stat().st_mtime - TWO_HOURS
        os.utime(path, (aged, aged))
    return populated


@pytest.fixture
def live_in(lived_in_before: str, tmp_path: Path) -> Callable[[], str]:
    """Makes roots with every kind of file: leftovers, index entries, a waiting event, logs. All files are old.

    Each root is in its own folder.
    """
    numbers = count()
    return lambda: copy(lived_in_before, tmp_path / f"{next(numbers)}" / "session")


@pytest.fixture
def lived_in(live_in: Callable[[], str]) -> str:
    return live_in()


def hook(name: str, root: str, payload: object) -> Ran:
    """Runs the hook of this name with ``payload``."""
    return call(lambda: main(name, []), json.dumps(payload).encode(), {**os.environ, "GAIA_SESSIONS_ROOT": root}, ".")


@table("name", NAMES)
def test_the_target_of_a_planted_link_does_not_change(live_in: Callable[[], str], tree: TreeOf, name: str) -> None:
    lived_in = live_in()
    outside = Path(lived_in).with_name("outside")
    outside.mkdir()
    planted = Path(lived_in, name)
    shutil.move(planted, outside / "victim")
    planted.symlink_to(outside / "victim")
    before = tree(outside)

    assert _what_fails(lived_in) == []
    assert tree(outside) == before


@table("name", NAMES)
def test_the_missing_target_of_a_planted_link_is_not_created(
    live_in: Callable[[], str], tree: TreeOf, name: str
) -> None:
    lived_in = live_in()
    outside = Path(lived_in).with_name("outside")
    outside.mkdir()
    planted = Path(lived_in, name)
    shutil.rmtree(planted) if planted.is_dir() else planted.unlink()
    planted.symlink_to(outside / "nothing")

    assert _what_fails(lived_in) == []
    assert tree(outside) == {}


@table("name", FILES)
def test_the_outside_file_of_a_planted_hard_link_does_not_change(
    live_in: Callable[[], str], tree: TreeOf, name: str
) -> None:
    lived_in = live_in()
    outside = Path(lived_in).with_name("outside")
    outside.mkdir()
    (outside / "victim").write_bytes(b'{"precious": true}\n')
    (outside / "victim").chmod(0o644)
    planted = Path(lived_in, name)
    planted.unlink()
    planted.hardlink_to(outside / "victim")
    before = tree(outside)

    assert _what_fails(lived_in) == []
    assert tree(outside) == before


def test_operations_beside_a_hard_link_snapshot_work_as_usual_and_do_not_change_it(
    lived_in: str, tmp_path: Path, tree: TreeOf
) -> None:
    alone, snapshot = str(tmp_path / "alone"), str(tmp_path / "snapshot")
    shutil.copytree(lived_in, alone)
    subprocess.run(["cp", "-al", lived_in, snapshot], check=True)
    before = tree(snapshot)

    told, told_alone = _told(lived_in), _told(alone)

    assert told == told_alone
    assert {code for _, code in told} == {0}
    assert _contents(lived_in) == _contents(alone)
    assert tree(snapshot) == before


def test_a_hard_linked_journal_of_another_user_is_not_copied(lived_in: str, tmp_path: Path, run: Run) -> None:
    # Root would give the copy to the owner of the folder, who may not be allowed to read the file.
    if os.geteuid():
        pytest.skip("only root can change the owner of a file")
    journal = Path(lived_in, "agent-1", "events.jsonl")
    os.chown(journal, 12345, -1)
    os.link(journal, tmp_path / "of somebody else")

    ended = run("append", lived_in, "agent-1")

    assert (ended.returncode, "events.jsonl" in ended.stderr) == (8, True)
    assert journal.samefile(tmp_path / "of somebody else")


@pytest.fixture(params=[".claude", ".claude/session"])
def led_out(request: pytest.FixtureRequest, lived_in: str, tmp_path: Path) -> Path:
    """A project whose sessions folder is behind a link into another project of the user."""
    victim, project = tmp_path / "victim", tmp_path / "project"
    shutil.move(lived_in, victim / ".claude" / "session")
    planted = project / request.param
    planted.parent.mkdir(parents=True)
    planted.symlink_to(victim / request.param)
    return project


STARTS = {"hook_event_name": "SessionStart", "session_id": "s-9", "source": "startup"}
AGENT_STARTS = {"hook_event_name": "SubagentStart", "session_id": "s-9", "agent_id": "a1", "agent_type": "Explore"}


def test_hooks_follow_no_link_out_of_the_project(led_out: Path, tree: TreeOf) -> None:
    victim = led_out.with_name("victim")
    before = tree(victim)
    environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(led_out)}

    told = [
        commands.hook(HOOK, payload, *words, environment=environment)
        for payload in (STARTS, DELEGATION, AGENT_STARTS)
        for words in ([], ["--enforce"])
    ]

    assert told == [(0, b"", b"")] * 6
    assert tree(victim) == before
    logs = [path.read_text(encoding="utf-8") for path in led_out.glob(".claude/logs/*.log")]
    is_inside = not led_out.joinpath(".claude").is_symlink()
    assert [f"{led_out}/.claude/session: cannot use the sessions" in text for text in logs] == [True] * is_inside


def test_blocked_tools_are_denied_even_if_a_link_leads_out_of_the_project(led_out: Path) -> None:
    use = {**AGENT_STARTS, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t", "tool_input": {}}
    settings = {"CLAUDE_PROJECT_DIR": str(led_out), "GAIA_SESSIONS_LIMITS_BLOCKED_TOOLS": "Bash"}

    ended = commands.hook(HOOK, use, "--enforce", environment={**os.environ, **settings})

    assert ended.answer["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize(
    "words",
    [
        ["create"],
        ["list"],
        ["update", "agent-1"],
        ["cleanup", "--hours", "0"],
        ["rm", "agent-1"],
        ["run", "--", "true"],
        ["hooks", "install", "--local"],
        ["hooks", "status"],
    ],
)
@pytest.mark.parametrize("way", ["searched", "told by the host", "named"])
def test_commands_follow_no_link_out_of_the_project(led_out: Path, tree: TreeOf, words: list[str], way: str) -> None:
    victim = led_out.with_name("victim")
    root, before = f"{led_out}/.claude/session", tree(victim.parent)
    told = {"CLAUDE_PROJECT_DIR": str(led_out)} if way == "told by the host" else {}
    named = ["--root", root] if way == "named" else []

    ended = commands.gaia(*named, *words, environment={**os.environ, **told}, folder="/" if told or named else led_out)

    target = f"{victim}/.claude/session"
    reason = f"{root}: cannot use the sessions: a link leads out of the project, to {target}"
    hint = f"remove the link; or, if you made the link, type export GAIA_SESSIONS_ROOT={target}"
    assert ended.refusal == (8, reason, hint)
    assert tree(victim.parent) == before


def test_doctor_changes_nothing_behind_a_link_out_of_the_project(led_out: Path, tree: TreeOf) -> None:
    victim = led_out.with_name("victim")
    victim.joinpath(".claude", "session").chmod(0o755)
    before = tree(victim.parent)

    ended = commands.gaia("doctor", "--fix", "--json", environment=os.environ, folder=led_out)

    found = json.loads(ended.out)["checks"][0]
    assert (ended.code, found["name"], found["fix"]) == (1, "root", EXPORT_ROOT_COMMAND)
    assert "a link leads out of the project" in found["found"]
    assert tree(victim.parent) == before


def test_the_target_of_a_link_can_be_named_as_the_root(led_out: Path) -> None:
    target = led_out.with_name("victim") / ".claude" / "session"
    ended = commands.gaia(
        "get", "agent-1", environment={**os.environ, "GAIA_SESSIONS_ROOT": str(target)}, folder=led_out
    )
    assert ended.code == 0


def test_the_target_of_a_link_is_the_hooks_root_only_if_it_is_named(led_out: Path) -> None:
    root = f"{led_out.with_name('victim')}/.claude/session"
    told = {"CLAUDE_PROJECT_DIR": str(led_out), "GAIA_SESSIONS_ROOT": root}
    without = {**os.environ, "CLAUDE_PROJECT_DIR": str(led_out)}

    assert Places(root, {**os.environ, **told}).is_hooks_root
    assert not Places(root, without, str(led_out)).is_hooks_root


def test_a_root_that_is_a_link_works(tmp_path: Path, run: Run) -> None:
    real = tmp_path / "real"
    real.mkdir()
    root = str(tmp_path / "link")
    Path(root).symlink_to(real)

    codes = [run(*words).returncode for words in (("create", root, "agent-1"), ("update", root, "agent-1"))]
    codes += [run(*words).returncode for words in (("append", root, "agent-1"), ("finalize", root, "agent-1"))]

    assert codes == [0, 0, 0, 0]
    assert run("cleanup", root).returncode == 0
    assert Path(root).is_symlink()
    assert Path(real, "agent-1", "state.json").is_file()
    assert [line["agent_id"] for line in gaia_sessions.list_sessions(root=root)] == ["agent-1"]


def test_bad_files_in_the_inbox_stop_no_command(lived_in: str, run: Run) -> None:
    waiting = Path(lived_in, ".inbox")
    (waiting / "1-link.json").symlink_to("nowhere")
    (waiting / "2-folder.json").mkdir()
    (waiting / "3-big.json").write_bytes(b" " * (2 << 20))
    os.mkfifo(waiting / "4-pipe.json")

    assert [run("create", lived_in, "agent-new").returncode, run("update", lived_in, "agent-1").returncode] == [0, 0]


def _what_fails(root: str) -> list[str]:
    """The operations that did not end with a documented exit code."""
    return [f"{name}: exit {code}" for name, code in _told(root) if code not in DOCUMENTED]


def _told(root: str) -> list[tuple[str, object]]:
    """Runs all operations in this process, and then the hooks. Returns the result of each."""
    told = [(" ".join(words), _ended(words[0], root, *words[1:])) for words in OPERATIONS]
    payloads = {"pre_delegate": {**DELEGATION, "tool_use_id": "toolu_2"}, "subagent_stop": {"agent_id": "agent-new"}}
    for name, payload in payloads.items():
        ended = hook(name, root, payload)
        told.append((name, str(ended) if ended.code or ended.err else 0))
    return told


def _contents(root: str) -> Counter[str]:
    """The number of lines of each file of a session, and of each log with its old file."""
    lines: Counter[str] = Counter()
    for path in [*Path(root).glob("agent-*/*"), *Path(root).glob(".logs/*")]:
        session = path.parent.name if len(path.parent.name) < len("agent-20260108") else "generated"
        lines[f"{session}/{path.name}".removesuffix(".old")] += path.read_bytes().count(b"\n")
    return lines


def _ended(*words: str) -> object:
    """The exit code of the worker. An error without an exit code is raised."""
    try:
        return worker.main(*words)
    except SystemExit as ended:
        return ended.code
