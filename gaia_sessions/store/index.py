"""An index that makes cost follow the sessions that are looked for, not their total.

Owns ``.index``: 256 files, the shards, and one more for the keys of sessions that are not final. A digest of any other
key says which shard has it. An entry is a line: the encoded key of ``session.index_keys``, a space, and the id of a
session with it.

    gaia-sessions-index-6

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

LOCK = ".index.lock"
"""The lock file of whoever makes the index complete."""

VERSION = b"6"
COMPLETE = "complete"
MAX_NOTE = 1 << 10

_HEADER = b"gaia-sessions-index-%b\n" % VERSION
SUFFIX = ".keys"
ACTIVE_SHARD = f"active{SUFFIX}"
_MODULUS, _MULTIPLIER = 3_999_999_979, 2_654_435_761
"""Of the digest: by the one every character of a key counts, by the other in every bit."""

_REMOVED = b"!"
"""In place of the first byte of a line; no encoded key begins with it."""

_MAX_SHARD = 64 << 20
_MANY = 8
"""So many lines are marked one by one; a shard that loses more is written anew."""

_MIN_REWRITTEN = 1 << 15
"""Bytes. No smaller shard is written anew for the removed lines in it."""

_LOCK_SECONDS = 2.0
_FOREIGN = frozenset([errno.EACCES, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EPERM])


def is_complete(root: Directory) -> bool:
    """Whether every session of this root surely has its entries."""
    try:
        with root.below(roots.INDEX) as index:
            version, _, boot = index.read(COMPLETE, MAX_NOTE).partition(b" ")
    except OSError:
        return False
    return version == VERSION and boots.is_this_boot(boot)


def ids_under(root: Directory, key: IndexKey) -> list[str] | None:
    """The ids that have ``key``, all of them if the index is complete, and maybe some that had it.

    None if that is not known, because somebody else made what stands there.
    """
    name = encode_key(*key).encode()
    shard = _shard_of(key, name)
    try:
        with root.below(roots.INDEX) as index:
            data = index.read(shard, _MAX_SHARD)
        rows = _whole_lines(data).split(b"\n%b " % name)
    except FileNotFoundError:
        return []
    except OSError:
        return None
    ids = list(dict.fromkeys(row.partition(b"\n")[0].decode("ascii", "replace") for row in rows[1:]))
    return ids if all(map(is_agent_id, ids)) else None


def _whole_lines(data: bytes) -> bytes:
    if data and not data.startswith(_HEADER):
        raise NotAFile("no file of the index")
    return data[: data.rfind(b"\n") + 1]


def add(root: Directory, agent_id: str, keys: Collection[IndexKey]) -> None:
    """Adds the entries of a session that has each of ``keys``, or is about to have them."""
    if keys:
        with root.make(roots.INDEX) as index:
            for shard, lines in lines_by_shard({agent_id: keys}).items():
                add_lines(root, index, shard, lines)


def remove(root: Directory, keys: Mapping[str, Collection[IndexKey]]) -> None:
    """Removes entries of sessions, shard by shard, under the locks of all: none has these ``keys`` any more."""
    remove_lines(root, lines_by_shard(keys))


def lines_by_shard(keys: Mapping[str, Iterable[IndexKey]]) -> LinesByShard:
    """The entries of sessions that have these keys."""
    found: LinesByShard = {}
    for agent_id, keys_of_it in keys.items():
        for key, name in [(key, encode_key(*key).encode()) for key in keys_of_it]:
            found.setdefault(_shard_of(key, name), []).append(b"%b %b" % (name, agent_id.encode()))
    return found


def _shard_of(key: IndexKey, name: bytes) -> str:
    """By the first byte of a digest of its ``name``; a cryptographic one would cost a hook an import."""
    if key[0] in ACTIVE_GROUPS:
        return ACTIVE_SHARD
    digest = int.from_bytes(name) % _MODULUS * _MULTIPLIER % (1 << 32)
    return f"{digest >> 24:02x}{SUFFIX}"


def read(index: Directory, shard: str) -> bytes:
    """The whole lines of a shard, nothing if it is not there; ``OSError`` if somebody else made it."""
    try:
        return _whole_lines(index.read(shard, _MAX_SHARD))
    except FileNotFoundError:
        return b""


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
    """A shard, opened and locked together with others; one that has another name is written anew first.

    The other name may be in a snapshot.
    """
    fd, opened = locks.open_shared(index, shard, flags, _LOCK_SECONDS)
    if opened.st_nlink == 1:
        return fd, opened
    locks.close_locked(fd)
    rewrite(index, shard)
    return locks.open_shared(index, shard, flags, _LOCK_SECONDS)


def remove_lines(root: Directory, lines: LinesByShard) -> None:
    """Removes entries, ``ACTIVE_KEY`` last, and only if all others went.

    An entry too many costs a reader one look, and while a session counts as active, cleanup finds it again.
    """
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
    """Marks ``lines`` wherever they stand, the last one first; whether the shard should be written anew without them.

    In a file that still has another name nothing is marked: a snapshot would miss sessions that it has.
    """
    fd, opened = _open(index, shard, os.O_RDWR)
    try:
        if opened.st_nlink > 1:
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
        locks.close_locked(fd)
    return True


def _is_foreign(error: OSError) -> bool:
    """Whether ``error`` says that somebody else made what stands in the place of a shard."""
    return isinstance(error, NotAFile | TooBig) or error.errno in _FOREIGN


def discard_foreign(index: Directory, shard: str) -> None:
    """Removes what no writer can use in the place of a shard; under the lock ``LOCK``. Raises ``OSError``.

    A folder is given another name, since it may hold files of others.
    """
    try:
        os.close(open_private(index.fd, shard, os.O_RDWR)[0])
        read(index, shard)
    except OSError as error:
        if not _is_foreign(error):
            raise
        atomic.discard(index, COMPLETE)
        if index.has(COMPLETE):
            raise
        try:
            os.unlink(shard, dir_fd=index.fd)
        except IsADirectoryError:
            os.rename(shard, atomic.with_random_suffix(shard), src_dir_fd=index.fd, dst_dir_fd=index.fd)
