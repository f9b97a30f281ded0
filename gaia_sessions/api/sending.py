"""Sends: how a process claims the next turn of a conversation, and ends it, each in one commit.

Owns what the agent is given of what was said before, and which entries of the journal and messages go with a send. The
rules are in ``session.sends``.
"""

from __future__ import annotations

from gaia_sessions.errors import DurabilityUnknown, LockTimeout, RunGone, RunNotAllowed
from gaia_sessions.hosts.marker import read_marker
from gaia_sessions.session.context import TURNS, context_lines, context_of
from gaia_sessions.session.own_runs import at_work
from gaia_sessions.session.retention import RESERVED_BYTES, check_room_for_run
from gaia_sessions.session.rounds import last_answer
from gaia_sessions.session.runs import has_ended
from gaia_sessions.session.sends import (
    WAIT_TO_SEND,
    check_may_send,
    with_answer_of_send,
    with_failed_send,
    with_send_begun,
)
from gaia_sessions.session.transcript import SYSTEM, is_system_prompt, readable, spoken
from gaia_sessions.session.tree_limits import check_depth_of_work
from gaia_sessions.session.updates import Change
from gaia_sessions.store import subagent_events
from gaia_sessions.store.journal import answer_entries
from gaia_sessions.system import gone_runs

from .briefing import LONGEST_BRIEFING
from .earlier_turns import Turns
from .preconditions import own_run, refuse_if_cancelled, with_lost_runs
from .standing import decide_on_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gaia_sessions.session.client_conversation import Told
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.session.sends import SendEnd
    from gaia_sessions.session.transcript import Message, NewMessage
    from gaia_sessions.store.port import Entry, HeldLock

    from .at import Reading, Writing


def begin(at: Writing, agent_id: str, fields: Run, lock: HeldLock) -> tuple[Record, Sequence[Entry]]:
    """Begins a send, a run that has ``fields``; returns the record, whose latest run it is, and what was noted of it.

    ``lock`` is held from then on, for as long as the send lasts, and also where the run may be written although this
    raises. Of two at once one begins. Raises ``RunNotAllowed`` if nobody may send anything now, ``Cancelled``,
    ``TooDeep``, ``SessionNotFound``, ``CorruptSession``, ``NewerSchema``, ``TooLarge``. Then nothing has begun.
    """
    store, now = at.store, at.now
    with store.open(agent_id) as session:
        refuse_if_cancelled(store, session.record)
        settled = with_lost_runs(store, session.record, gone_runs(session.record), now)
        try:
            check_may_send(settled.record, decide_on_known(settled.record, None, now, at.config.limits))
        except RunNotAllowed:
            session.commit(settled)
            raise
        if "depth" in fields:
            check_depth_of_work(settled.record, store.ancestors(settled.record), fields["depth"])
        begun = check_room_for_run(with_send_begun(settled.record, fields, now, at.shell()))
        noted = subagent_events.started(store, settled.record, begun)
        try:
            lock.__enter__()  # who looks at it holds it for a moment
        except LockTimeout as error:  # somebody is at work on what stood here before
            raise at_work(agent_id, hint=WAIT_TO_SEND) from error
        try:
            return session.commit(
                Change(begun, [*settled.entries, *answer_entries(settled.record, begun), *noted])
            ), noted
        except DurabilityUnknown:  # it is written
            raise
        except Exception:  # whoever is interrupted does not know what is written, and keeps the lock until he does
            lock.__exit__(None, None, None)
            raise


def answer(
    at: Writing,
    agent_id: str,
    run: Run,
    said: Sequence[NewMessage],
    answered: Sequence[NewMessage],
    told: Told,
) -> tuple[Record, Sequence[Message], Entry]:
    """Completes the turn of ``run``, as it was begun: what was ``said`` and ``answered``, in one commit.

    ``told`` is what a client that answered tells of itself. Returns the record, the messages as they are stored, and
    what was noted. Raises ``RunGone`` if the run is not this sender's any more, and what a commit raises;
    then nothing of the turn is stored.
    """
    marked = read_marker(last_answer(answered))[0]
    with at.store.open(agent_id) as session:
        record = session.record
        stored = _open_run(record, run)
        closed = with_answer_of_send(record, stored, said, answered, marked, told, at.now)
        noted = subagent_events.ended(at.store, record, closed, stored, subagent_events.SUBAGENT_COMPLETED, at.now)
        record = session.commit(Change(closed, [noted]), reserved=RESERVED_BYTES, messages=[*said, *answered])
        return record, session.added, noted


def fail(at: Writing, agent_id: str, run: Run, ended: SendEnd) -> tuple[Record, Entry]:
    """Ends ``run``, as it was begun, without an answer; returns the record, and what was noted. Raises ``RunGone``."""
    with at.store.open(agent_id) as session:
        record = session.record
        stored = _open_run(record, run)
        closed = with_failed_send(record, stored, ended, at.now)
        kind = subagent_events.SUBAGENT_FAILED if ended.is_failure else subagent_events.SUBAGENT_CANCELLED
        error = ended.fields.get("detail", ended.end)
        noted = subagent_events.ended(at.store, record, closed, stored, kind, at.now, evidence={"error": error})
        return session.commit(Change(closed, [noted])), noted


def _open_run(record: Record, begun: Run) -> Run:
    """The run that was ``begun``, which nobody has ended. Raises ``RunGone``."""
    run = own_run(record, begun)
    if has_ended(run):
        raise RunGone(record["agent_id"], begun["run"])
    return run


def said_earlier(at: Reading, record: Record) -> list[dict[str, str]]:
    """What was said before the session's own messages: in the sessions that it continues, and by agents of hosts.

    The latter is one message, the context of what their files have of it.
    """
    found: list[dict[str, str]] = []
    hosts = Turns(at.store, record, has_own=False)
    if hosts.notices or not hosts.is_empty:
        told = context_of(hosts, turns=TURNS, room=LONGEST_BRIEFING, measure=len, notices=hosts.notices)
        found.append({"role": SYSTEM, "content": "\n".join(context_lines(told))})
    for earlier in hosts.records()[:-1]:
        own = readable(at.store.messages(earlier["agent_id"]))
        found += [spoken(message) for message in own if not is_system_prompt(message)]
    return found
