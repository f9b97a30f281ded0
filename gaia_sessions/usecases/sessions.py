"""What people and agents ask of one session: create, update, finalize.

Owns which record or rule goes to the store, how many bytes must stay free after it, and what the journal gets. The
rules are in ``session.requests``. Must never know a store but by its port; ``now`` is an argument.
"""

from __future__ import annotations

from gaia_sessions.session.clock import format_time
from gaia_sessions.session.requests import with_update
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.store import create_under_new_id
from gaia_sessions.store.journal import event_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.ids import RandomBytes
    from gaia_sessions.session.requests import Ending, NewSession, Update
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Entry, Store


def create(store: Store, now: datetime, random_bytes: RandomBytes, new: NewSession) -> Record:
    """Creates the session and returns its record. Raises ``TooLarge``, and ``SessionExists`` for an id of its own."""
    record = new.record(now, random_bytes)
    if new.agent_id is None:
        return create_under_new_id(store, record, now, random_bytes, reserved=RESERVED_BYTES)
    store.create(record, reserved=RESERVED_BYTES)
    return record


def update(store: Store, now: datetime, agent_id: str, request: Update) -> Record:
    """Applies ``request`` and returns the new record; a final phase finalizes, and asking for it again changes nothing.

    Raises ``SessionNotFound``, ``CorruptSession``, and the conflicts ``SessionFinal``, ``IllegalMove``,
    ``ResumeNotAllowed``, ``NothingToDeny``, ``RevisionChanged``.
    """

    def rule(record: Record) -> tuple[Record, Entry | None]:
        changed = with_update(record, request, now)
        return changed, None if request.denial is None else _denial_entry(record, changed, request.denial, now)

    return store.change(agent_id, rule, reserved=request.reserved_bytes())


def _denial_entry(before: Record, record: Record, message: str, now: datetime) -> Entry:
    """The journal entry of a denial, which the record itself loses with the next move."""
    runs = record.get("runs", [])
    run: Run | None = {"run": runs[-1]["run"]} if runs else None
    return event_entry(format_time(now), "denial", run, record, before["revision"] + 1, {"message": message})


def finalize(store: Store, now: datetime, agent_id: str, ending: Ending) -> Record:
    """Ends the work and returns the new record. The same outcome again changes nothing.

    Raises ``SessionFinal`` for another outcome, and ``TooLarge`` for a summary and an error that do not fit; without
    them there is always room.
    """
    return store.change(agent_id, ending.rule(now), reserved=ending.reserved_bytes())


def was_finalized_at(record: Record, now: datetime) -> bool:
    """Whether the ``finalize`` at ``now`` that returned ``record`` ended the session; if not, it had already ended."""
    return record.get("finalized_at") == format_time(now)
