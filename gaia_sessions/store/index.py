"""The index makes a look-up cost as much as the found sessions, not as all. Its layout and its rules are below."""

from __future__ import annotations

import errno
import os

from gaia_sessions import errors
from gaia_sessions.session.ids import encode_key, is_agent_id
from gaia_sessions.session.index_keys import ACTIVE_GROUPS
from gaia_sessions.system import boots

from . import atomic, locks
from . import root as roots
from .directory import PRIVATE_FILE, NotAFile, TooBig, open_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gaia_sessions.session.index_keys import IndexKey

    from .directory import Directory

    LinesByShard = dict[str, list[bytes]]

# ``.index`` has 256 shards, and one more for the keys of sessions that are not final. A digest of any other key names
# its shard. An entry is a line: the encoded key of ``session.index_keys``, a space, the ID of a session with that key.
#
#     gaia-sessions-index-6
#
#     parent.agent-20260108-180530-01234567 agent-20260108-180641-89abcdef
#     !arent.agent-20260108-180530-01234567 agent-20260108-180702-00112233
#
# The second entry is removed: its first byte is overwritten.
#
# - An entry is never the truth: its reader reads the record. Readers take no lock.
# - Writers add entries before their first write and remove them after their last, under the session's lock. So a crash
#   leaves an entry too many, never one too few.
# - Nobody removes entries of another session, so a rebuild may run beside every writer.
# - Lines are appended in one write that begins with a newline, so a torn line spoils no other line.
# - Adding and removing take a shared lock on the shard itself. A rewrite takes an exclusive lock, and renames a new
#   file into place. So each of them checks that its open file still has the shard's name.
# - Entries are not synced. The file ``complete`` says that no entry is missing, for one version of this layout and one
#   boot. Without that file, readers scan. A rebuild that ran out of time writes there the last ID that has its entries.

LOCK = ".index.lock"
"""The lock file for making the index complete."""

VERSION = b"6"
COMPLETE = "complete"
MAX_NOTE = 1 << 10

_HEADER = b"gaia-sessions-index-%b\n" % VERSION
SUFFIX = ".keys"
ACTIVE_SHARD = f"active{SUFFIX}"
_MODULUS, _MULTIPLIER = 3_999_999_979, 2_654_435_761
"""The digest's modulus makes each character of a key matter; its multiplier spreads them over all bits."""

_REMOVED = b"!"
"""Replaces the first byte of a line; no encoded key begins with it."""

_MAX_SHARD = 64 << 20
_MANY = 8
"""Up to this many entries of a shard are overwritten one by one; if it loses more, the shard is rewritten."""

_MIN_REWRITTEN = 1 << 15
"""In bytes: a smaller shard is not rewritten for its removed entries."""

_LOCK_SECONDS = 2.0
_FOREIGN = frozenset([errno.EACCES, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EPERM])


def is_complete(root: Directory) -> bool:
    """Returns whether every session of this root surely has its entries."""
    try:
        with root.below(roots.INDEX) as index:
            version, _, boot = index.read(COMPLETE, MAX_NOTE).partition(b" ")
    except OSError:
        return False
    return version == VERSION and boots.is_this_boot(boot)


def ids_under(root: Directory, key: IndexKey) -> list[str] | None:
    """Returns IDs that have ``key`` (all, if the index is complete), and perhaps some that had it; None if unusable."""
    name = encode_key(*key).encode()
    shard = _shard_of(key, name)
    try:
        with root.below(roots.INDEX) as index:
            data = index.read(shard, _MAX_SHARD)
        rows = _whole_lines(data).split(b"\n%b " % name)
    except FileNotFoundError:
        return []
    except OSError:  # something that is not ours has the name of the shard
        return None
    ids = list(dict.fromkeys(row.partition(b"\n")[0].decode("ascii", "replace") for row in rows[1:]))
    return ids if all(map(is_agent_id, ids)) else None


def _whole_lines(data: bytes) -> bytes:
    if data and not data.startswith(_HEADER):
        raise NotAFile("no file of the index")
    return data[: data.rfind(b"\n") + 1]


def add(root: Directory, agent_id: str, keys: Collection[IndexKey]) -> None:
    """Adds the entries of a session that has ``keys`` or is about to have them."""
    if keys:
        with root.make(roots.INDEX) as index:
            for shard, lines in lines_by_shard({agent_id: keys}).items():
                add_lines(root, index, shard, lines)


def remove(root: Directory, keys: Mapping[str, Collection[IndexKey]]) -> None:
    """Removes entries of sessions that do not have these ``keys`` any more; the caller holds all their locks."""
    remove_lines(root, lines_by_shard(keys))


def lines_by_shard(keys: Mapping[str, Iterable[IndexKey]]) -> LinesByShard:
    """Returns the entries of sessions that have these keys."""
    found: LinesByShard = {}
    for agent_id, keys_of_it in keys.items():
        for key, name in [(key, encode_key(*key).encode()) for key in keys_of_it]:
            found.setdefault(_shard_of(key, name), []).append(b"%b %b" % (name, agent_id.encode()))
    return found


def _shard_of(key: IndexKey, name: bytes) -> str:
    """Returns the shard of a key; a cryptographic digest would cost a hook an import."""
    if key[0] in ACTIVE_GROUPS:
        return ACTIVE_SHARD
    digest = int.from_bytes(name) % _MODULUS * _MULTIPLIER % (1 << 32)
    return f"{digest >> 24:02x}{SUFFIX}"


def read(index: Directory, shard: str) -> bytes:
    """Returns the whole lines of a shard; nothing if it is missing."""
    try:
        return _whole_lines(index.read(shard, _MAX_SHARD))
    except FileNotFoundError:
        return b""


def is_entry(line: bytes) -> bool:
    """Returns whether ``line`` is an entry that nobody has removed."""
    agent_id = line.partition(b" ")[2]
    return line[:1] != _REMOVED and is_agent_id(agent_id.decode("ascii", "replace"))


def add_lines(root: Directory, index: Directory, shard: str, lines: Collection[bytes]) -> None:
    """Appends ``lines`` to a shard; first removes a foreign file or folder that has the shard's name."""
    try:
        _append(index, shard, lines)
    except OSError as error:
        if not _is_foreign(error):
            raise
        with root.make(roots.LOCKS) as folder:  # after this the index is not complete
            locks.run_if_free(folder, LOCK, lambda: discard_foreign(index, shard))
        _append(index, shard, lines)


def _append(index: Directory, shard: str, lines: Iterable[bytes]) -> None:
    fd, opened = _open(index, shard, os.O_RDWR | os.O_APPEND)
    try:
        data = b"\n%b\n" % b"\n".join(lines)
        if not opened.st_size:
            data = _HEADER + data
        elif os.pread(fd, len(_HEADER), 0) != _HEADER:
            raise NotAFile("no file of the index")
        if os.write(fd, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        locks.close_locked(fd)


def _open(index: Directory, shard: str, flags: int) -> tuple[int, os.stat_result]:
    """Opens a shard under the shared lock; a shard with a second name, as in a snapshot, is rewritten first."""
    fd, opened = locks.open_shared(index, shard, flags, _LOCK_SECONDS)
    if opened.st_nlink == 1:
        return fd, opened
    locks.close_locked(fd)
    rewrite(index, shard)
    return locks.open_shared(index, shard, flags, _LOCK_SECONDS)


def remove_lines(root: Directory, lines: LinesByShard) -> None:
    """Removes entries, ``ACTIVE_KEY`` last, and only if all others went."""
    # A leftover entry costs a reader one look; while a session has its ACTIVE_KEY, cleanup finds its other entries.
    try:
        with root.below(roots.INDEX) as index:
            for shard in sorted(lines, key=ACTIVE_SHARD.__eq__):
                _remove(index, shard, lines[shard])
    except (OSError, errors.SessionsError):
        return


def _remove(index: Directory, shard: str, lines: list[bytes]) -> None:
    if len(lines) > _MANY and rewrite(index, shard, lines):
        return
    if _mark(index, shard, lines):
        rewrite(index, shard, lines)


def _mark(index: Directory, shard: str, lines: Sequence[bytes]) -> bool:
    """Overwrites ``lines``, the last one first; returns whether the shard should be rewritten without them instead."""
    fd, opened = _open(index, shard, os.O_RDWR)
    try:
        if opened.st_nlink > 1:  # a change in this file would hide sessions in the snapshot
            return True
        data = os.pread(fd, min(opened.st_size, _MAX_SHARD), 0)
        if not data.startswith(_HEADER):
            return False
        for line in reversed(lines):
            start = -1
            while (start := data.find(b"\n%b\n" % line, start + 1)) >= 0:
                os.pwrite(fd, _REMOVED, start + 1)
    finally:
        locks.close_locked(fd)
    return len(data) > _MIN_REWRITTEN and data.count(b"\n" + _REMOVED) * 4 > data.count(b"\n")


def rewrite(index: Directory, shard: str, without: Iterable[bytes] = ()) -> bool:
    """Rewrites a shard, each entry once, ``without`` some, unless a writer has it open; returns whether it did so."""

    def prepare(new: int) -> None:
        os.fchmod(new, PRIVATE_FILE)
        if os.fstat(new).st_uid != os.fstat(index.fd).st_uid:  # the folder's owner could not use the new shard
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
        locks.close_locked(fd)
    return True


def _is_foreign(error: OSError) -> bool:
    """Returns whether ``error`` says that something that is not ours has the name of a shard."""
    return isinstance(error, NotAFile | TooBig) or error.errno in _FOREIGN


def discard_foreign(index: Directory, shard: str) -> None:
    """Removes a foreign file or folder that has the name of a shard; the caller holds the lock ``LOCK``."""
    try:
        os.close(open_private(index.fd, shard, os.O_RDWR)[0])
        read(index, shard)
    except OSError as error:
        if not _is_foreign(error):
            raise
        atomic.discard(index, COMPLETE)  # before the entries go
        if index.has(COMPLETE):
            raise
        try:
            os.unlink(shard, dir_fd=index.fd)
        except IsADirectoryError:  # it may hold files of others
            os.rename(shard, atomic.with_random_suffix(shard), src_dir_fd=index.fd, dst_dir_fd=index.fd)
