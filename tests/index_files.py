"""The entries of an index on disk, read and spoiled behind the back of the store."""

from __future__ import annotations

from pathlib import Path

from gaia_sessions.session.ids import encode_key
from gaia_sessions.store import index, index_repair
from gaia_sessions.store.directory import Directory


def shard_of(root: str | Path, *key: str) -> Path:
    """The file that has the entries of ``key``."""
    [shard] = index.lines_by_shard({"one": [key]})
    return Path(root, ".index", shard)


def line(agent_id: str, *key: str) -> str:
    """The entry of a session under ``key``, as ``entries`` has it."""
    return f"{encode_key(*key)} {agent_id}"


def entries(root: str | Path) -> set[str]:
    """Every entry that nobody has removed, as a line, and the names of all other files of the index."""
    found: set[str] = set()
    for path in Path(root, ".index").rglob("*"):
        if index_repair.is_shard(path.name) and path.is_file():
            found |= {one.decode() for one in path.read_bytes().split(b"\n") if index.is_entry(one)}
        elif path.is_file():
            found.add(path.name)
    return found


def plant(root: str | Path, agent_id: str, *key: str) -> None:
    """Adds an entry that no writer would, for anything in the place of an id."""
    with Directory.at(str(root)) as opened:
        index.add(opened, agent_id, [key])


def lose(root: str | Path, agent_id: str, *key: str) -> None:
    """Takes an entry away that the session should have."""
    with Directory.at(str(root)) as opened:
        index.remove(opened, {agent_id: [key]})
