"""Most tests here call the real hooks in this process, in a project on disk, and read the records."""

from __future__ import annotations

from copy import copy
from functools import wraps
from itertools import count
from typing import TYPE_CHECKING, Any

from tests.hook.conftest import host

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.hook.conftest import Host

__all__ = ["host"]  # a fixture, which pytest finds by its name here

_numbers = count()


def wired(host: Host, *words: str) -> Host:
    """The same project, with ``words`` after the hook in its command."""
    same = copy(host)
    same.words = [*words]
    return same


def own_folder(test: Callable[..., None]) -> Callable[..., None]:
    """A decorator for a test with ``table``: each row gets its own folder."""

    @wraps(test)
    def call(tmp_path: Path, **others: Any) -> None:
        folder = tmp_path / f"row-{next(_numbers)}"
        folder.mkdir()
        test(tmp_path=folder, **others)

    return call
