"""The Python API: one function for each thing that a program wants to do with its sessions.

The names and leading arguments of the first five functions are fixed by the users' documents. Every function takes
``root``, the directory of the sessions; None means the one that the command line would find from here. All of them
raise the errors of ``gaia_sessions.errors``, among them ``OwnedByAnother`` for the sessions of another user.
``Sessions``, next door, does the same for one root that is found and configured only once; other modules have the
functions and classes of one subject.
"""

from __future__ import annotations

from importlib import import_module

from gaia_sessions.errors import SessionNotFound
from gaia_sessions.session.ids import is_agent_id

from .sessions import DEFAULT_HOURS as DEFAULT_HOURS
from .sessions import Sessions as Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.policy import Decision
    from gaia_sessions.session.schema import Record
    from gaia_sessions.usecases.cleanup import Report
    from gaia_sessions.usecases.importing import Imported
    from gaia_sessions.usecases.listing import Line
    from gaia_sessions.usecases.reconcile import Reconciled
    from gaia_sessions.usecases.tree import TreeLine

    from .budgets import add_skill as add_skill
    from .budgets import add_todo as add_todo
    from .budgets import charge_tokens as charge_tokens
    from .budgets import session_todos as session_todos
    from .budgets import session_usage as session_usage
    from .budgets import set_todo_status as set_todo_status
    from .budgets import set_todos as set_todos
    from .budgets import set_token_total as set_token_total
    from .cancellation import CancellationToken as CancellationToken
    from .cancellation import cancel_conversation as cancel_conversation
    from .cancellation import cancel_session as cancel_session
    from .ephemeral import EphemeralSession as EphemeralSession
    from .transcript import add_message as add_message
    from .transcript import session_messages as session_messages
    from .waiting import session_report as session_report
    from .waiting import wait_sessions as wait_sessions

_NAMES = {
    "budgets": (
        *("add_skill", "add_todo", "charge_tokens", "session_todos", "session_usage"),
        *("set_todo_status", "set_todos", "set_token_total"),
    ),
    "cancellation": ("CancellationToken", "cancel_conversation", "cancel_session"),
    "ephemeral": ("EphemeralSession",),
    "transcript": ("add_message", "session_messages"),
    "waiting": ("session_report", "wait_sessions"),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
"""The module of each name that few calls need, so that the others do not pay for it."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def create_session(  # noqa: PLR0913  # one argument for each thing that may be said of a new session
    agent_name: str = "unknown",
    purpose: str = "general",
    metadata: Mapping[str, object] | None = None,
    *,
    agent_id: str | None = None,
    parent_id: str | None = None,
    max_depth: int | None = None,
    max_tokens: int | None = None,
    root: str | None = None,
) -> str:
    """Creates a session in phase ``initializing`` and returns its id. The session is on disk when this returns.

    ``agent_id`` is an id of your own choice; without it, one is generated. ``parent_id`` is the session that this one
    is created below. ``max_depth`` is the greatest depth that sessions below this one may have, counted from the root
    of the tree, at most that of the parent; without it that of the parent, or else 8. ``max_tokens`` is its budget.

    Raises ``SessionExists``, ``InvalidId``, ``InvalidInput`` for metadata that is not JSON, ``TooLarge`` for more than
    1 MiB, ``SessionNotFound`` and ``CorruptSession`` for the parent, ``TooDeep``, ``TooManyChildren`` if 5 children of
    the parent are at work, ``LockTimeout``, ``StoreFailure``, ``DurabilityUnknown``.
    """
    from gaia_sessions.session.requests import NewSession

    new = NewSession(
        agent_name, purpose, metadata, agent_id, parent_id=parent_id, max_depth=max_depth, max_tokens=max_tokens
    )
    return Sessions(root).create(new)


def update_state(  # noqa: PLR0913  # one argument for each thing that an update can change
    agent_id: str,
    phase: str | None = None,
    metadata: Mapping[str, object] | None = None,
    error: str | None = None,
    *,
    resume_ready: bool | None = None,
    if_revision: int | None = None,
    denial: str | None = None,
    root: str | None = None,
) -> Record:
    """Changes a session and returns the new record, which is on disk by then.

    ``metadata`` is merged one level deep; ``error`` is stored and adds one to the error count. Repeating the current
    phase only records activity; a final phase finalizes the session. With ``if_revision``, nothing is written unless
    the record is at that revision. ``denial`` is the reason why the request of a session in ``approval`` was refused;
    it is kept until the phase changes or the work is delegated again, and is shown to whoever resumes the work. Raises
    ``SessionNotFound``, ``UnknownPhase``, ``SessionFinal``, ``IllegalMove``, ``ResumeNotAllowed``, ``NothingToDeny``,
    ``RevisionChanged``, ``NewerSchema``, ``CorruptSession``, ``InvalidInput``, ``TooLarge``, ``LockTimeout``,
    ``StoreFailure``, ``DurabilityUnknown``.
    """
    from gaia_sessions.session.requests import Update

    sessions = Sessions(root)
    request = Update(phase, metadata, error, resume_ready=resume_ready, if_revision=if_revision, denial=denial)
    return sessions.update(agent_id, request)


def should_resume(agent_id: str, *, root: str | None = None) -> bool:
    """Whether the session may be resumed; False also for missing and corrupt sessions and invalid ids.

    Writes nothing.
    """
    return is_agent_id(agent_id) and Sessions(root).explain(agent_id)["should_resume"]


def explain_resume(agent_id: str, *, root: str | None = None) -> Decision:
    """The decision on resuming with its reason and all checks: see ``policy.decide``.

    Raises ``InvalidId``, ``StoreFailure``.
    """
    return Sessions(root).explain(agent_id)


def get_session(agent_id: str, *, root: str | None = None) -> Record | None:
    """The record, or None if it does not exist. Raises ``CorruptSession``, ``InvalidId``, ``StoreFailure``."""
    try:
        return Sessions(root).read(agent_id)
    except SessionNotFound:
        return None


def finalize_session(
    agent_id: str, outcome: str, summary: str | None = None, *, error: str | None = None, root: str | None = None
) -> Record:
    """Ends a session as ``completed``, ``failed`` or ``abandoned``; repeating the same outcome changes nothing.

    Raises ``UnknownOutcome``, ``SessionFinal`` if the session ended with another outcome, and what ``update_state``
    raises.
    """
    from gaia_sessions.session.requests import Ending

    record, _ = Sessions(root).finalize(agent_id, Ending(outcome, summary, error))
    return record


def list_sessions(
    *,
    active_only: bool = False,
    agent_name: str | None = None,
    phases: Iterable[str] = (),
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    limit: int | None = None,
    root: str | None = None,
) -> Iterator[Line]:
    """Summaries, the most recently active first. A session that cannot be read comes last, with ``status``
    ``corrupt`` and a ``problem``.

    Waiting events are shown as applied, although nothing is written. ``resume`` of a summary is the policy's decision:
    ``{should_resume, reason, until}``; ``parent_id``, ``root_id`` and ``depth`` are there where a parent is known. A
    session is active until it is final. ``since`` and ``until`` limit ``created_at``, both inclusive; a time without an
    offset is UTC, and a text is a time as records have it. Raises ``UnknownPhase``, ``BadArgument``.
    """
    from gaia_sessions.usecases import listing

    criteria = listing.Filter(active_only=active_only, agent_name=agent_name, phases=phases, since=since, until=until)
    return Sessions(root).list(criteria, limit)


def session_children(agent_id: str, *, root: str | None = None) -> Sequence[Line]:
    """Summaries of the sessions that the agent, or the workflow, of a session started, the first created first.

    They are found also if that session is gone. One that cannot be read is left out. The cost follows their number, not
    that of all sessions. Raises ``InvalidId``, ``StoreFailure``.
    """
    return Sessions(root).children(agent_id)


def session_tree(agent_id: str | None = None, *, root: str | None = None) -> Sequence[TreeLine]:
    """Every session below its parent, or only ``agent_id`` and what is below it: pairs of a level and a summary.

    Level 0 is not indented. A session that does not stand below the parent that its record names has a
    ``parent_status``: ``gone``, or ``circle`` if it is among the sessions above that parent. The line of a parent that
    is gone has ``selected`` False. Raises ``SessionNotFound``, ``InvalidId``, ``StoreFailure``.
    """
    from gaia_sessions.usecases.listing import Filter

    sessions = Sessions(root)
    return sessions.tree(Filter()) if agent_id is None else sessions.subtree(agent_id)


def session_events(agent_id: str, *, root: str | None = None) -> Iterator[Json | SessionsError]:
    """What hosts reported about a session, in the order in which it was applied; an error in place of a bad line.

    Each entry is ``{at, kind, run, phase, end?, detail?, revision, evidence}``. ``SessionNotFound``, ``InvalidId`` and
    ``StoreFailure`` are raised by the call itself, not by the first step of the iteration.
    """
    return Sessions(root).events(agent_id)


def cleanup_sessions(
    hours: float = DEFAULT_HOURS, *, dry_run: bool = False, corrupt: bool = False, root: str | None = None
) -> Report:
    """Removes sessions that were not updated for ``hours`` and returns a report; first closes runs as
    ``reconcile_sessions`` does.

    Sessions that may be resumed or still run are kept. With ``corrupt``, sessions that cannot be read are removed as
    well. Raises ``BadArgument`` for hours below 0, ``StoreFailure``, ``DurabilityUnknown``.
    """
    return Sessions(root).cleanup(hours, dry_run=dry_run, corrupt=corrupt)


def reconcile_sessions(*, dry_run: bool = False, root: str | None = None) -> Reconciled:
    """Judges every run without an end, closes those that are proven to have ended, and returns a report.

    Each verdict has its evidence. ``lost``, ``ended_with_host`` and ``denied`` are closed; ``running`` and ``unsure``
    are left alone. Raises ``StoreFailure``.
    """
    return Sessions(root).reconcile(dry_run=dry_run)


def import_sessions(*directories: str | os.PathLike[str], dry_run: bool = False, root: str | None = None) -> Imported:
    """Copies the sessions of ``directories`` whole, and returns a report.

    Each is a folder that has one folder per session, a project, or the folder of one session. The sessions keep their
    ids. One whose id is here already stays as it is, and nothing in ``directories`` is changed. Raises
    ``NoSuchFolder``, and ``StoreFailure`` if one of them cannot be read, before anything is imported.
    """
    return Sessions(root).import_sessions(*directories, dry_run=dry_run)
