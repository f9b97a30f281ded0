"""What people and agents ask of one session: create, update, finalize.

Owns which record or rule goes to the store, how many bytes must stay free after it, and what the journal gets. The
rules are in ``session.requests``. ``now`` is an argument.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.errors import InvalidInput, SessionNotFound
from gaia_sessions.session.cancellation import abandoned
from gaia_sessions.session.phases import is_abandoned, waits_for_approval
from gaia_sessions.session.record import has_newer_schema, is_asking, is_open
from gaia_sessions.session.requests import (
    check_approved,
    rests_with_question,
    with_answer,
    with_ending,
    with_question_passed,
    with_update,
)
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.updates import Change, check_writable
from gaia_sessions.store import cancellation_or_unread, children_lock_key, create_under_new_id, read_ancestors
from gaia_sessions.store.journal import answer_entries
from gaia_sessions.system import gone_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.session.ids import RandomBytes
    from gaia_sessions.session.policy import Limits
    from gaia_sessions.session.requests import Answer, Ending, NewSession, Update
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import NewMessage
    from gaia_sessions.store.above import Above
    from gaia_sessions.store.port import HeldLock, OpenSession, Store


def ensure(store: Store, now: datetime, random_bytes: RandomBytes, new: NewSession) -> str:
    """The id of the session that ``new`` continues while that is open; else that of ``new``, which is created.

    Raises ``SessionNotFound``, ``InvalidInput`` if that is of another app or user, and what ``create`` raises; of a
    cancelled one, which is ended by this, only ``RunNotAllowed`` while an agent is at work on it.
    """
    if new.continues is None:
        return create(store, now, random_bytes, new)["agent_id"]
    record = store.read(new.continues)
    if new.app is not None and (new.app, new.user) != (record.get("app"), record.get("user")):
        raise InvalidInput(f"{new.continues} is not of this app and user", hint="leave them out, or the ID")
    if is_open(record):
        with store.open(new.continues) as session:
            cancellation = session.cancellation()
            if cancellation is None:
                return new.continues
            session.commit(abandoned(session.record, cancellation) if is_open(session.record) else session.record)
    return create(store, now, random_bytes, new, even_cancelled=True)["agent_id"]


def create(
    store: Store, now: datetime, random_bytes: RandomBytes, new: NewSession, *, even_cancelled: bool = False
) -> Record:
    """Creates the session and returns its record. Raises ``TooLarge``, and ``SessionExists`` for an id of its own.

    One that goes on with another raises ``RunNotAllowed`` unless that has ended, and ``Cancelled`` if it is, but with
    ``even_cancelled``. Below a parent it raises ``SessionNotFound`` and ``CorruptSession`` for that, ``TooDeep`` and
    ``TooManyChildren``.
    """
    if new.continues is not None:
        from gaia_sessions.session.transcript import readable, system_prompt
        from gaia_sessions.store.above import continuing

        from .claiming import ended_session  # few sessions go on with another

        earlier = ended_session(store, new.continues, now, even_cancelled=even_cancelled)
        earlier = {**earlier, **continuing(store, earlier)}
        prompt = system_prompt(readable(store.messages(new.continues)))
        new = new.after(earlier, prompt["content"] if prompt else None)
    if new.agent_id is not None and new.app is not None and new.user is not None and new.app_id is None:
        from gaia_sessions.session.app_sessions import agent_id_of  # few sessions belong to an app

        if store.has(agent_id_of(new.app, new.user, new.agent_id)):  # what the app calls by this id
            raise errors.SessionExists(new.agent_id)
    if new.parent_id is None:
        return _store_new(store, now, random_bytes, new, new.record(now, random_bytes))
    with children_lock(store, new.parent_id):
        record = below_parent(store, new.record(now, random_bytes), new.parent_id, now)
        return _store_new(store, now, random_bytes, new, record)


def _store_new(store: Store, now: datetime, random_bytes: RandomBytes, new: NewSession, record: Record) -> Record:
    prompt = None
    if new.system_prompt is not None:
        from gaia_sessions.session.transcript import system_prompt_message  # few sessions have one

        prompt = system_prompt_message(new.system_prompt, now)
    if new.state is None:
        return _stored(store, now, random_bytes, new, record, prompt)
    from gaia_sessions.session.shared_state import scopes_of

    from .state import commit_with_shared

    parts = new.state.parts(record)
    if own := parts.get(()):
        record = {**record, "session_state": own.set}

    def commit() -> Record:
        return _stored(store, now, random_bytes, new, record, prompt)

    return commit_with_shared(store, scopes_of(record), parts, commit)[0]


def _stored(
    store: Store,
    now: datetime,
    random_bytes: RandomBytes,
    new: NewSession,
    record: Record,
    prompt: NewMessage | None,
) -> Record:
    if new.agent_id is None:
        return create_under_new_id(store, record, now, random_bytes, reserved=RESERVED_BYTES, system_prompt=prompt)
    store.create(record, reserved=RESERVED_BYTES, system_prompt=prompt)
    return record


def children_lock(store: Store, parent_id: str) -> HeldLock:
    """The lock under which a session is put below ``parent_id``, or goes on. Raises ``SessionNotFound``."""
    if not store.has(parent_id):  # nothing is made for a parent that does not exist
        raise SessionNotFound(parent_id)
    return store.lock_key(children_lock_key(parent_id))


def below_parent(store: Store, record: Record, parent_id: str, now: datetime) -> Record:
    """``record`` below its parent, if that may have one more child at work, under its lock.

    Raises ``SessionNotFound``, ``CorruptSession``, ``NewerSchema``, ``TooDeep``, ``TooManyChildren``.
    """
    from gaia_sessions.session import child_limits, lineage  # few sessions have a parent

    parent = store.read(parent_id)
    check_writable(parent)  # of a later version's record nobody here knows its limits
    most = child_limits.check_depth(parent, read_ancestors(store, parent))
    check_free_place(store, parent_id, record["agent_id"], now)
    if record.get("max_depth", most) > most:
        record = {**record, "max_depth": most}
    return lineage.with_parent(record, parent)


def check_free_place(store: Store, parent_id: str, agent_id: str, now: datetime) -> None:
    """Raises ``TooManyChildren`` unless one more child of ``parent_id``, ``agent_id``, may be at work."""
    from gaia_sessions.session import child_limits
    from gaia_sessions.store.above import Above

    children = sorted(store.children([parent_id], open_only=True), key=lambda child: child["agent_id"])
    above = Above(store)
    others = [child for child in children if child["agent_id"] != agent_id]
    child_limits.check_free_place(parent_id, [one["agent_id"] for one in others if _is_at_work(above, one, now)])


def _is_at_work(above: Above, record: Record, now: datetime) -> bool:
    from gaia_sessions.session.child_limits import is_at_work

    if has_newer_schema(record) or not is_at_work(record, now, dead_runs=gone_runs(record)):
        return False
    return bool(record.get("runs")) or above.proved_cancellation(record) is None


class Written:
    """What became of a session at ``now``: its record as it is stored, why it is cancelled, whether it was changed."""

    __slots__ = ("cancellation", "is_changed", "now", "record")

    def __init__(self, session: OpenSession, before: Record, now: datetime) -> None:
        self.now = now
        self.record = record = session.record
        self.is_changed = record is not before
        find = session.cancellation
        self.cancellation = find() if self.is_changed else cancellation_or_unread(find)


def update(
    store: Store,
    now: datetime,
    agent_id: str,
    request: Update,
    limits: Limits | None = None,
    find_shell: Callable[[], str | None] = lambda: None,
) -> Written:
    """Applies ``request``; a final phase finalizes, and asking for it again changes nothing.

    ``find_shell`` names the host in whose agent's shell that was typed. The question that is asked already is not asked
    again: its answer stays.

    Raises ``SessionNotFound``, ``CorruptSession``, and the conflicts ``SessionFinal``, ``IllegalMove``,
    ``ResumeNotAllowed``, ``RevisionChanged``, by the ``limits`` ``NotApproved``; and ``Cancelled`` like ``finalize``.
    """
    with store.open(agent_id) as session:
        before = session.record
        if request.outcome is not None:
            _check_not_cancelled(session, request.outcome)
        record = before
        if waits_for_approval(before["phase"]):
            request = _checked_update(before, request, now, limits, find_shell)
            record = with_question_passed(before, request.phase, now, gone_runs(before), find_shell())
        record = with_update(record, request, now)
        session.commit(Change(record, answer_entries(before, record)), reserved=request.reserved)
        if request.outcome is not None:
            _check_not_cancelled(session, request.outcome)
        return Written(session, before, now)


def _checked_update(
    record: Record, request: Update, now: datetime, limits: Limits | None, find_shell: Callable[[], str | None]
) -> Update:
    """``request`` to work that waits, without what was asked and answered before. Raises ``NotApproved``."""
    gone = gone_runs(record)
    if limits is not None and limits.explicit_approvals:
        check_approved(record, request.phase, now, gone, find_shell())
    if request.question is None or is_asking(record) or not rests_with_question(record, now, gone):
        return request
    from .questions import question_of  # few updates ask

    return request.without_question() if request.question == question_of(record).asked else request


def answer(store: Store, now: datetime, agent_id: str, given: Answer) -> Written:
    """Answers what the work waits for; of several answers the last one holds.

    Raises ``NothingToAnswer``, ``SessionFinal``, ``Cancelled``, ``RevisionChanged``.
    """
    from .claiming import refuse_cancelled_work  # of the ways to write a session few ask it

    with store.open(agent_id) as session:
        before = session.record
        refuse_cancelled_work(session)
        record = with_answer(before, given, now, gone_runs(before))
        session.commit(Change(record, answer_entries(before, record, given.message)), reserved=RESERVED_BYTES)
        refuse_cancelled_work(session)
        return Written(session, before, now)


def finalize(
    store: Store,
    now: datetime,
    agent_id: str,
    ending: Ending,
    limits: Limits | None = None,
    find_shell: Callable[[], str | None] = lambda: None,
) -> Written:
    """Ends the work. The same outcome again changes nothing. ``find_shell`` as for ``update``.

    Raises ``SessionFinal`` for another outcome, and ``TooLarge`` for a summary and an error that do not fit; without
    them there is always room. A cancelled session can only be abandoned: it is then, whatever the outcome, and for any
    other one this raises ``Cancelled``. By the ``limits`` it raises ``NotApproved``.
    """
    with store.open(agent_id) as session:
        before = session.record
        _check_not_cancelled(session, ending.outcome)
        if limits is not None and limits.explicit_approvals and waits_for_approval(before["phase"]):
            check_approved(before, ending.outcome, now, gone_runs(before), find_shell())
        session.commit(with_ending(before, ending, now), reserved=ending.reserved)
        _check_not_cancelled(session, ending.outcome)
        return Written(session, before, now)


def _check_not_cancelled(session: OpenSession, outcome: str) -> None:
    """Raises ``Cancelled`` if the session may not end with ``outcome``: it is abandoned then, and nothing else changes.

    One that had ended before it was cancelled keeps its outcome, and is left to the rules for final sessions. Raises
    ``StoreFailure`` if it cannot be read whether it is cancelled.
    """
    if is_abandoned(outcome) or session.record["phase"] == outcome:
        return
    cancellation = session.cancellation()
    if cancellation is None:
        return
    if is_open(session.record):
        session.commit(abandoned(session.record, cancellation))
    if is_abandoned(session.record["phase"]):
        raise errors.Cancelled(session.record["agent_id"], **cancellation)
