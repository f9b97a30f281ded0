from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.hosts import CLAUDE_CODE, CODEX, GEMINI_CLI, QWEN_CODE, host_files
from gaia_sessions.hosts.agent_files import delegation_of, member_of, noted_delegation
from gaia_sessions.hosts.evidence import file_written_at
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_FILE = 1 << 16
SOUND = b'{"toolUseId": "toolu_1"}'


@pytest.fixture
def path(talks: Path) -> Path:
    """Where the host would write the file; nothing is there yet."""
    (talks / "c" / "subagents").mkdir(parents=True)
    return talks / "c" / "subagents" / "agent-a1.meta.json"


def read_key(path: Path) -> str | None:
    """The delegation of the agent ``a1`` by its file, as the hooks ask for it in either of two ways."""
    found = delegation_of(CLAUDE_CODE, f"{path.parent.parent}.jsonl", "a1")
    event: Any = {"host": CLAUDE_CODE, "host_agent_id": "a1", "key_file": str(path)}
    assert noted_delegation(event) == found
    return found


def key_in(path: Path, content: bytes) -> str | None:
    path.write_bytes(content)
    return read_key(path)


def test_the_key_is_what_stands_under_its_name(path: Path) -> None:
    content = b'{"agentType": "Explore", "toolUseId": "toolu_1", "more": {"toolUseId": "not this"}}\n'
    assert key_in(path, content) == "toolu_1"
    assert member_of(CLAUDE_CODE, str(path), "agentType") == "Explore"


def test_a_file_that_is_not_there_yet_has_no_key_until_it_is(path: Path) -> None:
    assert read_key(path) is None
    assert key_in(path, SOUND) == "toolu_1"


def test_reading_leaves_nothing_behind_and_no_file_open(path: Path) -> None:
    path.write_bytes(SOUND)
    before = sorted(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else None
    for _ in range(3):
        read_key(path)
        member_of(CLAUDE_CODE, str(path.parent), "toolUseId")
        member_of(CLAUDE_CODE, str(path.parent / "no such folder" / "file"), "toolUseId")
        host_files.is_folder(CLAUDE_CODE, str(path.parent))
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
    assert read_key(path) is None


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # a path of a socket is short


def to_a_sound_one(path: Path) -> None:
    (path.parent / "sound").write_bytes(SOUND)
    path.symlink_to("sound")


def of_somebody_else(path: Path) -> None:
    path.write_bytes(SOUND)
    os.chown(path, 12345, 12345)


def too_large(path: Path) -> None:
    path.write_bytes(SOUND)
    os.truncate(path, (1 << 30) + 1)


PUT: dict[str, Callable[[Path], object]] = {
    "a link": to_a_sound_one,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a pipe that nobody writes to": os.mkfifo,
    "a folder": Path.mkdir,
    "a socket": listening,
    "somebody else's": of_somebody_else,
    "larger than 1 GiB": too_large,
}


@pytest.mark.parametrize("put", PUT)
def test_what_is_no_file_of_its_own_counts_as_not_there(path: Path, put: str) -> None:
    PUT[put](path)
    assert os.path.lexists(path)
    assert (read_key(path), host_files.is_file(CLAUDE_CODE, str(path))) == (None, False)
    assert file_written_at(CLAUDE_CODE, str(path)) is None
    with pytest.raises(OSError, match=r"."):
        host_files.open_file(CLAUDE_CODE, str(path))


def test_a_file_of_the_owner_of_that_folder_is_read_by_root(path: Path, talks: Path) -> None:
    path.write_bytes(SOUND)
    for one in (path, talks.parent):
        os.chown(one, 12345, 12345)
    assert read_key(path) == "toolu_1"


@pytest.mark.parametrize("put", ["a link", "a pipe", "a file", "a link to itself"])
def test_below_what_is_no_folder_of_its_own_nothing_is_there(path: Path, talks: Path, put: str) -> None:
    path.write_bytes(SOUND)
    subagents = path.parent.rename(talks / "others")
    match put:
        case "a link":
            path.parent.symlink_to(subagents)
        case "a pipe":
            os.mkfifo(path.parent)
        case "a file":
            path.parent.touch()
        case _:
            path.parent.symlink_to(path.parent.name)
    assert (read_key(path), host_files.is_folder(CLAUDE_CODE, str(path.parent))) == (None, False)
    assert host_files.is_file(CLAUDE_CODE, f"{subagents}/{path.name}")


def test_the_folder_of_the_client_may_be_a_link_and_be_named_with_it_or_without(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(SOUND)
    (tmp_path / "link").symlink_to(path.parents[4])
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{tmp_path}/link/")
    monkeypatch.setenv("HOME", "/nowhere")
    assert read_key(path) == "toolu_1"
    assert read_key(tmp_path / "link" / path.relative_to(path.parents[4])) == "toolu_1"
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    assert read_key(path) is None


@table(
    ("host", "variable", "below"),
    [
        (CLAUDE_CODE, "CLAUDE_CONFIG_DIR", ".claude/projects"),
        (CODEX, "CODEX_HOME", ".codex/sessions"),
        (QWEN_CODE, None, ".qwen/projects"),
        (GEMINI_CLI, None, ".gemini/tmp"),
    ],
)
def test_each_client_has_its_own_folder_at_home_and_another_where_its_variable_says_so(
    away_from_home: Path, host: str, variable: str | None, below: str
) -> None:
    home = away_from_home
    environ = {"HOME": str(home)}
    assert host_files.conversations_of(host, environ) == f"{home}/{below}"
    folder, kept = below.split("/")
    for value in ("", "relative", "/x//y/"):
        found = host_files.folder_of(host, environ | ({variable: value} if variable else {}))
        assert found == ("/x/y" if variable and value == "/x//y/" else f"{home}/{folder}")
    assert host_files.conversations_of(host, environ | ({variable: "/x"} if variable else {})) in (
        f"/x/{kept}",
        f"{home}/{below}",
    )


STRANGE_PATHS: list[Any] = [
    *("", "agent.meta.json", "./agent.meta.json", "~/agent.meta.json", "/", "-", "--help", "*", None, 0, [], {}),
    *("/dev/zero", "/dev/null", "/dev/tty", "/proc/self/stat", "/etc/passwd"),
    *("{projects}", "{projects}/", "{projects}/.", "{projects}/..", "{projects}x/a", "{projects}/*/agent-a1.meta.json"),
    *("{projects}/../projects/{below}", "{projects}/./{below}", "{projects}//{below}", "/{projects}/{below}"),
    *("{projects}/{below}/", "{projects}/{below}/.", "{projects}/{below}\0", "{projects}\0/{below}"),
    *("{projects}/\ud800/{below}", "{projects}/a\x1b/{below}", "{projects}/{below}\n"),
    *("{projects}/" + "x" * 5000, "{projects}/" + "x/" * 5000 + "x", "{projects}/-project/c"),
]


@table("given", STRANGE_PATHS)
def test_a_path_that_leads_anywhere_else_opens_nothing(talks: Path, given: Any) -> None:
    file = talks / "c" / "agent-a1.meta.json"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(SOUND)
    projects, below = str(talks.parent), str(file.relative_to(talks.parent))
    assert host_files.is_file(CLAUDE_CODE, f"{projects}/{below}")
    path = given.replace("{projects}", projects).replace("{below}", below) if isinstance(given, str) else given
    assert not host_files.is_file(CLAUDE_CODE, path)
    others = (CODEX, QWEN_CODE, GEMINI_CLI, "x", None)
    assert not any(host_files.is_file(host, f"{projects}/{below}") for host in others)


def test_an_event_reads_only_the_file_of_its_own_agent(path: Path) -> None:
    path.write_bytes(SOUND)

    def noted(**changes: str) -> str | None:
        event: Any = {"host": CLAUDE_CODE, "key_file": str(path), "key_name": "agentType", **changes}
        return noted_delegation(event)

    assert [noted(), *(noted(host_agent_id=agent) for agent in ("a2", "../a1", ""))] == [None] * 4
    assert noted(host_agent_id="a1") == "toolu_1"
    assert [noted(host_agent_id="a1", host=host) for host in (CODEX, "x")] == [None] * 2
