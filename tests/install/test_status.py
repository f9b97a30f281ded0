"""The status of the hooks and its warnings, read from the settings files and the log."""

from __future__ import annotations

import json
import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.cli.render.hook_status import status_lines
from gaia_sessions.config import load_with_faults
from gaia_sessions.doctor import hook_files, hooks
from gaia_sessions.doctor.hooks import hook_status
from gaia_sessions.errors import UsageError
from gaia_sessions.install.places import HOSTS
from gaia_sessions.session.clock import format_time
from gaia_sessions.store import hook_log
from gaia_sessions.system import utc_now
from tests.install.conftest import Setup
from tests.install.settings_files import PROGRAM, SCRIPT
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.doctor.hooks import HookStatus
    from gaia_sessions.install.installed_file import InstallState

LATER, EARLIER = "2026-01-08T18:05:31.000000Z", "2026-01-08T18:05:30.000000Z"
OF_STATE = {hook_files.MISSING_EVENTS, hook_files.OTHER_COMMAND, hooks.NOT_INSTALLED}
REWRITES = {"type": "command", "command": "rewrite.sh"}


def look(setup: Setup) -> HookStatus:
    return look_at(setup, utc_now())


def look_at(setup: Setup, now: datetime) -> HookStatus:
    return hook_status(setup.places, now, load_with_faults(setup.root, os.environ))


def told(setup: Setup) -> list[Any]:
    """The warnings except those about the state of a file."""
    return [warned for warned in look(setup)["warnings"] if warned["code"] not in OF_STATE]


def codes(setup: Setup) -> list[str]:
    return [warned["code"] for warned in told(setup)]


def row(setup: Setup) -> InstallState:
    [found] = [
        found for found in look(setup)["installed"] if (found["host"], found["scope"]) == (setup.host, setup.scope)
    ]
    return found


def changed_at(setup: Setup) -> str:
    return format_time(datetime.fromtimestamp(setup.file.stat().st_mtime, UTC))


def log_event(setup: Setup, at: str = LATER, event: str = "Stop", hook: str = "hook", **more: object) -> None:
    hook_log.append_line(setup.root, hook, {"at": at, "event": event, "host": "claude-code", **more})


def edit(setup: Setup, change: Any) -> None:
    said = setup.said()
    change(said)
    setup.file.write_text(json.dumps(said), encoding="utf-8")


def test_without_an_installation_the_only_warning_is_that_no_hooks_are_installed(setup: Setup) -> None:
    found = look(setup)
    assert {installed["state"] for installed in found["installed"]} == {"absent"}
    where = [(installed["host"], installed["scope"]) for installed in found["installed"]]
    assert where == [(host.name, scope) for host in HOSTS.values() for scope in host.files]
    assert (found["last_received"], found["enabled"], found["plugin"]) == ({}, True, False)
    assert [warned["code"] for warned in found["warnings"]] == [hooks.NOT_INSTALLED]


def test_the_hook_status_writes_nothing(setup: Setup, away_from_home: Path) -> None:
    setup.install()
    before = sorted([*setup.project.rglob("*"), *away_from_home.rglob("*")])
    look(setup)
    assert sorted([*setup.project.rglob("*"), *away_from_home.rglob("*")]) == before


@table("host", HOSTS)
def test_a_new_installation_is_complete_and_causes_no_warning(tmp_path: Path, host: str) -> None:
    setup = Setup(tmp_path, host)
    answer = setup.install()
    assert row(setup) == {
        "host": host,
        "scope": "project",
        "file": str(setup.file),
        "state": "complete",
        "problem": None,
        "command": answer["command"],
        "allow_report": False,
        "enforce": False,
        "wired": HOSTS[host].wired_events(),
        "missing": [],
        "changed_at": changed_at(setup),
    }
    assert codes(setup) == []


def test_the_status_shows_enforce_until_install_runs_without_it(tmp_path: Path) -> None:
    setup = Setup(tmp_path, "claude-code")
    setup.install(enforce=True)
    assert (row(setup)["state"], row(setup)["enforce"], codes(setup)) == ("complete", True, [])
    edit(setup, lambda said: said["hooks"]["PreToolUse"].pop())
    assert (row(setup)["state"], row(setup)["missing"]) == ("incomplete", ["PreToolUse"])
    setup.install()
    assert (row(setup)["state"], row(setup)["enforce"], row(setup)["missing"]) == ("complete", False, [])


def test_limits_that_are_set_but_not_enforced_are_a_warning(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_LIMITS_ROUNDS", "60")
    monkeypatch.setenv("GAIA_SESSIONS_GUARD_MODE", "block")
    setup.install()
    [found] = told(setup)
    assert found["code"] == hooks.LIMITS_NOT_HELD
    assert found["message"].startswith(
        "the hooks of claude-code do not enforce these limits: limits.rounds, guard.mode"
    )
    setup.install(enforce=True)
    assert codes(setup) == []


@table("host", [host for host in HOSTS if host != "claude-code"])
def test_enforce_is_refused_for_hosts_whose_agents_cannot_be_limited(tmp_path: Path, host: str) -> None:
    with pytest.raises(UsageError, match=f"--enforce does not work with {host}"):
        Setup(tmp_path, host).install(enforce=True)


def test_the_status_names_wired_and_missing_events(setup: Setup) -> None:
    setup.install()
    edit(setup, lambda said: said["hooks"].pop("Stop"))
    found = row(setup)
    assert ("Stop" in found["wired"], found["missing"]) == (False, ["Stop"])
    lines = [*status_lines(look(setup), utc_now(), verbose=True)]
    assert [f"  events: {', '.join(found['wired'])}", "  missing events: Stop"] == lines[-2:]


def test_an_old_entry_without_async_is_reported_and_replaced(setup: Setup) -> None:
    event = "PermissionRequest"
    setup.install()
    complete = setup.said()
    earlier = [
        {"hooks": [{key: value for key, value in handler.items() if key != "async"} for handler in group["hooks"]]}
        for group in complete["hooks"][event][:1]
    ]
    edit(setup, lambda said: said["hooks"].update({event: earlier}))
    found = row(setup)
    assert (found["state"], found["missing"], event in found["wired"]) == ("incomplete", [event], True)

    setup.install()

    assert (setup.said(), row(setup)["state"]) == (complete, "complete")


def test_entries_written_with_track_tools_are_recognized_replaced_and_removed(setup: Setup) -> None:
    setup.install()
    now = setup.said()
    edit(setup, follow_tools)
    assert (row(setup)["state"], row(setup)["missing"]) == ("elsewhere", ["PostToolUse", "PostToolUseFailure"])

    setup.install()

    assert (setup.said(), row(setup)["state"]) == (now, "complete")
    edit(setup, follow_tools)
    setup.uninstall()
    assert setup.held() is None


def follow_tools(said: Any) -> None:
    """Makes the entries those that ``--track-tools`` wrote: most tools call the hook, without waiting for it."""
    awaited = "Agent|Task|Workflow|SendMessage|TaskStop"
    for groups in said["hooks"].values():
        groups[0]["hooks"][0]["args"] = ["--track-tools"]
    for event in ("PostToolUse", "PostToolUseFailure"):
        [group] = said["hooks"][event]
        unawaited = {**group["hooks"][0], "async": True}
        said["hooks"][event] = [{**group, "matcher": awaited}, {"matcher": f"^(?!({awaited})$)", "hooks": [unawaited]}]


def test_hooks_that_never_ran_are_a_warning_after_a_day_or_after_another_host_ran(setup: Setup) -> None:
    setup.install()
    installed = datetime.fromisoformat(row(setup)["changed_at"] or "")
    for hours, warned in ((1, []), (23, []), (25, [hooks.NEVER_FIRED])):
        found = look_at(setup, installed + timedelta(hours=hours))
        assert [warned["code"] for warned in found["warnings"]] == warned
    log_event(setup, format_time(installed + timedelta(minutes=1)), host="codex")
    assert codes_at(setup, installed + timedelta(hours=1)) == [hooks.NEVER_FIRED], "codex was started since"
    log_event(setup, LATER)
    assert codes_at(setup, installed + timedelta(hours=25)) == []


def codes_at(setup: Setup, now: datetime) -> list[str]:
    return [warned["code"] for warned in look_at(setup, now)["warnings"]]


@table("line", [{"event": "direct"}, {"event": "PreToolUse", "decision": "not_ours"}])
def test_a_direct_call_or_an_unsupported_host_is_not_in_the_status(setup: Setup, line: Any) -> None:
    setup.install()
    hook_log.append_line(setup.root, "hook", {"at": LATER, **line})
    assert look(setup)["heard_from"] == {}
    assert "last events" not in "\n".join(status_lines(look(setup), utc_now(), verbose=True))


def test_a_log_line_has_an_event_only_if_the_payload_names_one() -> None:
    assert hook_log.payload_fields({"session_id": "s"}, "hook_event_name") == {"session_id": "s"}
    assert hook_log.payload_fields({"hook_event_name": "Stop"}, "hook_event_name") == {"event": "Stop"}


def test_the_status_shows_the_last_time_of_each_event_in_all_logs(setup: Setup) -> None:
    setup.install()
    for at, event, hook in [
        (EARLIER, "Stop", "hook"),
        (LATER, "Stop", "hook"),
        (EARLIER, "PreToolUse", "pre_delegate"),
        (LATER, "direct", "pre_delegate"),
    ]:
        log_event(setup, at, event, hook)
    Path(hook_log.log_folder(setup.root), "hook.log.old").write_text("torn {\n[]\n", encoding="utf-8")

    assert look(setup)["last_received"] == {"PreToolUse": EARLIER, "Stop": LATER}
    assert look(setup)["heard_from"] == {"claude-code": {"PreToolUse": EARLIER, "Stop": LATER}}
    assert codes(setup) == []


ODD = [
    None,
    5,
    "",
    "yesterday",
    "2026-13-45T00:00:00Z",
    ["2026-01-08T18:05:30Z"],
    {"at": 1},
    "9999-12-31T23:59:59-23:00",
]


@table("at", ODD)
def test_a_log_line_without_a_valid_time_is_skipped(setup: Setup, at: object) -> None:
    shutil.rmtree(hook_log.log_folder(setup.root), ignore_errors=True)
    Path(setup.root).parent.mkdir(exist_ok=True)
    log_event(setup, at, "SessionEnd")  # type: ignore[arg-type]  # a value of any type
    log_event(setup, EARLIER)
    log_event(setup, at)  # type: ignore[arg-type]  # a value of any type

    assert look(setup)["heard_from"] == {"claude-code": {"Stop": EARLIER}}
    assert "  Stop: " in "\n".join(status_lines(look(setup), utc_now(), verbose=True))


def test_times_with_other_offsets_are_compared_as_moments(setup: Setup) -> None:
    Path(setup.root).parent.mkdir(exist_ok=True)
    for at in ("2026-01-08T23:00:00+12:00", "2026-01-08T12:00:00Z"):
        log_event(setup, at)

    assert look(setup)["last_received"] == {"Stop": "2026-01-08T12:00:00.000000Z"}


def test_one_old_event_is_enough_to_show_that_the_hooks_run(setup: Setup) -> None:
    setup.install()
    log_event(setup, EARLIER)
    assert codes_at(setup, utc_now() + timedelta(days=9)) == []


def test_an_event_without_an_entry_or_with_another_matcher_is_reported_as_missing(setup: Setup) -> None:
    setup.install()
    log_event(setup)

    def less(said: Any) -> None:
        del said["hooks"]["Stop"]
        said["hooks"]["PreToolUse"][0]["matcher"] = "Bash"

    edit(setup, less)
    assert (row(setup)["state"], row(setup)["missing"]) == ("incomplete", ["PreToolUse", "Stop"])


def test_an_entry_with_another_path_is_reported_and_its_missing_files_are_warnings(setup: Setup) -> None:
    gone = {"type": "command", "command": "/nowhere/python /opt/gaia_sessions/hooks/every_event.py"}
    setup.put(json.dumps({"hooks": {"Stop": [{"hooks": [gone]}]}}).encode())
    log_event(setup)
    assert (row(setup)["state"], row(setup)["command"]) == ("elsewhere", gone["command"].split())
    assert codes(setup) == [hook_files.MISSING_INTERPRETER, hook_files.MISSING_SCRIPT]


@table(("own", "users", "surplus"), [(True, False, "user"), (False, True, "own")])
def test_hooks_without_enforce_beside_hooks_with_enforce_are_a_duplicate(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, *, own: bool, users: bool, surplus: str
) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_LIMITS_ROUNDS", "60")
    setup.scope = "project"
    setup.install(enforce=own)
    files = {"own": str(setup.file)}
    setup.scope = "user"
    setup.install(enforce=users)
    files["user"] = str(setup.file)
    log_event(setup)
    [found] = told(setup)
    assert (found["code"], found["file"]) == (hook_files.INSTALLED_TWICE, files[surplus])
    assert f"those in {files[surplus]} lack --enforce" in found["message"]


def test_hooks_of_two_hosts_are_no_duplicate(setup: Setup) -> None:
    setup.install()
    setup.host = "codex"
    setup.install()
    log_event(setup)
    log_event(setup, host="codex")
    assert codes(setup) == []


def test_the_events_of_one_host_do_not_count_for_another(setup: Setup) -> None:
    setup.install()
    setup.host = "codex"
    setup.install()
    log_event(setup, LATER, "Stop", host="claude-code")
    log_event(setup, EARLIER, "Stop", host="codex")
    found = look(setup)
    assert found["last_received"] == {"Stop": LATER}
    assert found["heard_from"] == {"claude-code": {"Stop": LATER}, "codex": {"Stop": EARLIER}}
    assert found["warnings"] == []


@table("folder", ["gaia_sessions", "renamed"])
def test_a_missing_script_is_reported_once_whatever_its_checkout_was_called(setup: Setup, folder: str) -> None:
    gone = {"type": "command", "command": f"python3 /opt/{folder}/hooks/every_event.py"}
    setup.put(json.dumps({"hooks": {"Stop": [{"hooks": [gone]}], "SessionEnd": [{"hooks": [gone]}]}}).encode())
    log_event(setup)
    [warned] = told(setup)
    assert (warned["code"], row(setup)["state"]) == (hook_files.MISSING_SCRIPT, "elsewhere")
    assert "which does not exist; Python then exits with 2, which clients treat as a refusal" in warned["message"]


def test_installed_hooks_whose_program_is_gone_do_nothing_and_are_a_warning(setup: Setup) -> None:
    setup.install()
    log_event(setup)
    setup.put((setup.held() or b"").replace(PROGRAM.encode(), b"/gone/bin/gaia-sessions-hook"))
    [warned] = told(setup)
    assert (warned["code"], row(setup)["state"]) == (hook_files.MISSING_SCRIPT, "elsewhere")
    assert "the hooks then do nothing" in warned["message"]
    setup.uninstall()
    assert codes(setup) == []


def test_a_program_whose_interpreter_is_gone_is_reported(setup: Setup, tmp_path: Path) -> None:
    program = tmp_path / "gaia-sessions-hook"
    program.write_bytes(b"#!/gone/bin/python3 -P\n")
    program.chmod(0o755)
    setup.install()
    log_event(setup)
    setup.put((setup.held() or b"").replace(f'{PROGRAM}"'.encode(), f'{program}"'.encode()))
    [warned] = told(setup)
    assert (warned["code"], "/gone/bin/python3" in warned["message"]) == (hook_files.MISSING_INTERPRETER, True)


@table("name", ["\0", "\ud800"])
def test_a_program_name_that_no_file_can_have_is_reported_as_missing(setup: Setup, name: str) -> None:
    setup.install()
    log_event(setup)
    for words in ([f"/{name}/python", SCRIPT], [f"/{name}/gaia-sessions-hook"], [f"/{name}/hooks/every_event.py"]):
        group = {"hooks": [{"command": words[0], "args": words[1:]}]}
        setup.file.write_text(json.dumps({"hooks": {"PreToolUse": [group]}}), encoding="utf-8")
        expected = hook_files.MISSING_INTERPRETER if words[1:] else hook_files.MISSING_SCRIPT
        assert codes(setup) == [expected]


def test_a_path_with_a_shell_variable_is_not_reported_as_missing(setup: Setup) -> None:
    entry = {"type": "command", "command": "python3 $CLAUDE_PROJECT_DIR/hooks/every_event.py"}
    setup.put(json.dumps({"hooks": {"Stop": [{"hooks": [entry]}]}}).encode())
    log_event(setup)
    assert codes(setup) == []


@pytest.mark.parametrize("event", ["Stop", "PreToolUse"])
def test_a_mixed_command_that_contains_the_hook_is_a_warning(setup: Setup, event: str) -> None:
    mixed = {"type": "command", "command": f"beep && python3 {SCRIPT}"}
    setup.put(json.dumps({"hooks": {event: [{"hooks": [mixed]}]}}).encode())
    assert (row(setup)["state"], codes(setup)) == ("absent", [hook_files.MIXED_ENTRY])
    setup.install()
    log_event(setup)
    assert codes(setup) == [hook_files.MIXED_ENTRY]


def test_the_status_says_whether_sub_agents_may_report(setup: Setup) -> None:
    setup.install(report=True)
    assert row(setup)["allow_report"] is True
    setup.install()
    assert row(setup)["allow_report"] is False


@table("matcher", [["Agent"], {"a": [1]}])
def test_two_equal_entries_with_any_matcher_are_a_duplicate(setup: Setup, matcher: object) -> None:
    setup.install()
    log_event(setup)
    group = {"matcher": matcher, "hooks": [{"command": PROGRAM}]}
    for number in (1, 2):
        setup.file.write_text(json.dumps({"hooks": {"PreToolUse": [group] * number}}), encoding="utf-8")
        assert codes(setup) == [hook_files.INSTALLED_TWICE] * (number - 1)


def plugin_by_settings(setup: Setup) -> None:
    edit(setup, lambda said: said.update(enabledPlugins={"gaia-sessions@somewhere": True}))


def plugin_by_list(_: Setup) -> None:
    folder = Path.home() / ".claude" / "plugins"
    folder.mkdir(parents=True)
    document = {"version": 2, "plugins": {"gaia-sessions@somewhere": [{"scope": "user"}], "other@somewhere": []}}
    folder.joinpath("installed_plugins.json").write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.parametrize("enable", [plugin_by_settings, plugin_by_list])
def test_the_plugin_beside_an_installation_is_a_duplicate(setup: Setup, enable: Any) -> None:
    setup.install()
    log_event(setup)
    enable(setup)
    assert (look(setup)["plugin"], codes(setup)) == (True, [hook_files.INSTALLED_TWICE])


@table("found", ["3.9.18 at {}/python3", "none on the PATH", "a Python at {}/python3 that does not start"])
def test_the_plugin_with_an_old_or_missing_python_is_a_problem(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    setup.install()
    plugin_by_settings(setup)
    first = found.split(maxsplit=1)[0]
    folder = tmp_path / first
    folder.mkdir()
    if "{}" in found:
        (folder / "python3").write_text(f"#!/bin/sh\necho {first}\n", encoding="utf-8")
        (folder / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    [warned] = [one for one in look(setup)["warnings"] if one["code"] == hooks.OLD_PYTHON]
    assert (
        f"it needs Python 3.11 or later as python3, found {found.format(folder)}; disable the plugin"
        in warned["message"]
    )
    words = f"--root {setup.root} hooks install"
    assert (warned["state"], warned["fix"]) == ("problem", f"{sys.executable} -P -m gaia_sessions {words}")


def test_a_plugin_that_is_switched_off_does_not_count(setup: Setup) -> None:
    setup.install()
    log_event(setup)
    plugin_by_list(setup)
    edit(setup, lambda said: said.update(enabledPlugins={"gaia-sessions@somewhere": False}))
    assert (look(setup)["plugin"], codes(setup)) == (False, [])


def test_an_unreadable_plugin_list_counts_as_no_plugin(setup: Setup) -> None:
    plugin_by_list(setup)
    (Path.home() / ".claude" / "plugins" / "installed_plugins.json").write_bytes(b"{torn")
    assert look(setup)["plugin"] is False


@pytest.mark.parametrize("scope", ["user", "project", "local"])
def test_disable_all_hooks_in_any_settings_file_is_a_warning(setup: Setup, scope: str) -> None:
    setup.install()
    log_event(setup)
    setup.scope = scope
    if not setup.file.exists():
        setup.put(b"{}")
    edit(setup, lambda said: said.update(disableAllHooks=True))
    assert codes(setup) == [hook_files.ALL_HOOKS_DISABLED]


@table(
    ("matcher", "rewrites"),
    [
        (None, True),
        ("", True),
        ("*", True),
        ("Agent", True),
        ("Bash, Task", True),
        ("Bash|Agent", True),
        ("^(Bash|Agent)$", True),
        (".*", True),
        ("Bash", False),
        ("agent", False),
        ("AgentX", False),
        ("^Agents", False),
        ("Agent$|^Bash", True),
        ("^Agent|Bash$", True),
        ("^Age$|Bash$", False),
        ("^(?!(Agent|Task)$)", False),
        ("^(?!Agent$|Task$).*$", False),
        ("^(?!(?:mcp__.*)$).+$", True),
        ("([", True),
        (["Agent"], False),
        ("(a+)+$" * 100, True),
        ("(|)" * 40 + "(?!)", True),
        (".*|" * 160 + "(", True),
        ("a|" * 200 + "(", True),
        ("^(?:Edit|.*ge.*)$", True),
        (".*" * 200 + "x", True),
        ("(.?){1000}x", True),
    ],
)
def test_another_hook_on_delegations_is_a_warning(setup: Setup, matcher: object, *, rewrites: bool) -> None:
    setup.install()
    log_event(setup)
    group = {"hooks": [REWRITES]} if matcher is None else {"matcher": matcher, "hooks": [REWRITES]}
    edit(setup, lambda said: said["hooks"]["PreToolUse"].append(group))
    assert codes(setup) == [hook_files.REWRITER] * rewrites
    setup.file.unlink()


def test_only_the_first_20_other_hooks_on_delegations_are_reported(setup: Setup) -> None:
    setup.install()
    log_event(setup)
    others = [{"type": "command", "command": f"rewrite{number}.sh"} for number in range(100)]
    edit(setup, lambda said: said["hooks"]["PreToolUse"].append({"hooks": others}))
    found = [warned["message"].split()[0] for warned in look(setup)["warnings"]]
    assert found == [f"rewrite{number}.sh" for number in range(20)]


def test_another_hook_on_other_events_is_not_reported(setup: Setup) -> None:
    setup.install()
    log_event(setup)
    edit(setup, lambda said: said["hooks"]["Stop"].append({"hooks": [REWRITES]}))
    assert codes(setup) == []
