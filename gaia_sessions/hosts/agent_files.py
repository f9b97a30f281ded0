"""The files that a host writes beside an agent's transcript: its delegation, and the message it was started with.

Owns where they are. Seen in runs of Claude Code 2.1.197 and 2.1.330: the file with the delegation is written right
after the hooks of the agent's start have ended, never while they run, so a start has to wait for it in the inbox.
"""

from __future__ import annotations

import errno
import os
import stat

from gaia_sessions.store.key_file import read_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from gaia_sessions.jsonio.strict import Json

TOOL_USE_ID_KEY = "toolUseId"

LONGEST_LINE = 2 << 20
"""Bytes. What an agent writes at once is far shorter, and a hook has no time for a line that is longer."""

_LONGEST_FIRST_LINE = 1 << 15
_LONGEST_LAST_LINE = 1 << 16
_MOST_AGENTS = 1000
_PREFIX, _SUFFIX, _TRANSCRIPT = "agent-", ".meta.json", ".jsonl"
_AGENT_ID = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def meta_file_of(transcript_path: Json, host_agent_id: str) -> str | None:
    """The file that holds, under ``TOOL_USE_ID_KEY``, the delegation that ``host_agent_id`` works on.

    None for an id that cannot be part of a file name.
    """
    return _file_of(transcript_path, host_agent_id, _SUFFIX)


def transcript_of(transcript_path: Json, host_agent_id: str) -> str | None:
    """The transcript of ``host_agent_id``; None for an id that cannot be part of a file name."""
    return _file_of(transcript_path, host_agent_id, _TRANSCRIPT)


def delegation_of(transcript_path: Json, host_agent_id: str) -> str | None:
    """The ``tool_use_id`` of the delegation that ``host_agent_id`` works on, if that is already in its file."""
    meta_file = meta_file_of(transcript_path, host_agent_id)
    return read_key(meta_file, TOOL_USE_ID_KEY) if meta_file else None


def agent_of(transcript_path: Json, tool_use_id: str) -> str | None:
    """The agent that works, or worked, on the delegation ``tool_use_id``."""
    folder = _folder(transcript_path)
    try:
        names = os.listdir(folder) if folder else []
    except OSError:
        return None
    meta_files = [name for name in names if name.startswith(_PREFIX) and name.endswith(_SUFFIX)][:_MOST_AGENTS]
    name = next(
        (name for name in meta_files if read_key(os.path.join(folder or "", name), TOOL_USE_ID_KEY) == tool_use_id),
        None,
    )
    return name.removeprefix(_PREFIX).removesuffix(_SUFFIX) if name else None


def first_transcript_line(agent_transcript_path: Json) -> str:
    """The first line of the agent's transcript, with the message it was started with; empty if it cannot be read."""
    return _part_of(agent_transcript_path, _LONGEST_FIRST_LINE).partition(b"\n")[0].decode(errors="replace")


def last_transcript_line(agent_transcript_path: Json) -> bytes:
    """The last line of the agent's transcript; empty if it cannot be read, and only its end if it is over 64 KiB."""
    return _part_of(agent_transcript_path, -_LONGEST_LAST_LINE).rstrip(b"\n").rpartition(b"\n")[2]


def lines(path: str) -> Iterator[bytes]:
    """The lines of a regular file, as far as it is written now; raises ``OSError`` for anything else.

    A line that is longer than ``LONGEST_LINE`` comes in parts.
    """
    fd, size = _opened(path)
    try:
        with open(fd, "rb", closefd=False) as file:
            yield from _lines_of(file, size)
    finally:
        os.close(fd)


def lines_backwards(path: str, last_bytes: int) -> Iterator[bytes]:
    """The whole lines in so many bytes at the end of a regular file, the last first; raises as ``lines`` does."""
    from gaia_sessions.store.transcript_reader import CommittedLines  # few calls of a hook look at what an agent said

    fd, size = _opened(path)
    with CommittedLines(fd, path, size) as file:
        start = max(0, size - last_bytes)
        is_torn = file.has_torn_end()
        for number, (place, line) in enumerate(file.lines_backwards(start)):
            if not (number == 0 and is_torn) and (place > start or start == 0):
                yield line


def _opened(path: str) -> tuple[int, int]:
    """The descriptor of a regular file, and its size; raises ``OSError`` for anything else."""
    if not _is_path(path):
        raise OSError(errno.EINVAL, "not an absolute path")
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file")
    return fd, found.st_size


def _lines_of(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The lines in the first ``size`` bytes: whoever writes on faster than this reads would never let it end."""
    while size > 0 and (line := file.readline(min(size, LONGEST_LINE))):
        size -= len(line)
        yield line


def newest_names(folder: str, most: int, prefix: str = "", suffix: str = "") -> list[str]:
    """At most so many names in ``folder`` with this beginning and end, the one that was changed last first."""
    try:
        with os.scandir(folder) as entries:
            chosen = [entry for entry in entries if entry.name.startswith(prefix) and entry.name.endswith(suffix)]
    except OSError:
        return []
    found = [(changed, entry.name) for entry in chosen if (changed := _changed_at(entry))]
    return [name for _, name in sorted(found, reverse=True)[:most]]


def _changed_at(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:  # it was removed meanwhile
        return None


def _part_of(path: Json, size: int) -> bytes:
    """The first ``size`` bytes of the file at ``path``, or the last if it is negative; empty if it cannot be read."""
    if not _is_path(path):
        return b""
    try:
        fd = os.open(str(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        start = 0 if size > 0 else max(0, os.fstat(fd).st_size + size)
        return os.pread(fd, abs(size), start)
    except OSError:
        return b""
    finally:
        os.close(fd)


def existing_folder(transcript_path: Json, *names: str) -> str | None:
    """The folder ``names`` of the conversation with this transcript, if it is there."""
    if not _is_path(transcript_path):
        return None
    folder = os.path.join(str(transcript_path).removesuffix(_TRANSCRIPT), *names)
    return folder if os.path.isdir(folder) else None


def _file_of(transcript_path: Json, host_agent_id: str, suffix: str) -> str | None:
    folder = _folder(transcript_path)
    if folder is None or not _AGENT_ID.issuperset(host_agent_id):
        return None
    return os.path.join(folder, f"{_PREFIX}{host_agent_id}{suffix}")


def _folder(transcript_path: Json) -> str | None:
    if not _is_path(transcript_path):
        return None
    return os.path.join(str(transcript_path).removesuffix(_TRANSCRIPT), "subagents")


def _is_path(value: Json) -> bool:
    return isinstance(value, str) and os.path.isabs(value) and "\0" not in value
