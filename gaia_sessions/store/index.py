"""An index that makes cost follow the sessions that are looked for, not their total.

Owns ``.index``: 256 files, the shards, and one more for the sessions that are not final. A digest of the key says which
shard has it. An entry is a line: the encoded key of ``session.index_keys``, a space, and the id of a session with it.

    gaia-sessions-index-5

    parent.agent-20260108-180530-01234567 agent-20260108-180641-89abcdef
    !arent.agent-20260108-180530-01234567 agent-20260108-180702-00112233

The second entry is removed: its first byte is overwritten. Lines are appended in one write that begins with a newline,
so a torn line spoils no other. Who adds and who removes share a lock on the file itself; whoever writes a file anew, to
be rid of removed lines, has it alone. So both look whether their file still has its name. Readers take no lock.

An entry is never the truth: whoever follows one reads the record. Writers add entries before their first write and
remove them after their last, both under the session's lock, so a crash leaves an entry too many, never one too few.
Only writers remove entries. Nobody removes the entry of another session, so a rebuild may run beside every writer.

The file ``complete`` says that no entry is missing: for which version of this layout, and since which boot. Entries are
not synced, so after a power cut nobody may rely on them. Without that file readers scan. A rebuild that ran out of time
notes there instead up to which id it came.
"""

from __future__ import annotations

import errno
import os

from gaia_sessions import errors
from gaia_sessions.session.ids import encode_key, is_agent_id, quick_digest
from gaia_sessions.system import boots

from . import atomic, locks
from . import root as roots
from .directory import PRIVATE_FILE, NotAFile, TooBig, open_private, read_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gaia_sessions.session.index_keys import IndexKey

    from .directory import Directory

    LinesByShard = dict[str, list[bytes]]

LOCK = ".index.lock"
"""The lock file of whoever makes the index complete."""

_VERSION = b"5"
_PARTIAL_VERSION = b"5-partly"
_COMPLETE = "complete"
_MAX_NOTE = 1 << 10

_HEADER = b"gaia-sessions-index-%b\n" % _VERSION
_SUFFIX = ".keys"
_ACTIVE_SHARD = "active.keys"
_REMOVED = b"!"
"""In place of the first byte of a line; no encoded key begins with it."""

_MAX_SHARD = 64 << 20
_MANY = 8
"""So many lines are marked one by one; a shard that loses more is written anew."""

_MIN_REWRITTEN = 1 << 12
"""Bytes. No smaller shard is written anew for the removed lines in it."""

_LOCK_SECONDS = 2.0
_FOREIGN = frozenset([errno.EACCES, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENXIO])


def is_complete(root: Directory) -> bool:
    """Whether every session of this root surely has its entries."""
    try:
        with root.below(roots.INDEX) as index:
            version, _, boot = index.read(_COMPLETE, _MAX_NOTE).partition(b" ")
    except OSError:
        return False
    return version == _VERSION and boots.is_this_boot(boot)


def set_complete(root: Directory) -> None:
    """Notes that every session has its entries; called under the lock ``LOCK``, after the last entry was made."""
    with root.make(roots.INDEX) as index:
        atomic.replace(index, _COMPLETE, _VERSION + b" " + boots.boot_signature(), durable=False)


def is_unfinished(name: str) -> bool:
    """Whether ``name`` is that of a file which somebody is writing, or was killed while writing."""
    target = atomic.target_of(name)
    return target == _COMPLETE or is_shard(target)


def is_own_name(name: str) -> bool:
    """Whether only the store gives this ``name`` to what stands in ``.index`` itself."""
    return name == _COMPLETE or is_shard(name) or is_unfinished(name)


def is_shard(name: str) -> bool:
    """Whether a shard has this ``name``."""
    stem = name.removesuffix(_SUFFIX)
    return name == _ACTIVE_SHARD or (stem != name and len(stem) == 2 and set(stem) <= set("0123456789abcdef"))  # noqa: PLR2004  # the digits


def last_indexed_id(root: Directory) -> str:
    """The last id of a rebuild that stopped half-way: all up to it have their entries. Empty if there is none."""
    try:
        with root.below(roots.INDEX) as index:
            version, _, rest = index.read(_COMPLETE, _MAX_NOTE).partition(b" ")
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


def ids_under(root: Directory, key: IndexKey) -> list[str]:
    """The ids that have ``key``, and maybe some that had it; some may be missing if the index is not complete."""
    try:
        return list(filter(is_agent_id, _ids(root, key)))
    except OSError:
        return []


def all_ids_under(root: Directory, key: IndexKey) -> list[str] | None:
    """The ids that have ``key``, all of them if the index is complete, and maybe some that had it.

    None if that is not known, because somebody else made what stands there.
    """
    try:
        ids = _ids(root, key)
    except OSError:
        return None
    return ids if all(map(is_agent_id, ids)) else None


def _ids(root: Directory, key: IndexKey) -> list[str]:
    name = encode_key(*key)
    try:
        with root.below(roots.INDEX) as index:
            data = read(index, _shard_of(name))
    except FileNotFoundError:
        return []
    rows = data.split(b"\n%b " % name.encode())
    return list(dict.fromkeys(row.partition(b"\n")[0].decode("ascii", "replace") for row in rows[1:]))


def add(root: Directory, agent_id: str, keys: Collection[IndexKey]) -> None:
    """Adds the entries of a session that has each of ``keys``, or is about to have them."""
    if keys:
        with root.make(roots.INDEX) as index:
            for shard, lines in lines_by_shard({agent_id: keys}).items():
                add_lines(root, index, shard, lines)


def remove(root: Directory, agent_id: str, keys: Collection[IndexKey]) -> None:
    """Removes the entries of a session that has none of ``keys`` any more."""
    remove_each(root, {agent_id: keys})


def remove_each(root: Directory, keys: Mapping[str, Collection[IndexKey]]) -> None:
    """Removes the entries of many sessions, shard by shard, under the locks of all: none has these keys any more."""
    remove_lines(root, lines_by_shard(keys))


def lines_by_shard(keys: Mapping[str, Iterable[IndexKey]]) -> LinesByShard:
    """The entries of sessions that have these keys."""
    found: LinesByShard = {}
    for agent_id, keys_of_it in keys.items():
        for key in keys_of_it:
            name = encode_key(*key)
            found.setdefault(_shard_of(name), []).append(f"{name} {agent_id}".encode())
    return found


def _shard_of(name: str) -> str:
    return (name if name == "active" else quick_digest(name)[-2:]) + _SUFFIX


def read(index: Directory, shard: str) -> bytes:
    """The whole lines of a shard, nothing if it is not there; ``OSError`` if somebody else made it."""
    try:
        data = index.read(shard, _MAX_SHARD)
    except FileNotFoundError:
        return b""
    if data and not data.startswith(_HEADER):
        raise NotAFile(f"{shard} is no file of the index")
    return data[: data.rfind(b"\n") + 1]


def is_entry(line: bytes) -> bool:
    """Whether ``line`` is an entry that nobody has removed."""
    agent_id = line.partition(b" ")[2]
    return line[:1] != _REMOVED and is_agent_id(agent_id.decode("ascii", "replace"))


def add_lines(root: Directory, index: Directory, shard: str, lines: Collection[bytes]) -> None:
    """Appends ``lines`` to a shard. What somebody else made in its place goes, and the index is not complete then."""
    try:
        _append(index, shard, lines)
    except OSError as error:
        if not _is_foreign(error):
            raise
        with root.make(roots.LOCKS) as folder:
            locks.run_if_free(folder, LOCK, lambda: discard_foreign(index, shard))
        _append(index, shard, lines)


def _append(index: Directory, shard: str, lines: Iterable[bytes]) -> None:
    while not _append_to_opened(index, shard, b"\n%b\n" % b"\n".join(lines)):
        continue


def _append_to_opened(index: Directory, shard: str, data: bytes) -> bool:
    """Whether ``data`` is in the file that has the name: it may have been written anew since it was opened."""
    fd, opened = open_private(index.fd, shard, os.O_RDWR | os.O_APPEND)
    try:
        if opened.st_nlink > 1 and rewrite(index, shard):  # the other name may be in a snapshot
            return False
        _share(index, shard, fd)
        if not opened.st_size:
            data = _HEADER + data
        elif os.pread(fd, len(_HEADER), 0) != _HEADER:
            raise NotAFile(f"{shard} is no file of the index")
        if os.write(fd, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return index.is_at(shard, opened)
    finally:
        locks.unlock_open_file(fd)
        os.close(fd)


def _share(index: Directory, shard: str, fd: int) -> None:
    if not locks.share_open_file(fd, _LOCK_SECONDS):
        raise errors.LockTimeout(f"{index.path}/{shard}", _LOCK_SECONDS, None)


def remove_lines(root: Directory, lines: LinesByShard) -> None:
    """Removes entries, those of active sessions last: while a session has that, cleanup finds the session again."""
    try:
        with root.below(roots.INDEX) as index:
            for shard in sorted(lines, key=_ACTIVE_SHARD.__eq__):
                _remove(index, shard, lines[shard])
    except OSError:  # there is no index
        return


def _remove(index: Directory, shard: str, lines: list[bytes]) -> None:
    try:
        if len(lines) > _MANY and rewrite(index, shard, lines):
            return
        while (is_worn := _mark(index, shard, lines)) is None:
            continue
        if is_worn:
            rewrite(index, shard, lines)
    except (OSError, errors.SessionsError):  # an entry too many costs a reader one look; the next cleanup tries again
        return


def _mark(index: Directory, shard: str, lines: Iterable[bytes]) -> bool | None:
    """Marks ``lines`` wherever they stand; whether the shard is worth to be written anew, or must be in place of that.

    None if another file has taken the place of the one that was opened.
    """
    fd, opened = open_private(index.fd, shard, os.O_RDWR)
    try:
        _share(index, shard, fd)
        if not index.is_at(shard, opened):
            return None
        data = read_all(fd, opened.st_size) if opened.st_size <= _MAX_SHARD else b""
        if opened.st_nlink > 1 or not data.startswith(_HEADER):
            return opened.st_nlink > 1
        for line in lines:
            start = -1
            while (start := data.find(b"\n%b\n" % line, start + 1)) >= 0:
                os.pwrite(fd, _REMOVED, start + 1)
    finally:
        locks.unlock_open_file(fd)
        os.close(fd)
    return len(data) >= _MIN_REWRITTEN and data.count(b"\n" + _REMOVED) * 4 > data.count(b"\n")


def rewrite(index: Directory, shard: str, without: Iterable[bytes] = ()) -> bool:
    """Writes a shard anew with each of its entries once, ``without`` some; whether it did.

    Not while somebody writes to it, and not where the new file would not belong to the owner of the folder.
    """

    def prepare(new: int) -> None:
        os.fchmod(new, PRIVATE_FILE)
        if os.fstat(new).st_uid != os.fstat(index.fd).st_uid:
            raise OSError(errno.EPERM, "another owner")

    removed = frozenset(without)
    fd, opened = index.open_file(shard)
    try:
        if not locks.lock_open_file(fd) or not index.is_at(shard, opened):
            return False
        lines = read(index, shard).split(b"\n")
        kept = [line for line in dict.fromkeys(lines) if line not in removed and is_entry(line)]
        atomic.replace(index, shard, b"\n".join([_HEADER, *kept, b""]), durable=False, prepare=prepare)
    except (NotAFile, TooBig, errors.StoreFailure):
        return False
    finally:
        locks.unlock_open_file(fd)
        os.close(fd)
    return True


def _is_foreign(error: OSError) -> bool:
    """Whether ``error`` says that somebody else made what stands in the place of a shard."""
    return isinstance(error, NotAFile | TooBig) or error.errno in _FOREIGN


def discard_foreign(index: Directory, shard: str) -> None:
    """Removes what somebody else made in the place of a shard; under the lock ``LOCK``. Raises ``OSError``."""
    try:
        read(index, shard)
    except OSError as error:
        if not _is_foreign(error):
            raise
        atomic.discard(index, _COMPLETE)
        if index.has(_COMPLETE):
            raise
        try:
            os.unlink(shard, dir_fd=index.fd)
        except IsADirectoryError:
            os.rmdir(shard, dir_fd=index.fd)
