"""Problems of the hooks: ``hooks install``, ``hooks status`` and ``doctor`` report the same."""

from __future__ import annotations

import inspect
import json
import os
import pwd
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from gaia_sessions.doctor import hook_files, hooks
from tests.commands import gaia
from tests.install.settings_files import PROGRAM, SCRIPT
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Gaia

CODES = {
    code
    for module in (hook_files, hooks)
    for name, code in re.findall('^([A-Z_]+) = "([a-z_]+)"$', inspect.getsource(module), re.MULTILINE)
    if name == code.upper()
}
OURS, EDIT = "gaia-sessions", "${EDITOR:-vi}"


class Case(NamedTuple):
    """A problem; ``make`` causes it in the working directory, which is a project.

    installing: options of an installation that does not end the problem; common: options of all three commands.
    fix: the shown command; ``OURS`` is any command of gaia-sessions, which ends the problem.
    """

    code: str
    make: Callable[[Any], object]
    installing: str = ""
    common: str = ""
    fix: str | None = None


def user_file() -> Path:
    path = Path.home() / ".claude" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    return path


def local_file() -> Path:
    return Path.cwd() / ".claude" / "settings.local.json"


def installed(*words: str) -> Any:
    """Installs the hooks with ``words``; the settings afterwards."""
    done = gaia("hooks", "install", "--json", *words)
    return json.loads(Path(done.json["file"]).read_bytes())


def says(path: Path, document: object) -> None:
    path.write_text(json.dumps(document), encoding="utf-8")


def has(command: str, event: str = "Stop", times: int = 1) -> dict[str, object]:
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}] * times}}


def without_stop() -> None:
    said = installed("--user")
    del said["hooks"]["Stop"]
    says(user_file(), said)


def of_another_folder(mode: int | None = None) -> None:
    """Installs a hook program of another folder, with ``mode``; if that is None, the program is missing."""
    program = Path.cwd() / "gaia-sessions-hook"
    said = json.dumps(installed("--user"))
    user_file().write_text(said.replace(PROGRAM, str(program)), encoding="utf-8")
    if mode is not None:
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(mode)


def with_a_rule_less() -> None:
    said = installed("--user", "--allow-report")
    said["permissions"]["allow"].pop()
    says(user_file(), said)


def homeless(patch: pytest.MonkeyPatch) -> None:
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    patch.delenv("HOME")
    patch.setattr(pwd, "getpwuid", nobody)


def old_python(patch: pytest.MonkeyPatch) -> None:
    says(local_file(), {"enabledPlugins": {"gaia-sessions@somewhere": True}})
    Path("python3").write_text("#!/bin/sh\necho 3.9.18\n", encoding="utf-8")
    Path("python3").chmod(0o755)
    patch.setenv("PATH", str(Path.cwd()))


def plugin_beside_limits() -> None:
    says(local_file(), {"enabledPlugins": {"gaia-sessions@somewhere": True}})


def in_a_subfolder(patch: pytest.MonkeyPatch) -> None:
    installed()
    Path("deep").mkdir()
    patch.chdir("deep")


def never_ran(*words: str) -> None:
    installed(*words)
    for path in (local_file(), user_file()):
        if path.exists():
            os.utime(path, (1, 1))


CASES = [
    Case("unreadable_settings", lambda _: user_file().write_bytes(b"garbage"), fix=EDIT),
    Case("too_many", lambda _: says(user_file(), has(PROGRAM, times=150)), fix=EDIT),
    Case(
        "too_many",
        lambda _: says(user_file(), {"permissions": {"allow": ["Bash(gaia-sessions update *)"] * 150}}),
        fix=EDIT,
    ),
    Case("all_hooks_disabled", lambda _: says(user_file(), {"disableAllHooks": True}), fix=EDIT),
    Case("missing_interpreter", lambda _: says(user_file(), has(f"/gone/python {SCRIPT}")), fix=OURS),
    Case("missing_interpreter", lambda _: of_another_folder(0o644), fix=OURS),
    Case("missing_script", lambda _: says(user_file(), has("python3 /gone/hooks/every_event.py")), fix=OURS),
    Case("missing_script", lambda _: of_another_folder(), fix=OURS),
    Case("installed_twice", lambda _: installed("--user"), fix=OURS),
    Case("installed_twice", lambda _: installed("--user"), "--enforce", fix=OURS),
    Case("installed_twice", lambda _: says(user_file(), has(PROGRAM, times=2)), fix=OURS),
    Case("installed_twice", lambda _: plugin_beside_limits(), fix=OURS),
    Case("installed_twice", lambda _: plugin_beside_limits(), "--enforce"),
    Case("missing_events", lambda _: without_stop(), fix=OURS),
    Case("other_command", lambda _: of_another_folder(0o755), fix=OURS),
    Case("command_not_allowed", lambda _: with_a_rule_less(), fix=OURS),
    Case(
        "command_not_allowed",
        lambda patch: patch.setenv("GAIA_SESSIONS_LIMITS_COMPLETION_CHECK", "on"),
        "--enforce",
        fix=OURS,
    ),
    Case("broken_mixed_entry", lambda _: says(local_file(), has("beep; python3 /gone/hooks/every_event.py")), fix=EDIT),
    Case("mixed_entry", lambda _: says(local_file(), has(f"beep; python3 {SCRIPT}"))),
    Case("rewriter", lambda _: says(local_file(), has("rewrite.sh", "PreToolUse"))),
    Case("not_looked_at", homeless),
    Case("old_python", old_python, fix=f"{sys.executable} -P -m gaia_sessions hooks install"),
    Case("bad_setting", lambda _: Path(".claude/gaia-sessions.toml").write_bytes(b"hooks.enable = 1"), fix=EDIT),
    Case(
        "bad_setting",
        lambda patch: patch.setenv("GAIA_SESSIONS_MAX_ERRORS", "-1"),
        fix="unset GAIA_SESSIONS_MAX_ERRORS",
    ),
    Case("root_elsewhere", lambda _: None, common="--root /elsewhere/session"),
    Case("not_read_here", in_a_subfolder, fix=OURS),
    Case("hooks_off", lambda patch: patch.setenv("GAIA_SESSIONS_HOOKS", "off"), fix="unset GAIA_SESSIONS_HOOKS"),
    Case("never_fired", lambda _: never_ran()),
    Case("never_fired", lambda _: never_ran("--user"), "--user"),
    Case("limits_not_held", lambda patch: patch.setenv("GAIA_SESSIONS_LIMITS_ROUNDS", "60"), fix=OURS),
    Case("not_installed", lambda _: None, "--dry-run", fix=OURS),
]


def test_each_code_has_a_case() -> None:
    assert {case.code for case in CASES} == CODES


@table("case", CASES)
def test_install_status_and_doctor_report_a_problem_in_the_same_words(
    terminal: Gaia, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    with monkeypatch.context() as patch:
        project = tmp_path / str(CASES.index(case))
        (project / ".claude").mkdir(parents=True)
        patch.chdir(project)
        patch.setenv("HOME", str(project.parent))
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        patch.delenv("GAIA_SESSIONS_ROOT")
        user_file().unlink(missing_ok=True)
        case.make(patch)
        common = shlex.split(case.common)
        commands = (
            ["hooks", "install", *common, *shlex.split(case.installing)],
            ["hooks", "status", *common],
            ["doctor", *common],
        )

        by_install, by_status, by_doctor = (json.loads(gaia(*words, "--json").out) for words in commands)

        found = [one for one in by_status["warnings"] if one["code"] == case.code]
        fixes = [*dict.fromkeys(one["fix"] for one in found)]
        by_install = [one for one in by_install["warnings"] if one["code"] == case.code]
        # An installation reports only on its own host, and it ends "not_installed".
        if case.code == "not_looked_at":
            assert [one["message"].split(", ")[0] for one in by_install] == ["your own settings of claude-code"]
        else:
            assert by_install == (found if case.code != "not_installed" else [])
        for one in found:
            of_doctor = [check for check in by_doctor["checks"] if check["found"] == one["message"]]
            assert [(check["state"], check["fix"]) for check in of_doctor] == [(one["state"], one["fix"])]
            assert_is_shown(one, commands if one in by_install else commands[1:], terminal)
        if case.fix == OURS:
            for fix in fixes:
                program, *words = shlex.split(fix)
                assert (program, gaia(*words).code) == (OURS, 0)
            assert case.code not in [one["code"] for one in gaia("hooks", "status", "--json").json["warnings"]]
        else:
            assert fixes == [f"{EDIT} {found[0]['file']}" if case.fix == EDIT else case.fix]


def assert_is_shown(found: Any, commands: tuple[list[str], ...], terminal: Gaia) -> None:
    """Each of ``commands`` shows the sentence, and the command below it on a line of its own."""
    label = {"not_checked": "not checked"}.get(found["state"], found["state"])
    for words in commands:
        lines = gaia(*words).lines
        below = lines[lines.index(f"{label}: {found['message']}") :]
        if found["fix"]:
            assert f"    {found['fix']}" in below
            assert f"    {found['fix']}" in terminal(*words).lines


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a project that is the working directory."""
    (tmp_path / "project" / ".claude").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GAIA_SESSIONS_ROOT")
    return tmp_path


def warnings() -> list[Any]:
    return gaia("hooks", "status", "--json").json["warnings"]  # type: ignore[no-any-return]


def test_settings_of_a_host_without_installed_hooks_give_no_warning(home: Path) -> None:
    for name in (".claude", ".qwen"):
        (home / name).mkdir()
        says(home / name / "settings.json", {"disableAllHooks": True, **has("rewrite.sh", "PreToolUse")})

    assert [one["code"] for one in warnings()] == ["not_installed"]
    gaia("hooks", "install")
    of_claude_code = str(home / ".claude" / "settings.json")
    assert [(one["code"], one["file"]) for one in warnings()] == [
        ("all_hooks_disabled", of_claude_code),
        ("rewriter", of_claude_code),
    ]


@pytest.mark.usefixtures("home")
def test_if_an_installation_would_be_refused_the_fix_command_opens_the_file() -> None:
    said = has("/gone/hooks/every_event.py", "SessionEnd")
    says(local_file(), {"hooks": {**said["hooks"], "Stop": "x"}})  # type: ignore[dict-item]  # it is a dict

    told = {one["code"]: one["fix"] for one in warnings()}

    assert told == dict.fromkeys(["unreadable_settings", "missing_script", "missing_events"], f"{EDIT} {local_file()}")


def test_a_fix_command_has_only_options_that_its_host_supports(home: Path) -> None:
    (home / ".codex").mkdir()
    says(home / ".codex" / "hooks.json", has(f"{PROGRAM} --host codex --allow-report --enforce"))

    [(code, fix)] = [(one["code"], one["fix"]) for one in warnings()]

    assert (code, fix) == ("missing_events", f"{OURS} hooks install --host codex --user")
    assert gaia(*shlex.split(fix)[1:]).code == 0
    assert warnings() == []


@pytest.mark.usefixtures("home")
def test_a_nul_character_in_a_hook_command_is_shown_escaped() -> None:
    says(local_file(), has(f"beep \0; {PROGRAM}"))

    [one] = [one for one in warnings() if one["code"] == "mixed_entry"]

    assert one["message"].startswith("beep \\x00 ; ")
    assert one["message"] in [check["found"] for check in json.loads(gaia("doctor", "--json").out)["checks"]]
