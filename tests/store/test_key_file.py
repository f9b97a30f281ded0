from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.store.key_file import read_key
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_FILE = 1 << 16
SOUND = b'{"toolUseId": "toolu_1"}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the host would write the file; nothing is there yet."""
    return tmp_path / "agent.meta.json"


def key_in(path: Path, content: bytes, member: str = "toolUseId") -> str | None:
    path.write_bytes(content)
    return read_key(str(path), member)


def test_the_key_is_what_stands_under_its_name(path: Path) -> None:
    content = b'{"agentType": "Explore", "toolUseId": "toolu_1", "more": {"toolUseId": "not this"}}\n'
    assert key_in(path, content) == "toolu_1"
    assert key_in(path, content, "agentType") == "Explore"


def test_a_file_that_is_not_there_yet_has_no_key_until_it_is(path: Path) -> None:
    assert read_key(str(path), "toolUseId") is None
    assert key_in(path, SOUND) == "toolu_1"


def test_reading_leaves_nothing_behind_and_no_file_open(path: Path) -> None:
    path.write_bytes(SOUND)
    before = sorted(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else None
    for _ in range(3):
        read_key(str(path), "toolUseId")
        read_key(str(path.parent), "toolUseId")
        read_key(str(path.parent / "no such folder" / "file"), "toolUseId")
    after = sorted(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else None
    assert (before, [found.name for found in path.parent.iterdir()], path.read_bytes()) == (after, [path.name], SOUND)


@table(
    "value",
    [
        "t",  # one character
        "x" * 512,  # 512 characters
        "ünï\ncode \u2028",  # any characters
        "../../etc/passwd",  # what looks like a path is a key like any other
    ],
)
def test_any_short_text_is_a_key(path: Path, value: str) -> None:
    assert key_in(path, json.dumps({"toolUseId": value}).encode()) == value


@table(
    "value",
    [
        "",  # empty
        "x" * 513,  # 513 characters
        *(None, True, 0, 1.5, [], ["toolu_1"], {}, {"a": "toolu_1"}),
    ],
)
def test_anything_else_is_no_key(path: Path, value: Any) -> None:
    assert key_in(path, json.dumps({"toolUseId": value}).encode()) is None


@table(
    "content",
    [
        b"",  # empty
        SOUND[:-1],  # half written
        b"toolu_1",  # no JSON
        b'"toolu_1"',  # a string
        b"[" + SOUND + b"]",  # an array
        b"null",  # null
        SOUND + SOUND,  # two objects
        b"{}",  # another object
        b'{"TOOLUSEID": "toolu_1"}',  # another case
        b'{"toolUseId": "toolu_1", "toolUseId": "toolu_2"}',  # two keys
        b'{"toolUseId": "toolu_\xff"}',  # no UTF-8
        b'{"toolUseId": "toolu_\\u0000"}',  # NUL
        b'{"toolUseId": "\\ud800"}',  # half of a pair
        b'{"toolUseId": "toolu_1", "n": NaN}',  # no number
        b'{"toolUseId": "toolu_1", "n": ' + b"[" * 5000 + b"]" * 5000 + b"}",  # nesting without end
        b'{"toolUseId": "toolu_1", "n": 1' + b"0" * 5000 + b"}",  # digits without end
    ],
)
def test_what_is_no_sound_object_with_that_key_counts_as_not_there(path: Path, content: bytes) -> None:
    assert key_in(path, content) is None


def test_a_file_may_be_as_large_as_64_kib(path: Path) -> None:
    assert key_in(path, SOUND.ljust(LONGEST_FILE)) == "toolu_1"
    assert key_in(path, SOUND.ljust(LONGEST_FILE + 1)) is None


def test_a_file_of_gigabytes_is_not_read(path: Path) -> None:
    path.write_bytes(SOUND)
    os.truncate(path, 1 << 40)
    assert read_key(str(path), "toolUseId") is None


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # a path of a socket is short


@table(
    "put",
    [
        lambda path: (path.parent / "sound").write_bytes(SOUND) and path.symlink_to("sound"),  # a link
        lambda path: path.symlink_to(path.name),  # a link to itself
        lambda path: path.symlink_to("nothing"),  # a link to nothing
        lambda path: path.symlink_to("/dev/zero"),  # a link to a device
        os.mkfifo,  # a pipe nobody writes to
        Path.mkdir,  # a folder
        listening,  # a socket
    ],
)
def test_what_is_no_file_of_its_own_counts_as_not_there(
    new_folder: Callable[[], Path], put: Callable[[Path], object]
) -> None:
    path = new_folder() / "agent.meta.json"
    put(path)
    assert os.path.lexists(path)
    assert read_key(str(path), "toolUseId") is None


@table("special", ["/dev/zero", "/dev/null", "/dev/tty", "/proc/self/stat"])
def test_what_is_no_regular_file_is_not_read(special: str) -> None:
    assert read_key(special, "toolUseId") is None


@table(
    "put",
    [
        lambda folder: folder.write_bytes(SOUND),  # a file
        os.mkfifo,  # a pipe
        lambda folder: folder.symlink_to("nothing"),  # a link to nothing
        lambda folder: folder.symlink_to(folder.name),  # a link to itself
    ],
)
def test_where_no_folder_is_there_is_no_file(new_folder: Callable[[], Path], put: Callable[[Path], object]) -> None:
    folder = new_folder() / "folder"
    put(folder)
    assert read_key(str(folder / "agent.meta.json"), "toolUseId") is None


def test_the_hosts_folder_may_be_reached_by_a_link(path: Path, tmp_path: Path) -> None:
    path.write_bytes(SOUND)
    (tmp_path / "home").symlink_to(tmp_path)
    assert read_key(str(tmp_path / "home" / path.name), "toolUseId") == "toolu_1"


@table(
    "path",
    [
        "",  # none
        "agent.meta.json",  # relative
        "./agent.meta.json",  # relative to here
        "~/agent.meta.json",  # relative to home
        "/",  # the root
        "{here}/agent.meta.json/",  # with a slash behind
        "{here}/agent.meta.json/.",  # below the file
        "{here}/..",  # the folder above
        "{here}/agent.meta.json\0",  # with a NUL
        "{here}\0/agent.meta.json",  # with a NUL in a folder
        "{here}/" + "x" * 5000,  # a name without end
        "{here}/" + "x/" * 5000,  # a path without end
    ],
)
def test_a_path_that_is_not_absolute_or_leads_nowhere_has_no_key(path: str) -> None:
    Path("agent.meta.json").write_bytes(SOUND)
    assert read_key(os.path.abspath("agent.meta.json"), "toolUseId") == "toolu_1"
    assert read_key(path.replace("{here}", os.getcwd()), "toolUseId") is None
