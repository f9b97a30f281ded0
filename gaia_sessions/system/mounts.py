"""Which kind of file system a path lies on, where the system tells (Linux).

Owns the list of kinds that are reached over a network, on which neither locks nor renames can be relied
on. Only warns: whoever must use one may know better.
"""

from __future__ import annotations

import os

NETWORK = frozenset(["9p", "afs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "nfs", "nfs4", "smb3", "smbfs"])

_TABLE = "/proc/self/mountinfo"


def network_kind(path: str) -> str | None:
    """The kind of network file system that ``path`` lies on; None for none. It need not exist yet."""
    kind = kind_at(path)
    return kind if kind in NETWORK else None


def kind_at(path: str) -> str | None:
    """The kind of file system that ``path`` lies on, or would; None where the system does not tell."""
    return kind_of(os.path.realpath(path), _mounts())


def kind_of(path: str, mounts: list[tuple[str, str]]) -> str | None:
    """The kind of the mount that ``path`` lies under: of ``mounts`` (point, kind) the deepest, the last made."""
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
    """``36 35 98:0 /sub /mnt/point rw,noatime shared:1 - ext4 /dev/root rw``: see proc(5)."""
    before, _, after = line.partition(" - ")
    return _unescaped(before.split()[4]), after.split()[0]


def _unescaped(point: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, char)
    return point
