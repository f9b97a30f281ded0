"""Wrappers: processes that start commands as the runner does. They are separate because they reap all descendants."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.users.conftest import machine  # noqa: F401  # a fixture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _pytest.mark import ParameterSet

    from tests.users.conftest import Machine

CHECKOUT = Path(__file__).parents[2]
PATIENCE = 60
TAG = "GAIA_TEST_RUN"

PRELUDE = """
import json, os, shlex, signal, sys, time
from gaia_sessions.runner import process_tree
from gaia_sessions.runner.contain import namespace_of, why_impossible

def begin(*argv, stdin=0, stdout=1, stderr=2, cwd=None, env=os.environ, is_contained=False):
    streams = dict(stdin=stdin, stdout=stdout, stderr=stderr)
    return process_tree.start(argv, cwd=cwd, env=env, is_contained=is_contained, **streams)

def contain(*argv, **options):
    return begin(*argv, **options, is_contained=True)

def until(condition):
    while not condition():
        time.sleep(0.005)

def ended(child):
    until(lambda: process_tree.reap(child) or child.exit_code is not None)
    return child.exit_code

def python(source, *arguments):
    return (sys.executable, "-I", "-S", "-c", source, *arguments)

process_tree.become_subreaper()
"""

linux = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs Linux: /proc and sub-reapers")
needs_user = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv to act as another user"
)
AS_USER = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


class Wrapper:
    """One process that wraps commands; all its descendants have ``tag`` in their environment.

    through: words before the interpreter. at: another interpreter and package.
    """

    def __init__(
        self,
        tag: str,
        source: str,
        *words: str,
        through: tuple[str, ...] = (),
        at: Machine | None = None,
        **options: Any,
    ) -> None:
        self.tag = tag
        python, folder = at or (sys.executable, CHECKOUT)
        environment = {**os.environ, TAG: tag, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        self.process: subprocess.Popen[str] = subprocess.Popen(
            [*through, python, "-c", PRELUDE + source, *words],
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
            text=True,
            env=environment,
        )

    def line(self) -> str:
        """The next line of its stdout."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def result(self) -> str:
        """Its stdout after it ended with exit code 0 and an empty stderr."""
        out, err = self.process.communicate(timeout=PATIENCE)
        assert (self.process.returncode, err) == (0, "")
        return out.strip()

    def left(self) -> list[int]:
        """Its descendants that are alive."""
        return [pid for pid in carriers(self.tag) if pid != self.process.pid]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def seeds(quick: int, slow: int, thorough: int) -> list[ParameterSet]:
    """The first seeds are quick, the next are slow, the rest are thorough and in groups of ten."""
    return [
        *(pytest.param(range(seed, seed + 1), id=str(seed)) for seed in range(quick)),
        *(pytest.param(range(seed, seed + 1), id=str(seed), marks=pytest.mark.slow) for seed in range(quick, slow)),
        *(
            pytest.param(range(seed, min(seed + 10, thorough)), id=f"{seed}...", marks=pytest.mark.thorough)
            for seed in range(slow, thorough, 10)
        ),
    ]


def carriers(tag: str) -> list[int]:
    """The processes with ``tag`` in their environment. A zombie has no environment."""
    wanted = f"{TAG}={tag}".encode()
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and wanted in environment_of(name)]


def environment_of(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def state_of(pid: int) -> str:
    """The state of a process: one letter, as the kernel shows it."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "-"


def becomes(condition: Callable[[], bool], seconds: float = 5) -> bool:
    """Whether ``condition`` holds within ``seconds``."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def wrap_as_user(wrap: Callable[..., Wrapper], machine: Machine) -> Callable[..., Wrapper]:  # noqa: F811  # a fixture
    """Like ``wrap``, for a user who is not root."""
    return lambda source, *words, before=(): wrap(source, *words, through=(*AS_USER, *before), at=machine)


@pytest.fixture
def wrap() -> Iterator[Callable[..., Wrapper]]:
    """Starts a wrapper; it and its descendants are killed after the test."""
    started: list[Wrapper] = []

    def begin(source: str, *words: str, **options: Any) -> Wrapper:
        started.append(Wrapper(uuid.uuid4().hex, source, *words, **options))
        return started[-1]

    yield begin
    for wrapper in started:
        wrapper.kill()
        for pid in carriers(wrapper.tag):
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
