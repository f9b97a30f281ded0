"""Which paths open a file of a host. The paths come from records and payloads, and are not trusted."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.hosts import CLAUDE_CODE, CODEX, GEMINI_CLI, QWEN_CODE, host_files
from tests.config.test_files import as_root
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

SOUND = b"what the client wrote"


@pytest.fixture
def path(talks: Path) -> Path:
    """The path of a file of the client; the file does not exist yet."""
    (talks / "c" / "subagents").mkdir(parents=True)
    return talks / "c" / "subagents" / "agent-a1.jsonl"


def held(path: Path) -> bytes | None:
    """The content that is read at ``path``; None if nothing is read."""
    try:
        return host_files.content(CLAUDE_CODE, str(path), len(SOUND))
    except OSError:
        return None


def open_files() -> list[str]:
    return sorted(os.listdir("/dev/fd"))


def test_reading_changes_no_file_and_leaves_none_open(path: Path) -> None:
    path.write_bytes(SOUND)
    before = open_files()
    for _ in range(3):
        assert held(path) == SOUND
        assert host_files.is_file(CLAUDE_CODE, str(path))
        assert host_files.is_folder(CLAUDE_CODE, str(path.parent))
        assert held(path.parent / "no such folder" / "file") is None
    after = open_files()
    assert (before, [found.name for found in path.parent.iterdir()], path.read_bytes()) == (after, [path.name], SOUND)


def test_a_file_over_the_callers_limit_is_not_read(path: Path) -> None:
    path.write_bytes(SOUND + b".")
    assert (held(path), host_files.is_file(CLAUDE_CODE, str(path))) == (None, True)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # the path of a socket must be short


def to_a_sound_one(path: Path) -> None:
    (path.parent / "sound").write_bytes(SOUND)
    path.symlink_to("sound")


def of_somebody_else(path: Path) -> None:
    path.write_bytes(SOUND)
    os.chown(path, 12345, 12345)


def too_large(path: Path) -> None:
    path.write_bytes(SOUND)
    os.truncate(path, (1 << 30) + 1)


LINK = "Too many levels of symbolic links"
NO_FILE = "is not a regular file"

PUT: dict[str, tuple[Callable[[Path], object], str]] = {
    "a link": (to_a_sound_one, LINK),
    "a link to itself": (lambda path: path.symlink_to(path.name), LINK),
    "a link to nothing": (lambda path: path.symlink_to("nothing"), LINK),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), LINK),
    "a pipe that nobody writes to": (os.mkfifo, NO_FILE),
    "a folder": (Path.mkdir, NO_FILE),
    "a socket": (listening, NO_FILE),
    "larger than 1 GiB": (too_large, "it is larger than 1 GiB"),
    "somebody else's": (of_somebody_else, "it belongs to another user"),
}


@pytest.mark.parametrize(
    "put", [pytest.param(name, marks=as_root) if name == "somebody else's" else name for name in PUT]
)
def test_a_path_that_is_not_the_clients_own_regular_file_is_refused(path: Path, put: str) -> None:
    plant, why = PUT[put]
    plant(path)
    before = open_files()
    assert os.path.lexists(path)
    assert (held(path), host_files.is_file(CLAUDE_CODE, str(path))) == (None, False)
    with pytest.raises(OSError, match=why):
        host_files.open_file(CLAUDE_CODE, str(path))
    assert open_files() == before


@as_root
def test_another_users_file_is_refused_even_if_the_clients_folder_vanishes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_somebody_else(path)
    before = open_files()

    def gone(path: str) -> os.stat_result:
        raise FileNotFoundError(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", gone)
        is_file = host_files.is_file(CLAUDE_CODE, str(path))
    assert (is_file, open_files()) == (False, before)


@as_root
def test_root_reads_a_file_of_the_owner_of_the_clients_folder(path: Path, talks: Path) -> None:
    path.write_bytes(SOUND)
    for one in (path, talks.parent):
        os.chown(one, 12345, 12345)
    assert held(path) == SOUND


@pytest.mark.parametrize("put", ["a link", "a pipe", "a file", "a link to itself"])
def test_a_file_below_a_link_or_a_non_folder_counts_as_missing(path: Path, talks: Path, put: str) -> None:
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
    assert (held(path), host_files.is_folder(CLAUDE_CODE, str(path.parent))) == (None, False)
    assert host_files.is_file(CLAUDE_CODE, f"{subagents}/{path.name}")


def test_the_clients_folder_may_be_a_link_and_both_paths_work(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(SOUND)
    (tmp_path / "link").symlink_to(path.parents[4])
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{tmp_path}/link/")
    monkeypatch.setenv("HOME", "/nowhere")
    assert held(path) == SOUND
    assert held(tmp_path / "link" / path.relative_to(path.parents[4])) == SOUND
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    assert held(path) is None


@table(
    ("host", "variable", "below"),
    [
        (CLAUDE_CODE, "CLAUDE_CONFIG_DIR", ".claude/projects"),
        (CODEX, "CODEX_HOME", ".codex/sessions"),
        (QWEN_CODE, None, ".qwen/projects"),
        (GEMINI_CLI, None, ".gemini/tmp"),
    ],
)
def test_each_client_has_a_folder_in_home_unless_its_variable_names_another(
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
def test_a_path_that_is_not_canonical_or_not_below_the_clients_folder_opens_nothing(talks: Path, given: Any) -> None:
    file = talks / "c" / "agent-a1.meta.json"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(SOUND)
    projects, below = str(talks.parent), str(file.relative_to(talks.parent))
    assert host_files.is_file(CLAUDE_CODE, f"{projects}/{below}")
    path = given.replace("{projects}", projects).replace("{below}", below) if isinstance(given, str) else given
    assert not host_files.is_file(CLAUDE_CODE, path)
    others = (CODEX, QWEN_CODE, GEMINI_CLI, "x", None)
    assert not any(host_files.is_file(host, f"{projects}/{below}") for host in others)
