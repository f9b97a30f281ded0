"""Damaged records, and pipes, sockets, folders and devices in place of files."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.errors import CorruptSession
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.conftest import Run, Tree

    TreeOf = Callable[[str | Path], Tree]

AGENT = "agent-1"
TEXT: tuple[object, ...] = (None, True, 1, [], {})
TIME: tuple[object, ...] = (None, 1, "", "yesterday", "2026-13-01T00:00:00Z", [])
COUNT: tuple[object, ...] = (None, True, -1, 1.5, "1", [], 1 << 63)

WRONG: dict[str, tuple[object, ...]] = {
    "agent_id": (*TEXT, "", "agent-2", "../agent-1", "AGENT-1", "agent-1\n"),
    "agent_name": TEXT,
    "purpose": TEXT,
    "created_at": TIME,
    "last_updated": TIME,
    "phase": (*TEXT, "", "done", "Planning"),
    "metadata": (None, True, 1, "x", []),
    "resume_ready": (None, 0, 1, "true", [], {}),
    "history": (None, {}, "x", 1, [1], [{}], [{"from_phase": "planning", "to_phase": "x", "timestamp": "x"}]),
    "error_count": COUNT,
    "last_error": (True, 1, "x", [], {}, {"message": "x"}, {"message": 1, "timestamp": "2026-01-08T18:05:30Z"}),
    "schema": (None, True, 0, -1, 1.5, "1", []),
    "revision": COUNT,
    "history_dropped": COUNT,
    "runs": (None, {}, "x", 1, [1], [{}], [{"run": 0}], [{"run": 1, "end": "well"}], [{"run": 1, "unannounced": 1}]),
    "runs_dropped": COUNT,
    "approval": (None, True, 1, "x", [], {}, {"message": "x"}, {"message": 1, "timestamp": "2026-01-08T18:05:30Z"}),
    "denial": (None, True, 1, "x", [], {}, {"message": "x"}, {"message": 1, "timestamp": "2026-01-08T18:05:30Z"}),
    "finalized_at": TIME,
    "duration_seconds": (None, True, "1", []),
    "summary": tuple(value for value in TEXT if value is not None),
}
NEEDED = [key for key in list(WRONG)[:11] if key != "last_error"]


def _with(key: str, value: object) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({**json.loads(data), key: value}).encode()


def _without(key: str) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({name: value for name, value in json.loads(data).items() if name != key}).encode()


def _put_first(text: bytes) -> Callable[[bytes], bytes]:
    """Puts ``text`` into the record as its first member."""
    return lambda data: b"{" + text + b"," + data.lstrip()[1:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _data: b"",
    "one blank": lambda _data: b" ",
    "NULs instead": lambda data: bytes(len(data)),
    "NULs at the end": lambda data: data + bytes(512),
    "NUL in a string": _put_first(rb'"note": "a\u0000b"'),
    "an array": lambda _data: b"[]",
    "null": lambda _data: b"null",
    "a number": lambda _data: b"1",
    "a string": lambda _data: b'"agent-1"',
    "an empty object": lambda _data: b"{}",
    "not JSON": lambda _data: b"phase = planning",
    "two documents": lambda data: data + data,
    "two halves that overlap": lambda data: data[: len(data) // 2] + data[len(data) // 3 :],
    "over two MiB": lambda data: data + b" " * (2 << 20),
    "two MiB of text": lambda data: json.dumps({**json.loads(data), "metadata": {"x": "x" * (2 << 20)}}).encode(),
    "invalid UTF-8": lambda data: data.replace(b"young", b"yo\xffng"),
    "half a character": lambda data: data + b"\xe2\x82",
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "a BOM": lambda data: b"\xef\xbb\xbf" + data,
    "a lone surrogate": _put_first(rb'"note": "\ud800"'),
    "a duplicate key": _put_first(b'"phase": "planning"'),
    "a duplicate id": _put_first(b'"agent_id": "agent-1"'),
    "a duplicate key deep down": _put_first(b'"note": [{"a": 1, "a": 2}]'),
    "nested 100 deep": _put_first(b'"note": ' + b"[" * 100 + b"]" * 100),
    "nested 100,000 deep": _put_first(b'"note": ' + b"[" * 100_000 + b"]" * 100_000),
    "NaN": _put_first(b'"note": NaN'),
    "Infinity": _put_first(b'"note": -Infinity'),
    "1e999": _put_first(b'"note": 1e999'),
    "a number of 5,000 digits": _put_first(b'"note": ' + b"9" * 5000),
    "a comment": lambda data: b"// mine\n" + data,
    "a comma too many": lambda data: data.rstrip()[:-1] + b",}",
    **{f"{key} is {value!r}": _with(key, value) for key, values in WRONG.items() for value in values},
    **{f"without {key}": _without(key) for key in NEEDED},
    "without last_error": _without("last_error"),
}


@table("damage", DAMAGES)
def test_a_damaged_record_is_named_and_stays_until_a_cleanup_removes_corrupt_sessions(
    populate: Callable[[], str], tree: TreeOf, damage: str
) -> None:
    root = populate()
    state = Path(root, AGENT, "state.json")
    state.write_bytes(DAMAGES[damage](state.read_bytes()))

    _check_corrupt(root, tree)
    _check_cleanup(root, tree)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_record_cut_off_at_any_byte_is_named_and_kept(populated: str, tree: TreeOf, step: int) -> None:
    state = Path(populated, AGENT, "state.json")
    whole = state.read_bytes()
    assert whole.endswith(b"}\n")

    for length in range(0, len(whole) - 1, step):  # a record without its last newline is whole
        state.write_bytes(whole[:length])
        _check_corrupt(populated, tree)
    _check_cleanup(populated, tree)


def test_a_folder_without_a_record_is_no_session_and_is_kept(populated: str, run: Run, tree: TreeOf) -> None:
    Path(populated, AGENT, "state.json").unlink()
    before = tree(f"{populated}/{AGENT}")

    assert gaia_sessions.get_session(AGENT, root=populated) is None
    assert [run(name, populated, AGENT).returncode for name in ("update", "finalize")] == [3, 3]
    assert run("cleanup", populated, "corrupt").stdout == 'ACK {"removed": ["old-1", "old-2"]}\n'
    assert tree(f"{populated}/{AGENT}") == before


def _check_corrupt(root: str, tree: TreeOf) -> None:
    path = f"{root}/{AGENT}/state.json"
    before = tree(f"{root}/{AGENT}")

    calls: tuple[Callable[[], object], ...] = (
        lambda: gaia_sessions.get_session(AGENT, root=root),
        lambda: gaia_sessions.update_state(AGENT, "executing", root=root),
        lambda: gaia_sessions.finalize_session(AGENT, "failed", root=root),
    )
    for call in calls:
        with pytest.raises(CorruptSession) as refused:
            call()
        assert (refused.value.path, refused.value.exit_code) == (path, 6)
        assert path in str(refused.value)
        assert len(str(refused.value)) < len(path) + 300
    assert gaia_sessions.should_resume(AGENT, root=root) is False
    assert gaia_sessions.explain_resume(AGENT, root=root)["reason"] == "corrupt"
    lines = {line["agent_id"]: line for line in gaia_sessions.list_sessions(root=root)}
    assert lines.keys() == {"agent-1", "agent-2", "old-1", "old-2"}
    assert {agent_id: line["status"] for agent_id, line in lines.items() if agent_id != "old-2"} == {
        "agent-1": "corrupt",
        "agent-2": "active",
        "old-1": "active",
    }
    assert path in str(lines[AGENT])
    assert tree(f"{root}/{AGENT}") == before


def _check_cleanup(root: str, tree: TreeOf) -> None:
    before = tree(f"{root}/{AGENT}")

    report = gaia_sessions.cleanup_sessions(root=root)
    assert [line["agent_id"] for line in report["corrupt"]] == [AGENT]
    assert sorted(report["removed"]) == ["old-1", "old-2"]
    assert tree(f"{root}/{AGENT}") == before

    report = gaia_sessions.cleanup_sessions(corrupt=True, root=root)
    assert (report["removed"], report["corrupt"]) == ([AGENT], [])
    assert [line["agent_id"] for line in gaia_sessions.list_sessions(root=root)] == ["agent-2"]


def _plant_socket(path: Path) -> None:
    """Binds the socket from within its folder, because the whole path may be too long."""
    here = os.open(".", os.O_RDONLY)
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as planted:
        planted.bind(path.name)
    os.fchdir(here)
    os.close(here)


def _plant_device(path: Path) -> None:
    """Makes a null device, which can be opened and read."""
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("needs the right to make a device")


PLANTS: dict[str, Callable[[Path], Any]] = {
    "a pipe": os.mkfifo,
    "a socket": _plant_socket,
    "a folder": os.mkdir,
    "a device": _plant_device,
}


def _plant(kind: str, path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    PLANTS[kind](path)


@pytest.mark.parametrize("kind", PLANTS)
def test_a_record_that_is_not_a_file_is_a_corrupt_session(populated: str, run: Run, kind: str) -> None:
    _plant(kind, Path(populated, AGENT, "state.json"))

    codes = {name: run(name, populated, AGENT).returncode for name in ("get", "update", "finalize")}
    assert codes == {"get": 6, "update": 6, "finalize": 6}
    assert run("should-resume", populated, AGENT).stdout == "ACK false\n"
    assert '"status": "corrupt"' in run("list", populated).stdout
    assert run("cleanup", populated).stdout == 'ACK {"removed": ["old-1", "old-2"]}\n'
    ended = run("cleanup", populated, "corrupt")
    if kind == "a folder":  # the content of the folder is not ours
        assert (ended.returncode, Path(populated, AGENT, "state.json").is_dir()) == (8, True)
    else:
        assert ended.stdout == 'ACK {"removed": ["agent-1"]}\n'


@pytest.mark.parametrize("kind", PLANTS)
def test_a_lock_that_is_not_a_file_stops_only_the_writers_of_that_session(
    populated: str, run: Run, tree: TreeOf, kind: str
) -> None:
    path = Path(populated, ".locks", f"{AGENT}.lock")
    _plant(kind, path)
    before = tree(f"{populated}/{AGENT}")

    for name in ("update", "finalize", "append"):
        ended = run(name, populated, AGENT)
        assert (ended.returncode, str(path) in ended.stderr, "Traceback" in ended.stderr) == (8, True, False)
    assert tree(f"{populated}/{AGENT}") == before
    assert [run(*words).returncode for words in (("get", populated, AGENT), ("update", populated, "agent-2"))] == [0, 0]
    assert run("cleanup", populated).stdout == 'ACK {"removed": ["old-1", "old-2"]}\n'


@pytest.mark.parametrize("kind", PLANTS)
def test_a_journal_that_is_not_a_file_leaves_the_record_usable(populated: str, run: Run, kind: str) -> None:
    path = Path(populated, AGENT, "events.jsonl")
    _plant(kind, path)

    for name in ("append", "entries"):
        ended = run(name, populated, AGENT)
        assert (ended.returncode, str(path) in ended.stderr, "Traceback" in ended.stderr) == (8, True, False)
    assert [run(name, populated, AGENT).returncode for name in ("get", "update", "finalize")] == [0, 0, 0]


@pytest.mark.parametrize("kind", PLANTS)
def test_a_settings_path_that_is_not_a_file_does_not_block_the_list_command(
    populated: str, run: Run, kind: str
) -> None:
    path = Path(populated, ".config.toml")
    _plant(kind, path)

    ended = run("list", populated)

    assert (ended.returncode, "Traceback" in ended.stderr) in {(0, False), (2, False), (8, False)}
    assert ended.returncode == 0 or str(path) in ended.stderr
