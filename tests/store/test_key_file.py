from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.store.key_file import read_key

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


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("t", id="one character"),
        pytest.param("x" * 512, id="512 characters"),
        pytest.param("ünï\ncode \u2028", id="any characters"),
        pytest.param("../../etc/passwd", id="what looks like a path is a key like any other"),
    ],
)
def test_any_short_text_is_a_key(path: Path, value: str) -> None:
    assert key_in(path, json.dumps({"toolUseId": value}).encode()) == value


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="empty"),
        pytest.param("x" * 513, id="513 characters"),
        *(pytest.param(value, id=repr(value)) for value in (None, True, 0, 1.5, [], ["toolu_1"], {}, {"a": "toolu_1"})),
    ],
)
def test_anything_else_is_no_key(path: Path, value: Any) -> None:
    assert key_in(path, json.dumps({"toolUseId": value}).encode()) is None


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(SOUND[:-1], id="half written"),
        pytest.param(b"toolu_1", id="no JSON"),
        pytest.param(b'"toolu_1"', id="a string"),
        pytest.param(b"[" + SOUND + b"]", id="an array"),
        pytest.param(b"null", id="null"),
        pytest.param(SOUND + SOUND, id="two objects"),
        pytest.param(b"{}", id="another object"),
        pytest.param(b'{"TOOLUSEID": "toolu_1"}', id="another case"),
        pytest.param(b'{"toolUseId": "toolu_1", "toolUseId": "toolu_2"}', id="two keys"),
        pytest.param(b'{"toolUseId": "toolu_\xff"}', id="no UTF-8"),
        pytest.param(b'{"toolUseId": "toolu_\\u0000"}', id="NUL"),
        pytest.param(b'{"toolUseId": "\\ud800"}', id="half of a pair"),
        pytest.param(b'{"toolUseId": "toolu_1", "n": NaN}', id="no number"),
        pytest.param(b'{"toolUseId": "toolu_1", "n": ' + b"[" * 5000 + b"]" * 5000 + b"}", id="nesting without end"),
        pytest.param(b'{"toolUseId": "toolu_1", "n": 1' + b"0" * 5000 + b"}", id="digits without end"),
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
        server.bind(str(path))


@pytest.mark.parametrize(
    "put",
    [
        pytest.param(lambda path: (path.parent / "sound").write_bytes(SOUND) and path.symlink_to("sound"), id="a link"),
        pytest.param(lambda path: path.symlink_to(path.name), id="a link to itself"),
        pytest.param(lambda path: path.symlink_to("nothing"), id="a link to nothing"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), id="a link to a device"),
        pytest.param(os.mkfifo, id="a pipe nobody writes to"),
        pytest.param(Path.mkdir, id="a folder"),
        pytest.param(listening, id="a socket"),
    ],
)
def test_what_is_no_file_of_its_own_counts_as_not_there(path: Path, put: Callable[[Path], object]) -> None:
    put(path)
    assert os.path.lexists(path)
    assert read_key(str(path), "toolUseId") is None


@pytest.mark.parametrize("special", ["/dev/zero", "/dev/null", "/dev/tty", "/proc/self/stat"])
def test_what_is_no_regular_file_is_not_read(special: str) -> None:
    assert read_key(special, "toolUseId") is None


@pytest.mark.parametrize(
    "put",
    [
        pytest.param(lambda folder: folder.write_bytes(SOUND), id="a file"),
        pytest.param(os.mkfifo, id="a pipe"),
        pytest.param(lambda folder: folder.symlink_to("nothing"), id="a link to nothing"),
        pytest.param(lambda folder: folder.symlink_to(folder.name), id="a link to itself"),
    ],
)
def test_where_no_folder_is_there_is_no_file(tmp_path: Path, put: Callable[[Path], object]) -> None:
    put(tmp_path / "folder")
    assert read_key(str(tmp_path / "folder" / "agent.meta.json"), "toolUseId") is None


def test_the_hosts_folder_may_be_reached_by_a_link(path: Path, tmp_path: Path) -> None:
    path.write_bytes(SOUND)
    (tmp_path / "home").symlink_to(tmp_path)
    assert read_key(str(tmp_path / "home" / path.name), "toolUseId") == "toolu_1"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("", id="none"),
        pytest.param("agent.meta.json", id="relative"),
        pytest.param("./agent.meta.json", id="relative to here"),
        pytest.param("~/agent.meta.json", id="relative to home"),
        pytest.param("/", id="the root"),
        pytest.param("{here}/agent.meta.json/", id="with a slash behind"),
        pytest.param("{here}/agent.meta.json/.", id="below the file"),
        pytest.param("{here}/..", id="the folder above"),
        pytest.param("{here}/agent.meta.json\0", id="with a NUL"),
        pytest.param("{here}\0/agent.meta.json", id="with a NUL in a folder"),
        pytest.param("{here}/" + "x" * 5000, id="a name without end"),
        pytest.param("{here}/" + "x/" * 5000, id="a path without end"),
    ],
)
def test_a_path_that_is_not_absolute_or_leads_nowhere_has_no_key(path: str) -> None:
    Path("agent.meta.json").write_bytes(SOUND)
    assert read_key(os.path.abspath("agent.meta.json"), "toolUseId") == "toolu_1"
    assert read_key(path.replace("{here}", os.getcwd()), "toolUseId") is None
