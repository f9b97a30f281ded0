"""The check of the hooks: its problems and warnings, and the commands that fix them."""

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

from gaia_sessions.doctor import hooks
from gaia_sessions.doctor.inspection import Inspection
from gaia_sessions.session.clock import parse_time
from gaia_sessions.store import hook_log
from gaia_sessions.system import utc_now
from tests.commands import gaia
from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.doctor.findings import Finding


def typed(line: str) -> None:
    """Runs a line that begins with ``gaia-sessions``; it must succeed."""
    program, *words = shlex.split(line)
    assert (program, gaia(*words).code) == ("gaia-sessions", 0)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the hooks in its settings."""
    (tmp_path / ".claude").mkdir()
    typed(f"gaia-sessions --root {tmp_path}/.claude/session hooks install")
    return tmp_path


def settings(project: Path) -> Path:
    return project / ".claude" / "settings.local.json"


def look_at_all(project: Path, **environment: str) -> list[Finding]:
    root = str(project / ".claude" / "session")
    return hooks.hooks(Inspection(root, {**os.environ, **environment}, utc_now()))


def look(project: Path, **environment: str) -> Finding:
    [finding] = look_at_all(project, **environment)
    return finding


def test_hooks_that_are_not_installed_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / ".claude").mkdir()
    root = f"{tmp_path}/.claude/session"
    message = "no hooks are installed here, so what agents do is not recorded"
    expected = {"name": "hooks", "state": "warning", "found": message, "fixable": False}
    assert look(tmp_path) == {**expected, "fix": f"gaia-sessions --root {root} hooks install"}
    monkeypatch.chdir(tmp_path)
    assert look(tmp_path) == {**expected, "fix": "gaia-sessions hooks install"}
    subprocess.run(["sh", "-euc", look(tmp_path)["fix"] or ""], check=True, capture_output=True)
    assert look(tmp_path)["state"] == "ok"


def test_new_hooks_that_have_not_run_yet_are_ok(project: Path) -> None:
    finding = look(project)
    assert (finding["state"], finding["fix"]) == ("ok", None)
    assert finding["found"] == "claude-code (local): complete"


@table("text", ['{"hooks": null}', '{"hooks": []}', '{"hooks": {"Stop": null}}', "garbage"])
def test_invalid_settings_are_a_problem_and_the_fix_opens_an_editor(project: Path, text: str) -> None:
    settings(project).write_text(text, encoding="utf-8")
    finding = look(project)
    assert (finding["state"], finding["fix"]) == ("problem", f"${{EDITOR:-vi}} {settings(project)}")
    assert finding["found"].startswith(f"{settings(project)}: ")
    settings(project).write_text("{}", encoding="utf-8")
    assert look(project)["state"] == "warning", "only now it is known that they are not installed"


@table("what", ["entries start", "rules allow"])
def test_doctor_and_install_ask_the_user_to_remove_too_many_own_entries(tmp_path: Path, what: str) -> None:
    project = tmp_path / what.split(maxsplit=1)[0]
    (project / ".claude").mkdir(parents=True)
    words = ["--root", f"{project}/.claude/session", "hooks", "install"]
    typed(shlex.join(["gaia-sessions", *words]))
    document: Any = json.loads(settings(project).read_bytes())
    if what == "entries start":
        document["hooks"]["Stop"] *= 150
    else:
        document["permissions"] = {"allow": ["Bash(gaia-sessions update *)"] * 150}
    settings(project).write_text(json.dumps(document), encoding="utf-8")
    told = f"more than 100 {what} gaia-sessions: remove them by hand"
    finding = look(project)
    expected = ("problem", f"{told} ({settings(project)})", f"${{EDITOR:-vi}} {settings(project)}")
    assert (finding["state"], finding["found"], finding["fix"]) == expected
    assert told in gaia(*words, "--allow-report").err.decode()


def test_the_edit_command_for_a_link_names_its_target(project: Path) -> None:
    elsewhere = project / "of somebody"
    elsewhere.write_text("garbage", encoding="utf-8")
    settings(project).unlink()
    settings(project).symlink_to("../of somebody")
    assert look(project)["fix"] == f"${{EDITOR:-vi}} '{elsewhere}'"


def test_the_fix_for_hooks_that_are_off_names_the_variable_or_the_settings_file(project: Path) -> None:
    installed_at(project, ago(days=9))
    assert look(project, GAIA_SESSIONS_HOOKS="off")["fix"] == "unset GAIA_SESSIONS_HOOKS"
    own_settings = project / ".claude" / "gaia-sessions.toml"
    own_settings.write_text("[hooks]\nenabled = false\n", encoding="utf-8")
    assert look(project)["fix"] == f"${{EDITOR:-vi}} {own_settings}"
    assert look(project, GAIA_SESSIONS_HOOKS="off")["fix"] == "unset GAIA_SESSIONS_HOOKS"


def test_the_fix_for_hooks_that_the_user_switched_off_opens_the_user_file(project: Path, away_from_home: Path) -> None:
    of_user = away_from_home / ".config" / "gaia-sessions" / "config.toml"
    of_user.parent.mkdir(parents=True)
    of_user.write_text("[hooks]\nenabled = false\n", encoding="utf-8")
    assert look(project)["fix"] == f"${{EDITOR:-vi}} {of_user}"
    of_user.write_text("hooks.enabled = 'no idea'\n", encoding="utf-8")
    assert look(project)["state"] == "ok"


def put(project: Path, event: str, command: str) -> None:
    document = {"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}]}}
    settings(project).write_text(json.dumps(document), encoding="utf-8")


def test_the_fix_replaces_hooks_of_another_checkout_that_misses_events(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "gaia_sessions" / "hooks" / "subagent_stop.py"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"")
    put(project, "SubagentStop", f"{sys.executable} {other}")
    finding = look(project)
    assert (finding["state"], "not called for SessionStart" in finding["found"]) == ("problem", True)
    typed(finding["fix"] or "")
    assert look(project)["state"] == "ok"


def test_the_fix_keeps_the_options(project: Path) -> None:
    (Path(sys.executable).parent / "gaia-sessions").stat()
    typed(f"gaia-sessions --root {project}/.claude/session hooks install --allow-report --enforce")
    document: Any = json.loads(settings(project).read_bytes())
    del document["hooks"]["SubagentStop"]
    settings(project).write_text(json.dumps(document), encoding="utf-8")
    typed(look(project)["fix"] or "")
    said = json.loads(settings(project).read_bytes())
    assert ("--enforce" in str(said["hooks"]["SubagentStop"]), len(said["permissions"]["allow"])) == (True, 2)


def test_the_hooks_check_does_not_report_an_unknown_setting(project: Path) -> None:
    (project / ".claude" / "gaia-sessions.toml").write_text("nonsense = 1\n", encoding="utf-8")
    assert (look(project)["state"], "nonsense" in look(project)["found"]) == ("ok", False)


def installed_at(project: Path, at: str) -> None:
    """Sets the time of all settings files to ``at``."""
    seconds = parse_time(at).timestamp()
    for path in (*project.glob(".*/*.json"), *Path(os.environ["HOME"]).glob(".*/*.json")):
        os.utime(path, (seconds, seconds))


def log_event(project: Path, host: str, at: str) -> None:
    hook_log.append_line(str(project / ".claude" / "session"), "hook", {"at": at, "event": "Stop", "host": host})


@table("long", [False, True])
def test_hooks_that_never_ran_are_a_problem_after_a_day(project: Path, *, long: bool) -> None:
    shutil.rmtree(project / ".claude" / "logs", ignore_errors=True)
    installed_at(project, ago(hours=25) if long else ago(hours=23))
    finding = look(project)
    assert (finding["state"], finding["fix"]) == ("problem" if long else "ok", None)
    advice = f"start claude-code in {project}, and trust its folder"
    expected = f"the hooks of claude-code in {settings(project)} never ran: {advice}"
    assert (expected in finding["found"]) == long
    log_event(project, "claude-code", ago(minutes=1))
    assert look(project)["state"] == "ok"


def test_hooks_that_never_ran_are_a_problem_once_another_host_ran(project: Path) -> None:
    typed(f"gaia-sessions --root {project}/.claude/session hooks install --host codex")
    installed_at(project, ago(minutes=10))
    log_event(project, "claude-code", ago(minutes=20))
    assert look(project)["state"] == "ok", "that was before"
    log_event(project, "claude-code", ago(minutes=1))
    finding = look(project)
    assert finding["state"] == "problem"
    assert finding["found"].startswith(f"the hooks of codex in {project}/.codex/hooks.json never ran: start codex in ")
    assert "/hooks" in finding["found"]
    log_event(project, "codex", ago(minutes=1))
    assert look(project)["state"] == "ok"


def test_user_hooks_without_an_event_in_this_project_are_not_checked(project: Path) -> None:
    typed(f"gaia-sessions --root {project}/.claude/session hooks uninstall")
    typed(f"gaia-sessions --root {project}/.claude/session hooks install --user --host codex")
    installed_at(project, ago(days=9))
    log_event(project, "claude-code", ago(minutes=1))
    assert (look(project)["state"], look(project)["found"]) == (
        "not_checked",
        (
            f"whether codex calls the hooks in {Path.home()}/.codex/hooks.json, "
            "because no event was received in this project yet"
        ),
    )


def test_settings_that_a_client_in_this_folder_does_not_read_are_a_problem(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = project / "modules" / "deep"
    deep.mkdir(parents=True)
    monkeypatch.chdir(project)
    assert look(project)["state"] == "ok"
    monkeypatch.chdir(deep)
    finding = look(project)
    assert finding["state"] == "problem"
    assert (
        f"claude-code started in {deep} may not read the hooks in {settings(project)}; start it in {project}"
        in finding["found"]
    )
    assert finding["fix"] == "gaia-sessions hooks install --here --host claude-code --local"
    assert look(project, CLAUDE_PROJECT_DIR=str(project))["state"] == "ok", "the client was started there"
    typed(finding["fix"] or "")
    assert (deep / ".claude" / "settings.local.json").read_bytes() == settings(project).read_bytes()
    assert look(project)["state"] == "ok"


@table("words", ["--user", "--host codex"])
def test_user_and_codex_settings_are_ok_in_a_folder_below_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    typed(f"gaia-sessions --root {project}/.claude/session hooks uninstall")
    typed(f"gaia-sessions --root {project}/.claude/session hooks install {words}")
    deep = project / "modules"
    deep.mkdir(exist_ok=True)
    monkeypatch.chdir(deep)
    assert look(project)["state"] == "ok"
    typed(f"gaia-sessions --root {project}/.claude/session hooks uninstall {words}")
    typed(f"gaia-sessions --root {project}/.claude/session hooks install")
