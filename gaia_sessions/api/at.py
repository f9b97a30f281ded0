"""Where an operation on sessions works: the store, the settings and the time of one call.

``read`` and ``write`` call an operation. ``write`` first applies the events that wait in the inbox. On a server,
``write`` calls the operation again if the connection was lost and nothing is written.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from gaia_sessions import config, errors
from gaia_sessions.errors import StoreFailure
from gaia_sessions.store.file_store import open_store
from gaia_sessions.system import utc_now
from gaia_sessions.system.project_root import (
    FILES_VARIABLE,
    ROOT_VARIABLE,
    check_links,
    check_owner,
    find_root,
    is_on_server,
    working_directory,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime
    from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

    from gaia_sessions.config import Config
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.planned import Plan
    from gaia_sessions.store.port import Store, StoreReader

    Root: TypeAlias = str | os.PathLike[str] | None
    Arguments = ParamSpec("Arguments")
    Result = TypeVar("Result")


class Place:
    """A folder of sessions, which need not exist, or a database on a server; and the settings for it."""

    __slots__ = ("config", "folder", "root", "seconds_at_first")

    def __init__(self, root: Root = None, flags: Mapping[str, object] | None = None) -> None:
        self.root = find_root(_text_of(root), os.environ, working_directory())
        self.folder = None if is_on_server(self.root) else self.root  # None: the sessions are in no folder
        # The settings for a server are those of the project of the working directory.
        own = self.folder or find_root(None, os.environ, working_directory() or os.sep, only_files=True)
        try:
            check_owner(own)
            check_links(own)
        except StoreFailure as error:
            if self.folder is None:  # the variable of the root holds the URL
                error.hint = error.hint.replace(f" {ROOT_VARIABLE}=", f" {FILES_VARIABLE}=")
            raise
        settings = config.load(own, os.environ, flags)
        self.config = settings if self.folder else config.Config({**vars(settings), "has_hooks": False})
        self.seconds_at_first: float | None = None  # how long a server may take to answer for the first time

    @property
    def is_there(self) -> bool:
        """Whether the root exists. A server is not asked: each operation fails if it has no tables."""
        return self.folder is None or os.path.exists(self.folder)

    @property
    def store(self) -> Store:
        """A new store for one call; leaving its ``with`` block closes it."""
        if self.folder is not None:
            return open_store(self.root, self.config)
        with needing_driver(self.root):  # the driver costs more than any command on files
            from gaia_sessions.postgres.store import open_store as open_postgres
        return open_postgres(self.root, self.config, seconds_at_first=self.seconds_at_first)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.root,)  # unpickling reads the settings again


def _text_of(root: Root) -> str | None:
    text = os.fspath(root) if isinstance(root, os.PathLike) else root
    if text is None or isinstance(text, str):
        return text
    raise errors.BadArgument("root", root, "a folder, or the URL of a server")


@contextmanager
def needing_driver(url: str) -> Iterator[None]:
    """Raises ``StoreFailure`` if the block cannot import the driver of the server at ``url``, which is an extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        hint = "type: pip install 'gaia-sessions[postgres]'"
        raise StoreFailure("use", url, "the driver psycopg is not installed", hint) from None


class Reading:
    """What an operation that reads gets; ``store`` has the sessions as they are stored."""

    __slots__ = ("config", "now", "root", "store")

    def __init__(self, store: Store, now: datetime, config: Config, root: str) -> None:
        self.store = store
        self.now = now
        self.config = config
        self.root = root

    def preview(self) -> StoreReader | Plan:
        """Returns the sessions as if the waiting events were applied; each call looks again."""
        if is_on_server(self.root):  # no hook puts an event there
            return self.store
        from .foresight import foreseen_by_reader

        return foreseen_by_reader(self.store, self.now, self.config)

    def plan(self) -> Plan:
        """Returns what ``preview`` returns, always as a plan: a dry run can change a plan."""
        from .foresight import foreseen

        return foreseen(self.store, self.now, self.config)


class Writing(Reading):
    """What an operation that writes gets; the waiting events are already in ``store``."""

    __slots__ = ()

    def change(self, agent_id: str, rule: Callable[[Record, datetime], Record], reserved: int = 0) -> Record:
        """Changes the session by ``rule`` in one write, leaves ``reserved`` bytes for its end, returns the record."""
        return self.store.change(agent_id, lambda record: rule(record, self.now), reserved=reserved)

    def shell(self) -> str | None:
        """Returns the host whose agent's shell runs this process; None for a person or a program."""
        from gaia_sessions.hosts import host_of_shell

        return host_of_shell(os.environ)


def read(
    place: Place,
    do: Callable[Concatenate[Reading, Arguments], Result],
    /,
    *arguments: Arguments.args,
    **named: Arguments.kwargs,
) -> Result:
    """Returns what ``do`` returns for the sessions of ``place``, and writes nothing."""
    with place.store as store:
        # An iterator that this returns keeps its own files open after the store is closed.
        return do(Reading(store, utc_now(), place.config, place.root), *arguments, **named)


@contextmanager
def store_of(place: Place, *, dry_run: bool) -> Iterator[Store]:
    """Yields the store with the waiting events applied, or for a dry run a plan with them applied."""
    if not dry_run:
        write(place, lambda _: None)
    with place.store as store:
        reading = Reading(store, utc_now(), place.config, place.root)
        yield reading.plan() if dry_run else store  # type: ignore[misc]  # a plan has the methods that are called


def write(
    place: Place,
    do: Callable[Concatenate[Writing, Arguments], Result],
    /,
    *arguments: Arguments.args,
    **named: Arguments.kwargs,
) -> Result:
    """Applies the waiting events, logs which, and returns what ``do`` returns for the sessions of ``place``."""
    from gaia_sessions.ingest.deferred import apply_deferred

    now = utc_now()
    with place.store as store:
        at = Writing(store, now, place.config, place.root)
        if place.folder is None:  # no hook puts an event there
            first = tuple(map(_readable_again, arguments))
            last = {name: _readable_again(value) for name, value in named.items()}
            return store.repeated(lambda: do(at, *first, **last))  # type: ignore[arg-type]  # the same values
        applied = apply_deferred(store, now, place.config)
        if applied:
            store.close()  # else the log may find no free file descriptor
            from gaia_sessions.session.clock import format_time
            from gaia_sessions.store import hook_log

            hook_log.append_line(place.folder, "inbox", {"at": format_time(now), "inbox": applied})
        return do(at, *arguments, **named)


def _readable_again(value: object) -> object:
    """Returns ``value``, or for an iterator the list of what it yields."""
    return [*value] if hasattr(value, "__next__") else value  # type: ignore[misc]  # an iterator
