"""``hooks``: what is said, what it ends with, and that a dry run's difference is a patch."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.cli.commands.hooks import command
from gaia_sessions.cli.render import hook_status, hooks
from gaia_sessions.install import installed_file as states
from gaia_sessions.install import plan
from gaia_sessions.install.executable import hook_program
from gaia_sessions.install.places import HOSTS
from gaia_sessions.store import hook_log
from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Gaia

PROGRAM = hook_program()[0]
OLD = b'{\r\n\t"model": "opus",\r\n\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "beep"}]}]}\r\n}'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project around the working directory; its sessions are where they belong."""
    folder = tmp_path / "project"
    (folder / ".claude").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GAIA_SESSIONS_ROOT")
    return folder


@pytest.fixture
def renew(anew: Gaia, project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Empties the project, for the next row of a table."""

    def make() -> None:
        anew()
        (project / ".claude").mkdir(parents=True)
        monkeypatch.chdir(project)

    return make


@pytest.fixture(scope="session")
def with_a_commit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git keeps of a repository with one commit."""
    folder = tmp_path_factory.mktemp("repository")
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", folder, "-c", "user.name=me", "-c", "user.email=me@here", *words], check=True)
    return folder / ".git"


@pytest.fixture
def repository(with_a_commit: Path) -> Callable[[Path], object]:
    """Makes a folder a repository."""
    return lambda folder: shutil.copytree(with_a_commit, folder / ".git")


@pytest.fixture
def settings(project: Path) -> Path:
    return project / ".claude" / "settings.local.json"


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is on the path, as where it was installed."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def test_installing_says_what_it_wrote_where_and_a_second_time_that_it_is_there(gaia: Gaia, settings: Path) -> None:
    assert gaia("hooks", "install").all == (0, f"installed in {settings}\n", f"writing {settings}\n")
    before = settings.stat().st_mtime_ns
    assert gaia("hooks", "install").answer == [f"already installed in {settings}, nothing changed"]
    assert gaia("hooks", "install", "--dry-run").answer == ["nothing would change"]
    assert settings.stat().st_mtime_ns == before


def test_uninstalling_says_so_and_a_second_time_that_there_is_nothing(gaia: Gaia, settings: Path) -> None:
    settings.write_bytes(OLD)
    gaia("hooks", "install")
    assert gaia("hooks", "uninstall").answer == [f"removed from {settings}"]
    assert settings.read_bytes() == OLD
    expected = f"not installed in {settings}, nothing changed\n"
    assert gaia("hooks", "uninstall").all == (0, expected, "")


def test_where_else_it_is_installed_is_named_with_the_command_that_takes_it_out(gaia: Gaia, settings: Path) -> None:
    gaia("hooks", "install", "--user")
    lines = gaia("hooks", "uninstall").lines
    assert lines == [
        f"not installed in {settings}, nothing changed",
        "  installed elsewhere: gaia-sessions hooks uninstall --host claude-code --user",
    ]
    assert gaia("hooks", "uninstall", "--json").json["elsewhere"] == ["user"]
    gaia("hooks", "install")
    assert gaia("hooks", "uninstall").lines == [
        f"removed from {settings}",
        "  installed elsewhere: gaia-sessions hooks uninstall --host claude-code --user",
    ]
    assert gaia(*shlex.split(lines[1].partition(": ")[2])[1:]).code == 0
    gaia("hooks", "install", "--host", "codex", "--user")
    lines = gaia("hooks", "uninstall", "--host", "codex").lines
    assert lines[1] == "  installed elsewhere: gaia-sessions hooks uninstall --host codex --user"
    assert gaia("hooks", "uninstall", "--json").json["elsewhere"] == []


def test_what_was_written_by_hand_is_printed_whole_when_it_goes(gaia: Gaia, settings: Path) -> None:
    entry = {
        "matcher": "Agent",
        "hooks": [{"type": "command", "command": f"'{PROGRAM}'  --root /é\x1b{'x' * 2000}", "timeout": 60}],
    }
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}), encoding="utf-8")
    wanted = f'written by hand: "PreToolUse": [{json.dumps(entry)}]'
    assert f"  removed what was {wanted}" in gaia("hooks", "uninstall").lines
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}), encoding="utf-8")
    assert f"  replaced what was {wanted}" in gaia("hooks", "install").lines
    assert "by hand" not in gaia("hooks", "install", "--allow-report").out.decode()
    assert "by hand" not in gaia("hooks", "uninstall").out.decode()


def test_json_has_all_of_it(gaia: Gaia, settings: Path) -> None:
    answer = gaia("hooks", "install", "--json").json
    assert answer == {
        "action": "install",
        "host": "claude-code",
        "scope": "local",
        "root": str(settings.parent / "session"),
        "file": str(settings),
        "changed": True,
        "dry_run": False,
        "command": [PROGRAM],
        "events": [*HOSTS["claude-code"].events, "PermissionRequest"],
        "by_hand": [],
        "rules": [],
        "withdrawn": [],
        "remarks": [],
        "elsewhere": [],
        "diff": "",
        "warnings": [],
    }


@table(
    ("words", "file"),
    [
        (["--user"], "~/.claude/settings.json"),
        (["--project"], ".claude/settings.json"),
        (["--local"], ".claude/settings.local.json"),
        ([], ".claude/settings.local.json"),
        (["--host", "codex", "--user"], "~/.codex/hooks.json"),
        (["--host", "codex"], ".codex/hooks.json"),
        (["--host", "qwen-code", "--user"], "~/.qwen/settings.json"),
        (["--host", "qwen-code"], ".qwen/settings.json"),
        (["--host", "gemini-cli", "--user"], "~/.gemini/settings.json"),
        (["--host", "gemini-cli"], ".gemini/settings.json"),
    ],
)
def test_the_options_name_the_file(
    gaia: Gaia, project: Path, away_from_home: Path, words: list[str], file: str
) -> None:
    path = away_from_home / file[2:] if file.startswith("~/") else project / file
    assert gaia("hooks", "install", "--json", *words).json["file"] == str(path)
    assert path.is_file()
    gaia("hooks", "uninstall", *words)
    assert not path.exists()


def test_codex_is_asked_to_trust_and_claude_code_to_trust_the_folder(gaia: Gaia, project: Path) -> None:
    assert project.is_dir()
    assert "type /hooks" in gaia("hooks", "install", "--host", "codex").out.decode()
    assert "until you trust its folder" in gaia("hooks", "install", "--local", "--allow-report").out.decode()


@table("before", [None, OLD, OLD + b"\n", b"{}\n"])
@table("words", [["--local"], ["--local", "--allow-report"], ["--local", "--enforce"]])
def test_a_dry_run_prints_a_patch_and_writes_nothing(
    gaia: Gaia, renew: Gaia, project: Path, tmp_path: Path, before: bytes | None, words: list[str]
) -> None:
    renew()
    settings = project / ".claude" / "settings.local.json"
    if before is not None:
        settings.write_bytes(before)
    copy = shutil.copytree(project, tmp_path / "copy")

    ended = gaia("hooks", "install", "--dry-run", *words)

    assert (ended.code, ended.err) == (0, b"")
    assert {path.name for path in project.rglob("*")} == {path.name for path in copy.rglob("*")}
    assert (settings.read_bytes() if settings.exists() else None) == before
    applied = subprocess.run(["patch", "-p1", "--binary"], cwd=copy, input=ended.out, check=False, capture_output=True)
    assert applied.returncode == 0, applied
    gaia("hooks", "install", *words)
    assert files(copy) == files(project)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_dry_run_at_a_terminal_shows_nothing_that_it_obeys(gaia: Gaia, terminal: Gaia, settings: Path) -> None:
    settings.write_text('{\n  "a": "\x9b2J \u202e evil"\n}\n', encoding="utf-8")
    shown = terminal("hooks", "install", "--dry-run").out.decode()
    assert ('"a": " 2J  evil"' in shown, "\x9b" in shown, "\u202e" in shown) == (True, False, False)
    assert '"a": "\x9b2J \u202e evil"' in gaia("hooks", "install", "--dry-run").out.decode()


def test_a_dry_run_of_an_uninstall_is_a_patch_too(gaia: Gaia, project: Path, settings: Path) -> None:
    settings.write_bytes(OLD)
    gaia("hooks", "install")
    patch = gaia("hooks", "uninstall", "--dry-run").out
    assert settings.read_bytes() != OLD
    subprocess.run(["patch", "-p1", "--binary"], cwd=project, input=patch, check=True, capture_output=True)
    assert settings.read_bytes() == OLD


def test_a_file_that_does_not_parse_is_an_error_of_its_own(gaia: Gaia, settings: Path) -> None:
    settings.write_bytes(b"// mine\n{}")
    for ask in ("install", "uninstall"):
        ended = gaia("hooks", ask, "--json")
        assert (ended.code, ended.error["code"]) == (7, "settings_unreadable")
        assert ended.error["message"] == f"{settings}: line 1 column 1: not JSON: a comment"
    assert settings.read_bytes() == b"// mine\n{}"


def test_a_comma_too_many_is_shown_to_a_person_in_its_line(gaia: Gaia, settings: Path) -> None:
    settings.write_bytes(b'{\n  "model": "opus",\n}\n')
    assert gaia("hooks", "install").all == (
        7,
        "",
        (
            f"Error: {settings}: line 2 column 18: not JSON: a comma before the closing brace\n"
            '    "model": "opus",\n'
            "                   ^\n"
            "Hint: correct the file; it was not changed\n"
        ),
    )


@table(
    ("words", "problem"),
    [
        (["install", "--host", "vim"], ""),
        (["install", "--host", "codex", "--local"], "codex has no local settings"),
        (["install", "--user", "--local"], ""),
        (["install", "--user", "--project"], "--user and --project cannot be combined"),
        (["uninstall", "--local", "--project"], ""),
        (["install", "--host", "codex", "--allow-report"], "only claude-code has a permission rule for one command"),
        (["uninstall", "--allow-report"], ""),
        (["status", "--user"], ""),
        (["frobnicate"], ""),
    ],
)
def test_what_can_never_be_done_is_2_and_said_in_plain_words(
    gaia: Gaia, project: Path, words: list[str], problem: str
) -> None:
    ended = gaia("hooks", *words)
    assert (ended.code, ended.out) == (2, b"")
    assert not problem or gaia("hooks", *words, "--json").error["message"] == problem
    assert list(project.rglob("*")) == [project / ".claude"]


def test_by_itself_it_shows_its_help_and_that_of_a_command_names_every_host(gaia: Gaia) -> None:
    assert gaia("hooks").all == gaia("hooks", "--help").all
    assert gaia("hooks").code == 0
    assert "--host claude-code|codex|qwen-code|gemini-cli" in gaia("hooks", "install", "--help").out.decode()


@table("name", ["install", "uninstall", "status"])
def test_each_of_its_commands_has_help_with_examples_that_work(gaia: Gaia, project: Path, name: str) -> None:
    text = gaia("hooks", name, "--help").out.decode()
    examples = [line.strip() for line in text.partition("Examples:")[2].splitlines() if line.strip()]
    assert examples
    for example in examples:
        assert gaia(*shlex.split(example)[1:]).code == 0
    assert project.is_dir()
    assert set(command.commands) == {"install", "uninstall", "status"}


def test_what_all_commands_take_may_stand_before_or_after_the_inner_one(gaia: Gaia, tmp_path: Path) -> None:
    root = str(tmp_path / "other" / ".claude" / "session")
    wanted = gaia("hooks", "status", "--json", "--root", root).json
    assert wanted["root"] == root
    assert gaia("hooks", "--json", "--root", root, "status").json == wanted
    assert gaia("--root", root, "hooks", "--json", "status").json == wanted


def test_a_root_elsewhere_leaves_the_project_where_we_are(
    gaia: Gaia, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", str(tmp_path / "elsewhere"))
    assert gaia("hooks", "install", "--json").json["file"] == str(settings)


@pytest.mark.usefixtures("on_path")
def test_status_has_what_is_wrong_first_and_what_is_well_in_one_line(gaia: Gaia, project: Path, settings: Path) -> None:
    assert gaia("hooks", "status").answer == [
        "warning: no hooks are installed here, so what agents do is not recorded",
        "    gaia-sessions hooks install",
    ]
    gaia("hooks", "install")
    installed = "claude-code: installed in this project for you, "
    assert gaia("hooks", "status").answer == [f"{installed}no event received yet"]
    subprocess.run(
        [PROGRAM],
        input=json.dumps({"hook_event_name": "SessionEnd", "session_id": "s", "cwd": str(project)}).encode(),
        check=True,
    )
    well = gaia("hooks", "status").out.decode()
    assert (well.startswith(f"{installed}last event "), well.count("\n")) == (True, 1)
    details = gaia("hooks", "status", "--verbose").lines
    assert (details[0], details[1]) == (well.rstrip(), f"claude-code, local: installed: {settings}")
    assert details[2] == f"  starts: {PROGRAM}"
    assert [line.partition(":")[0].strip() for line in details[-2:]] == ["last events from claude-code", "SessionEnd"]


@pytest.mark.usefixtures("on_path")
def test_status_says_with_which_options_the_hooks_are_installed(gaia: Gaia) -> None:
    gaia("hooks", "install", "--enforce", "--allow-report")
    expected = (
        "claude-code: installed in this project for you, no event received yet\n  with --allow-report --enforce\n"
    )
    assert gaia("hooks", "status").all == (0, expected, "")


@table("host", HOSTS)
def test_what_is_well_is_one_line_of_a_terminal(gaia: Gaia, terminal: Gaia, project: Path, host: str) -> None:
    for words, place in (
        (["--user"], "all your projects"),
        (["--project"], "this project for the team"),
        (["--local"], "this project for you"),
    ):
        if words == ["--local"] and host != "claude-code":
            continue
        gaia("hooks", "install", "--host", host, *words)
        at = ago(minutes=45)
        hook_log.append_line(str(project / ".claude" / "session"), "hook", {"at": at, "event": "Stop", "host": host})
        shown = terminal("hooks", "status").out.decode()
        assert shown == f"{host}: installed in {place}, last event 45 minutes ago\n"
        assert len(shown) < 80
        gaia("hooks", "uninstall", "--host", host, *words)


def test_status_calls_nothing_installed_while_the_hooks_are_off(
    gaia: Gaia, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gaia("hooks", "install")
    monkeypatch.setenv("GAIA_SESSIONS_HOOKS", "off")
    assert settings.is_file()
    assert gaia("hooks", "status").lines == [
        "problem: the hooks are installed, but they are off by the setting hooks.enabled",
        "    unset GAIA_SESSIONS_HOOKS",
    ]


def test_settings_whose_hooks_are_null_are_a_problem_for_all_who_look(gaia: Gaia, settings: Path) -> None:
    settings.write_text('{"hooks": null}', encoding="utf-8")
    expected = [
        f"problem: {settings}: 'hooks' is null, not an object; its host may ignore the whole file",
        f"    ${{EDITOR:-vi}} {settings}",
    ]
    assert gaia("hooks", "status").lines == expected
    doctor = gaia("doctor")
    assert (doctor.code, doctor.lines[:2]) == (1, expected)
    assert gaia("hooks", "install", "--json").error["message"] == f"{settings}: 'hooks' is null, not an object"
    assert gaia("hooks", "uninstall").answer == [f"not installed in {settings}, nothing changed"]


@table("words", [[], ["--user"], ["--host", "codex"], ["--json"], ["--dry-run"]])
def test_uninstalling_where_nothing_is_installed_makes_nothing(
    gaia: Gaia, project: Path, away_from_home: Path, words: list[str]
) -> None:
    before = sorted([*project.rglob("*"), *away_from_home.rglob("*")])
    times = [path.lstat().st_mtime_ns for path in (project, away_from_home)]
    assert gaia("hooks", "uninstall", *words).code == 0
    assert sorted([*project.rglob("*"), *away_from_home.rglob("*")]) == before
    assert [path.lstat().st_mtime_ns for path in (project, away_from_home)] == times


def test_from_a_linked_worktree_its_own_settings_are_written(
    gaia: Gaia, repository: Gaia, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    repository(project)
    subprocess.run(["git", "-C", project, "worktree", "add", tree], check=True, capture_output=True)
    (tree / "deep").mkdir()
    monkeypatch.chdir(tree / "deep")

    answer = gaia("hooks", "install", "--json").json

    assert (answer["file"], answer["root"]) == (f"{tree}/.claude/settings.local.json", f"{project}/.claude/session")
    assert "root_elsewhere" not in [one["code"] for one in answer["warnings"]]
    found = [row["file"] for row in gaia("hooks", "status", "--json").json["installed"] if row["state"] == "complete"]
    assert found == [answer["file"]]
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(tree))
    monkeypatch.chdir(tmp_path)
    assert gaia("hooks", "uninstall", "--json").json["file"] == answer["file"]
    monkeypatch.delenv("CLAUDE_PROJECT_DIR")
    monkeypatch.chdir(project)
    assert gaia("hooks", "install", "--json").json["file"] == f"{project}/.claude/settings.local.json"


def test_a_root_that_hooks_would_not_use_is_remarked(
    gaia: Gaia, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    assert "GAIA_SESSIONS_ROOT" not in gaia("hooks", "install").out.decode()
    output = gaia("hooks", "install", "--root", elsewhere, "--local").out.decode()
    told = f"warning: hooks started here keep their sessions in {project}/.claude/session; for {elsewhere}, set GAIA_"
    assert told in output
    assert told in gaia("hooks", "status", "--root", elsewhere).out.decode()
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", elsewhere)
    assert "warning" not in gaia("hooks", "status", "--root", elsewhere).out.decode()
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", str(tmp_path / "third"))
    assert "warning: hooks started" in gaia("hooks", "status", "--root", f"{project}/.claude/session").out.decode()


def test_what_was_allowed_and_is_no_longer_is_said(gaia: Gaia, settings: Path) -> None:
    settings.write_bytes(OLD)
    allowed = gaia("hooks", "install", "--allow-report").out.decode()
    rule = next(line for line in allowed.splitlines() if line.startswith("  allows: "))
    lines = gaia("hooks", "install").lines
    assert rule.replace("allows", "no longer allows", 1) in lines
    assert not (settings.parent / "gaia-sessions.toml").exists()


def test_every_state_and_every_remark_has_words() -> None:
    assert set(hook_status._STATE_TEXTS) == set(states.STATES)
    assert set(hooks._REMARKS) == set(plan.REMARKS)


def test_status_is_content_whatever_stands_there(gaia: Gaia, settings: Path) -> None:
    settings.write_bytes(b"\xff")
    code, out, err = gaia("hooks", "status").all
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first == f"problem: {settings}: byte 0: not UTF-8; its host may ignore the whole file"
    assert second == f"    ${{EDITOR:-vi}} {settings}"
    assert "cannot be read" in gaia("hooks", "status", "--verbose").out.decode()


@table("command", ["beep \ud800", "\ud800 /opt/gaia_sessions/hooks/every_event.py"])
def test_signs_that_utf8_has_not_are_reported_all_the_same(gaia: Gaia, settings: Path, command: str) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}
    settings.write_text(json.dumps({"hooks": hooks}), encoding="utf-8")
    gaia("hooks", "install", "--local")
    for words in (["status"], ["status", "--json"], ["uninstall", "--json", "--dry-run"]):
        ended = gaia("hooks", *words)
        assert (ended.code, ended.err) == (0, b"")
    assert "\\ud800" in gaia("hooks", "status").out.decode()


def test_a_project_whose_name_is_no_utf8_can_be_wired(gaia: Gaia, tmp_path: Path, monkeypatch: Any) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GAIA_SESSIONS_ROOT")
    for words in (["install", "--allow-report"], ["status"], ["uninstall"]):
        ended = gaia("hooks", *words, "--json")
        assert (ended.code, ended.err) == (0, b"")
    assert list(folder.rglob("*.*")) == []


def test_a_name_that_would_steer_a_terminal_is_shown_tamed(gaia: Gaia, settings: Path) -> None:
    evil = {"type": "command", "command": "\x1b[2J /opt/gaia_sessions/hooks/every_event.py"}
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [evil]}]}}), encoding="utf-8")
    assert b"\x1b" not in gaia("hooks", "status").out


def test_the_file_is_named_before_it_is_written_and_what_the_system_refuses_is_8(gaia: Gaia, settings: Path) -> None:
    settings.write_bytes(b"{}")
    settings.chmod(0o444)
    ended = gaia("hooks", "install")
    assert ended.code == 8
    assert ended.err.decode().splitlines()[0] == f"writing {settings}"
    assert gaia("hooks", "install", "--json").error["code"] == "io_error", "no line before what a program reads"
    assert settings.read_bytes() == b"{}"


def test_entries_in_the_shared_file_are_updated_there_and_not_doubled(
    gaia: Gaia, project: Path, settings: Path
) -> None:
    shared = settings.with_name("settings.json")
    gaia("hooks", "install", "--project")
    answer = gaia("hooks", "install", "--json", "--enforce").json
    assert (answer["scope"], answer["file"]) == ("project", str(shared))
    assert b"--enforce" in shared.read_bytes()
    assert not settings.exists()
    ended = gaia("hooks", "install", "--local", "--json")
    assert (ended.code, ended.error["message"]) == (4, f"{shared} already has the hooks for claude-code")
    assert "hooks uninstall --project" in ended.error["hint"]
    assert not settings.exists()
    assert gaia("hooks", "uninstall", "--json").json["file"] == str(shared)
    assert list(project.rglob("*.json")) == []


def test_what_was_asked_for_by_name_is_not_written_beside_what_is_there(gaia: Gaia, settings: Path) -> None:
    gaia("hooks", "install")
    before = settings.read_bytes()
    assert gaia("hooks", "install", "--project", "--json").error["code"] == "hooks_elsewhere"
    assert (settings.read_bytes(), settings.with_name("settings.json").exists()) == (before, False)
    assert gaia("hooks", "uninstall").code == 0
    assert gaia("hooks", "install", "--project", "--json").json["file"] == str(settings.with_name("settings.json"))


@table("host", HOSTS)
def test_from_a_subfolder_the_folder_to_start_a_client_in_is_named(
    gaia: Gaia, renew: Gaia, repository: Gaia, project: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    renew()
    repository(project)
    deep = project / "modules" / "deep"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    answer = gaia("hooks", "install", "--json", "--host", host).json
    assert Path(answer["file"]).parent.parent == project
    codes = [found["code"] for found in answer["warnings"]]
    assert codes == ["not_read_here"] * (host != "codex"), "Codex reads it from below"
    advice = f"may not read the hooks in {answer['file']}; start it in {project}, or install with --here"
    assert (advice in gaia("hooks", "install", "--host", host).out.decode()) == (host != "codex")
    monkeypatch.chdir(project)
    assert gaia("hooks", "install", "--json", "--host", host).json["warnings"] == []


def test_here_writes_beside_the_subfolder_for_the_sessions_of_clients_started_there(
    gaia: Gaia, repository: Gaia, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(project)
    deep = project / "modules"
    deep.mkdir()
    monkeypatch.chdir(deep)
    answer = gaia("hooks", "install", "--here", "--json").json
    assert (answer["file"], answer["root"]) == (f"{deep}/.claude/settings.local.json", f"{deep}/.claude/session")
    assert answer["warnings"] == []
    assert gaia("hooks", "uninstall", "--here", "--json").json["file"] == answer["file"]
    assert not (deep / ".claude").exists()
    assert (
        gaia("hooks", "install", "--user", "--here", "--json").error["message"]
        == "--user and --here cannot be combined"
    )
