"""The kind of file system of a path, by the mount table."""

from __future__ import annotations

from gaia_sessions.system.mounts import _parse_mount, kind_of, network_kind
from tests.table import table

MOUNTS = [("/", "ext4"), ("/home", "nfs4"), ("/home/local", "xfs"), ("/mnt/a b", "cifs"), ("/mnt/a b", "tmpfs")]


@table(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/srv", "ext4"),
        ("/home", "nfs4"),
        ("/home/you/project", "nfs4"),
        ("/homes", "ext4"),
        ("/home/local/project", "xfs"),
        ("/mnt/a b/c", "tmpfs"),
    ],
)
def test_a_path_belongs_to_the_deepest_and_latest_mount_above_it(path: str, kind: str) -> None:
    assert kind_of(path, MOUNTS) == kind


def test_a_line_of_the_mount_table_is_parsed_with_its_escapes() -> None:
    line = r"36 35 98:0 /sub /mnt/a\040b\134 rw,noatime shared:1 master:2 - nfs4 server:/share rw,vers=4.2"

    assert _parse_mount(line) == ("/mnt/a b\\", "nfs4")


def test_without_a_mount_table_the_kind_of_a_path_is_unknown() -> None:
    assert kind_of("/srv", []) is None


def test_a_local_path_has_no_network_kind_even_before_it_exists(root: str) -> None:
    assert network_kind(root) is None
