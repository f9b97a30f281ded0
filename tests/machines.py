"""Machines for tests: mount namespaces with a boot ID, a machine ID and a host name of their own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILES = {"boot_id": "/proc/sys/kernel/random/boot_id", "machine_id": "/etc/machine-id"}


class Machine:
    """A machine on which commands run; it has the files and the network of this one."""

    def __init__(self, folder: Path, url: str, machine_id: str | None = None) -> None:
        folder.mkdir()
        (folder / "boot_id").write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        (folder / "machine_id").write_text(f"{machine_id or uuid.uuid4().hex}\n", encoding="ascii")
        self._folder = folder
        package = str(Path(gaia_sessions.__file__).parents[1])
        self._environment = {**os.environ, "GAIA_SESSIONS_ROOT": url, "PYTHONPATH": package}
        if self.start("true").wait():
            pytest.skip("needs the right to make namespaces")

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Starts a command there; what it prints is in ``said``."""
        with (self._folder / "said").open("wb") as said:
            return subprocess.Popen(
                self._command(words), env=self._environment, cwd=self._folder, stdout=said, stderr=said
            )

    @property
    def said(self) -> str:
        """What the command that was started last has printed."""
        return (self._folder / "said").read_text(encoding="utf-8")

    def gaia(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of ours there to its end."""
        command = self._command(gaia_words(*words))
        return subprocess.run(
            command, env=self._environment, cwd=self._folder, text=True, capture_output=True, check=False
        )

    def _command(self, words: Sequence[str]) -> list[str]:
        binds = [f"mount --bind {shlex.quote(str(self._folder / name))} {path}" for name, path in _FILES.items()]
        script = " && ".join([*binds, 'exec "$@"'])
        return ["unshare", "--mount", "--uts", "--net", "sh", "-c", script, "sh", *words]


def gaia_words(*words: str) -> list[str]:
    """The words of a command of ours."""
    return [sys.executable, "-m", "gaia_sessions", *words]
