"""Completes the index and corrects its entries. Unlike ``index``, this module looks through every entry."""

from __future__ import annotations

from gaia_sessions.errors import SessionNotFound, SessionsError
from gaia_sessions.session import index_keys
from gaia_sessions.session.ids import is_agent_id, is_hex
from gaia_sessions.system import boots

from . import atomic, index, locks, reading
from . import root as roots
from .directory import TooBig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from gaia_sessions.session.index_keys import IndexKey

    from .directory import Directory
    from .index import LinesByShard
    from .port import RecordOrError

    ReadSession = Callable[[str], RecordOrError]

_PARTLY = b"%b-partly" % index.VERSION
"""Replaces the version in ``complete`` if only the sessions up to an ID have their entries; the ID follows."""

_MOST_HELD = 20_000
"""A rebuild adds the entries of at most this many sessions at once."""


def set_empty_complete(root: Directory) -> None:
    """Marks the index of an empty root as complete: every later session gets its entries before it exists."""

    def set_if_empty() -> None:
        if not reading.session_names(root):
            _note(root, index.VERSION)

    with root.make(roots.LOCKS) as folder:
        locks.run_if_free(folder, index.LOCK, set_if_empty)


def _note(root: Directory, *words: bytes) -> None:
    """Writes how complete the index is in this boot; the caller holds the lock ``LOCK``."""
    with root.make(roots.INDEX) as folder:
        atomic.replace(folder, index.COMPLETE, b" ".join([*words, boots.boot_signature()]), durable=False)


def is_shard(name: str) -> bool:
    """Returns whether a shard has this ``name``."""
    return name == index.ACTIVE_SHARD or (name.endswith(index.SUFFIX) and is_hex(name.removesuffix(index.SUFFIX), 2))


def is_unfinished(name: str) -> bool:
    """Returns whether ``name`` belongs to a temporary file of the index."""
    target = atomic.target_of(name)
    return target == index.COMPLETE or is_shard(target)


def is_own_name(name: str) -> bool:
    """Returns whether only the store gives this ``name`` to something in ``.index``."""
    return name == index.COMPLETE or is_shard(name) or is_unfinished(name)


def rebuild(root: Directory, read: ReadSession, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Makes the index complete, unless another process does that, or ``should_stop`` returns true before the end."""
    with root.make(roots.LOCKS) as folder:
        locks.run_if_free(folder, index.LOCK, lambda: _rebuild(root, read, should_stop))


def _rebuild(root: Directory, read: ReadSession, should_stop: Callable[[], bool]) -> None:
    with root.make(roots.INDEX) as folder:
        for shard in filter(is_shard, folder.names()):
            index.discard_foreign(folder, shard)
        last = _last_indexed_id(folder)
        for shard in () if last else filter(is_shard, folder.names()):
            index.rewrite(folder, shard)  # it may be from an earlier boot and hold anything: entries are not synced
        last, is_done = _add_each_session(root, folder, last, read, should_stop)
        if is_done:
            _note(root, index.VERSION)
        else:
            _note(root, _PARTLY, last.encode())


def _last_indexed_id(folder: Directory) -> str:
    """Returns the last ID of an unfinished rebuild in this boot; empty if there is none."""
    try:
        version, _, rest = folder.read(index.COMPLETE, index.MAX_NOTE).partition(b" ")
    except OSError:
        return ""
    last, _, boot = rest.partition(b" ")
    return last.decode("ascii", "replace") if version == _PARTLY and boots.is_this_boot(boot) else ""


def _add_each_session(
    root: Directory, folder: Directory, last: str, read: ReadSession, should_stop: Callable[[], bool]
) -> tuple[str, bool]:
    """Adds the entries of the sessions after ``last``; returns the last ID, and whether no session is left."""
    # This only adds entries: a session that is written or created meanwhile gets its entries from its writer, and an
    # entry too many is harmless. So the next rebuild can begin after the last ID.
    keys: dict[str, list[IndexKey]] = {}
    for agent_id in sorted(name for name in reading.session_names(root) if name > last):
        if should_stop():
            _add_missing(root, folder, keys)
            return last, False
        record = read(agent_id)
        if not isinstance(record, SessionNotFound):
            keys[agent_id] = (
                [index_keys.ACTIVE_KEY] if isinstance(record, SessionsError) else index_keys.keys_of(record)
            )
        last = agent_id
        if len(keys) == _MOST_HELD:
            _add_missing(root, folder, keys)
            keys = {}
    _add_missing(root, folder, keys)
    return last, True


def _add_missing(root: Directory, folder: Directory, keys: dict[str, list[IndexKey]]) -> None:
    for shard, lines in index.lines_by_shard(keys).items():
        try:
            present = set(index.read(folder, shard).split(b"\n"))
        except TooBig:  # readers skip a shard of this size
            present = set()
        missing = [line for line in lines if line not in present]
        if missing:
            index.add_lines(root, folder, shard, missing)


def repair(root: Directory, active: set[str], existing: set[str], read: ReadSession) -> None:
    """Completes the index and corrects its entries; ``active`` are the sessions that are not final."""
    shards = _shards(root)
    if not index.is_complete(root) or None in shards.values():
        rebuild(root, read)
        shards = _shards(root)
    unknown = {shard: _ids_in(data) - existing for shard, data in shards.items()}
    _drop_what_is_no_entry(root, unknown)
    # Sessions that came or went since ``existing`` was listed: ``_repair_entries`` reads each before it corrects one.
    mismatched = set(index.ids_under(root, index_keys.ACTIVE_KEY) or ()) ^ active
    wrong = mismatched.union(*(filter(is_agent_id, ids) for ids in unknown.values()))
    present = _lines_of(wrong, shards)
    with root.make(roots.LOCKS) as folder:
        for agent_id in wrong:
            _repair_entries(root, folder, agent_id, present.get(agent_id, {}))


def _drop_what_is_no_entry(root: Directory, unknown: dict[str, set[str]]) -> None:
    for shard, ids in unknown.items():
        if not all(map(is_agent_id, ids)):
            with root.below(roots.INDEX) as folder:
                index.rewrite(folder, shard)


def _repair_entries(root: Directory, folder: Directory, agent_id: str, present: LinesByShard) -> None:
    """Gives a session the entries of its record, unless it is locked or cannot be read."""

    def set_by_record() -> None:
        try:
            keys = index_keys.keys_of(reading.read(root, agent_id))
        except SessionNotFound:
            keys = []
        except SessionsError:  # corrupt: it may have been active, so its entry stays
            return
        wanted = index.lines_by_shard({agent_id: keys})
        with root.make(roots.INDEX) as opened:
            for shard, lines in _without(wanted, present).items():
                index.add_lines(root, opened, shard, lines)
        index.remove_lines(root, _without(present, wanted))

    locks.run_if_free(folder, locks.name_for(agent_id), set_by_record)


def _without(lines: LinesByShard, others: LinesByShard) -> LinesByShard:
    left = {shard: [line for line in found if line not in others.get(shard, ())] for shard, found in lines.items()}
    return {shard: found for shard, found in left.items() if found}


def indexed_ids(root: Directory) -> set[str]:
    """Returns every ID that has an entry."""
    return set(filter(is_agent_id, set().union(*map(_ids_in, _shards(root).values()))))


def _ids_in(data: bytes | None) -> set[str]:
    """Returns the IDs in a shard; for a line that is no entry, the text in the place of the ID."""
    import re  # no hook looks through all entries

    return {
        agent_id.decode("ascii", "replace") for agent_id in set(re.findall(rb"(?m)^(?!!)[^ \n]* (.*)$", data or b""))
    }


def remove_every_entry(root: Directory, agent_id: str) -> None:
    """Removes the entries of a session that is gone, whatever its record said: looks through all entries."""
    index.remove_lines(root, _lines_of({agent_id}, _shards(root)).get(agent_id, {}))


def _lines_of(ids: Collection[str], shards: dict[str, bytes | None]) -> dict[str, LinesByShard]:
    """Returns the entries of some sessions."""
    found: dict[str, LinesByShard] = {}
    wanted = {agent_id.encode() for agent_id in ids}
    for shard, data in shards.items() if wanted else ():
        for line in (data or b"").split(b"\n"):
            agent_id = line.rpartition(b" ")[2]
            if agent_id in wanted and index.is_entry(line):
                found.setdefault(agent_id.decode(), {}).setdefault(shard, []).append(line)
    return found


def _shards(root: Directory) -> dict[str, bytes | None]:
    """Returns what each shard holds; None for a shard that is not ours."""
    found: dict[str, bytes | None] = {}
    try:
        with root.below(roots.INDEX) as folder:
            for shard in filter(is_shard, folder.names()):
                try:
                    found[shard] = index.read(folder, shard)
                except OSError:
                    found[shard] = None
    except FileNotFoundError:
        return {}
    return found
