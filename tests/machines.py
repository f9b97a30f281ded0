"""Machines for tests: namespaces with processes, a network, a boot ID, a machine ID and a host name of their own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import uuid
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILES = {"boot_id": "/proc/sys/kernel/random/boot_id", "machine_id": "/etc/machine-id"}
_NEW = ["unshare", "--mount", "--uts", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


class Machine:
    """A machine on which commands run; it has the files of this one. It ends with this object."""

    def __init__(self, folder: Path, url: str, machine_id: str | None = None) -> None:
        folder.mkdir()
        (folder / "boot_id").write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        (folder / "machine_id").write_text(f"{machine_id or uuid.uuid4().hex}\n", encoding="ascii")
        self._folder = folder
        package = str(Path(gaia_sessions.__file__).parents[1])
        self._environment = {**os.environ, "GAIA_SESSIONS_ROOT": url, "PYTHONPATH": package}
        binds = [f"mount --bind {shlex.quote(str(folder / name))} {path}" for name, path in _FILES.items()]
        first = self._started([*_NEW, "sh", "-c", " && ".join([*binds, "echo up", "exec sleep infinity"])])
        self._processes = [first]
        self._end = weakref.finalize(self, _end, self._processes)
        assert first.stdout is not None
        if first.stdout.readline() != "up\n":
            pytest.skip("needs the right to make namespaces")
        self._first = _child_of(first)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Starts a command there. Its output and its errors are in one pipe."""
        process = self._started(self._command(words))
        self._processes.append(process)
        return process

    def gaia(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of ours there to its end."""
        command = self._command(gaia_words(*words))
        return subprocess.run(
            command, env=self._environment, cwd=self._folder, text=True, capture_output=True, check=False
        )

    def end(self) -> None:
        """Kills all processes of the machine, with SIGKILL and at once."""
        self._end()

    def _started(self, command: Sequence[str]) -> subprocess.Popen[str]:
        out = subprocess.PIPE
        return subprocess.Popen(
            command, env=self._environment, cwd=self._folder, text=True, stdout=out, stderr=subprocess.STDOUT
        )

    def _command(self, words: Sequence[str]) -> list[str]:
        places = ["--mount", "--uts", "--net", "--pid", "--target", str(self._first)]
        return ["nsenter", *places, f"--wd={self._folder}", *words]


def send_signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Sends a signal to what ``Machine.start`` has started, and to nothing that this has started."""
    os.kill(_child_of(process), number)
    if number == signal.SIGCONT:  # the parent outside stops with it
        process.send_signal(number)


def gaia_words(*words: str) -> list[str]:
    """The words of a command of ours."""
    return [sys.executable, "-m", "gaia_sessions", *words]


def _child_of(process: subprocess.Popen[str]) -> int:
    """The process in the namespaces: its parent waits for it outside."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
    return int(children)


def _end(processes: Sequence[subprocess.Popen[str]]) -> None:
    for process in processes:  # the kernel kills all others with the first one
        with process:
            process.kill()
