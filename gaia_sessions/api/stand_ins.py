"""Stand-ins: records in files for a session on a server while a command works on it.

Hooks in that command store the agents of its client in files. The stand-ins put these agents below the session.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionExists, SessionNotFound, SessionsError
from gaia_sessions.session.record import has_newer_schema, is_stand_in, stand_in_of
from gaia_sessions.session.runs import started_or_claimed_at
from gaia_sessions.store.above import Above, all_below, all_that_limit

from .cancelling import hand_on
from .listing import lines_of
from .sums import sums_of, total_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from gaia_sessions.session.schema import Below, Record
    from gaia_sessions.store.port import RecordOrError

    from .at import Reading, Writing


def family_of(at: Reading, record: Record) -> Sequence[Record]:
    """Returns ``record`` and the records above it, the topmost first."""
    return all_that_limit(at.store, record)[::-1]


def put(at: Writing, family: Sequence[Record]) -> None:
    """Stores a stand-in for each record of ``family``; a stand-in that is there counts as used now.

    Raises ``SessionExists`` if another session has the ID of the last record.
    """
    *above, own = (stand_in_of(record, at.now) for record in family)
    for stand_in in above:
        _put(at, stand_in)
    if not _put(at, own):
        raise SessionExists(own["agent_id"])


def _put(at: Writing, stand_in: Record) -> bool:
    """Stores ``stand_in``; returns False if another session has its ID."""
    agent_id = stand_in["agent_id"]
    try:
        at.store.create(stand_in)
    except SessionExists:
        found = at.store.read(agent_id)
        if not is_stand_in(found):  # if it was imported from here, it is the same session
            return found.get("created_at") == stand_in["created_at"]
        # The session may have been removed and made anew. If it were cancelled, no run would have begun.
        if found["created_at"] != stand_in["created_at"] or at.store.marks([agent_id]):
            _remove(at, agent_id)
            return _put(at, stand_in)
        at.change(agent_id, lambda record, _: {**record, "last_updated": stand_in["last_updated"]})
    return True


def _remove(at: Writing, agent_id: str) -> None:
    """Removes a stand-in; if it is cancelled, the agents that are below it now stay cancelled."""

    def may_go(children: Sequence[str]) -> bool:
        hand_on(at.store, agent_id, children, None)
        return True

    _remove_if(at, agent_id, may_go)


def remove_if_alone(at: Writing, agent_id: str) -> None:
    """Removes a stand-in, unless something is below it."""
    _remove_if(at, agent_id, lambda children: not children)


def _remove_if(at: Writing, agent_id: str, may_go: Callable[[Sequence[str]], bool]) -> None:
    def judge(_: str, found: RecordOrError) -> bool:
        if isinstance(found, SessionsError) or not is_stand_in(found):
            return False
        return may_go([child["agent_id"] for child in at.store.children([agent_id])])

    for _, outcome in at.store.delete_each([agent_id], judge, timeout=None):
        if isinstance(outcome, SessionsError) and not isinstance(outcome, SessionNotFound):
            raise outcome


def below(at: Reading, agent_id: str, since: datetime) -> Below:
    """Returns what the agents below a stand-in did, those that began at ``since`` or later."""
    understood = (one for one in all_below(at.store, agent_id) if not is_stand_in(one) and not has_newer_schema(one))
    records = [one for one in understood if _began(one, since)]
    lines = lines_of(((one["agent_id"], one) for one in records), Above(at.store), at.now, at.config.limits)
    sums = total_of(map(sums_of, lines))
    found: Below = {"agents": sums["sessions"], "states": sums["states"]}
    return {**found, "tokens": sums["tokens"]} if "tokens" in sums else found


def _began(record: Record, since: datetime) -> bool:
    """Returns whether a run of ``record`` began at ``since`` or later."""
    return any((began := started_or_claimed_at(run)) and began >= since for run in record.get("runs", ()))
