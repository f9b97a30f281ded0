"""What events do to records is shown by the real hooks, called in this process, in a project on disk."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from copy import copy
from functools import wraps
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.system import processes
from tests.hook.client import Client
from tests.hook.conftest import Host as AnyHost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_numbers = count()


class Host(AnyHost):
    """One whose client is a process that can be killed, while the hooks that it would start are called here."""

    client_pid = 0

    @contextmanager
    def client(self) -> Iterator[Client]:
        with subprocess.Popen(["sleep", "600"], text=True) as process, pytest.MonkeyPatch.context() as patched:
            patched.setattr(processes, "_ancestors", lambda: iter([process.pid]))
            patched.setattr(self, "client_pid", process.pid)
            try:
                yield Client(process)
            finally:
                process.kill()

    def environment(self, settings: Mapping[str, str] | None = None) -> dict[str, str]:
        return super().environment({"CLAUDE_PID": str(self.client_pid), **(settings or {})})


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def another(host: AnyHost) -> Host:
    """A host, and so a project, of which nobody knows yet."""
    return Host(host.folder / f"another-{next(_numbers)}")


def wired(host: AnyHost, *words: str) -> AnyHost:
    """The same project, where ``words`` follow the hook in its command."""
    same = copy(host)
    same.words = [*words]
    return same


def own_folder(test: Callable[..., None]) -> Callable[..., None]:
    """Below ``table``: each row has a folder of its own."""

    @wraps(test)
    def call(tmp_path: Path, **others: Any) -> None:
        folder = tmp_path / f"row-{next(_numbers)}"
        folder.mkdir()
        test(tmp_path=folder, **others)

    return call


def own_host(test: Callable[..., None]) -> Callable[..., None]:
    """Below ``table``: each row has a host of its own."""

    @wraps(test)
    def call(host: Host, **others: Any) -> None:
        test(host=another(host), **others)

    return call
