"""How things stand: read from the files and the log alone, with nothing changed by looking."""

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
    """The warnings but for those that say the state of a file."""
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


def test_nothing_installed_is_nothing_to_warn_of(setup: Setup) -> None:
    found = look(setup)
    assert {installed["state"] for installed in found["installed"]} == {"absent"}
    where = [(installed["host"], installed["scope"]) for installed in found["installed"]]
    assert where == [(host.name, scope) for host in HOSTS.values() for scope in host.files]
    assert (found["last_received"], found["enabled"], found["plugin"]) == ({}, True, False)
    assert [warned["code"] for warned in found["warnings"]] == [hooks.NOT_INSTALLED]


def test_looking_writes_nothing(setup: Setup, away_from_home: Path) -> None:
    setup.install()
    before = sorted([*setup.project.rglob("*"), *away_from_home.rglob("*")])
    look(setup)
    assert sorted([*setup.project.rglob("*"), *away_from_home.rglob("*")]) == before


@table("host", HOSTS)
def test_what_was_just_installed_is_complete_and_never_ran(tmp_path: Path, host: str) -> None:
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


def test_limits_that_are_held_are_reported_until_the_option_is_left_out(tmp_path: Path) -> None:
    setup = Setup(tmp_path, "claude-code")
    setup.install(enforce=True)
    assert (row(setup)["state"], row(setup)["enforce"], codes(setup)) == ("complete", True, [])
    edit(setup, lambda said: said["hooks"]["PreToolUse"].pop())
    assert (row(setup)["state"], row(setup)["missing"]) == ("incomplete", ["PreToolUse"])
    setup.install()
    assert (row(setup)["state"], row(setup)["enforce"], row(setup)["missing"]) == ("complete", False, [])


def test_limits_that_are_set_and_not_held_are_a_warning(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_LIMITS_ROUNDS", "60")
    monkeypatch.setenv("GAIA_SESSIONS_GUARD_MODE", "block")
    setup.install()
    [found] = told(setup)
    assert found["code"] == hooks.LIMITS_NOT_HELD
    assert found["message"].startswith(
        "limits are set that the hooks of claude-code do not hold: limits.rounds, guard.mode"
    )
    setup.install(enforce=True)
    assert codes(setup) == []


@table("host", [host for host in HOSTS if host != "claude-code"])
def test_hosts_whose_agents_cannot_be_limited_are_not_told_to_hold_limits(tmp_path: Path, host: str) -> None:
    with pytest.raises(UsageError, match=f"limits are not held with {host}"):
        Setup(tmp_path, host).install(enforce=True)


def test_events_that_are_wired_and_those_that_are_not_are_named(setup: Setup) -> None:
    setup.install()
    edit(setup, lambda said: said["hooks"].pop("Stop"))
    found = row(setup)
    assert ("Stop" in found["wired"], found["missing"]) == (False, ["Stop"])
    lines = [*status_lines(look(setup), utc_now(), verbose=True)]
    assert [f"  events: {', '.join(found['wired'])}", "  missing events: Stop"] == lines[-2:]


def test_an_entry_of_an_earlier_version_that_is_waited_for_is_reported_and_replaced(setup: Setup) -> None:
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


def test_the_entries_of_a_version_that_tracked_tools_are_ours_and_are_replaced(setup: Setup) -> None:
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
    """As ``--track-tools`` wrote it: most uses of tools are heard, and nobody waits for that."""
    awaited = "Agent|Task|Workflow|SendMessage|TaskStop"
    for groups in said["hooks"].values():
        groups[0]["hooks"][0]["args"] = ["--track-tools"]
    for event in ("PostToolUse", "PostToolUseFailure"):
        [group] = said["hooks"][event]
        unawaited = {**group["hooks"][0], "async": True}
        said["hooks"][event] = [{**group, "matcher": awaited}, {"matcher": f"^(?!({awaited})$)", "hooks": [unawaited]}]


def test_what_was_just_installed_is_given_a_day_to_run(setup: Setup) -> None:
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
def test_a_call_of_a_script_or_of_a_host_without_support_is_not_reported(setup: Setup, line: Any) -> None:
    setup.install()
    hook_log.append_line(setup.root, "hook", {"at": LATER, **line})
    assert look(setup)["heard_from"] == {}
    assert "last events" not in "\n".join(status_lines(look(setup), utc_now(), verbose=True))


def test_a_call_without_an_event_leaves_none_in_the_log() -> None:
    assert hook_log.payload_fields({"session_id": "s"}, "hook_event_name") == {"session_id": "s"}
    assert hook_log.payload_fields({"hook_event_name": "Stop"}, "hook_event_name") == {"event": "Stop"}


def test_a_heartbeat_for_every_event_is_the_last_of_all_logs(setup: Setup) -> None:
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
def test_a_line_of_the_log_that_says_no_time_is_passed_over(setup: Setup, at: object) -> None:
    shutil.rmtree(hook_log.log_folder(setup.root), ignore_errors=True)
    Path(setup.root).parent.mkdir(exist_ok=True)
    log_event(setup, at, "SessionEnd")  # type: ignore[arg-type]  # a time of any kind
    log_event(setup, EARLIER)
    log_event(setup, at)  # type: ignore[arg-type]  # see above

    assert look(setup)["heard_from"] == {"claude-code": {"Stop": EARLIER}}
    assert "  Stop: " in "\n".join(status_lines(look(setup), utc_now(), verbose=True))


def test_times_in_another_form_are_ordered_as_the_times_they_are(setup: Setup) -> None:
    Path(setup.root).parent.mkdir(exist_ok=True)
    for at in ("2026-01-08T23:00:00+12:00", "2026-01-08T12:00:00Z"):
        log_event(setup, at)

    assert look(setup)["last_received"] == {"Stop": "2026-01-08T12:00:00.000000Z"}


def test_an_event_at_any_time_shows_that_the_hooks_run(setup: Setup) -> None:
    setup.install()
    log_event(setup, EARLIER)
    assert codes_at(setup, utc_now() + timedelta(days=9)) == []


def test_an_event_that_is_missing_or_received_for_something_else_is_named(setup: Setup) -> None:
    setup.install()
    log_event(setup)

    def less(said: Any) -> None:
        del said["hooks"]["Stop"]
        said["hooks"]["PreToolUse"][0]["matcher"] = "Bash"

    edit(setup, less)
    assert (row(setup)["state"], row(setup)["missing"]) == ("incomplete", ["PreToolUse", "Stop"])


def test_another_version_or_path_is_reported_and_what_it_lacks_is_a_warning(setup: Setup) -> None:
    gone = {"type": "command", "command": "/nowhere/python /opt/gaia_sessions/hooks/every_event.py"}
    setup.put(json.dumps({"hooks": {"Stop": [{"hooks": [gone]}]}}).encode())
    log_event(setup)
    assert (row(setup)["state"], row(setup)["command"]) == ("elsewhere", gone["command"].split())
    assert codes(setup) == [hook_files.MISSING_INTERPRETER, hook_files.MISSING_SCRIPT]


@table(("own", "users", "surplus"), [(True, False, "user"), (False, True, "own")])
def test_of_two_scopes_the_one_that_does_not_hold_limits_is_once_too_often(
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


def test_two_hosts_are_not(setup: Setup) -> None:
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
def test_every_script_that_is_gone_is_named_once_whatever_its_checkout_was_called(setup: Setup, folder: str) -> None:
    gone = {"type": "command", "command": f"python3 /opt/{folder}/hooks/every_event.py"}
    setup.put(json.dumps({"hooks": {"Stop": [{"hooks": [gone]}], "SessionEnd": [{"hooks": [gone]}]}}).encode())
    log_event(setup)
    [warned] = told(setup)
    assert (warned["code"], row(setup)["state"]) == (hook_files.MISSING_SCRIPT, "elsewhere")
    assert "which does not exist; Python then exits with 2, which hosts treat as a refusal" in warned["message"]


def test_what_we_wired_is_in_peace_once_its_script_is_gone_and_that_is_reported(setup: Setup) -> None:
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
def test_a_program_that_no_file_can_be_called_is_reported(setup: Setup, name: str) -> None:
    setup.install()
    log_event(setup)
    for words in ([f"/{name}/python", SCRIPT], [f"/{name}/gaia-sessions-hook"], [f"/{name}/hooks/every_event.py"]):
        group = {"hooks": [{"command": words[0], "args": words[1:]}]}
        setup.file.write_text(json.dumps({"hooks": {"PreToolUse": [group]}}), encoding="utf-8")
        expected = hook_files.MISSING_INTERPRETER if words[1:] else hook_files.MISSING_SCRIPT
        assert codes(setup) == [expected]


def test_a_path_that_only_a_shell_can_resolve_is_not_called_gone(setup: Setup) -> None:
    entry = {"type": "command", "command": "python3 $CLAUDE_PROJECT_DIR/hooks/every_event.py"}
    setup.put(json.dumps({"hooks": {"Stop": [{"hooks": [entry]}]}}).encode())
    log_event(setup)
    assert codes(setup) == []


@pytest.mark.parametrize("event", ["Stop", "PreToolUse"])
def test_a_command_of_somebodys_own_with_the_hook_in_it_is_a_warning(setup: Setup, event: str) -> None:
    mixed = {"type": "command", "command": f"beep && python3 {SCRIPT}"}
    setup.put(json.dumps({"hooks": {event: [{"hooks": [mixed]}]}}).encode())
    assert (row(setup)["state"], codes(setup)) == ("absent", [hook_files.MIXED_ENTRY])
    setup.install()
    log_event(setup)
    assert codes(setup) == [hook_files.MIXED_ENTRY]


def test_what_sub_agents_were_allowed_is_reported(setup: Setup) -> None:
    setup.install(report=True)
    assert row(setup)["allow_report"] is True
    setup.install()
    assert row(setup)["allow_report"] is False


@table("matcher", [["Agent"], {"a": [1]}])
def test_two_entries_with_a_matcher_that_no_host_takes_are_once_too_often(setup: Setup, matcher: object) -> None:
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
def test_the_plugin_beside_the_settings_is_once_too_often(setup: Setup, enable: Any) -> None:
    setup.install()
    log_event(setup)
    enable(setup)
    assert (look(setup)["plugin"], codes(setup)) == (True, [hook_files.INSTALLED_TWICE])


@table("found", ["3.9.18 at {}/python3", "none on the PATH", "one that does not start at {}/python3"])
def test_the_plugin_under_a_python_that_is_too_old_records_nothing(
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
    assert f"it needs Python 3.11 as python3, found {found.format(folder)}; disable the plugin" in warned["message"]
    words = f"--root {setup.root} hooks install"
    assert (warned["state"], warned["fix"]) == ("problem", f"{sys.executable} -P -m gaia_sessions {words}")


def test_a_plugin_that_is_switched_off_does_not_count(setup: Setup) -> None:
    setup.install()
    log_event(setup)
    plugin_by_list(setup)
    edit(setup, lambda said: said.update(enabledPlugins={"gaia-sessions@somewhere": False}))
    assert (look(setup)["plugin"], codes(setup)) == (False, [])


def test_a_plugin_list_that_cannot_be_read_is_none(setup: Setup) -> None:
    plugin_by_list(setup)
    (Path.home() / ".claude" / "plugins" / "installed_plugins.json").write_bytes(b"{torn")
    assert look(setup)["plugin"] is False


@pytest.mark.parametrize("scope", ["user", "project", "local"])
def test_hooks_that_are_all_disabled_in_any_file_are_a_warning(setup: Setup, scope: str) -> None:
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


def test_of_many_hooks_on_delegations_the_first_are_reported(setup: Setup) -> None:
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
