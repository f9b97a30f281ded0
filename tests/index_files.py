"""Reads and damages the entries of an index on disk without the store."""

from __future__ import annotations

from pathlib import Path

from gaia_sessions.session.ids import encode_key
from gaia_sessions.store import index, index_repair
from gaia_sessions.store.directory import Directory


def shard_of(root: str | Path, *key: str) -> Path:
    """The file with the entries of ``key``."""
    [shard] = index.lines_by_shard({"one": [key]})
    return Path(root, ".index", shard)


def line(agent_id: str, *key: str) -> str:
    """The entry of a session under ``key``, as ``entries`` returns it."""
    return f"{encode_key(*key)} {agent_id}"


def entries(root: str | Path) -> set[str]:
    """Every present entry as a line, and the names of all other files of the index."""
    found: set[str] = set()
    for path in Path(root, ".index").rglob("*"):
        if index_repair.is_shard(path.name) and path.is_file():
            found |= {one.decode() for one in path.read_bytes().split(b"\n") if index.is_entry(one)}
        elif path.is_file():
            found.add(path.name)
    return found


def plant(root: str | Path, agent_id: str, *key: str) -> None:
    """Adds an entry that a writer would not add. The ID can be any text."""
    with Directory.at(str(root)) as opened:
        index.add(opened, agent_id, [key])


def lose(root: str | Path, agent_id: str, *key: str) -> None:
    """Removes an entry that the session needs."""
    with Directory.at(str(root)) as opened:
        index.remove(opened, {agent_id: [key]})
