"""The files of a host's agents: transcripts, read from either end, and the files beside them."""

from __future__ import annotations

import os
from time import monotonic, sleep

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio.strict import load_object

from . import host_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.host_events import Event

LONGEST_LINE = 2 << 20
"""Bytes. Agents write far shorter lines, and a hook has no time for longer lines."""

_SECONDS_BETWEEN_LOOKS = 0.02

_BLOCK = 1 << 18
_LONGEST_OBJECT = 1 << 16
_LONGEST_KEY = 512
_LONGEST_FIRST_LINE = 1 << 15
_LONGEST_LAST_LINE = 1 << 16
_MOST_AGENTS = 100
"""How many agents, the newest first: a hook reads up to 64 KiB of the file of each."""
_PREFIX, _SUFFIX, _TRANSCRIPT = "agent-", ".meta.json", ".jsonl"
_TOOL_USE_ID = "toolUseId"
_AGENT_ID = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def meta_file_of(transcript_path: Json, host_agent_id: str) -> str | None:
    """Returns the file that will name the agent's delegation; None if no file name can contain ``host_agent_id``."""
    # Claude Code 2.1.197 and 2.1.330 write this file right after the hooks of the agent's start have ended, never while
    # the hooks run. So a start waits in the inbox for this file.
    return _file_of(transcript_path, host_agent_id, _SUFFIX)


def transcript_of(transcript_path: Json, host_agent_id: str) -> str | None:
    """Returns the transcript of ``host_agent_id``; None if the ID cannot be part of a file name."""
    return _file_of(transcript_path, host_agent_id, _TRANSCRIPT)


def delegation_of(host: str, transcript_path: Json, host_agent_id: str) -> str | None:
    """Returns the ``tool_use_id`` of the delegation of ``host_agent_id``, if the agent's file has it already."""
    return _delegation_in(host, meta_file_of(transcript_path, host_agent_id))


def noted_delegation(event: Event) -> str | None:
    """Returns the same for the agent of an event in the inbox."""
    path, agent = event["key_file"], event.get("host_agent_id")
    # Anybody may have written ``key_file`` into the inbox, so its name must be the name of the agent's file.
    is_of_agent = agent is not None and os.path.basename(path) == f"{_PREFIX}{agent}{_SUFFIX}"
    return _delegation_in(event.get("host"), path) if is_of_agent else None


def agent_of(host: str, transcript_path: Json, tool_use_id: str) -> str | None:
    """Returns the agent that works or worked on the delegation ``tool_use_id``."""
    path = _folder(transcript_path) or ""
    meta_files = newest_names(host, path, _MOST_AGENTS, _PREFIX, _SUFFIX)
    name = next((name for name in meta_files if _delegation_in(host, os.path.join(path, name)) == tool_use_id), None)
    return name.removeprefix(_PREFIX).removesuffix(_SUFFIX) if name else None


def member_of(host: str | None, path: Json, member: str) -> Json:
    """Returns the value under ``member`` in a small JSON file at ``path``; None if it cannot be read."""
    try:
        return load_object(host_files.content(host, path, _LONGEST_OBJECT), _LONGEST_OBJECT).get(member)
    except (OSError, InvalidInput):
        return None


def _delegation_in(host: str | None, meta_file: str | None) -> str | None:
    """Returns the ``tool_use_id`` in ``meta_file``; None if the file is not written yet, or its value is no key."""
    found = member_of(host, meta_file, _TOOL_USE_ID)
    return found if isinstance(found, str) and 0 < len(found) <= _LONGEST_KEY else None


def first_transcript_line(host: str, agent_transcript_path: Json) -> str:
    """Returns the first line of a transcript, with the message that started the agent; empty if it cannot be read."""
    return _part_of(host, agent_transcript_path, _LONGEST_FIRST_LINE).partition(b"\n")[0].decode(errors="replace")


def last_transcript_line(host: str, agent_transcript_path: Json) -> bytes:
    """Returns the last line of a transcript, at most its last 64 KiB; empty if it cannot be read."""
    return _part_of(host, agent_transcript_path, -_LONGEST_LAST_LINE).rstrip(b"\n").rpartition(b"\n")[2]


def looks_until(until: float) -> Iterator[None]:
    """Yields at once, and again after each short pause, ``until`` that time."""
    yield
    while monotonic() < until:
        sleep(_SECONDS_BETWEEN_LOOKS)
        yield


def lines(host: str, path: Json) -> Iterator[bytes]:
    """Yields the lines of a file of ``host``; raises ``OSError``. Lines longer than ``LONGEST_LINE`` come in parts."""
    fd, found = host_files.open_file(host, path)
    try:
        with open(fd, "rb", closefd=False) as file:
            yield from _lines_of(file, found.st_size)
    finally:
        os.close(fd)


def lines_backwards(host: str, path: str, last_bytes: int) -> Iterator[bytes]:
    """Yields the whole lines in the last bytes of a file of ``host``, newest first; raises ``OSError``."""
    from gaia_sessions.store.transcript_reader import CommittedLines  # few calls of a hook look at what an agent said

    fd, found = host_files.open_file(host, path)
    with CommittedLines(fd, path, found.st_size) as file:
        start = max(0, found.st_size - last_bytes)
        is_torn = file.has_torn_end()
        for number, (place, line) in enumerate(file.lines_backwards(start)):
            if not (number == 0 and is_torn) and (place > start or start == 0):
                yield line


def blocks_backwards(host: str, path: str, last_bytes: int) -> Iterator[tuple[bytes, int]]:
    """Yields the last bytes of a file in blocks, the last one first, each with where its first line begins."""
    fd, found = host_files.open_file(host, path)
    try:
        position = end = found.st_size
        start = max(0, position - last_bytes)
        while position > start:
            size = min(max(_BLOCK, min(end - position, LONGEST_LINE)), position - start)
            position -= size
            # This block can cut a line at its beginning. The block before it is read up to the end of that line:
            # joining blocks would copy the file. A line longer than ``LONGEST_LINE`` may be cut.
            block = os.pread(fd, min(end - position, size + LONGEST_LINE), position)
            first = block.find(b"\n") + 1 if position else 0
            if first or not position:
                yield block, first
                end = position + first
    finally:
        os.close(fd)


def _lines_of(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yields the lines in the first ``size`` bytes. Without this bound, a fast writer would keep the loop running."""
    while size > 0 and (line := file.readline(min(size, LONGEST_LINE))):
        size -= len(line)
        yield line


def newest_names(host: str, folder: str, most: int, prefix: str = "", suffix: str = "") -> list[str]:
    """Returns at most ``most`` names in ``folder`` with this prefix and suffix, the last changed first."""
    try:
        with host_files.open_folder(host, folder) as opened, os.scandir(opened.fd) as entries:
            chosen = [entry for entry in entries if entry.name.startswith(prefix) and entry.name.endswith(suffix)]
            found = [(changed, entry.name) for entry in chosen if (changed := _changed_at(entry))]
    except OSError:
        return []
    return [name for _, name in sorted(found, reverse=True)[:most]]


def _changed_at(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:  # it was removed meanwhile
        return None


def _part_of(host: str, path: Json, size: int) -> bytes:
    """Returns the first ``size`` bytes of a file, or the last if ``size`` is negative; empty if it cannot be read."""
    try:
        fd, found = host_files.open_file(host, path)
    except OSError:
        return b""
    try:
        start = 0 if size > 0 else max(0, found.st_size + size)
        return os.pread(fd, abs(size), start)
    except OSError:
        return b""
    finally:
        os.close(fd)


def existing_folder(host: str, transcript_path: Json, *names: str) -> str | None:
    """Returns the folder ``names`` of the conversation with this transcript; None if that folder does not exist."""
    if not isinstance(transcript_path, str):
        return None
    folder = os.path.join(transcript_path.removesuffix(_TRANSCRIPT), *names)
    return folder if os.path.isdir(folder) and host_files.is_folder(host, folder) else None


def _file_of(transcript_path: Json, host_agent_id: str, suffix: str) -> str | None:
    folder = _folder(transcript_path)
    if folder is None or not _AGENT_ID.issuperset(host_agent_id):
        return None
    return os.path.join(folder, f"{_PREFIX}{host_agent_id}{suffix}")


def _folder(transcript_path: Json) -> str | None:
    if not isinstance(transcript_path, str) or not os.path.isabs(transcript_path):
        return None
    return os.path.join(transcript_path.removesuffix(_TRANSCRIPT), "subagents")
