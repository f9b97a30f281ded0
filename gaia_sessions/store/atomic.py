"""The only code that writes a file: temporary file in the same directory, sync, rename, sync of the directory.

A failed sync is never tried again on the same file: the kernel may have dropped the pages and report success (Rebello
et al., USENIX ATC 2020).
"""

from __future__ import annotations

import errno
import os
import stat

from gaia_sessions import errors

from .directory import PRIVATE_FILE, open_or_create, open_private, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .directory import Directory

_TEMPORARY_SUFFIX = ".tmp"
_RANDOM_DIGITS = 16
_COPIED_BYTES = 1 << 20


def replace(
    folder: Directory,
    name: str,
    data: bytes,
    *,
    durable: bool,
    mode: int = PRIVATE_FILE,
    prepare: Callable[[int], None] | None = None,  # gets the new descriptor first; then the file need not be private
    check: Callable[[], None] | None = None,  # may raise, right before the rename, to stop it
) -> None:
    """Writes ``data`` as the whole file ``name``, or raises ``StoreFailure`` and leaves the old file."""
    temporary = f".{with_random_suffix(name)}{_TEMPORARY_SUFFIX}"
    try:
        write_new(folder, temporary, data, durable=durable, mode=mode, prepare=prepare)
        if check:
            check()
        os.rename(temporary, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)  # the file is synced before its rename
    except BaseException as error:
        discard(folder, temporary)
        if isinstance(error, OSError):
            raise refusal("write", f"{folder.path}/{name}", error) from error
        raise
    if durable:
        sync_folder(folder)  # a failure is no refusal any more: readers see the new file


def replace_around(folder: Directory, files: Mapping[str, bytes], write: Callable[[], None], *, durable: bool) -> None:
    """Writes ``files`` beside the old ones, calls ``write``, and then renames all of them into place."""
    temporaries: dict[str, str] = {}
    unknown = None
    try:
        for name, data in files.items():
            temporary = f".{with_random_suffix(name)}{_TEMPORARY_SUFFIX}"
            temporaries[temporary] = name
            write_new(folder, temporary, data, durable=durable)
        write()
    except errors.DurabilityUnknown as error:  # its change is in place, so these files must follow
        unknown = error
    except BaseException:
        for temporary in temporaries:
            discard(folder, temporary)
        raise
    for temporary, name in temporaries.items():
        try:
            os.rename(temporary, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        except OSError as error:  # too late to refuse: ``write`` has changed the session
            discard(folder, temporary)
            reason = f"the old file was not replaced: {error.strerror or error}"
            unknown = errors.DurabilityUnknown(f"{folder.path}/{name}", reason)
    if durable:
        sync_folder(folder)
    if unknown:
        raise unknown


def write_new(
    folder: Directory,
    name: str,
    data: bytes,
    *,
    durable: bool,
    mode: int = PRIVATE_FILE,
    prepare: Callable[[int], None] | None = None,
) -> None:
    """Creates a new file with ``data``."""
    fd = open_or_create(folder.fd, name, os.O_WRONLY | os.O_EXCL, mode)
    try:
        if prepare:
            prepare(fd)
        else:
            os.fchmod(fd, PRIVATE_FILE)  # whatever the umask says
        write_all(fd, data)
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def sync_folder(folder: Directory) -> None:
    """Syncs ``folder`` after a change of its names that readers can see already."""
    try:
        os.fsync(folder.fd)
    except OSError as error:
        raise errors.DurabilityUnknown(folder.path, error.strerror or str(error)) from error


def append(folder: Directory, name: str, lines: bytes, *, durable: bool, end: int | None = None) -> None:
    """Appends all ``lines`` to ``name``, or raises ``StoreFailure`` and appends none; the caller holds the lock.

    If ``end`` is given, everything after that byte is cut off first.
    """
    try:
        fd, opened = open_private(folder.fd, name, os.O_RDWR | os.O_APPEND)
        try:
            start, lines = _place_to_append(fd, opened.st_size, lines, end)
            if opened.st_nlink > 1:  # the other name, as in a snapshot, keeps the old content
                _append_to_copy(folder, name, fd, start, lines, durable=durable)
            else:
                if start < opened.st_size:
                    os.ftruncate(fd, start)
                _append_lines(fd, start, lines, durable=durable)
        except BaseException:
            os.close(fd)
            raise
    except OSError as error:
        raise refusal("append to", f"{folder.path}/{name}", error) from error
    try:
        os.close(fd)
    except OSError as error:
        raise errors.DurabilityUnknown(f"{folder.path}/{name}", error.strerror or str(error)) from error
    if durable and not end:  # a file with synced bytes has a synced name already
        sync_folder(folder)


def _place_to_append(fd: int, size: int, lines: bytes, end: int | None) -> tuple[int, bytes]:
    """Returns how many of the ``size`` bytes of the file stay, and what is written after them."""
    if end is not None:
        return min(end, size), lines
    # A killed writer may have left a torn line. The newline before ours keeps it from spoiling our first line.
    has_torn_line = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
    return size, b"\n" + lines if has_torn_line else lines


def _append_lines(fd: int, start: int, lines: bytes, *, durable: bool) -> None:
    try:
        write_all(fd, lines)
        if durable:
            os.fdatasync(fd)
    except OSError:
        os.ftruncate(fd, start)  # all lines or none
        raise


def _append_to_copy(folder: Directory, name: str, fd: int, start: int, lines: bytes, *, durable: bool) -> None:
    if os.fstat(fd).st_uid != os.fstat(folder.fd).st_uid:  # the folder's owner may not be allowed to read this file
        raise OSError(errno.EMLINK, "the file has a second hard link, and its owner is not the owner of its folder")

    replace(folder, name, lines, durable=durable, prepare=_copy_first(start, fd))


def write_copy(folder: Directory, name: str, fd: int, size: int, *, durable: bool) -> None:
    """Creates a new private file ``name`` with the first ``size`` bytes of the file open as ``fd``."""
    write_new(folder, name, b"", durable=durable, prepare=_copy_first(size, fd))


def _copy_first(size: int, fd: int) -> Callable[[int], None]:
    """Returns a function that makes a new file private and copies ``size`` bytes of the file ``fd`` into it."""

    def copy(new: int) -> None:
        os.fchmod(new, PRIVATE_FILE)
        rest = size
        while rest and (chunk := os.read(fd, min(rest, _COPIED_BYTES))):
            write_all(new, chunk)
            rest -= len(chunk)

    return copy


def with_random_suffix(name: str) -> str:
    """Returns a name that nobody else uses: ``name``, a dot and 16 random hexadecimal digits."""
    return f"{name}.{os.urandom(_RANDOM_DIGITS // 2).hex()}"


def without_random_suffix(name: str) -> str:
    """Returns the name from which ``with_random_suffix`` made ``name``; empty for any other name."""
    from gaia_sessions.session.ids import is_hex

    plain, _, suffix = name.rpartition(".")
    return plain if is_hex(suffix, _RANDOM_DIGITS) else ""


def target_of(name: str) -> str:
    """Returns the final name of a temporary file that ``replace`` made; empty for any other ``name``."""
    is_temporary = name[:1] == "." and name.endswith(_TEMPORARY_SUFFIX)
    return without_random_suffix(name[1 : -len(_TEMPORARY_SUFFIX)]) if is_temporary else ""


def discard(folder: Directory, name: str) -> None:
    """Removes a file that must not stay; if the system refuses, a later cleanup sweeps it."""
    try:
        os.unlink(name, dir_fd=folder.fd)
    except OSError:
        return


def discard_folder(folder: Directory, name: str) -> None:
    """Removes the file or folder ``name``, follows no link, and ignores other processes that remove it too."""
    try:
        with folder.below(name) as directory:  # it is nearly always a plain folder of plain files
            for leaf in directory.names():
                os.unlink(leaf, dir_fd=directory.fd)
        os.rmdir(name, dir_fd=folder.fd)
    except FileNotFoundError:
        return
    except OSError:
        _discard_tree(folder, name)


def _discard_tree(folder: Directory, name: str) -> None:
    import shutil  # hooks do not need it

    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder.fd)  # never for a file: rmtree opens its argument, and a pipe blocks
        else:
            os.unlink(name, dir_fd=folder.fd)
    except OSError:  # another process removed it, or the system refused and the next cleanup tries again
        return


def write_all(fd: int, data: bytes) -> None:
    """Writes all of ``data`` to the open file ``fd``."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
