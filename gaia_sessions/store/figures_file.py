"""``.stats.jsonl``: what sessions that were removed leave behind, a line of figures each.

Owns how its lines are read; they are added by ``atomic.append``, under the lock of ``KEY``. Anybody may have written in
it, so a line is read only up to a length, and what is in it is not believed here.
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
"""The key of the lock under which lines are added: a torn line is seen, and a refused one is taken back, by one."""

_MAX_BYTES = 256 << 20
"""Half a million sessions."""

_MAX_LINE = 64 << 10


def values(root: Directory) -> Iterator[dict[str, Json] | None]:
    """The JSON object of each line, None in the place of one that has none; raises ``StoreFailure``."""
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
    """Raises ``StoreFailure`` if nobody could read the file with ``count`` bytes more."""
    path = f"{root.path}/{STATS}"
    with translate_errors("append to", path), suppress(FileNotFoundError):
        if os.stat(STATS, dir_fd=root.fd, follow_symlinks=False).st_size + count >= _MAX_BYTES:
            raise _too_big("append to", path)


def _too_big(verb: str, path: str) -> StoreFailure:
    reason, hint = f"it has more than {_MAX_BYTES >> 20} MiB", f"move {path} away, or delete it"
    return StoreFailure(verb, path, reason, hint)


def _next_line(file: BinaryIO) -> bytes:
    """The next line; of one that is too long only the beginning, which is more than a line may have."""
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
