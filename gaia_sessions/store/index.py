"""An index that makes cost follow the sessions that are looked for, not their total.

Owns ``.index``: a folder for each key that sessions are looked for by, and in it an empty file, the entry, for each
session that has the key, named by the session's id.

    active/{agent_id}                       not final
    name/{encoded}/{agent_id}               not final, with this agent name
    conversation/{encoded}/{agent_id}       not final, with a run that the end of this conversation of a host concerns
    host_key/{kind}/{encoded}/{agent_id}    with this exact key of a host, final or not
    parent/{encoded}/{agent_id}             with this parent, final or not
    open_child/{encoded}/{agent_id}         not final, with this parent
    app_user/{encoded}/{agent_id}           not final, of this user of an app

An entry is never the truth: whoever follows one reads the record. Writers add entries before their first write and
remove them after their last, both under the session's lock, so a crash leaves an entry too many, never one too few.
Only writers remove entries. Nobody replaces the entry of another session, so a rebuild may run beside every writer.

The file ``complete`` says that no entry is missing: for which version of this layout, and since which boot. Entries are
not synced, so after a power cut nobody may rely on them. Without that file readers scan. A rebuild that ran out of time
notes there instead up to which id it came.
"""

from __future__ import annotations

import os

from gaia_sessions.session.ids import encode_key, is_agent_id
from gaia_sessions.system import boots

from . import atomic
from . import root as roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gaia_sessions.session.index_keys import IndexKey

    from .directory import Directory

    FolderPath = tuple[str, ...]
    """The names of folders below ``.index``, each in the one before."""

LOCK = ".index.lock"
"""The lock file of whoever makes the index complete."""

_VERSION = b"4"
_PARTIAL_VERSION = b"4-partly"
_COMPLETE = "complete"
_ACTIVE = "active"
NAME = "name"
HOST_KEY = "host_key"

UNBOUNDED_GROUPS = frozenset(["conversation", HOST_KEY, "parent", "open_child", "app_user"])
"""Groups with any number of folders: a folder is removed with its last entry."""

_MAX_BYTES = 1 << 10
_ATTEMPTS = 100


def is_complete(root: Directory) -> bool:
    """Whether every session of this root surely has its entries."""
    try:
        with root.below(roots.INDEX) as index:
            version, _, boot = index.read(_COMPLETE, _MAX_BYTES).partition(b" ")
    except OSError:
        return False
    return version == _VERSION and boots.is_this_boot(boot)


def set_complete(root: Directory) -> None:
    """Notes that every session has its entries; called under the lock ``LOCK``, after the last entry was made."""
    with root.make(roots.INDEX) as index:
        index.add(_ACTIVE)
        atomic.replace(index, _COMPLETE, _VERSION + b" " + boots.boot_signature(), durable=False)


def is_unfinished(name: str) -> bool:
    """Whether ``name`` is that of a note on completeness which somebody is writing, or was killed while writing."""
    return atomic.target_of(name) == _COMPLETE


def is_own_name(name: str) -> bool:
    """Whether only the store gives this ``name`` to what stands in ``.index`` itself."""
    return name in (_COMPLETE, _ACTIVE, NAME, *UNBOUNDED_GROUPS) or is_unfinished(name)


def last_indexed_id(root: Directory) -> str:
    """The last id of a rebuild that stopped half-way: all up to it have their entries. Empty if there is none."""
    try:
        with root.below(roots.INDEX) as index:
            version, _, rest = index.read(_COMPLETE, _MAX_BYTES).partition(b" ")
    except OSError:
        return ""
    last, _, boot = rest.partition(b" ")
    is_partial = version == _PARTIAL_VERSION and boots.is_this_boot(boot)
    return last.decode("ascii", "replace") if is_partial else ""


def save_progress(root: Directory, last: str) -> None:
    """Every session up to the id ``last`` has its entries, but the index is not complete; under the lock ``LOCK``."""
    with root.make(roots.INDEX) as index:
        atomic.replace(
            index, _COMPLETE, b" ".join([_PARTIAL_VERSION, last.encode(), boots.boot_signature()]), durable=False
        )


def add(root: Directory, agent_id: str, keys: Collection[IndexKey]) -> None:
    """Adds the entries of a session that has each of ``keys``, or is about to have them."""
    entries = _folders_of_each(keys)
    for attempt in range(_ATTEMPTS if entries else 0):
        try:
            with root.make(roots.INDEX) as index:
                for folders in entries:
                    with index.make(*folders) as folder:
                        atomic.touch(folder, agent_id)
        except FileNotFoundError:  # somebody removed a folder with its last entry at the same moment
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def remove(root: Directory, agent_id: str, keys: Collection[IndexKey]) -> None:
    """Removes the entries of a session that has none of ``keys`` any more; they are in the order of ``index_keys``."""
    remove_entries(root, reversed(_folders_of_each(keys)), agent_id)


def remove_entries(root: Directory, entries: Iterable[FolderPath], agent_id: str) -> None:
    """Removes the entries of a session from these folders, and of an unbounded group a folder with its last entry."""
    for folders in entries:
        *parents, name = folders
        try:
            with root.below(roots.INDEX, *parents) as parent:
                with parent.below(name) as folder:
                    os.unlink(agent_id, dir_fd=folder.fd)
                if folders[0] in UNBOUNDED_GROUPS:
                    os.rmdir(name, dir_fd=parent.fd)
        except OSError:  # an entry too many costs a reader one look, a folder nothing; the next cleanup tries again
            continue


def ids_under(root: Directory, key: IndexKey) -> list[str]:
    """The ids that have ``key``, and maybe some that had it; some may be missing if the index is not complete."""
    return [name for name in root.names_below(roots.INDEX, *folders_of(key)) if is_agent_id(name)]


def all_ids_under(root: Directory, key: IndexKey) -> list[str] | None:
    """The ids that have ``key``, all of them if the index is complete, and maybe some that had it.

    None if that is not known, because somebody else made what stands there.
    """
    try:
        names = root.names_below(roots.INDEX, *folders_of(key))
    except OSError:
        return None
    return names if all(map(is_agent_id, names)) else None


def folders_of(key: IndexKey) -> FolderPath:
    """The folder of the entries of ``key``."""
    return _folders_of_each([key])[0]


def _folders_of_each(keys: Iterable[IndexKey]) -> list[FolderPath]:
    folders: list[FolderPath] = []
    for group, *strings in keys:
        kind = [strings.pop(0)] if group == HOST_KEY else []
        folders.append((group, *kind, encode_key(*strings)) if strings else (group,))
    return folders
