"""Hints that make cost follow the active sessions, not the total.

Owns ``.index``: empty marks ``active/{agent_id}`` and ``name/{encoded}/{agent_id}`` for sessions that
are not final, ``alias/{kind}/{encoded}`` holding an id for each exact key of a host, and ``complete``,
which vouches for all of them. A hint is never the truth: whoever follows one reads the record. Writers
mark before their first write and unmark after their last, both under the session's lock, so a crash
leaves a mark too many, never one too few. Only writers remove hints.

``complete`` names the boot it was written in: marks are not synced, so after a power cut nobody may
rely on them. Without it readers scan.
"""

from __future__ import annotations

import os

from gaia_sessions.ids import encode_key

from . import atomic
from . import root as roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gaia_sessions.runs import Alias

    from .directory import Directory

FOLDER = ".index"
LOCK = ".index.lock"

_COMPLETE = "complete"
_ACTIVE = "active"
_NAME = "name"
_ALIAS = "alias"
FOLDERS_AND_FILES = frozenset([_COMPLETE, _ACTIVE, _NAME, _ALIAS])
"""All that stands in ``.index`` itself."""

_LONGEST_ALIAS = 1 << 10


def is_complete(root: Directory) -> bool:
    """Whether every active session of this root is sure to have its marks."""
    try:
        with root.below(FOLDER) as index:
            return index.read(_COMPLETE, _LONGEST_ALIAS).decode() == _boot()
    except (OSError, UnicodeDecodeError):
        return False


def claim(root: Directory) -> bool:
    """Whether hints may be vouched for here: not in a folder of that name which somebody else keeps. Makes ours."""
    with roots.place(root, FOLDER):
        return roots.owns(root, FOLDER)


def vouch(root: Directory) -> None:
    """Every active session has its marks from here on; under the lock ``LOCK``, after the last of them."""
    with root.make(FOLDER) as index:
        index.add(_ACTIVE)
        atomic.replace(index, _COMPLETE, _boot().encode(), durable=False)


def mark(root: Directory, agent_id: str, agent_name: str) -> None:
    """The session is about to become, or still is, active."""
    for folder in _marked_folders(agent_name):
        _put(root, folder, agent_id)


def suspect(root: Directory, agent_id: str) -> None:
    """The session cannot be read, so it may be active."""
    _put(root, (_ACTIVE,), agent_id)


def unmark(root: Directory, agent_id: str, agent_name: str) -> None:
    """The session has become final, or is gone."""
    for folder in _marked_folders(agent_name):
        _remove(root, folder, agent_id)


def name(root: Directory, agent_id: str, aliases: Iterable[Alias]) -> None:
    """The session is about to be findable by each of ``aliases``."""
    for kind, parts in aliases:
        if look_up(root, (kind, parts)) != agent_id:
            _put(root, (_ALIAS, kind), encode_key(*parts), agent_id.encode())


def unname(root: Directory, agent_id: str, aliases: Iterable[Alias]) -> None:
    """The session with ``aliases`` is gone; one that has passed on to another session stays."""
    for kind, parts in aliases:
        if look_up(root, (kind, parts)) == agent_id:
            _remove(root, (_ALIAS, kind), encode_key(*parts))


def forget(root: Directory, agent_id: str) -> None:
    """Every hint of a session that is gone, whatever its record said: by looking through them all."""
    for folders, leaf, named in _hints(root):
        if named == agent_id:
            _remove(root, folders, leaf)


def named(root: Directory) -> set[str]:
    """Every id that any hint leads to."""
    return {agent_id for _, _, agent_id in _hints(root)}


def folders_written_to(root: Directory) -> list[tuple[str, ...]]:
    """The folders in which a killed writer may have left a temporary file."""
    return [(FOLDER,), *((FOLDER, _ALIAS, kind) for kind in _names(root, _ALIAS))]


def look_up(root: Directory, alias: Alias) -> str | None:
    """The id kept under ``alias``, if any: the record decides whether it is right."""
    kind, parts = alias
    try:
        with root.below(FOLDER, _ALIAS, kind) as folder:
            return folder.read(encode_key(*parts), _LONGEST_ALIAS).decode()
    except (OSError, UnicodeDecodeError):
        return None


def active(root: Directory, agent_name: str | None = None) -> list[str]:
    """The ids marked active, or those of them with ``agent_name``."""
    return _names(root, _ACTIVE) if agent_name is None else _names(root, _NAME, encode_key(agent_name))


def _marked_folders(agent_name: str) -> tuple[tuple[str, ...], ...]:
    return (_ACTIVE,), (_NAME, encode_key(agent_name))


def _hints(root: Directory) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Each hint: the folders it is in, its own name, and the id it leads to."""
    yield from (((_ACTIVE,), agent_id, agent_id) for agent_id in _names(root, _ACTIVE))
    for name in _names(root, _NAME):
        yield from (((_NAME, name), agent_id, agent_id) for agent_id in _names(root, _NAME, name))
    for kind in _names(root, _ALIAS):
        with root.below(FOLDER, _ALIAS, kind) as folder:
            for leaf in folder.names():
                if not leaf.startswith("."):  # those are being written
                    yield (_ALIAS, kind), leaf, _target(folder, leaf)


def _target(folder: Directory, leaf: str) -> str:
    try:
        return folder.read(leaf, _LONGEST_ALIAS).decode(errors="replace")
    except OSError:  # removed meanwhile, or planted: it leads nowhere
        return ""


def _names(root: Directory, *folders: str) -> list[str]:
    try:
        with root.below(FOLDER, *folders) as folder:
            return folder.names()
    except FileNotFoundError:
        return []


def _put(root: Directory, folders: tuple[str, ...], leaf: str, data: bytes = b"") -> None:
    with root.make(FOLDER, *folders) as folder:
        if data:
            atomic.replace(folder, leaf, data, durable=False)
        else:
            atomic.touch(folder, leaf)


def _remove(root: Directory, folders: tuple[str, ...], leaf: str) -> None:
    try:
        with root.below(FOLDER, *folders) as folder:
            os.unlink(leaf, dir_fd=folder.fd)
    except OSError:  # a mark too many costs a reader one look, and the next cleanup tries again
        return


def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:  # as text it would load a codec first
            return file.read().decode().strip()
    except OSError:
        return "unknown"
