"""Network file systems are known by the mount a path lies under."""

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
def test_a_path_lies_under_the_deepest_mount_and_of_two_at_one_place_the_last(path: str, kind: str) -> None:
    assert kind_of(path, MOUNTS) == kind


def test_a_line_of_the_system_s_table_is_read_with_its_escapes() -> None:
    line = r"36 35 98:0 /sub /mnt/a\040b\134 rw,noatime shared:1 master:2 - nfs4 server:/share rw,vers=4.2"

    assert _parse_mount(line) == ("/mnt/a b\\", "nfs4")


def test_nothing_known_is_no_warning() -> None:
    assert kind_of("/srv", []) is None


def test_a_local_path_is_on_no_network_even_before_it_exists(root: str) -> None:
    assert network_kind(root) is None
