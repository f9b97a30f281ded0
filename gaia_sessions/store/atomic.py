"""The only code that writes a file.

Acknowledged means durable: a private temporary file in the same directory, written whole, synced, renamed over the old
one, the directory synced. A failed sync is never tried again on the same file: the kernel may have dropped the pages
and call it a success (Rebello et al., USENIX ATC 2020). Must never know what is written or what locks are held.
"""

from __future__ import annotations

import os
import stat

from gaia_sessions import errors

from .directory import PRIVATE_FILE, open_or_create, open_private, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .directory import Directory

_TEMPORARY_SUFFIX = ".tmp"
_RANDOM_DIGITS = 16


def replace(
    folder: Directory,
    name: str,
    data: bytes,
    *,
    durable: bool,
    mode: int = PRIVATE_FILE,
    apply_mode: Callable[[int], None] | None = None,
    check: Callable[[], None] | None = None,
) -> None:
    """Writes ``data`` as the whole file ``name``, or raises ``StoreFailure`` and leaves the file as it was.

    Raises ``DurabilityUnknown`` if the file was written but the directory could not be synced. The file is private
    unless ``mode`` and ``apply_mode``, which gets its descriptor, say otherwise. ``check`` may raise to stop it.
    """
    temporary = f".{with_random_suffix(name)}{_TEMPORARY_SUFFIX}"
    with translate_errors("write", f"{folder.path}/{name}"):
        try:
            write_new(folder, temporary, data, durable=durable, mode=mode, apply_mode=apply_mode)
            if check:
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
    mode: int = PRIVATE_FILE,
    apply_mode: Callable[[int], None] | None = None,
) -> None:
    """Creates a new file, private whatever the umask unless ``apply_mode`` is given; raises ``OSError``."""
    fd = open_or_create(folder.fd, name, os.O_WRONLY | os.O_EXCL, mode)
    try:
        if apply_mode:
            apply_mode(fd)
        else:
            os.fchmod(fd, PRIVATE_FILE)
        _write_all(fd, data)
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def sync_folder(folder: Directory) -> None:
    """Syncs ``folder`` after a change of its names that is visible already: ``DurabilityUnknown`` if that fails."""
    try:
        os.fsync(folder.fd)
    except OSError as error:
        raise errors.DurabilityUnknown(folder.path, error.strerror or str(error)) from error


def touch(folder: Directory, name: str) -> None:
    """Creates an empty file, unsynced; leaves a file that exists as it is."""
    try:
        write_new(folder, name, b"", durable=False)
    except FileExistsError:
        return


def set_time(folder: Directory, name: str, seconds: float) -> None:
    """Gives ``name`` the time ``seconds``, unsynced; creates an empty file if there is none."""
    fd = open_or_create(folder.fd, name, os.O_WRONLY)
    try:
        os.utime(fd, (seconds, seconds))
    finally:
        os.close(fd)


def append(folder: Directory, name: str, lines: bytes, *, durable: bool, end: int | None = None) -> None:
    """Appends all ``lines`` to ``name``, or raises ``StoreFailure`` and appends none.

    Raises ``DurabilityUnknown`` if they were written but a sync failed. The caller holds the lock. What a killed writer
    left without a newline gets one first, so that it can spoil no line but its own. With ``end``, everything behind
    that byte is cut off first instead.
    """
    with translate_errors("append to", f"{folder.path}/{name}"):
        fd = open_private(folder.fd, name, os.O_RDWR | os.O_APPEND)
        try:
            _append_lines(fd, lines, end, durable=durable)
        except BaseException:
            os.close(fd)
            raise
    try:
        os.close(fd)
    except OSError as error:
        raise errors.DurabilityUnknown(f"{folder.path}/{name}", error.strerror or str(error)) from error
    if durable and not end:  # a file that has synced bytes has a synced name
        sync_folder(folder)


def _append_lines(fd: int, lines: bytes, end: int | None, *, durable: bool) -> None:
    size = os.fstat(fd).st_size
    has_torn_line = end is None and size > 0 and os.pread(fd, 1, size - 1) != b"\n"
    if end is not None and end < size:
        os.ftruncate(fd, end)
        size = end
    try:
        _write_all(fd, b"\n" + lines if has_torn_line else lines)
        if durable:
            os.fdatasync(fd)
    except OSError:
        os.ftruncate(fd, size)
        raise


def link(folder: Directory, name: str, second_name: str, *, durable: bool) -> None:
    """Gives the file ``name`` a second name, which no file has yet; raises ``OSError``."""
    os.link(name, second_name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd, follow_symlinks=False)
    if durable:
        os.fsync(folder.fd)


def append_log_line(folder: Directory, name: str, line: bytes, limit: int) -> None:
    """Appends one line to a log, unsynced; a log over ``limit`` bytes first becomes the old one. Raises ``OSError``."""
    while True:
        fd = open_private(folder.fd, name, os.O_WRONLY | os.O_APPEND)
        try:
            if os.fstat(fd).st_size < limit or not _rotate_log(folder, name, fd):
                os.write(fd, line)
                return
        finally:
            os.close(fd)


def _rotate_log(folder: Directory, name: str, fd: int) -> bool:
    """Whether the full log open as ``fd`` has become the old file, renamed here or by somebody else.

    Under a lock on the log itself: of two writers that rename, the second would replace the old file with the new log.
    While somebody else holds that lock, a line still belongs into the full log.
    """
    from . import locks

    if not locks.lock_open_file(fd):
        return False
    try:
        if folder.is_at(name, fd):
            os.rename(name, name + ".old", src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    finally:
        locks.unlock_open_file(fd)
    return True


def with_random_suffix(name: str) -> str:
    """A name that nobody else uses: ``name``, a dot and 16 random hexadecimal digits."""
    from gaia_sessions.session.ids import random_hex  # loaded where a name is needed: not for a line in a log

    return f"{name}.{random_hex(_RANDOM_DIGITS, os.urandom)}"


def without_random_suffix(name: str) -> str:
    """The name from which ``with_random_suffix`` made ``name``; empty for a name that it did not make."""
    from gaia_sessions.session.ids import is_hex

    plain, _, suffix = name.rpartition(".")
    return plain if is_hex(suffix, _RANDOM_DIGITS) else ""


def temporaries(folder: Directory) -> list[str]:
    """The names in ``folder`` of temporary files: somebody is writing one, or was killed doing so."""
    return [name for name in folder.names() if is_temporary(name)]


def temporaries_of(folder: Directory, name: str) -> list[str]:
    """The names in ``folder`` of temporary files that were to become ``name``."""
    return [found for found in temporaries(folder) if without_random_suffix(found[1 : -len(_TEMPORARY_SUFFIX)]) == name]


def is_temporary(name: str) -> bool:
    """Whether ``replace`` gives such a name to a file that it has not finished."""
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


def discard_folder(folder: Directory, name: str) -> None:
    """Removes whatever stands under ``name``, following no link; somebody else may be removing it too."""
    try:
        with folder.below(name) as directory:  # nearly always a plain folder of plain files
            for leaf in directory.names():
                os.unlink(leaf, dir_fd=directory.fd)
        os.rmdir(name, dir_fd=folder.fd)
    except FileNotFoundError:
        return
    except OSError:
        _discard_tree(folder, name)


def _discard_tree(folder: Directory, name: str) -> None:
    import shutil  # only those who clean up pay for it

    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder.fd)  # it opens whatever it is given: a pipe would never answer
        else:
            os.unlink(name, dir_fd=folder.fd)
    except OSError:  # somebody else removed it; or it was refused, and the next cleanup tries again
        return


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
