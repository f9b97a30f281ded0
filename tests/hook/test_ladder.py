"""What every hook does first: switches, settings, arguments and roots; also ``--test``, ``--help`` and time limits."""

from __future__ import annotations

import difflib
import json
import os
import shlex
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from gaia_sessions import hook
from gaia_sessions.hook import argument_words, enforcement, read_arguments
from gaia_sessions.store import locks
from tests.hook.conftest import ASKS, LONGEST, SCRIPTS, SILENT, own_host, refused
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tests.calls import Ran
    from tests.hook.conftest import Host

HOOKS = ["pre_delegate", "subagent_stop"]


def payload(host: Host, hook: str) -> dict[str, Any]:
    """The payload of the host for ``hook``."""
    host.knows("a1", "toolu_1")
    return host.delegation() if hook == "pre_delegate" else host.ending()


def switched_off(host: Host, away_from_home: Path, place: str) -> dict[str, str]:
    """Disables the hooks in this place; returns the environment for the call."""
    if place == "environment":
        return {"GAIA_SESSIONS_HOOKS": "off"}
    file = host.project / ".claude" / "gaia-sessions.toml"
    if place == "user file":
        file = away_from_home / ".config" / "gaia-sessions" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("[hooks]\nenabled = false\n", encoding="utf-8")
    return {}


PLACES = ["environment", "project file", "user file"]  # the last one also holds for all rows after it


@table("place", PLACES)
@table("hook", HOOKS)
@own_host
def test_a_disabled_hook_does_nothing_and_answers_direct_requests_with_disabled(
    host: Host, hook: str, away_from_home: Path, place: str
) -> None:
    off = switched_off(host, away_from_home, place)
    told = payload(host, hook)
    before = host.tree(host.folder)

    assert host.run(hook, told, off) == SILENT
    assert host.tree(host.folder) == before

    agent_id = gaia_sessions.create_session(agent_id="agent-1", root=str(host.root))
    asked = {"agent_id": agent_id, "create": True}
    before = host.tree(host.folder)

    answer = host.ask(hook, asked, off)

    assert answer == refused(hook, asked, "disabled")
    assert host.tree(host.folder) == before


@table("hook", HOOKS)
@own_host
def test_a_disabled_hook_touches_nothing_even_with_an_unknown_setting(host: Host, hook: str) -> None:
    told = payload(host, hook)
    before = host.tree(host.folder)

    host.run(hook, told, {"GAIA_SESSIONS_HOOKS": "off", "GAIA_SESSIONS_NOISE": "1"})

    assert host.tree(host.folder) == before


@table("ignored", ["Explore", "explore", "Plan, EXPLORE"])
@table("hook", HOOKS)
@own_host
def test_an_ignored_agent_is_not_recorded(host: Host, hook: str, ignored: str) -> None:
    told = payload(host, hook)
    before = host.tree(host.folder)

    assert host.run(hook, told, {"GAIA_SESSIONS_IGNORE_AGENTS": ignored}) == SILENT
    assert host.tree(host.folder) == before


def test_agents_that_are_not_ignored_are_recorded(host: Host) -> None:
    (host.project / ".claude" / "gaia-sessions.toml").write_text(
        '[hooks]\nignore_agents = ["Explore"]\n', encoding="utf-8"
    )

    host.run("pre_delegate", host.delegation("toolu_1"))
    host.run("pre_delegate", host.delegation("toolu_2", tool_input={"subagent_type": "Plan"}))

    assert host.record()["agent_name"] == "Plan"


def test_the_environment_beats_the_project_file_which_beats_the_user_file(host: Host, away_from_home: Path) -> None:
    user = away_from_home / ".config" / "gaia-sessions"
    user.mkdir(parents=True)
    (user / "config.toml").write_text("[hooks]\nenabled = true\nstore_description = false\n", encoding="utf-8")
    (host.project / ".claude" / "gaia-sessions.toml").write_text("[hooks]\nenabled = false\n", encoding="utf-8")

    host.run("pre_delegate", host.delegation("toolu_1"))
    assert host.records() == {}
    host.run("pre_delegate", host.delegation("toolu_2"), {"GAIA_SESSIONS_HOOKS": "on"})
    assert host.record()["purpose"] == "general"


THOUSANDS = f"{{file}}: 8,000 unknown settings: {', '.join(f'k{number}' for number in range(10))} and 7,990 more"
FAULTS = {
    "an unknown variable": ({"GAIA_SESSIONS_HOOK": "off"}, "", "unknown setting GAIA_SESSIONS_HOOK"),
    "a bad value": ({"GAIA_SESSIONS_MAX_ERRORS": "many"}, "", "GAIA_SESSIONS_MAX_ERRORS = 'many' is not valid"),
    "an unknown key": ({}, "[hooks]\nenable = false\n", "{file}: unknown setting hooks.enable"),
    "a torn file": (
        {},
        "[hooks\nenabled = false\n",
        "{file}: Expected ']' at the end of a table declaration (at line 1, column 7)",
    ),
    "thousands of names": ({}, "\n".join(f"k{number}=1" for number in range(8_000)), THOUSANDS),
    "too many of them": ({}, "\n".join(f"k{number}=1" for number in range(200_000)), "{file}: larger than 64 KiB"),
}


@table(("settings", "file", "words"), FAULTS.values())
@own_host
def test_an_invalid_setting_is_skipped_and_named_in_the_log(
    host: Host, settings: dict[str, str], file: str, words: str
) -> None:
    path = host.project / ".claude" / "gaia-sessions.toml"
    path.write_text(file, encoding="utf-8")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(difflib, "get_close_matches", lambda *_, **__: pytest.fail("a hook looks for what was meant"))
        assert host.run("pre_delegate", host.delegation(), settings) == SILENT

    [line] = host.log("pre_delegate")
    assert line["setting"] == words.format(file=path)
    assert (line["decision"], line["session"]) == ("created", host.record()["agent_id"])


def test_hooks_and_python_find_the_same_sessions_from_every_folder_of_a_project(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = host.project / "modules" / "network"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    agent_id = gaia_sessions.create_session("Explore")
    monkeypatch.chdir(host.project)
    gaia_sessions.update_state(agent_id, "approval")

    for folder in (host.project, deep, host.project / "modules"):
        line = f"cd {shlex.quote(str(folder))}; exec {sys.executable} {SCRIPTS}/pre_delegate.py"
        answer = host.start("pre_delegate", {"agent_id": agent_id}, {"CLAUDE_PROJECT_DIR": ""}, "sh", "-c", line).answer
        assert answer["reason"] == "session_resumable"
    assert set(host.records()) == {agent_id}
    assert not list(host.project.glob("modules/**/.claude"))


def test_the_project_folder_that_the_host_names_beats_the_working_directory(host: Host) -> None:
    elsewhere = host.folder / "worktree"
    (elsewhere / ".claude" / "session").mkdir(parents=True)
    line = f"cd {shlex.quote(str(elsewhere))}; exec {sys.executable} {SCRIPTS}/pre_delegate.py"

    host.start("pre_delegate", host.delegation(), {}, "sh", "-c", line)

    assert host.record()["agent_name"] == "Explore"
    assert list((elsewhere / ".claude" / "session").iterdir()) == []


def test_a_hook_works_in_a_removed_working_directory_if_the_host_names_the_project(host: Host) -> None:
    gone = shlex.quote(str(host.folder / "gone"))
    line = f"mkdir {gone}; cd {gone}; rmdir {gone}; exec {sys.executable} {SCRIPTS}/pre_delegate.py"

    assert host.start("pre_delegate", host.delegation(), {}, "sh", "-c", line) == (0, b"", b"")

    assert host.record()["agent_name"] == "Explore"


def test_a_relative_root_is_refused_and_nothing_is_created(host: Host) -> None:
    before = host.tree(host.folder)

    asked = {"agent_id": "agent-1"}

    answer = host.ask("pre_delegate", asked, {"GAIA_SESSIONS_ROOT": "sessions"})

    error = "GAIA_SESSIONS_ROOT: 'sessions' is not absolute"
    assert answer == refused("pre_delegate", asked, "error", error=error)
    assert host.run("pre_delegate", host.delegation(), {"GAIA_SESSIONS_ROOT": "sessions"}) == SILENT
    assert host.tree(host.folder) == before


def test_an_unusable_root_gives_hosts_silence_and_direct_requests_an_error(host: Host) -> None:
    root = host.folder / "root"
    root.write_text("a plain file", encoding="utf-8")
    settings = {"GAIA_SESSIONS_ROOT": str(root)}

    assert host.run("pre_delegate", host.delegation(), settings) == SILENT
    answer = host.ask("pre_delegate", {"agent_id": "agent-1"}, settings)
    assert (answer["should_resume"], answer["reason"]) == (False, "error")
    assert answer["error"].startswith(f"{root}: cannot ")
    assert root.read_text(encoding="utf-8") == "a plain file"


@table("umask", [0o000, 0o022, 0o777])
@own_host
def test_all_files_that_hooks_create_are_private_under_any_umask(host: Host, umask: int) -> None:
    host.start("pre_delegate", host.delegation(), umask=umask)
    host.knows("a1", "toolu_1")
    host.start("subagent_stop", host.ending(), umask=umask)
    host.start("subagent_stop", host.ending("a2"), umask=umask)

    made = [path for folder in (host.root, host.logs) for path in [folder, *folder.rglob("*")]]
    modes = {path: oct(path.lstat().st_mode & 0o777) for path in made}
    assert modes == {path: "0o700" if path.is_dir() else "0o600" for path in made}


def test_a_root_with_only_a_log_is_private_and_ignored_by_git(host: Host) -> None:
    root = host.folder / "root"

    host.ask("pre_delegate", {"agent_name": "x"}, {"GAIA_SESSIONS_ROOT": str(root)})

    assert [oct(folder.stat().st_mode & 0o777) for folder in (root, root / ".logs")] == ["0o700", "0o700"]
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*")) == [
        ".gitignore",
        ".logs",
        ".logs/pre_delegate.log",
    ]


@table("hook", HOOKS)
def test_the_self_test_passes_and_leaves_nothing_in_the_project(host: Host, hook: str) -> None:
    before = host.tree(host.project)

    done = subprocess.run(
        [sys.executable, SCRIPTS / f"{hook}.py", "--test"],
        capture_output=True,
        text=True,
        check=False,
        cwd=host.project,
        env=host.environment(),
    )

    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split(":")[0] for line in lines[:-1]] == ["passed"] * (len(lines) - 1)
    assert lines[-1] == f"{len(lines) - 1} passed, 0 failed"
    assert host.tree(host.project) == before


@table("words", ["--host codex", "--enforce", "--host=codex --root /nowhere"])
def test_the_self_test_runs_after_all_installed_options(host: Host, words: str) -> None:
    code, out, err = wired(host, "every_event", *words.split(), "--test")

    assert (code, err) == (0, b"")
    assert out.endswith(b" passed, 0 failed\n")
    assert b"is not an option" not in out


def test_the_self_test_names_an_unknown_option(host: Host) -> None:
    code, out, err = wired(host, "every_event", "--trackt\x1bools", "--test")

    assert (code, err) == (0, b"")
    assert out.splitlines()[0] == b"--tracktools is not an option and is ignored"
    assert out.splitlines()[-1].endswith(b" passed, 0 failed")


def test_the_self_test_exits_with_code_1_if_a_step_fails(host: Host, tmp_path: Path) -> None:
    """The script beside it answers with an empty object."""
    (tmp_path / "pre_delegate.py").write_text("print('{}')\n", "utf-8")
    source = "import sys; from gaia_sessions.hook.run import main; sys.exit(main('pre_delegate', sys.argv[1:]))"
    (tmp_path / "tried.py").write_text(source, "utf-8")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "tried.py"), "--test"],
        capture_output=True,
        check=False,
        env=host.environment({"PYTHONPATH": str(SCRIPTS.parent)}),
    )

    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == b"FAILED: without an ID there is nothing to resume"


@table("hook", HOOKS)
def test_help_prints_the_usage_line(host: Host, hook: str) -> None:
    ran = wired(host, hook, "--help")

    usage = "reads one JSON object on standard input; --test tries the whole flow in a temporary root\n"
    assert ran == (0, f"{hook}.py {usage}".encode(), b"")


def wired(host: Host, hook: str, *words: str, told: object = None) -> Ran:
    """Starts the script with these words as its arguments."""
    host.words = [*words]
    return host.start(hook, told)


WIRED: dict[str, tuple[list[str], dict[str, Any]]] = {
    "two words": (["--host", "qwen-code"], {"host": "qwen-code"}),
    "one word": (["--host=qwen-code"], {"host": "qwen-code"}),
    "the last of two": (["--host=codex", "--host", "qwen-code", "--enforce"], {"host": "qwen-code"}),
    "a host nobody knows": (["--host", "wat"], {"host": "claude-code", "unknown_host": "wat"}),
    "no host": (["--enforce", "--host"], {"host": "claude-code", "ignored": ["--host"]}),
    "none before another": (["--host", "--enforce"], {"host": "claude-code", "ignored": ["--host"]}),
    "an empty host": (["--host="], {"host": "claude-code", "ignored": ["--host="]}),
    "what means nothing": (
        ["PreToolUse", "--json", "-x"],
        {"host": "claude-code", "ignored": ["PreToolUse", "--json", "-x"]},
    ),
    "no root": (["--root", ""], {"host": "claude-code", "ignored": ["--root"]}),
    "a long word": (["x" * 500], {"host": "claude-code", "ignored": ["x" * 128]}),
}


@table("host", [None, "codex"])
@table("root", [None, "/some/where"])
@table("given", [True, False])
def test_hook_arguments_are_read_back_as_they_were_written(host: str | None, root: str | None, *, given: bool) -> None:
    told: dict[str, Any] = {"host": host, "root": root, "reports": given, "enforce": given}

    assert read_arguments(argument_words(**told)) == {**told, "test": False, "help": False, "ignored": []}


@table(("words", "told"), WIRED.values())
@table("hook", [*HOOKS, "every_event"])
@own_host
def test_a_hook_is_silent_with_any_arguments_and_logs_the_ignored_ones(
    host: Host, hook: str, words: list[str], told: dict[str, Any]
) -> None:
    host.words = words
    assert host.run(hook, host.delegation(tool_name="Task")) == SILENT

    [line] = host.log({"every_event": "hook"}.get(hook, hook))
    assert {key: line[key] for key in ("host", "unknown_host", "ignored") if key in line} == told


@table("hook", [*HOOKS, "every_event"])
@table("words", [["--root", "{}"], ["--root={}"]])
@own_host
def test_a_hook_writes_to_the_root_of_its_root_option(host: Host, hook: str, words: list[str]) -> None:
    elsewhere = host.folder / "elsewhere"
    given = [word.format(elsewhere) for word in words]
    assert wired(host, hook, *given, told=host.delegation()) == SILENT

    assert elsewhere.exists()
    assert host.records() == {}


def test_a_log_line_names_the_host_the_conversation_and_the_event_kinds(host: Host) -> None:
    host.run("every_event", host.delegation())
    host.run("every_event", host.delegation(tool_name="Read"))

    told, other = host.log("hook")
    ours = {"host": "claude-code", "host_session_id": host.SESSION, "kinds": ["delegate"]}
    assert {key: told[key] for key in ours} == ours
    assert (told["event"], told["session_id"]) == ("PreToolUse", host.SESSION)
    assert (other["host"], other["decision"]) == ("claude-code", "not_ours")
    assert not {"kinds", "host_session_id"} & set(other)


@table("hook", [*HOOKS, "every_event"])
def test_each_script_is_executable_and_has_at_most_25_lines(hook: str) -> None:
    script = SCRIPTS / f"{hook}.py"

    assert script.stat().st_mode & 0o111 == 0o111
    assert script.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert len(script.read_text("utf-8").splitlines()) <= 25


def test_the_scripts_differ_only_in_their_hook_and_the_installed_location() -> None:
    """Each script must work when it is copied alone, so none can import another."""
    every, *others = ((SCRIPTS / f"{hook}.py").read_text("utf-8") for hook in ("every_event", *HOOKS[:2]))
    begin, end = every.index("elif"), every.index("if __name__")
    shared = (every[:begin] + every[end:]).replace('main("hook"', "main(NAME").split("\n", 2)
    for name, text in zip(HOOKS[:2], others, strict=True):
        found = text.replace(f'main("{name}"', "main(NAME").split("\n", 2)
        assert (found[0], found[2]) == (shared[0], shared[2])


@table("hook", HOOKS)
def test_without_the_package_a_hook_is_silent_and_its_self_test_says_so(host: Host, tmp_path: Path, hook: str) -> None:
    lonely = tmp_path / "share" / "hooks"
    lonely.mkdir(parents=True, exist_ok=True)
    (lonely / f"{hook}.py").write_bytes((SCRIPTS / f"{hook}.py").read_bytes())

    ran = host.start(hook, payload(host, hook), {}, sys.executable, "-I", "-S", str(lonely / f"{hook}.py"))

    assert ran == SILENT
    tried = subprocess.run(
        [sys.executable, "-I", "-S", lonely / f"{hook}.py", "--test"], capture_output=True, text=True, check=False
    )
    missing = f"{lonely}/{hook}.py: No module named 'gaia_sessions'"
    assert (tried.returncode, tried.stdout) == (1, "")
    assert tried.stderr == f"{missing}; run it with the Python that has gaia-sessions installed\n"


def test_a_hook_gives_up_in_time_on_an_answer_that_nobody_reads(host: Host) -> None:
    paused = host.delegate()
    host.stop(message=ASKS)
    long = f"[gaia-sessions: resume {paused}]\n" + "Look at everything once more.\n" * 10_000
    asked = {"description": "x", "prompt": long, "subagent_type": "Explore"}
    payload = json.dumps(host.delegation("toolu_2", tool_input=asked)).encode()
    reading, writing = os.pipe()

    with open(reading, "rb") as pipe:
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, SCRIPTS / "every_event.py"],
            input=payload,
            stdout=writing,
            stderr=subprocess.PIPE,
            env=host.environment(),
            timeout=LONGEST,
            check=False,
        )
        took = time.monotonic() - began
        os.close(writing)
        found = pipe.read()

    assert (done.returncode, done.stderr) == (0, b"")
    assert took < LONGEST / 2
    assert found.startswith(b'{"hookSpecificOutput": ')
    assert b"\n" not in found
    assert 0 < len(found) < len(long)
    line = host.log("hook")[-1]
    assert (line["decision"], line["session"], line["told"]) == ("claimed", paused, False)


def test_a_hook_waits_for_a_lock_no_longer_than_its_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(locks, "sleep_and_retry", lambda _folder, _name, seconds: waited.append(seconds))
    limits = hook.TimeLimits()
    for began in (time.monotonic(), time.monotonic() - hook.TOTAL_TIMEOUT + 0.1):
        limits.started = began
        limits._wait(None, "a", 0.2)  # type: ignore[arg-type]  # no folder is needed to wait

    assert waited[0] == 0.2
    assert waited[1] <= 0.1
    assert enforcement.LOCK_TIMEOUT < hook.LOCK_TIMEOUT
    assert hook.READ_TIMEOUT < hook.LOCK_TIMEOUT < hook.TOTAL_TIMEOUT < 3
