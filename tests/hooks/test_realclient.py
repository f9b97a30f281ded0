"""A real client, driven by a scripted API, runs the hooks from its own settings.

The harness is not part of this package: ``GAIA_REALCLIENT`` names the folder of its ``run.sh``. It installs
the client of ``REALCLIENT_PACKAGE`` into ``REALCLIENT_BASE`` the first time.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.hooks.conftest import Host

SCRIPTS = Path(__file__).parents[2] / "hooks"
PACKAGE = os.environ.get("REALCLIENT_PACKAGE", "@anthropic-ai/claude-code")


@pytest.fixture
def harness(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = os.environ.get("GAIA_REALCLIENT")
    if not folder:
        pytest.skip("needs GAIA_REALCLIENT to name the folder of the harness")
    if shutil.which("npm") is None:
        pytest.skip("needs npm to install the client")
    assert pytestconfig.cache is not None
    base = os.environ.get("REALCLIENT_BASE") or str(
        pytestconfig.cache.mkdir("realclient-" + re.sub(r"\W", "-", PACKAGE))
    )
    monkeypatch.setenv("REALCLIENT_PACKAGE", PACKAGE)
    monkeypatch.setenv("REALCLIENT_BASE", base)
    monkeypatch.setenv("HOME", pwd.getpwuid(os.getuid()).pw_dir)  # npm's own settings; the client gets another home
    monkeypatch.setenv("NPM_CONFIG_CACHE", f"{base}/npm")
    return Path(folder)


def configure(host: Host) -> None:
    """The hooks in the project's settings, their output kept to be looked at on its way to the client."""
    (host.folder / "printed").mkdir()

    def entry(hook: str, **matcher: str) -> list[dict[str, object]]:
        script, errors, printed = (
            shlex.quote(str(path))
            for path in (
                SCRIPTS / f"{hook}.py",
                host.folder / "printed" / f"{hook}.err",
                host.folder / "printed" / hook,
            )
        )
        command = f"{shlex.quote(sys.executable)} {script} 2>>{errors} | tee -a {printed}"
        return [{**matcher, "hooks": [{"type": "command", "command": command}]}]

    hooks = {"PreToolUse": entry("pre_delegate", matcher="Agent|Task"), "SubagentStop": entry("subagent_stop")}
    (host.project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}), encoding="utf-8")


def captured(run: Path, event: str) -> Any:
    """The only payload of ``event`` that the recorder saw, who ran beside our hooks."""
    lines = [json.loads(line) for line in (run / "capture.jsonl").read_text(encoding="utf-8").splitlines()]
    [payload] = [line["stdin"] for line in lines if line["event"] == event]
    return payload


@pytest.mark.realclient
def test_one_delegation_of_a_real_client_is_one_session_that_ends_with_it(host: Host, harness: Path) -> None:
    configure(host)
    run = host.folder / "run"

    done = subprocess.run(
        [harness / "run.sh", "single", host.project, "--run-dir", run],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

    assert (done.returncode, "step 0: exit 0" in done.stdout) == (0, True), done.stderr
    assert {file.name: file.read_bytes() for file in (host.folder / "printed").iterdir()} == {
        "pre_delegate": b"",
        "pre_delegate.err": b"",
        "subagent_stop": b"",
        "subagent_stop.err": b"",
    }
    delegation, stop = captured(run, "PreToolUse"), captured(run, "SubagentStop")
    assert host.timeless(host.record()) == {
        "agent_id": "ID",
        "agent_name": delegation["tool_input"]["subagent_type"],
        "purpose": delegation["tool_input"]["description"],
        "created_at": "TIME",
        "last_updated": "TIME",
        "phase": "completed",
        "metadata": {},
        "resume_ready": False,
        "history": host.moved("initializing", "investigating", "completed"),
        "error_count": 0,
        "last_error": None,
        "schema": 1,
        "revision": 2,
        "runs": [
            {
                "run": 1,
                "host": "claude-code",
                "host_session_id": delegation["session_id"],
                "host_agent_id": stop["agent_id"],
                "tool_use_id": delegation["tool_use_id"],
                "background": delegation["tool_input"]["run_in_background"],
                "claimed_at": "TIME",
                "ended_at": "TIME",
                "end": "stopped",
                "last_message": stop["last_assistant_message"],
                "transcript_path": stop["agent_transcript_path"],
            }
        ],
        "finalized_at": "TIME",
        "duration_seconds": "SECONDS",
    }
