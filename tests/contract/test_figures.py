"""What removed sessions leave: objects in the order in which they were added, beside whatever others wrote there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.config import Config
from gaia_sessions.errors import LockTimeout, SessionNotFound, StoreFailure
from gaia_sessions.jsonio.strict import dump_line
from gaia_sessions.store.figures_file import KEY
from gaia_sessions.store.file_store import FileStore, open_store
from tests.contract.conftest import not_planned
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.store.port import Store

FILE = ".stats.jsonl"
FIRST: dict[str, Json] = {"agent_id": "agent-1", "agent_name": "Ärger\n", "stays": {"planning": [1, 2]}}
SECOND: dict[str, Json] = {"agent_id": "agent-2"}


@not_planned
def test_there_are_none_at_first_and_then_those_that_were_added_in_their_order(store: Store) -> None:
    assert list(store.figures()) == []
    store.add_figures([FIRST, SECOND])
    store.add_figures([FIRST])
    assert list(store.figures()) == [FIRST, SECOND, FIRST]


def test_asking_a_store_that_is_not_there_makes_none(tmp_path: Path) -> None:
    assert list(FileStore(f"{tmp_path}/root").figures()) == []
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_to_keep_none_writes_none_and_reads_what_is_there(tmp_path: Path) -> None:
    root = f"{tmp_path}/root"
    keeping_none = open_store(root, Config({"keep_figures": False}))
    keeping_none.add_figures([FIRST])
    assert list(tmp_path.iterdir()) == []

    open_store(root, Config({})).add_figures([FIRST])
    keeping_none.add_figures([SECOND])
    assert list(keeping_none.figures()) == [FIRST]


@table(
    "name, found, read",
    [
        ("nothing", b"", []),
        ("empty lines", b"\n\n\n", []),
        ("a torn line", b'{"agent_id": "agent', [None]),
        ("an object without its newline", b'{"n": 1}', [{"n": 1}]),
        ("what is no JSON", b'hello\n{"n": 1}\n\xff\xfe\n', [None, {"n": 1}, None]),
        ("JSON of another kind", b'[1]\n1\nnull\n{"n": 1}\n', [None, None, None, {"n": 1}]),
        ("the same key twice", b'{"n": 1, "n": 2}\n', [None]),
        ("nested too deeply", b'{"n": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", [None]),
        ("as long as a line may be", b'{"n": "%s"}\n' % (b"x" * 65_526), [{"n": "x" * 65_526}]),
        ("one longer than that", b'{"n": "%s"}\n{"n": 1}\n' % (b"x" * 65_527), [None, {"n": 1}]),
        ("one much longer", b"x" * 1_000_000 + b'\n{"n": 1}\n', [None, {"n": 1}]),
    ],
)
def test_lines_of_others_are_passed_over_and_told_and_those_behind_them_are_found(
    tmp_path: Path, name: str, found: bytes, read: list[object]
) -> None:
    path = tmp_path / name / FILE
    path.parent.mkdir()
    path.write_bytes(found)
    store = FileStore(str(path.parent))
    assert list(store.figures()) == read
    store.add_figures([SECOND])
    assert list(store.figures()) == [*read, SECOND]
    assert path.read_bytes().startswith(found)


def test_a_file_of_nothing_that_is_nearly_as_large_as_one_may_be_is_one_line_that_is_none(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path))
    with Path(tmp_path, FILE).open("wb") as file:
        file.truncate(200 << 20)
    store.add_figures([SECOND])
    assert list(store.figures()) == [None, SECOND]


def test_a_file_of_a_gigabyte_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = Path(tmp_path, FILE)
    with path.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(StoreFailure, match="it has more than 256 MiB") as raised:
        list(FileStore(str(tmp_path)).figures())
    assert raised.value.hint == f"move {path} away, or delete it"


def test_nothing_is_added_to_a_file_that_nobody_could_read_then(tmp_path: Path) -> None:
    store, path, line = FileStore(str(tmp_path)), tmp_path / FILE, len(dump_line(SECOND))
    with path.open("wb") as file:
        file.truncate((256 << 20) - line - 1)
    store.add_figures([SECOND])
    size = path.stat().st_size
    with pytest.raises(StoreFailure, match="cannot append to: it has more than 256 MiB"):
        store.add_figures([SECOND])
    assert (path.stat().st_size, list(store.figures())) == (size, [None, SECOND])


def _link(path: Path, elsewhere: Path) -> None:
    elsewhere.write_bytes(b"mine")
    path.symlink_to(elsewhere)


@table(
    "name, make",
    [
        ("a link", _link),
        ("a link to nothing", lambda path, elsewhere: path.symlink_to(elsewhere)),
        ("a pipe", lambda path, _: os.mkfifo(path)),
        ("a folder", lambda path, _: path.mkdir()),
    ],
)
def test_what_is_no_file_is_neither_read_nor_written(
    tmp_path: Path, name: str, make: Callable[[Path, Path], object]
) -> None:
    root, elsewhere = tmp_path / name / "root", tmp_path / name / "elsewhere"
    root.mkdir(parents=True)
    make(root / FILE, elsewhere)
    before = elsewhere.read_bytes() if elsewhere.exists() else None
    store = FileStore(str(root))

    with pytest.raises(StoreFailure, match=FILE):
        list(store.figures())
    with pytest.raises(StoreFailure, match=FILE):
        store.add_figures([SECOND])
    assert (elsewhere.read_bytes() if elsewhere.exists() else None) == before


def test_the_file_is_private_and_a_second_name_of_it_keeps_what_there_was(tmp_path: Path) -> None:
    store, path, snapshot = FileStore(str(tmp_path)), tmp_path / FILE, tmp_path / "snapshot"
    umask = os.umask(0)
    try:
        store.add_figures([FIRST])
    finally:
        os.umask(umask)
    before = path.read_bytes()
    snapshot.hardlink_to(path)
    store.add_figures([SECOND])

    assert (list(store.figures()), snapshot.read_bytes()) == ([FIRST, SECOND], before)
    assert path.stat().st_mode & 0o777 == 0o600


def test_whoever_adds_waits_for_another_one_who_does(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path), lock_timeout=0)
    with store.lock_key(KEY), pytest.raises(LockTimeout):
        store.add_figures([FIRST])
    assert list(store.figures()) == []


def test_no_session_can_have_the_name_of_the_file(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path))
    store.add_figures([FIRST])
    assert (store.ids(), list(store.scan()), store.find(("tool_use_id", "x"))) == ([], [], None)  # type: ignore[arg-type]
    with pytest.raises(SessionNotFound):
        store.read("agent-1")
