"""``hooks``: outputs, exit codes and files of its commands; a dry run prints a patch."""

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
    """A project as the working directory, with the default root."""
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
    """The folder ``.git`` of a repository with one commit."""
    folder = tmp_path_factory.mktemp("repository")
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", folder, "-c", "user.name=me", "-c", "user.email=me@here", *words], check=True)
    return folder / ".git"


@pytest.fixture
def repository(with_a_commit: Path) -> Callable[[Path], object]:
    """Makes a folder a git repository."""
    return lambda folder: shutil.copytree(with_a_commit, folder / ".git")


@pytest.fixture
def settings(project: Path) -> Path:
    return project / ".claude" / "settings.local.json"


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the command on the path."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def test_install_names_the_file_and_a_second_install_changes_nothing(gaia: Gaia, settings: Path) -> None:
    assert gaia("hooks", "install").all == (0, f"installed in {settings}\n", f"writing {settings}\n")
    before = settings.stat().st_mtime_ns
    assert gaia("hooks", "install").answer == [f"already installed in {settings}, nothing changed"]
    assert gaia("hooks", "install", "--dry-run").answer == ["nothing would change"]
    assert settings.stat().st_mtime_ns == before


def test_uninstall_restores_the_file_and_a_second_uninstall_changes_nothing(gaia: Gaia, settings: Path) -> None:
    settings.write_bytes(OLD)
    gaia("hooks", "install")
    assert gaia("hooks", "uninstall").answer == [f"removed from {settings}"]
    assert settings.read_bytes() == OLD
    expected = f"not installed in {settings}, nothing changed\n"
    assert gaia("hooks", "uninstall").all == (0, expected, "")


def test_uninstall_shows_the_commands_that_remove_hooks_installed_elsewhere(gaia: Gaia, settings: Path) -> None:
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


def test_an_entry_written_by_hand_is_printed_when_it_is_removed_or_replaced(gaia: Gaia, settings: Path) -> None:
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


def test_with_json_install_prints_its_whole_result(gaia: Gaia, settings: Path) -> None:
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
def test_options_for_host_and_scope_select_the_settings_file(
    gaia: Gaia, project: Path, away_from_home: Path, words: list[str], file: str
) -> None:
    path = away_from_home / file[2:] if file.startswith("~/") else project / file
    assert gaia("hooks", "install", "--json", *words).json["file"] == str(path)
    assert path.is_file()
    gaia("hooks", "uninstall", *words)
    assert not path.exists()


def test_install_says_what_to_trust_in_codex_and_in_claude_code(gaia: Gaia, project: Path) -> None:
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


def test_a_dry_run_at_a_terminal_shows_no_control_characters(gaia: Gaia, terminal: Gaia, settings: Path) -> None:
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


def test_settings_that_cannot_be_parsed_are_an_error_and_stay_unchanged(gaia: Gaia, settings: Path) -> None:
    settings.write_bytes(b"// mine\n{}")
    for ask in ("install", "uninstall"):
        ended = gaia("hooks", ask, "--json")
        assert (ended.code, ended.error["code"]) == (7, "settings_unreadable")
        assert ended.error["message"] == f"{settings}: line 1 column 1: not JSON: a comment"
    assert settings.read_bytes() == b"// mine\n{}"


def test_an_extra_comma_in_the_settings_is_shown_in_its_line(gaia: Gaia, settings: Path) -> None:
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
        (["install", "--host", "codex", "--allow-report"], "--allow-report works only with claude-code"),
        (["uninstall", "--allow-report"], ""),
        (["status", "--user"], ""),
        (["frobnicate"], ""),
    ],
)
def test_invalid_words_and_options_are_a_usage_error_and_write_nothing(
    gaia: Gaia, project: Path, words: list[str], problem: str
) -> None:
    ended = gaia("hooks", *words)
    assert (ended.code, ended.out) == (2, b"")
    assert not problem or gaia("hooks", *words, "--json").error["message"] == problem
    assert list(project.rglob("*")) == [project / ".claude"]


def test_hooks_alone_shows_its_help_and_install_help_names_every_host(gaia: Gaia) -> None:
    assert gaia("hooks").all == gaia("hooks", "--help").all
    assert gaia("hooks").code == 0
    assert "--host claude-code|codex|qwen-code|gemini-cli" in gaia("hooks", "install", "--help").out.decode()


@table("name", ["install", "uninstall", "status"])
def test_every_hooks_command_has_help_with_examples_that_work(gaia: Gaia, project: Path, name: str) -> None:
    text = gaia("hooks", name, "--help").out.decode()
    examples = [line.strip() for line in text.partition("Examples:")[2].splitlines() if line.strip()]
    assert examples
    for example in examples:
        assert gaia(*shlex.split(example)[1:]).code == 0
    assert project.is_dir()
    assert set(command.commands) == {"install", "uninstall", "status"}


def test_common_options_may_come_before_or_after_the_inner_command(gaia: Gaia, tmp_path: Path) -> None:
    root = str(tmp_path / "other" / ".claude" / "session")
    wanted = gaia("hooks", "status", "--json", "--root", root).json
    assert wanted["root"] == root
    assert gaia("hooks", "--json", "--root", root, "status").json == wanted
    assert gaia("--root", root, "hooks", "--json", "status").json == wanted


def test_install_writes_into_the_current_project_even_with_a_root_elsewhere(
    gaia: Gaia, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", str(tmp_path / "elsewhere"))
    assert gaia("hooks", "install", "--json").json["file"] == str(settings)


@pytest.mark.usefixtures("on_path")
def test_status_shows_missing_hooks_with_a_fix_and_healthy_hooks_in_one_line(
    gaia: Gaia, project: Path, settings: Path
) -> None:
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
def test_status_shows_the_options_of_the_installed_hooks(gaia: Gaia) -> None:
    gaia("hooks", "install", "--enforce", "--allow-report")
    expected = (
        "claude-code: installed in this project for you, no event received yet\n  with --allow-report --enforce\n"
    )
    assert gaia("hooks", "status").all == (0, expected, "")


@table("host", HOSTS)
def test_the_status_of_healthy_hooks_fits_in_one_terminal_line(
    gaia: Gaia, terminal: Gaia, project: Path, host: str
) -> None:
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


def test_status_reports_that_a_setting_turns_the_installed_hooks_off(
    gaia: Gaia, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gaia("hooks", "install")
    monkeypatch.setenv("GAIA_SESSIONS_HOOKS", "off")
    assert settings.is_file()
    assert gaia("hooks", "status").lines == [
        "problem: the hooks are installed, but the setting hooks.enabled turns them off",
        "    unset GAIA_SESSIONS_HOOKS",
    ]


def test_settings_with_null_hooks_are_a_problem_in_status_doctor_and_install(gaia: Gaia, settings: Path) -> None:
    settings.write_text('{"hooks": null}', encoding="utf-8")
    expected = [
        f"problem: {settings}: 'hooks' is null, not an object; its client may ignore the whole file",
        f"    ${{EDITOR:-vi}} {settings}",
    ]
    assert gaia("hooks", "status").lines == expected
    doctor = gaia("doctor")
    assert (doctor.code, doctor.lines[:2]) == (1, expected)
    assert gaia("hooks", "install", "--json").error["message"] == f"{settings}: 'hooks' is null, not an object"
    assert gaia("hooks", "uninstall").answer == [f"not installed in {settings}, nothing changed"]


@table("words", [[], ["--user"], ["--host", "codex"], ["--json"], ["--dry-run"]])
def test_uninstall_without_installed_hooks_creates_nothing(
    gaia: Gaia, project: Path, away_from_home: Path, words: list[str]
) -> None:
    before = sorted([*project.rglob("*"), *away_from_home.rglob("*")])
    times = [path.lstat().st_mtime_ns for path in (project, away_from_home)]
    assert gaia("hooks", "uninstall", *words).code == 0
    assert sorted([*project.rglob("*"), *away_from_home.rglob("*")]) == before
    assert [path.lstat().st_mtime_ns for path in (project, away_from_home)] == times


def test_in_a_linked_worktree_install_writes_the_settings_of_the_worktree(
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


def test_a_root_that_hooks_would_not_use_gives_a_warning(
    gaia: Gaia, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    assert "GAIA_SESSIONS_ROOT" not in gaia("hooks", "install").out.decode()
    output = gaia("hooks", "install", "--root", elsewhere, "--local").out.decode()
    told = f"warning: hooks started here store sessions in {project}/.claude/session; to use {elsewhere}, start "
    assert told in output
    assert told in gaia("hooks", "status", "--root", elsewhere).out.decode()
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", elsewhere)
    assert "warning" not in gaia("hooks", "status", "--root", elsewhere).out.decode()
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", str(tmp_path / "third"))
    assert "warning: hooks started" in gaia("hooks", "status", "--root", f"{project}/.claude/session").out.decode()


def test_install_names_rules_that_are_no_longer_allowed(gaia: Gaia, settings: Path) -> None:
    settings.write_bytes(OLD)
    allowed = gaia("hooks", "install", "--allow-report").out.decode()
    rule = next(line for line in allowed.splitlines() if line.startswith("  allows: "))
    lines = gaia("hooks", "install").lines
    assert rule.replace("allows", "no longer allows", 1) in lines
    assert not (settings.parent / "gaia-sessions.toml").exists()


def test_every_state_and_every_remark_has_words() -> None:
    assert set(hook_status._STATE_TEXTS) == set(states.STATES)
    assert set(hooks._REMARKS) == set(plan.REMARKS)


def test_status_exits_0_and_reports_settings_that_cannot_be_read(gaia: Gaia, settings: Path) -> None:
    settings.write_bytes(b"\xff")
    code, out, err = gaia("hooks", "status").all
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first == f"problem: {settings}: byte 0: not UTF-8; its client may ignore the whole file"
    assert second == f"    ${{EDITOR:-vi}} {settings}"
    assert "cannot be read" in gaia("hooks", "status", "--verbose").out.decode()


@table("command", ["beep \ud800", "\ud800 /opt/gaia_sessions/hooks/every_event.py"])
def test_characters_that_utf8_cannot_encode_are_shown_escaped(gaia: Gaia, settings: Path, command: str) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}
    settings.write_text(json.dumps({"hooks": hooks}), encoding="utf-8")
    gaia("hooks", "install", "--local")
    for words in (["status"], ["status", "--json"], ["uninstall", "--json", "--dry-run"]):
        ended = gaia("hooks", *words)
        assert (ended.code, ended.err) == (0, b"")
    assert "\\ud800" in gaia("hooks", "status").out.decode()


def test_hooks_can_be_installed_in_a_project_whose_name_is_not_utf8(
    gaia: Gaia, tmp_path: Path, monkeypatch: Any
) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GAIA_SESSIONS_ROOT")
    for words in (["install", "--allow-report"], ["status"], ["uninstall"]):
        ended = gaia("hooks", *words, "--json")
        assert (ended.code, ended.err) == (0, b"")
    assert list(folder.rglob("*.*")) == []


def test_status_shows_no_control_characters_of_a_hook_command(gaia: Gaia, settings: Path) -> None:
    evil = {"type": "command", "command": "\x1b[2J /opt/gaia_sessions/hooks/every_event.py"}
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [evil]}]}}), encoding="utf-8")
    assert b"\x1b" not in gaia("hooks", "status").out


def test_install_names_the_file_first_and_exits_8_if_the_file_is_read_only(gaia: Gaia, settings: Path) -> None:
    settings.write_bytes(b"{}")
    settings.chmod(0o444)
    ended = gaia("hooks", "install")
    assert ended.code == 8
    assert ended.err.decode().splitlines()[0] == f"writing {settings}"
    assert gaia("hooks", "install", "--json").error["code"] == "io_error", "no line before what a program reads"
    assert settings.read_bytes() == b"{}"


def test_install_updates_entries_in_the_shared_file_and_does_not_duplicate_them(
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
    assert "hooks uninstall --host claude-code --project" in ended.error["hint"]
    assert not settings.exists()
    assert gaia("hooks", "uninstall", "--json").json["file"] == str(shared)
    assert list(project.rglob("*.json")) == []


def test_install_into_a_second_file_is_refused_until_the_first_is_uninstalled(gaia: Gaia, settings: Path) -> None:
    gaia("hooks", "install")
    before = settings.read_bytes()
    assert gaia("hooks", "install", "--project", "--json").error["code"] == "hooks_elsewhere"
    assert (settings.read_bytes(), settings.with_name("settings.json").exists()) == (before, False)
    assert gaia("hooks", "uninstall").code == 0
    assert gaia("hooks", "install", "--project", "--json").json["file"] == str(settings.with_name("settings.json"))


@table("host", HOSTS)
def test_install_in_a_subfolder_names_the_folder_to_start_the_client_in(
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


def test_install_here_writes_settings_into_the_current_subfolder(
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
