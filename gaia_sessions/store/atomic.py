"""The only code that writes a file.

Owns the protocol by which acknowledged means durable: a private temporary file in the same directory,
written whole, synced, renamed over the old one, the directory synced. Whoever reads sees the old state
or the new. A failed sync is never tried again on the same file: the kernel may have dropped the pages
and call the second try a success (Rebello et al., USENIX ATC 2020).
"""

from __future__ import annotations

import os

from gaia_sessions.errors import DurabilityUnknown

from .directory import make_private, open_or_create, owner_to_keep, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .directory import Directory

_TEMPORARY_SUFFIX = ".tmp"
_RANDOM_BYTES = 8

_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PRIVATE_MODE = 0o600
HEX_DIGITS = frozenset("0123456789abcdef")


def _no_check() -> None:
    return


def _set_private_mode(fd: int) -> None:
    os.fchmod(fd, _PRIVATE_MODE)


def replace(
    folder: Directory,
    name: str,
    data: bytes,
    *,
    durable: bool,
    mode: int = _PRIVATE_MODE,
    apply_mode: Callable[[int], None] = _set_private_mode,
    check: Callable[[], None] = _no_check,
) -> None:
    """``name`` in ``folder`` holds ``data``, or exactly what it held before and ``StoreFailure`` says why.

    ``DurabilityUnknown``: it does hold it, but the directory could not be synced. The file is private, unless ``mode``
    and ``dress``, which gets its descriptor, say otherwise; ``check`` is asked last, and may raise to stop it all.
    """
    temporary = f".{with_random_suffix(name)}{_TEMPORARY_SUFFIX}"
    with translate_errors("write", f"{folder.path}/{name}"):
        try:
            write_new(folder, temporary, data, durable=durable, mode=mode, apply_mode=apply_mode)
            check()
            os.rename(temporary, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        except BaseException:
            discard(folder, temporary)
            raise
    if durable:
        sync_folder(folder)


def write_new(
    folder: Directory,
    name: str,
    data: bytes,
    *,
    durable: bool,
    mode: int = _PRIVATE_MODE,
    apply_mode: Callable[[int], None] = _set_private_mode,
) -> None:
    """A file that was not there, private whatever the umask, its content synced; raises ``OSError``."""
    fd = os.open(name, _NEW_FLAGS, mode, dir_fd=folder.fd)
    try:
        if owner_to_keep(folder.fd):
            from . import file_ownership

            file_ownership.give_to_folder_owner(folder.fd, fd)
        apply_mode(fd)
        _write_all(fd, data)
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def sync_folder(folder: Directory) -> None:
    """Syncs ``folder`` after a change of its names that is visible already: ``DurabilityUnknown`` if that fails."""
    try:
        folder.sync()
    except OSError as error:
        raise DurabilityUnknown(folder.path, error.strerror or str(error)) from error


def touch(folder: Directory, name: str) -> None:
    """An empty mark, unsynced: whoever follows it knows that it may be wrong. One that is there stays as it is."""
    try:
        write_new(folder, name, b"", durable=False)
    except FileExistsError:
        return


def append(folder: Directory, name: str, lines: bytes, *, durable: bool) -> None:
    """Whole ``lines`` at the end of ``name``, or none of them and ``StoreFailure``; ``DurabilityUnknown`` as above.

    Under the caller's lock. What a killed writer left without a newline gets one first, so that it can
    spoil no line but its own.
    """
    with translate_errors("append to", f"{folder.path}/{name}"):
        fd = open_or_create(folder.fd, name, _APPEND_FLAGS)
        try:
            _append_lines(fd, lines, durable=durable)
        except BaseException:
            os.close(fd)
            raise
    try:
        os.close(fd)
    except OSError as error:
        raise DurabilityUnknown(f"{folder.path}/{name}", error.strerror or str(error)) from error
    if durable:
        sync_folder(folder)


def _append_lines(fd: int, lines: bytes, *, durable: bool) -> None:
    size = make_private(fd)
    has_torn_line = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
    try:
        _write_all(fd, b"\n" + lines if has_torn_line else lines)
        if durable:
            os.fdatasync(fd)
    except OSError:
        os.ftruncate(fd, size)
        raise


def append_log_line(folder: Directory, name: str, line: bytes, limit: int) -> None:
    """One line at the end of a log, unsynced; a log over ``limit`` bytes first becomes the one old file.

    No line is lost to another writer that does the same. Raises ``OSError``.
    """
    while True:
        fd = _open_log(folder, name)
        try:
            if os.fstat(fd).st_size < limit or not _rotate_log(folder, name, fd):
                os.write(fd, line)
                return
        finally:
            os.close(fd)


def _rotate_log(folder: Directory, name: str, fd: int) -> bool:
    """Whether the full log open as ``fd`` is the old file by now, renamed here or by somebody else.

    Under a lock on the log itself, since of two writers that rename one after the other the second would replace the
    old file with the new log. While somebody else holds that lock, a line still belongs into the full log.
    """
    from . import locks

    if not locks.lock_open_file(fd):
        return False
    if folder.inode(name) == locks.inode_of(fd):
        os.rename(name, name + ".old", src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    return True


def _open_log(folder: Directory, name: str) -> int:
    fd = open_or_create(folder.fd, name, _APPEND_FLAGS)
    try:
        make_private(fd)
    except OSError:
        os.close(fd)
        raise
    return fd


def with_random_suffix(name: str) -> str:
    """A name that nobody else gives to anything: ``name``, a dot and 16 hexadecimal digits."""
    return f"{name}.{os.urandom(_RANDOM_BYTES).hex()}"


def without_random_suffix(name: str) -> str:
    """What ``with_random_suffix`` was given to make ``name``; empty for a name that it did not make."""
    plain, _, suffix = name.rpartition(".")
    return plain if len(suffix) == 2 * _RANDOM_BYTES and HEX_DIGITS.issuperset(suffix) else ""


def temporaries(folder: Directory) -> list[str]:
    """The names in ``folder`` of temporary files: somebody is writing one, or was killed doing so."""
    return [name for name in folder.names() if is_temporary(name)]


def temporaries_of(folder: Directory, name: str) -> list[str]:
    """Those of them that were to become ``name``."""
    return [found for found in temporaries(folder) if without_random_suffix(found[1 : -len(_TEMPORARY_SUFFIX)]) == name]


def is_temporary(name: str) -> bool:
    """Whether ``replace`` gives such a name to a file it has not finished."""
    return (
        name[:1] == "."
        and name.endswith(_TEMPORARY_SUFFIX)
        and without_random_suffix(name[1 : -len(_TEMPORARY_SUFFIX)]) != ""
    )


def discard(folder: Directory, name: str) -> None:
    """Removes a file that must not stay; if even that is refused, cleanup sweeps it later."""
    try:
        os.unlink(name, dir_fd=folder.fd)
    except OSError:
        return


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
