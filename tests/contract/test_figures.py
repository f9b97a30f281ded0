"""The figures of removed sessions: they are read in order, despite foreign lines and files."""

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
def test_a_store_has_no_figures_at_first_and_returns_added_ones_in_order(store: Store) -> None:
    assert list(store.figures()) == []
    store.add_figures([FIRST, SECOND])
    store.add_figures([FIRST])
    assert list(store.figures()) == [FIRST, SECOND, FIRST]


def test_reading_figures_of_a_missing_root_does_not_create_the_root(tmp_path: Path) -> None:
    assert list(FileStore(f"{tmp_path}/root").figures()) == []
    assert list(tmp_path.iterdir()) == []


def test_a_store_with_keep_figures_off_writes_no_figures_but_reads_existing_ones(tmp_path: Path) -> None:
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
        ("text that is not JSON", b'hello\n{"n": 1}\n\xff\xfe\n', [None, {"n": 1}, None]),
        ("JSON of another kind", b'[1]\n1\nnull\n{"n": 1}\n', [None, None, None, {"n": 1}]),
        ("the same key twice", b'{"n": 1, "n": 2}\n', [None]),
        ("nested too deeply", b'{"n": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", [None]),
        ("as long as a line may be", b'{"n": "%s"}\n' % (b"x" * 65_526), [{"n": "x" * 65_526}]),
        ("a line that is too long", b'{"n": "%s"}\n{"n": 1}\n' % (b"x" * 65_527), [None, {"n": 1}]),
        ("a line that is much too long", b"x" * 1_000_000 + b'\n{"n": 1}\n', [None, {"n": 1}]),
    ],
)
def test_lines_that_are_not_figures_are_reported_and_later_figures_are_read(
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


def test_a_large_sparse_file_within_the_limit_is_one_bad_line(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path))
    with Path(tmp_path, FILE).open("wb") as file:
        file.truncate(200 << 20)
    store.add_figures([SECOND])
    assert list(store.figures()) == [None, SECOND]


def test_a_figures_file_over_the_limit_is_refused_with_a_hint(tmp_path: Path) -> None:
    path = Path(tmp_path, FILE)
    with path.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(StoreFailure, match="it has more than 256 MiB") as raised:
        list(FileStore(str(tmp_path)).figures())
    assert raised.value.hint == f"move {path} away, or delete it"


def test_an_addition_that_would_make_the_file_too_large_to_read_is_refused(tmp_path: Path) -> None:
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
def test_a_link_pipe_or_folder_in_place_of_the_file_is_neither_read_nor_written(
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


def test_the_figures_file_is_private_and_a_hard_link_to_it_keeps_its_old_lines(tmp_path: Path) -> None:
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


def test_adding_figures_waits_for_the_lock_of_another_writer(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path), lock_timeout=0)
    with store.lock_key(KEY), pytest.raises(LockTimeout):
        store.add_figures([FIRST])
    assert list(store.figures()) == []


def test_the_figures_file_is_not_a_session(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path))
    store.add_figures([FIRST])
    assert (store.ids(), list(store.scan()), store.find(("tool_use_id", "x"))) == ([], [], None)  # type: ignore[arg-type]
    with pytest.raises(SessionNotFound):
        store.read("agent-1")
