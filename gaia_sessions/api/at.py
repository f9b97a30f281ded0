"""Where an operation on sessions works, and what it is given: the store, the settings and the moment of one call.

``read`` and ``write`` call an operation. A write first applies the events that wait in the inbox.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from gaia_sessions import config
from gaia_sessions.store.file_store import open_store
from gaia_sessions.system import utc_now
from gaia_sessions.system.project_root import check_links, check_owner, find_root, working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime
    from typing import Concatenate, ParamSpec, TypeVar

    from gaia_sessions.config import Config
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.planned import Plan
    from gaia_sessions.store.port import Store, StoreReader

    Arguments = ParamSpec("Arguments")
    Result = TypeVar("Result")


class Place:
    """A directory of sessions, which need not exist, and the settings that hold there."""

    __slots__ = ("config", "root")

    def __init__(self, root: str | None = None, flags: Mapping[str, object] | None = None) -> None:
        self.root = find_root(root, os.environ, working_directory())
        check_owner(self.root)
        check_links(self.root)
        self.config = config.load(self.root, os.environ, flags)

    @property
    def store(self) -> Store:
        """The store for one call, at whose end its block ends; each use of this is another one."""
        return open_store(self.root, self.config)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.root,)  # wherever it is unpickled, the settings are those of that place


class Reading:
    """What an operation that reads is given; store: the sessions as they are stored."""

    __slots__ = ("config", "now", "root", "store")

    def __init__(self, store: Store, now: datetime, config: Config, root: str) -> None:
        self.store = store
        self.now = now
        self.config = config
        self.root = root

    def preview(self) -> StoreReader | Plan:
        """The sessions as they will be once the events that wait are applied; each asks for these anew."""
        from .foresight import foreseen_by_reader

        return foreseen_by_reader(self.store, self.now, self.config)

    def plan(self) -> Plan:
        """The same as a plan, which takes what a dry run does."""
        from .foresight import foreseen

        return foreseen(self.store, self.now, self.config)


class Writing(Reading):
    """What an operation that writes is given: the waiting events are applied, so ``store`` has all there is."""

    __slots__ = ()

    def change(self, agent_id: str, rule: Callable[[Record, datetime], Record], reserved: int = 0) -> Record:
        """The session after ``rule``, in one write that leaves ``reserved`` bytes free for the end of the work."""
        return self.store.change(agent_id, lambda record: rule(record, self.now), reserved=reserved)

    def shell(self) -> str | None:
        """The host in whose agent's shell this is typed; None in that of a person or a program."""
        from gaia_sessions.hosts import host_of_shell

        return host_of_shell(os.environ)


def read(
    place: Place,
    do: Callable[Concatenate[Reading, Arguments], Result],
    /,
    *arguments: Arguments.args,
    **named: Arguments.kwargs,
) -> Result:
    """What ``do`` returns for the sessions of ``place``, and ``arguments``; nothing is written.

    The store is closed when this returns or raises. An iterator that ``do`` returns holds open what it reads, alone.
    """
    with place.store as store:
        return do(Reading(store, utc_now(), place.config, place.root), *arguments, **named)


@contextmanager
def store_of(place: Place, *, dry_run: bool) -> Iterator[Store]:
    """The store, with the waiting events applied; for a dry run a plan, which has them, and what is done to it."""
    if not dry_run:
        write(place, lambda _: None)
    with place.store as store:
        reading = Reading(store, utc_now(), place.config, place.root)
        yield reading.plan() if dry_run else store  # type: ignore[misc]  # a plan has what is called of it


def write(
    place: Place,
    do: Callable[Concatenate[Writing, Arguments], Result],
    /,
    *arguments: Arguments.args,
    **named: Arguments.kwargs,
) -> Result:
    """What ``do`` returns for the sessions of ``place``, and ``arguments``, once the waiting events are applied.

    It is logged which were.
    """
    from gaia_sessions.ingest.deferred import apply_deferred

    now = utc_now()
    with place.store as store:
        applied = apply_deferred(store, now, place.config)
        if applied:
            store.close()  # the root may be the last file that may be open
            from gaia_sessions.session.clock import format_time
            from gaia_sessions.store import hook_log

            hook_log.append_line(place.root, "inbox", {"at": format_time(now), "inbox": applied})
        return do(Writing(store, now, place.config, place.root), *arguments, **named)
