"""A hook while its package is replaced: if a file is missing or torn, the host notices nothing."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hook.conftest import Host

CHECKOUT = Path(gaia_sessions.__file__).parents[1]
ASK = """import sys; sys.argv = ["x", "hook"]; import gaia_sessions.cli.start, os
os._exit = lambda code: print(*(m.__file__ for n, m in sys.modules.items() if n.startswith("gaia_")), sep="\\n")
gaia_sessions.cli.start.main()"""

pytestmark = pytest.mark.slow


class Copy:
    """A copy of the package and of the scripts, from which files can be removed."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.host = host
        self.folder = folder
        for name in ("gaia_sessions", "hooks"):
            shutil.copytree(CHECKOUT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(folder / "gaia_sessions", quiet=1)
        self.forms = {
            "script": ["-S", str(folder / "hooks" / "every_event.py")],
            "module": ["-P", "-m", "gaia_sessions", "hook"],
            "module with options before": ["-m", "gaia_sessions", "--lock-timeout", "1", "--root=/gone", "hook"],
        }

    def run(self, words: list[str], payload: bytes) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(self.host.project), "PYTHONPATH": str(self.folder)}
        command = [sys.executable, *words]
        return subprocess.run(
            command, input=payload, capture_output=True, check=False, cwd=self.host.project, env=environment
        )

    def parts(self, payload: bytes) -> list[Path]:
        """The files that a call loads."""
        told = self.run(["-c", ASK], payload).stdout.decode()
        return [Path(line) for line in told.splitlines() if line.endswith(".py")]


def _lost(file: Path) -> Iterator[str]:
    """Removes ``file``, then writes half of it, as an installer does; restores it at the end."""
    whole, at = file.read_bytes(), file.stat().st_mtime_ns
    file.unlink()
    yield "missing"
    file.write_bytes(whole[: len(whole) // 2])
    yield "torn"
    file.write_bytes(whole)
    os.utime(file, ns=(at, at))  # the compiled file stays valid


@table("form", ["script", "module"])
def test_a_host_notices_nothing_if_a_file_of_the_package_is_missing(host: Host, tmp_path: Path, form: str) -> None:
    copy = Copy(host, tmp_path / form)
    start = json.dumps(host.starting()).encode()
    parts = copy.parts(start)
    assert len(parts) > 30

    noticed = [
        (file.name, how, ran.returncode, ran.stdout, ran.stderr)
        for file in parts
        for how in _lost(file)
        if not (form == "module" and file.parent.name == "gaia_sessions")  # then no code of ours runs
        if (ran := copy.run(copy.forms[form], start)).returncode or ran.stderr
    ]

    assert noticed == []


@table("form", ["script", "module"])
def test_the_self_test_of_a_hook_names_a_missing_module(host: Host, tmp_path: Path, form: str) -> None:
    copy = Copy(host, tmp_path / form)
    (copy.folder / "gaia_sessions" / "hook" / "run.py").unlink()

    ran = copy.run([*copy.forms[form], "--test"], b"")

    assert ran.returncode == 1
    assert "No module named 'gaia_sessions.hook.run'" in ran.stderr.decode()


def test_the_hook_command_after_global_options_is_silent_without_the_cli(host: Host, tmp_path: Path) -> None:
    copy = Copy(host, tmp_path / "copy")
    start = json.dumps(host.starting()).encode()
    shutil.rmtree(copy.folder / "gaia_sessions" / "cli")

    ran = copy.run(copy.forms["module with options before"], start)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    told = copy.run(["-m", "gaia_sessions", "show", "hook"], b"")
    assert (told.returncode, b"No module named" in told.stderr) == (1, True)  # other commands report the error


def test_the_self_test_without_a_temporary_folder_says_to_set_tmpdir() -> None:
    command = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", sys.executable, str(CHECKOUT / "hooks" / "every_event.py")]
    ran = subprocess.run([*command, "--test"], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("cannot make a temporary folder: [Errno 2] No usable temporary directory found")
    assert ran.stderr.endswith("; set TMPDIR to a folder that you may write to\n")


@table("word", ["--test", "--help"])
def test_output_that_cannot_be_printed_is_reported_in_one_line(word: str) -> None:
    script = [sys.executable, str(CHECKOUT / "hooks" / "every_event.py"), word]
    for shut in (">/dev/full", ">&-"):
        ran = subprocess.run(["sh", "-c", f'"$@" {shut}', "sh", *script], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (1, "the output could not be printed\n")
