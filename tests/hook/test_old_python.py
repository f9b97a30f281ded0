"""A host may start an older Python than the one that has the package: the hook logs this and stays silent."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import gaia_sessions
from tests.table import table

if TYPE_CHECKING:
    from tests.hook.conftest import Host

CHECKOUT = Path(gaia_sessions.__file__).parents[1]
SCRIPTS = ["hooks/every_event.py", "hooks/pre_delegate.py", "hooks/subagent_stop.py"]


@table("file", [*SCRIPTS, "gaia_sessions/__init__.py", "gaia_sessions/old_python.py"])
def test_the_files_that_an_old_python_runs_have_only_python_3_6_syntax(file: str) -> None:
    ast.parse((CHECKOUT / file).read_text("utf-8"), feature_version=(3, 6))


def test_under_an_old_python_a_hook_is_silent_and_logs_the_version(host: Host, old_pythons: list[str]) -> None:
    logs = host.project / ".claude" / "logs"
    logs.parent.mkdir(exist_ok=True)
    payload = json.dumps(host.delegation()).encode()
    environment = {**host.environment(), "CLAUDE_PROJECT_DIR": str(host.project)}
    environment.pop("GAIA_SESSIONS_ROOT", None)
    for python in old_pythons:
        for script in SCRIPTS:
            command = [python, "-S", str(CHECKOUT / script)]
            ran = subprocess.run(command, input=payload, capture_output=True, check=False, env=environment)
            assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b""), command
            tried = subprocess.run([*command, "--test"], capture_output=True, check=False, env=environment)
            assert tried.returncode == 1
            assert tried.stderr.startswith(b"gaia-sessions needs Python 3.11, found 3.")

    told = [json.loads(line) for line in (logs / "hook.log").read_text("utf-8").splitlines()]
    assert [line["decision"] for line in told] == ["error"] * len(old_pythons) * len(SCRIPTS)
    for line, python in zip(told[:: len(SCRIPTS)], old_pythons, strict=True):
        version, _, path = line["error"].removeprefix("needs Python 3.11, found ").partition(" at ")
        assert (3, 6) <= tuple(map(int, version.split("."))) < (3, 11)
        assert os.path.realpath(path) == os.path.realpath(python)
    assert (logs / ".gitignore").read_text("utf-8") == "*\n"
    assert not (host.project / ".claude" / "session").exists()


def test_under_an_old_python_the_log_follows_no_link_and_has_a_maximum_size(
    host: Host, old_pythons: list[str], tmp_path: Path
) -> None:
    environment = {**host.environment(), "CLAUDE_PROJECT_DIR": str(host.project)}
    environment.pop("GAIA_SESSIONS_ROOT", None)
    command = [old_pythons[0], "-S", str(CHECKOUT / SCRIPTS[0])]
    shutil.rmtree(host.project / ".claude", ignore_errors=True)

    assert subprocess.run(command, input=b"{}", check=False, env=environment).returncode == 0
    assert not (host.project / ".claude").exists()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    logs = host.project / ".claude" / "logs"
    logs.parent.mkdir()
    logs.symlink_to(elsewhere)
    assert subprocess.run(command, input=b"{}", check=False, env=environment).returncode == 0
    assert list(elsewhere.iterdir()) == []
    logs.unlink()
    logs.mkdir()
    (logs / "hook.log").write_bytes(b"x" * (1 << 20))
    assert subprocess.run(command, input=b"{}", check=False, env=environment).returncode == 0
    assert (logs / "hook.log").stat().st_size == 1 << 20


def test_under_an_old_python_a_url_in_the_variable_is_no_path(host: Host, old_pythons: list[str]) -> None:
    environment = {**host.environment(), "GAIA_SESSIONS_ROOT": "postgresql://user:s3cret@db/agents"}
    environment.pop("CLAUDE_PROJECT_DIR")
    for python in old_pythons:
        command = [python, "-S", str(CHECKOUT / SCRIPTS[0])]
        ran = subprocess.run(command, input=b"{}", check=False, env=environment, cwd=host.project)
        assert ran.returncode == 0

    assert sorted(path.name for path in host.project.rglob("*")) == [".claude", ".gitignore", "hook.log", "logs"]
    log = (host.logs / "hook.log").read_text("utf-8")
    assert (log.count("needs Python 3.11"), "s3cret" in log) == (len(old_pythons), False)
