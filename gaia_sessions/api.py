"""The Python API: one function per thing a program wants of its sessions.

The first five names and their leading arguments are those of the users' documents. Owns the wiring of
root, settings, clock and store for one call, and nothing else. Every function takes ``root``; None
means the one the command line would find from here. All raise the errors of ``gaia_sessions.errors``.
"""

from __future__ import annotations

import os

from . import config
from .clock import utc_now
from .errors import SessionNotFound, StoreFailure
from .ids import is_agent_id
from .lifecycle import resuming, sessions
from .lifecycle.news import apply_deferred
from .project import find_root
from .stores.files import FileStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from .config import Config
    from .lifecycle.cleanup import Report
    from .policy import Decision
    from .shape import CorruptSummary, Record, Summary


def create_session(
    agent_name: str = "unknown",
    purpose: str = "general",
    metadata: Mapping[str, object] | None = None,
    *,
    agent_id: str | None = None,
    root: str | None = None,
) -> str:
    """The id of a new session in phase ``initializing``, durable on return.

    ``agent_id``: an id of your own instead of a made one. Raises ``SessionExists``, ``InvalidId``,
    ``InvalidInput`` for metadata that is not JSON, ``TooLarge`` over 1 MiB, ``StoreFailure``.
    """
    opened = Sessions(root)
    opened.take_in_deferred()
    record = sessions.create(opened.store, utc_now(), os.urandom, agent_name, purpose, metadata, agent_id)
    return record["agent_id"]


def update_state(
    agent_id: str,
    phase: str | None = None,
    metadata: Mapping[str, object] | None = None,
    error: str | None = None,
    *,
    resume_ready: bool | None = None,
    if_revision: int | None = None,
    root: str | None = None,
) -> Record:
    """The new record, durable on return. ``metadata`` is merged one level deep; ``error`` counts one more error.

    The same phase again is a heartbeat; a final one finalizes. ``if_revision`` writes only if the record
    is at that revision. Raises ``SessionNotFound``, ``UnknownPhase``, ``SessionFinal``, ``IllegalMove``,
    ``ResumeNotAllowed``, ``RevisionChanged``, ``NewerSchema``, ``CorruptSession``, ``InvalidInput``,
    ``LockTimeout``, ``StoreFailure``, ``DurabilityUnknown``.
    """
    asked = sessions.Update(phase, metadata, error, resume_ready=resume_ready, if_revision=if_revision)
    opened = Sessions(root)
    opened.take_in_deferred()
    return sessions.update(opened.store, utc_now(), agent_id, asked)


def should_resume(agent_id: str, *, root: str | None = None) -> bool:
    """Whether the work may be resumed; False for missing, corrupt and impossible ids too. Writes nothing."""
    return is_agent_id(agent_id) and explain_resume(agent_id, root=root)["should_resume"]


def explain_resume(agent_id: str, *, root: str | None = None) -> Decision:
    """The decision with its reason and every check: see ``policy.decide``. Raises ``InvalidId``, ``StoreFailure``."""
    opened = Sessions(root)
    decision, _ = resuming.consider(opened.store, utc_now(), agent_id, opened.config.limits)
    return decision


def get_session(agent_id: str, *, root: str | None = None) -> Record | None:
    """The record, or None if there is none. Raises ``CorruptSession``, ``InvalidId``, ``StoreFailure``."""
    try:
        return Sessions(root).store.read(agent_id)
    except SessionNotFound:
        return None


def finalize_session(
    agent_id: str, outcome: str, summary: str | None = None, *, error: str | None = None, root: str | None = None
) -> Record:
    """The record, ended as ``completed``, ``failed`` or ``abandoned``; the same outcome again changes nothing.

    Raises ``UnknownOutcome``, ``SessionFinal`` if it ended otherwise, and what ``update_state`` raises.
    """
    opened = Sessions(root)
    opened.take_in_deferred()
    return sessions.finalize(opened.store, utc_now(), agent_id, outcome, summary, error)


def list_sessions(
    *,
    active_only: bool = False,
    agent_name: str | None = None,
    phases: Iterable[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    root: str | None = None,
) -> Iterator[Summary | CorruptSummary]:
    """Summaries, the latest activity first; one that cannot be read has ``status`` ``corrupt`` and a ``problem``.

    Active is what is not final; ``since`` and ``until`` (aware times) bound ``created_at``.
    """
    from .lifecycle import listing

    wanted = listing.Filter(active_only=active_only, agent_name=agent_name, phases=phases, since=since, until=until)
    return listing.list_sessions(Sessions(root).store, wanted, limit)


def cleanup_sessions(
    hours: float = 24.0, *, dry_run: bool = False, corrupt: bool = False, root: str | None = None
) -> Report:
    """Removes what nobody touched for ``hours``, never what may be resumed or runs; says what it did.

    ``corrupt`` removes what cannot be read as well. Raises ``InvalidInput`` for hours below 0.
    """
    from .lifecycle import cleanup

    opened = Sessions(root)
    now = utc_now()
    rule = cleanup.Rule(now, hours, opened.config.limits, corrupt=corrupt)
    if not dry_run:
        opened.take_in_deferred()
    return cleanup.cleanup(opened.store, rule, dry_run=dry_run)


class Sessions:
    """The settings and the store of one root, found and read once."""

    __slots__ = ("config", "root", "store")

    def __init__(self, root: str | None = None, flags: Mapping[str, object] | None = None) -> None:
        self.root = find_root(root, os.environ, _here())
        self.config: Config = config.load(self.root, os.environ, flags)
        durable = self.config.durability == "full"
        self.store = FileStore(self.root, durable=durable, lock_timeout=self.config.lock_timeout)

    def take_in_deferred(self) -> None:
        """Whoever writes first applies what waits in the inbox."""
        apply_deferred(self.store, utc_now())


def _here() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise StoreFailure("find the project from", ".", error.strerror or str(error)) from error
