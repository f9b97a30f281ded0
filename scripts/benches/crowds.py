"""What many sessions cost: lists, the ends of turns, memory, cleanup.

Old sessions ended two days ago, the others an hour ago; a few are still at work.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import timedelta
from functools import partial

from gaia_sessions import Sessions, cleanup_sessions, list_sessions
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import new_record
from gaia_sessions.system import utc_now

from . import samples
from .calls import bare_load
from .client import Client
from .findings import Finding
from .starts import COMMAND
from .timing import Start, compare, times_bare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.file_store import FileStore

    from .timing import Act

_MANY = 10_000
_ACTIVE = 50
_LISTED, _WAITING = 1000, 100
_OPEN, _FEW_OPEN = 5_000, 5
_APP, _USERS, _OF_A_USER = "app", 500, 20
_HOURS = 24
_OLD = timedelta(hours=48)
_RECENT = timedelta(hours=1)

_LIST_ROUNDS = 61
_CLEANUP_ROUNDS = 15

# Until a child runs another program, its parent's memory counts as its own, so a small program starts it.
_PEAK = (
    "import resource, subprocess, sys\n"
    "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)\n"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
)
_UNIT = 1 if sys.platform == "darwin" else 1024


def listing(folder: str) -> Iterator[Finding]:
    """Measures the list of open sessions among many, compared with a store of only those, and with plain code."""
    crowd, alone = (_crowd(os.path.join(folder, name), ended) for name, ended in _sizes())
    ratio = compare(_LIST_ROUNDS, lambda _: (partial(_list_active, crowd.root), partial(_list_active, alone.root)))
    what = f"list --active-only, {_ACTIVE} of {_MANY}"
    yield Finding(f"{what}: time of {_ACTIVE} of {_ACTIVE}", ratio.wall, 1.5)
    yield Finding(f"{what}: CPU of {_ACTIVE} of {_ACTIVE}", ratio.cpu, 1.5)
    ratio = compare(_LIST_ROUNDS, lambda _: (partial(_list_active, alone.root), partial(_list_bare, alone.root)))
    yield Finding(f"list of {_ACTIVE}: CPU of reading, parsing and sorting alone", ratio.cpu, 3.5)


def pending(folder: str) -> Iterator[Finding]:
    """Measures what waits for a person among many sessions, compared with a store of only those."""
    crowd, alone = (_crowd(os.path.join(folder, name), ended) for name, ended in _sizes())
    ratio = compare(_LIST_ROUNDS, lambda _: (partial(_ask, crowd.root), partial(_ask, alone.root)))
    yield Finding(f"pending, {_ACTIVE} of {_MANY}: CPU of {_ACTIVE} of {_ACTIVE}", ratio.cpu, 1.5)


def of_user(folder: str) -> Iterator[Finding]:
    """Measures the open sessions of one user of an app among many users, compared with a store of only those."""
    crowd, alone = (
        _sessions_of_app(os.path.join(folder, name), users) for name, users in (("crowd", _USERS), ("alone", 1))
    )
    ratio = compare(_LIST_ROUNDS, lambda _: (partial(_list_of_user, crowd), partial(_list_of_user, alone)))
    yield Finding(
        f"sessions of a user, {_OF_A_USER} of {_USERS * _OF_A_USER}: CPU of {_OF_A_USER} alone", ratio.cpu, 1.5
    )


def _sessions_of_app(folder: str, users: int) -> FileStore:
    _, store = samples.project(folder)
    now = utc_now()
    for number in range(users * _OF_A_USER):
        record = new_record(f"session-{number}", _APP, "general", {}, now)
        store.create({**record, "app": _APP, "user": str(number % users)})
    return store


def _list_of_user(store: FileStore) -> None:
    if len(list(store.open_of_app(_APP, "0"))) != _OF_A_USER:
        raise RuntimeError(f"{_OF_A_USER} sessions were expected")


def listing_with_waiting(folder: str) -> Iterator[Finding]:
    """Measures a list while starts wait in the inbox, compared with none; and a long list with a short one."""
    (many, of_what), (none, _), (empty, _) = (
        _list_with(os.path.join(folder, f"{listed}-{waiting}"), listed, waiting)
        for listed, waiting in ((_LISTED, _WAITING), (_LISTED, 0), (_WAITING, 0))
    )
    yield Finding(f"list of {_LISTED}, {_WAITING} waiting: {of_what} of none waiting", many / none, 1.5)
    yield Finding(f"list of {_LISTED}: {of_what} of {_WAITING}", none / empty, 4.0)


def _list_with(folder: str, listed: int, waiting: int) -> tuple[float, str]:
    project, store = samples.project(folder)
    now = utc_now()
    for _ in range(listed - _WAITING):
        samples.create_paused(store, now)
    for number in range(_WAITING):
        samples.create_delegated(store, now, f"conversation-{number}")
        if number < waiting:
            store.defer(_start_in(f"conversation-{number}", now), now)
    started = [listed, waiting]

    def check(printed: bytes) -> None:
        if [printed.count(b"\n"), printed.count(b"  working  ")] != started:
            raise RuntimeError(f"{started} sessions, and those that had started, were expected, not {printed!r}")

    return times_bare(Start("list", (sys.executable, str(COMMAND), "list"), project, bytes, check))


def _start_in(conversation: str, now: datetime) -> Event:
    return {
        "kind": "start",
        "at": format_time(now),
        "host": "claude-code",
        "host_session_id": conversation,
        "host_agent_id": f"agent-in-{conversation}",
        "tool_use_id": f"of-{conversation}",
        "agent_name": samples.AGENT,
    }


def _sizes() -> tuple[tuple[str, int], ...]:
    return ("crowd", _MANY - _ACTIVE), ("alone", 0)


def _list_active(root: str) -> None:
    if len(list(list_sessions(active_only=True, root=root))) != _ACTIVE:
        raise RuntimeError(f"{_ACTIVE} sessions were expected")


def _ask(root: str) -> None:
    if len(Sessions(root).pending()) != _ACTIVE:
        raise RuntimeError(f"{_ACTIVE} sessions were expected to wait")


def _list_bare(root: str) -> list[Record]:
    names = [name for name in os.listdir(root) if not name.startswith(".")]
    records = [bare_load(os.path.join(root, name, "state.json")) for name in names]
    return sorted(records, key=lambda record: record["last_updated"], reverse=True)


def turns(folder: str) -> Iterator[Finding]:
    """Measures the end of a turn while many sessions of other conversations are open, compared with a few."""
    (many, of_what), (few, _) = (_end_of_turn(os.path.join(folder, str(open_)), open_) for open_ in (_OPEN, _FEW_OPEN))
    yield Finding(f"end of a turn, {_OPEN} open elsewhere: {of_what} of {_FEW_OPEN}", many / few, 2.0)


def _end_of_turn(folder: str, open_: int) -> tuple[float, str]:
    project, store = samples.project(folder)
    for number in range(open_):
        samples.create_delegated(store, utc_now(), f"elsewhere-{number}")
    client = Client(project)
    stop = partial(client.of_main, "Stop", background_tasks=[])
    return times_bare(client.start("every_event, the end of a turn", "known", stop))


def memory(folder: str) -> Iterator[Finding]:
    """Measures the peak memory of a list of many sessions."""
    store = _crowd(folder, _MANY - _ACTIVE)
    command = (sys.executable, "-c", _PEAK, sys.executable, COMMAND, "--root", store.root, "list", "--json")
    peak = int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout) * _UNIT
    yield Finding(f"list --json of {_MANY}: peak memory", peak / (1 << 20), 80, "MiB")


def cleanup(folder: str) -> Iterator[Finding]:
    """Measures choosing and removing old sessions of a host, compared with removing copies of them."""
    for old, all_, limit in ((500, 1000, 2.0), (1000, _MANY, 4.5)):
        place = os.path.join(folder, str(all_))
        store = _crowd(place, all_ - old - _ACTIVE, samples.create_run)
        ratio = compare(_CLEANUP_ROUNDS, partial(_cleaning, store, place, old))
        yield Finding(f"cleanup of {old} old among {all_}: time of rmtree", ratio.wall, limit)


def _cleaning(store: FileStore, place: str, old: int, _round: int) -> tuple[Act, Act]:
    """Returns acts that remove ``old`` new sessions of the past from the store, or copies of their folders."""
    before = utc_now() - _OLD
    names = [samples.create_run(store, before) for _ in range(old)]
    copies = [os.path.join(place, "copies", name) for name in names]
    for name, copy in zip(names, copies, strict=True):
        shutil.copytree(os.path.join(store.root, name), copy)
    os.sync()
    return partial(_clean, store.root, old), partial(_remove, copies)


def _clean(root: str, expected: int) -> None:
    removed = len(cleanup_sessions(_HOURS, root=root)["removed"])
    if removed != expected:
        raise RuntimeError(f"{expected} sessions were to be removed, not {removed}")


def _remove(folders: list[str]) -> None:
    for folder in folders:
        shutil.rmtree(folder)


def _crowd(folder: str, ended: int, create: Callable[[FileStore, datetime], str] = samples.create_ended) -> FileStore:
    """Returns a store with ``ended`` final sessions and a few open ones."""
    _, store = samples.project(folder)
    recently = utc_now() - _RECENT
    for _ in range(ended):
        create(store, recently)
    for _ in range(_ACTIVE):
        samples.create_paused(store, utc_now())
    os.sync()
    return store
