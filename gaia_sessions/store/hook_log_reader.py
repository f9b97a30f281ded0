"""Reads the logs of hooks back. A line that cannot be read is no error."""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio import strict
from gaia_sessions.session.clock import format_time, parse_time

from .directory import Directory
from .hook_log import log_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gaia_sessions.jsonio.strict import Json

LOG_NAMES = ("hook", "inbox", "pre_delegate", "subagent_stop")
"""The logs that are read: users may have other files in the same folder."""

_MAX_READ_BYTES = 8 << 20
_SUFFIXES = (".log.old", ".log")


def read_lines(root: str) -> Iterator[dict[str, Json]]:
    """Yields the JSON objects in every log that can be read, one log after the other."""
    for name in LOG_NAMES:
        yield from read_log(root, name)


def line_time(line: Mapping[str, Json]) -> str | None:
    """Returns the time of the line in the form of ``format_time``, or None."""
    try:
        return format_time(parse_time(line.get("at")))
    except ValueError:
        return None


def read_log(root: str, name: str) -> Iterator[dict[str, Json]]:
    """Yields the JSON objects in the log ``name``, in the order in which they were written."""
    try:
        folder = Directory.at(log_folder(root))
    except OSError:
        return
    with folder:
        for ending in _SUFFIXES:
            yield from _read_file(folder, name + ending)


def _read_file(folder: Directory, name: str) -> Iterator[dict[str, Json]]:
    try:
        data = folder.read(name, _MAX_READ_BYTES)
    except OSError:
        return
    for line in data.splitlines():
        try:
            yield strict.load_object(line)
        except InvalidInput:
            continue
