"""A host as a process that starts hooks and can be killed."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_STARTS = """
import json, subprocess, sys
for line in sys.stdin:
    command, told, folder, environment = json.loads(line)
    done = subprocess.run(command, input=told.encode(), capture_output=True, cwd=folder, env=environment)
    print(json.dumps([done.returncode, done.stdout.decode(), done.stderr.decode()]), flush=True)
"""


class Client:
    """A host process that lives until the test kills it or ends."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid

    def run(self, command: list[str], told: bytes, folder: str, environment: Mapping[str, str]) -> tuple[int, str, str]:
        """Runs ``command`` in the host; returns its exit code, stdout and stderr."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([command, told.decode(), folder, {**environment}]) + "\n")
        self.process.stdin.flush()
        code, out, err = json.loads(self.process.stdout.readline())
        return code, out, err

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def client() -> Iterator[Client]:
    """A live host process."""
    command = [sys.executable, "-c", _STARTS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Client(process)
        finally:
            process.kill()
