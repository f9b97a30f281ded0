"""Our command is known again wherever it stands, and nobody else's is taken for it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import BadArgument
from gaia_sessions.hooks import claude_tools
from gaia_sessions.hooks import hosts as heard
from gaia_sessions.wiring import ours
from gaia_sessions.wiring.hosts import HOSTS
from tests.wiring.conftest import Setup
from tests.wiring.settings_files import SCRIPT

if TYPE_CHECKING:
    from gaia_sessions.strictjson import Json

EXEC = {"type": "command", "command": "/usr/bin/python3", "args": [SCRIPT, "--track-tools"]}


@pytest.mark.parametrize(
    "entry",
    [
        EXEC,
        {"command": f"/usr/bin/python3 {SCRIPT}"},
        {"command": f"'/usr/bin/python3' '{SCRIPT}' 2>>errors | tee -a said"},
        {"command": "python3 /gone/gaia_sessions/hooks/pre_delegate.py"},
        {"command": "/usr/local/share/gaia-sessions/hooks/subagent_stop.py"},
        {"command": "gaia-sessions hook --host codex"},
        {"command": "/opt/bin/gaia-sessions", "args": ["hook"]},
        {"command": "python3 -m gaia_sessions hook"},
    ],
)
def test_it_is_ours(entry: Json) -> None:
    assert ours.is_ours(entry)


@pytest.mark.parametrize(
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
        {"command": "echo gaia-sessions; hook"},
        {"command": "echo 'it is gaia-sessions hook"},
        {"type": "http", "url": "http://localhost/gaia-sessions hook"},
    ],
)
def test_it_is_not_ours(entry: Json) -> None:
    assert not ours.is_ours(entry)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("tools", [False, True])
def test_what_is_written_is_known_again_and_runs(setup: Setup, host: str, *, tools: bool) -> None:
    words = ours.command_for(HOSTS[host], tools=tools)
    entry = ours.handler(HOSTS[host], words)
    assert (ours.is_ours(entry), ours.words_of(entry)) == (True, words)
    assert [os.path.isabs(word) for word in words[:2]] == [True, True]
    assert entry["timeout"] == 5 * HOSTS[host].per_second

    shell = "args" not in entry
    done = subprocess.run(
        str(entry["command"]) if shell else ours.words_of(entry),
        shell=shell,  # as the host does it
        input=b'{"hook_event_name": "SessionEnd", "session_id": "s"}',
        capture_output=True,
        check=False,
        env={**os.environ, "GAIA_SESSIONS_ROOT": setup.root},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_virtual_environments_interpreter_stays_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "bin" / "python"
    link.parent.mkdir()
    link.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(link))
    assert ours.command_for(HOSTS["claude-code"], tools=False) == [str(link), SCRIPT]


def test_a_path_with_blanks_and_quotes_is_one_word_to_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "it's my; $(env)" / "python"
    link.parent.mkdir()
    link.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(link))
    host = HOSTS["codex"]
    entry = ours.handler(host, ours.command_for(host, tools=False))
    assert shlex.split(str(entry["command"]))[0] == str(link)
    assert ours.is_ours(entry)


def test_without_a_checkout_the_installed_script_is_named(tmp_path: Path) -> None:
    site, prefix = tmp_path / "site", tmp_path / "prefix"
    shutil.copytree(Path(SCRIPT).parents[1] / "gaia_sessions", site / "gaia_sessions")
    told = (
        f"import sys; sys.path.insert(0, {str(site)!r}); sys.prefix = {str(prefix)!r}\n"
        "from gaia_sessions.errors import StoreFailure\nfrom gaia_sessions.wiring import ours\n"
        "try:\n    print(ours.script())\nexcept StoreFailure as error:\n    print(error)\n"
    )
    place = prefix / "share" / "gaia-sessions" / "hooks" / "every_event.py"

    def ask() -> str:
        done = subprocess.run([sys.executable, "-I", "-c", told], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert ask() == f"{place}: cannot find the hook script: it is not there"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    assert ask() == str(place)


@pytest.mark.parametrize("host", HOSTS)
def test_every_event_we_ask_for_is_one_that_its_module_hears(host: str) -> None:
    asked = HOSTS[host].heard(tools=False)
    assert set(asked) <= set(heard.module_of(host).HEARD_BY["hook"])


def test_what_is_heard_of_tools_is_what_their_module_reads() -> None:
    assert set(HOSTS["claude-code"].tools) == set(claude_tools._KINDS)


def test_the_plugin_hears_what_the_settings_hear() -> None:
    plugin = json.loads(Path(SCRIPT).with_name("hooks.json").read_bytes())["hooks"]
    matchers = {event: groups[0].get("matcher") for event, groups in plugin.items()}
    assert matchers == HOSTS["claude-code"].events


@pytest.mark.parametrize("host", ["codex", "qwen-code", "gemini-cli"])
def test_what_a_host_has_not_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(BadArgument):
        Setup(tmp_path, host, "local").install()
    with pytest.raises(BadArgument):
        Setup(tmp_path, host).install(report=True)


def test_users_folders_are_where_their_variables_say(
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


def test_folders_of_our_making_go_when_they_are_empty_and_stay_when_not(tmp_path: Path) -> None:
    setup = Setup(tmp_path, "codex")
    setup.install()
    setup.uninstall()
    assert not setup.file.parent.exists()
    setup.install()
    setup.file.with_name("config.toml").write_bytes(b"")
    setup.uninstall()
    assert [path.name for path in setup.file.parent.iterdir()] == ["config.toml"]
