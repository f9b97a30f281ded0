"""Ends the work of a session: with one outcome for good, and as abandoned if it was cancelled."""

from __future__ import annotations

from gaia_sessions.session.phases import waits_for_approval
from gaia_sessions.session.stated_ends import check_ending, reserved_for_texts, with_ending
from gaia_sessions.system import gone_runs

from .updating import Written, check_not_cancelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .at import Writing


def finalize(
    at: Writing, agent_id: str, outcome: str, summary: str | None = None, *, error: str | None = None
) -> Written:
    """Ends a session as ``completed``, ``failed`` or ``abandoned`` and returns the record.

    The same outcome again changes nothing. Raises ``UnknownOutcome``, ``SessionFinal`` if the session ended with
    another outcome, and ``Cancelled`` if it is cancelled: then it is abandoned.
    """
    check_ending(outcome, summary, error)
    with at.store.open(agent_id) as session:
        before = session.record
        check_not_cancelled(session, outcome)
        if at.config.limits.explicit_approvals and waits_for_approval(before["phase"]):
            from gaia_sessions.session.requests import check_approved

            check_approved(before, outcome, at.now, gone_runs(before), at.shell())
        record = with_ending(before, outcome, at.now, summary, error)
        session.commit(record, reserved=reserved_for_texts(summary, error))
        check_not_cancelled(session, outcome)
        return Written(session, before, at)
