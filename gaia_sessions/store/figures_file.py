"""``.stats.jsonl``: one line of figures for each session that was removed.

Anybody may have written in it: a line is read only up to a length, and its content is checked elsewhere.
"""

from __future__ import annotations

import os
from contextlib import suppress

from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.jsonio.strict import load_object

from .directory import TooBig, translate_errors
from .root import STATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from gaia_sessions.jsonio.strict import Json

    from .directory import Directory

KEY = ("figures",)
"""The key of the lock for adding lines: only one process at a time may see a torn line or take back a refused one."""

_MAX_BYTES = 256 << 20
"""Enough for half a million sessions."""

_MAX_LINE = 64 << 10


def values(root: Directory) -> Iterator[dict[str, Json] | None]:
    """Yields the JSON object of each line, or None for a line that has none."""
    path = f"{root.path}/{STATS}"
    with translate_errors("read", path):
        try:
            fd, _ = root.open_file(STATS, _MAX_BYTES)
        except FileNotFoundError:
            return
        except TooBig:
            raise _too_big("read", path) from None
        with os.fdopen(fd, "rb") as file:
            while line := _next_line(file):
                if line != b"\n":
                    yield _object_in(line)


def check_room(root: Directory, count: int) -> None:
    """Raises ``StoreFailure`` if the file would be too large to be read with ``count`` bytes more."""
    path = f"{root.path}/{STATS}"
    with translate_errors("append to", path), suppress(FileNotFoundError):
        if os.stat(STATS, dir_fd=root.fd, follow_symlinks=False).st_size + count >= _MAX_BYTES:
            raise _too_big("append to", path)


def _too_big(verb: str, path: str) -> StoreFailure:
    reason, hint = f"it has more than {_MAX_BYTES >> 20} MiB", f"move {path} away, or delete it"
    return StoreFailure(verb, path, reason, hint)


def _next_line(file: BinaryIO) -> bytes:
    """Returns the next line; of a line above the limit, only one byte more than the limit."""
    line = file.readline(_MAX_LINE + 1)
    rest = line if len(line) > _MAX_LINE else b""
    while rest and rest[-1:] != b"\n":
        rest = file.readline(_MAX_LINE)
    return line


def _object_in(line: bytes) -> dict[str, Json] | None:
    try:
        return load_object(line, _MAX_LINE)
    except InvalidInput:
        return None
