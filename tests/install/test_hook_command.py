"""Which hook entries are recognized as own, and which events and tools the installed entries match."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import hosts as all_hosts
from gaia_sessions.config import load, user_file
from gaia_sessions.errors import BadSetting, StoreFailure, UsageError
from gaia_sessions.hosts import CLAUDE_CODE, HOOK
from gaia_sessions.hosts.payload import HookPayload
from gaia_sessions.hosts.settings import USER, WantedEntry
from gaia_sessions.install import hook_command
from gaia_sessions.install.entries import matches
from gaia_sessions.install.places import HOSTS, Places
from gaia_sessions.session.host_events import DELEGATE
from gaia_sessions.system import utc_now
from tests.install.conftest import Setup
from tests.install.settings_files import PROGRAM, SCRIPT
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.jsonio.strict import Json

EXEC = {"type": "command", "command": "/usr/bin/python3", "args": [SCRIPT, "--track-tools"]}


@table(
    "entry",
    [
        EXEC,
        {"command": f"/usr/bin/python3 {SCRIPT}"},
        {"command": f"'/usr/bin/python3' '{SCRIPT}' --host=codex  --root /some/where\n"},
        {"command": "/usr/bin/env python3 -sB /gone/gaia_sessions/hooks/pre_delegate.py"},
        {"command": "/usr/bin/python3 /gone/whatever/hooks/every_event.py"},
        {"command": "python3 $CLAUDE_PROJECT_DIR/tools/hooks/every_event.py"},
        {"command": "gaia-sessions --root /some/where hook --track-tools"},
        {"command": "/usr/local/share/gaia-sessions/hooks/subagent_stop.py"},
        {"command": "gaia-sessions hook --host codex"},
        {"command": "/opt/bin/gaia-sessions", "args": ["hook"]},
        {"command": "python3 -m gaia_sessions hook"},
        {"command": "/gone/bin/gaia-sessions-hook", "args": []},
        {"command": "gaia-sessions-hook", "args": ["--track-tools", "--allow-report"]},
        {"command": "'/opt/with blank/gaia-sessions-hook' --host codex"},
        {"command": "/usr/bin/python3 /opt/bin/gaia-sessions-hook"},
        {"command": f"python3 {SCRIPT} --not-known --host codex"},
        {"command": "/opt/bin/gaia-sessions-hook", "args": ["--not-known"]},
        {"command": "/opt/python", "args": ["-P", "-m", "gaia_sessions", "hook", "--host", "codex"]},
    ],
)
def test_a_hook_entry_of_this_package_is_recognized(entry: Json) -> None:
    assert hook_command.is_own_hook(entry)


@table(
    "entry",
    [
        None,
        [],
        "gaia-sessions hook",
        {},
        {"command": 5},
        {"command": ["gaia-sessions", "hook"]},
        {"command": "python3 .claude/hooks/subagent_stop.py"},
        {"command": "python3 /project/.claude/hooks/pre_delegate.py"},
        {"command": "python3 /opt/gaia_sessions/every_event.py"},
        {"command": "/opt/gaia_sessions/hooks/other.py"},
        {"command": "gaia-sessions list"},
        {"command": "gaia-sessions --root hook"},
        {"command": "python3 /gone/whatever/hooks/subagent_stop.py"},
        {"command": "echo gaia-sessions; hook"},
        {"command": "echo 'it is gaia-sessions hook"},
        {"command": "gaia-sessions-hooks"},
        {"type": "http", "url": "http://localhost/gaia-sessions hook"},
        {"command": "a " * 400_000},
        {"command": "a", "args": ["a"] * 200_000},
        {"command": "python", "args": ["-B"] * 200_000},
        {"command": "gaia-sessions " + "--root x " * 100_000 + "hook"},
    ],
)
def test_any_other_hook_entry_is_neither_own_nor_mixed(entry: Json) -> None:
    assert (hook_command.is_own_hook(entry), hook_command.is_mixed_entry(entry)) == (False, False)


@table(
    "entry",
    [
        {"command": "notify-my-phone --done && python3 /opt/gaia_sessions/hooks/subagent_stop.py"},
        {"command": "python3 /opt/gaia_sessions/hooks/subagent_stop.py; beep"},
        {"command": "python3 /opt/gaia_sessions/hooks/subagent_stop.py\nbeep"},
        {"command": f"python3 {SCRIPT} 2>>errors | tee -a said"},
        {"command": f"python3 {SCRIPT} > /dev/null"},
        {"command": f"python3 {SCRIPT}&"},
        {"command": f"python3 {SCRIPT} --host $(which)"},
        {"command": f"python3 {SCRIPT} --host `which`"},
        {"command": f"python3 {SCRIPT} mine"},
        {"command": f"python3 {SCRIPT} --mine&"},
        {"command": f"python3 {SCRIPT} --mine=$(which)"},
        {"command": f"python3 {SCRIPT} --host"},
        {"command": f"python3 {SCRIPT} --host --root /some/where"},
        {"command": f"GAIA_SESSIONS_ROOT=/some/where python3 {SCRIPT}"},
        {"command": f"timeout 5 python3 {SCRIPT}"},
        {"command": f"cat {SCRIPT}"},
        {"command": f"sh -c 'python3 {SCRIPT}; beep'"},
        {"command": f"python3 {SCRIPT} '"},
        {"command": "sh", "args": ["-c", f"python3 {SCRIPT}"]},
        {"command": "python3", "args": [SCRIPT, "&&", "beep"]},
        {"command": "gaia-sessions hook || true"},
        {"command": "python3", "args": ["-c", "beep()", SCRIPT]},
        {"command": "/opt/bin/gaia-sessions-hook && beep"},
        {"command": "sh -c 'gaia-sessions-hook; beep'"},
        {"command": "tee log | gaia-sessions hook"},
        {"command": "gaia-sessions-hook" + " --mine" * 100},
        {"command": "gaia-sessions-hook --mine" + "e" * (1 << 14)},
    ],
)
def test_an_entry_that_does_something_else_too_is_mixed_and_not_own(entry: Json) -> None:
    assert (hook_command.is_own_hook(entry), hook_command.is_mixed_entry(entry)) == (False, True)


def test_a_script_in_a_renamed_checkout_is_own_while_the_checkout_exists(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "gaia_sessions" / "hook").mkdir(parents=True)
    entry: Json = {"command": f"python3 {folder}/hooks/subagent_stop.py"}
    assert not hook_command.is_own_hook(entry)
    (folder / "gaia_sessions" / "hook" / "__init__.py").write_bytes(b"")
    assert hook_command.is_own_hook(entry)


@table("host", HOSTS)
@table("told", [False, True])
def test_each_entry_that_install_writes_is_recognized_and_runs(setup: Setup, host: str, *, told: bool) -> None:
    words = hook_command.command_for(HOSTS[host], reports=told, enforce=told)
    for wanted in HOSTS[host].entries(enforce=told):
        handler = hook_command.new_handler(HOSTS[host], words, wanted)
        assert (hook_command.is_own_hook(handler), hook_command.words_of(handler)) == (True, words)
        assert hook_command.wanted_entry_of(wanted.event, wanted.matcher, handler) == wanted
    entry = hook_command.new_handler(HOSTS[host], words, WantedEntry("SessionEnd", None))
    assert (hook_command.is_own_hook(entry), hook_command.words_of(entry)) == (True, words)
    assert [os.path.isabs(words[0]), words[0]] == [True, PROGRAM]
    assert entry["timeout"] == 5 * HOSTS[host].per_second

    shell = "args" not in entry
    completed = subprocess.run(
        str(entry["command"]) if shell else hook_command.words_of(entry),
        shell=shell,  # as the host starts it
        input=b'{"hook_event_name": "SessionEnd", "session_id": "s"}',
        capture_output=True,
        check=False,
        env={**os.environ, "GAIA_SESSIONS_ROOT": setup.root},
    )
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, b"", b"")


def test_a_program_path_that_is_not_utf8_is_refused(monkeypatch: pytest.MonkeyPatch, setup: Setup) -> None:
    monkeypatch.setattr(hook_command, "hook_program", lambda: [os.fsdecode(b"/opt/\xff/gaia-sessions-hook")])
    with pytest.raises(StoreFailure, match="not UTF-8"):
        setup.install()
    assert not setup.file.exists()


@table("host", HOSTS)
def test_the_module_of_a_host_reads_each_wired_event(host: str) -> None:
    asked = HOSTS[host].wired_events()
    assert set(asked) <= set(all_hosts.host_named(host).events_by_hook["hook"])


ALIASES = {"codex": {"Agent"}}
"""Names of the tool that a host uses in matchers but not in payloads."""


@table("name", HOSTS)
def test_the_module_of_a_host_reads_each_delegation_tool_as_a_delegation(setup: Setup, name: str) -> None:
    host, module = HOSTS[name], all_hosts.host_named(name)
    asked: Json = {"prompt": "do", "message": "do", "subagent_type": "a", "agent_name": "a", "description": "d"}
    call: dict[str, Json] = {"hook_event_name": host.delegates, "session_id": "s", "tool_use_id": "t", "cwd": "/"}
    config = load(setup.root, {})
    messages = {
        tool: HookPayload(name, {**call, "tool_name": tool, "tool_input": asked}, config, utc_now(), {})
        for tool in {*host.delegation, "Bash"}
    }
    kinds = {tool: [event["kind"] for event in module.events_of(HOOK, message)] for tool, message in messages.items()}
    taken = {tool for tool, reported_kinds in kinds.items() if reported_kinds == [DELEGATE]}
    assert taken | ALIASES.get(name, set()) == set(host.delegation)
    matcher = host.events[host.delegates]
    assert [tool for tool in taken if not matches(matcher, tool)] == []


@table("name", HOSTS)
def test_an_ordinary_tool_matches_no_installed_hook_entry(name: str) -> None:
    events = {"PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "BeforeTool", "AfterTool"}
    ordinary = [*OTHER_TOOLS, "shell", "exec_command", "run_shell_command", "mcp__server__spawn_agents"]
    wired = [entry for entry in HOSTS[name].entries() if entry.event in events]
    assert len(wired) >= 2
    assert [(entry, tool) for entry in wired for tool in ordinary if matches(entry.matcher, tool)] == []


@table("prefix", ["", "multi_agent_v1", "collaboration"])
def test_the_codex_hooks_match_agent_tools_with_and_without_a_namespace(prefix: str) -> None:
    found = {
        event: [
            tool
            for tool in ("spawn_agent", "send_input", "wait_agent", "close_agent", "interrupt_agent")
            if matches(at, prefix + tool)
        ]
        for event, at in HOSTS["codex"].events.items()
        if event in ("PreToolUse", "PostToolUse")
    }
    assert found == {
        "PreToolUse": ["spawn_agent", "send_input"],
        "PostToolUse": ["spawn_agent", "wait_agent", "close_agent", "interrupt_agent"],
    }


def test_the_plugin_has_the_same_hook_entries_as_the_settings() -> None:
    plugin = json.loads(Path(SCRIPT).with_name("hooks.json").read_bytes())["hooks"]
    found = [
        hook_command.wanted_entry_of(event, group.get("matcher"), handler)
        for event, groups in plugin.items()
        for group in groups
        for handler in group["hooks"]
    ]
    assert sorted(found, key=str) == sorted(HOSTS["claude-code"].entries(), key=str)


OTHER_TOOLS = ["Bash", "Read", "AgentOutput", "TaskOutput", "TaskCreate", "mcp__agents__Agent", "Skill"]


def test_a_conversation_with_one_delegation_starts_eight_processes_and_waits_for_them() -> None:
    heard = ["SessionStart", "UserPromptSubmit", "PreToolUse", "SubagentStart", "SubagentStop", "PostToolUse"]
    heard += ["Stop", "SessionEnd"]
    entries = [entry for entry in HOSTS["claude-code"].entries() if entry.event in heard]
    started = [entry for entry in entries if entry.matcher is None or matches(entry.matcher, "Agent")]
    assert sorted(entry.event for entry in started) == sorted(heard)
    assert all(entry.is_awaited for entry in started)


def test_the_pretooluse_hook_starts_only_for_delegations_and_messages() -> None:
    found = [entry for entry in HOSTS["claude-code"].entries() if entry.event == "PreToolUse"]
    assert found == [WantedEntry("PreToolUse", "Agent|Task|Workflow|SendMessage")]


def test_claude_code_waits_for_every_hook_except_permission_request() -> None:
    unawaited = {entry.event for entry in HOSTS["claude-code"].entries() if not entry.is_awaited}
    assert unawaited == {"PermissionRequest"}


@table("host", ["codex", "qwen-code", "gemini-cli"])
def test_a_scope_or_option_that_a_host_lacks_is_a_usage_error(tmp_path: Path, host: str) -> None:
    with pytest.raises(UsageError):
        Setup(tmp_path, host, "local").install()
    with pytest.raises(UsageError):
        Setup(tmp_path, host).install(report=True)


def test_a_variable_with_an_absolute_path_moves_the_settings_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, away_from_home: Path
) -> None:
    setup = Setup(tmp_path, scope="user")
    assert setup.file == away_from_home / ".claude" / "settings.json"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    assert setup.file == tmp_path / "claude" / "settings.json"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "relative")
    assert setup.file == away_from_home / ".claude" / "settings.json"
    setup.host = "codex"
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    assert setup.file == tmp_path / "codex" / "hooks.json"


def test_without_home_the_password_database_names_the_home_folder_or_there_is_none(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, away_from_home: Path
) -> None:
    def known(_: int) -> pwd.struct_passwd:
        return pwd.struct_passwd(("me", "x", 1, 1, "", str(away_from_home), "/bin/sh"))

    def unknown(_: int) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", known)
    for given in ({}, {"HOME": ""}, {"HOME": "relative"}):
        places = Places(setup.root, given)
        assert places.folder_of(HOSTS[CLAUDE_CODE], USER) == f"{away_from_home}/.claude"
        assert user_file(given) == f"{away_from_home}/.config/gaia-sessions/config.toml"
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for given in ({}, {"HOME": "relative"}):
        assert user_file(given) == ""
        with pytest.raises(BadSetting):
            Places(setup.root, given).folder_of(HOSTS[CLAUDE_CODE], USER)


def test_uninstall_removes_the_settings_folder_only_if_it_is_empty(tmp_path: Path) -> None:
    setup = Setup(tmp_path, "codex")
    setup.install()
    setup.uninstall()
    assert list(setup.project.iterdir()) == []
    setup.install()
    setup.file.with_name("config.toml").write_bytes(b"")
    setup.uninstall()
    assert [path.name for path in setup.file.parent.iterdir()] == ["config.toml"]
