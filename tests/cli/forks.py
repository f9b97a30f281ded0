"""Runs command lines in forks of the test process, which start fast and can be killed.

A fork has the patches and the loaded modules of the test. Use ``program`` to test the start of a new interpreter.
"""

from __future__ import annotations

import os
import pkgutil
import sys
import tempfile
import time
import warnings
from importlib import import_module
from multiprocessing import get_context
from typing import TYPE_CHECKING

from gaia_sessions.cli import start
from tests.cli.conftest import PATIENCE
from tests.commands import Ended

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

_FORKS = get_context("fork")

for _room in ("cli.commands", "cli.render", "runner", "session", "store", "api"):
    for _module in pkgutil.iter_modules(import_module(f"gaia_sessions.{_room}").__path__, f"gaia_sessions.{_room}."):
        import_module(_module.name)  # load it once here instead of in each fork


class Fork:
    """A running command line; the end of the block kills it. ``stdin`` is its input, or a descriptor of the input."""

    def __init__(
        self, *words: str | bytes, stdin: bytes | int = b"", stderr: int | None = None, **environment: str
    ) -> None:
        self._files = [tempfile.TemporaryFile() for _ in range(3)]  # noqa: SIM115  # closed at the end of the block
        descriptors = [file.fileno() for file in self._files]
        if isinstance(stdin, int):
            descriptors[0] = stdin
        else:
            os.pwrite(descriptors[0], stdin, 0)
        if stderr is not None:
            descriptors[2] = stderr
        argv = ["gaia-sessions", *map(os.fsdecode, words)]
        self._process = _FORKS.Process(target=_be, args=(argv, descriptors, environment))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # since Python 3.12: other threads are not in the fork
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()
        for file in self._files:
            file.close()

    def poll(self) -> int | None:
        """The exit code, the negative number of the signal that killed it, or None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def ended(self) -> Ended:
        """Waits for the end and returns the result."""
        self._process.join(PATIENCE)
        code = self.poll()
        assert code is not None, f"still at work: {self.out!r}"
        return Ended(code, self.out, self.err)

    @property
    def out(self) -> bytes:
        """Its stdout so far."""
        return _content(self._files[1].fileno())

    @property
    def err(self) -> bytes:
        """Its stderr so far."""
        return _content(self._files[2].fileno())


def _be(argv: list[str], descriptors: list[int], environment: dict[str, str]) -> None:
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.environ.update(environment)
    sys.argv = argv
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # until the end of the process
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", closefd=False)  # noqa: SIM115
    start.main()


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def forked(*words: str | bytes, stdin: bytes | int = b"", **environment: str) -> Ended:
    """Runs a command line in a fork to its end."""
    with Fork(*words, stdin=stdin, stderr=None, **environment) as fork:
        return fork.ended()


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)
