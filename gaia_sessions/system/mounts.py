"""The kind of file system that a path is on (Linux). Network file systems have unreliable locks and renames.

Use the answer only for a warning, and never to refuse a path: the user may know better.
"""

from __future__ import annotations

import os

NETWORK = frozenset(["9p", "afs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "nfs", "nfs4", "smb3", "smbfs"])

_TABLE = "/proc/self/mountinfo"


def network_kind(path: str) -> str | None:
    """Returns the kind of the network file system that ``path`` is on, or would be on; None for a local one."""
    kind = kind_at(path)
    return kind if kind in NETWORK else None


def kind_at(path: str) -> str | None:
    """Returns the kind of file system that ``path`` is on, or would be on; None if the system does not say."""
    return kind_of(os.path.realpath(path), _mounts())


def kind_of(path: str, mounts: list[tuple[str, str]]) -> str | None:
    """Returns the kind of the mount that holds ``path``: the latest of the deepest in ``mounts`` (point, kind)."""
    matching = [(len(point), number, kind) for number, (point, kind) in enumerate(mounts) if _lies_under(path, point)]
    return max(matching)[2] if matching else None


def _lies_under(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")


def _mounts() -> list[tuple[str, str]]:
    try:
        with open(_TABLE, encoding="utf-8", errors="surrogateescape") as table:
            return [_parse_mount(line) for line in table]
    except OSError:
        return []


def _parse_mount(line: str) -> tuple[str, str]:
    """Parses a line ``36 35 98:0 /sub /mnt/point rw shared:1 - ext4 /dev/root rw`` into point and kind; see proc(5)."""
    before, _, after = line.partition(" - ")
    return _unescaped(before.split()[4]), after.split()[0]


def _unescaped(point: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, char)
    return point
