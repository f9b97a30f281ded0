"""Updates a session: its phase, metadata, errors, budget and question; and ends it."""

from __future__ import annotations

from gaia_sessions.session.cancellation import abandoned
from gaia_sessions.session.phases import is_abandoned, waits_for_approval
from gaia_sessions.session.record import is_asking, is_open
from gaia_sessions.session.requests import (
    check_approved,
    check_if_revision,
    checked_update,
    outcome_of,
    reserved_for,
    rests_with_question,
    with_question_passed,
    with_update,
)
from gaia_sessions.session.updates import Change, check_revision
from gaia_sessions.store import cancellation_or_unread
from gaia_sessions.store.journal import answer_entries
from gaia_sessions.system import gone_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gaia_sessions.session.policy import Decision
    from gaia_sessions.session.requests import Asked
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import OpenSession

    from .at import Writing


def update(  # noqa: PLR0913  # what can be said of an update
    at: Writing,
    agent_id: str,
    phase: str | None = None,
    metadata: Mapping[str, object] | None = None,
    error: str | None = None,
    *,
    resume_ready: bool | None = None,
    max_tokens: int | None = None,
    if_revision: int | None = None,
    question: str | None = None,
) -> Written:
    """Changes a session. An argument that is None changes nothing.

    Args:
        phase: one of [the nine](phases.md). The current phase, given again, only records activity. A final phase ends
            the session.
        metadata: is merged at its top level.
        error: is stored as the last error, and adds 1 to the error count.
        resume_ready: switches resuming on or off until the phase changes.
        max_tokens: the new budget.
        if_revision: nothing is written unless the record has this revision.
        question: a question for a person; needs ``phase="approval"``.

    Returns:
        The new record.

    Raises:
        UnknownPhase: ``phase`` is none of the nine.
        IllegalMove: the session cannot go to this phase.
        ResumeNotAllowed: resuming cannot be switched on in this phase.
        RevisionChanged: the record has another revision.
        InvalidInput: a value is not acceptable.
        NotApproved: the setting ``approvals`` is ``explicit``, and [only a person](approve.md#only-a-person-approves)
            lets this session move on.
        Cancelled: the session is cancelled, so it ends as ``abandoned`` and not as ``phase`` says.

    Example:
        agent_id = sessions.create("gitops-operator", "investigation")
        record = sessions.update(agent_id, "investigating", {"findings": ["issue A"]})
        sessions.update(agent_id, "planning", if_revision=record["revision"])
    """
    asked = checked_update(phase, metadata, error, resume_ready=resume_ready, max_tokens=max_tokens, question=question)
    check_if_revision(if_revision)
    outcome, reserved = outcome_of(asked), reserved_for(asked)
    with at.store.open(agent_id) as session:
        record = before = session.record
        if outcome is not None:
            _check_not_cancelled(session, outcome)
        if waits_for_approval(before["phase"]):
            asked = _asked_of_waiting(at, before, asked)
            passed = with_question_passed(before, phase, at.now, gone_runs(before), at.shell())
            if passed is not before and session.cancellation() is None:  # a cancelled session passes nothing
                record = passed
        if if_revision is not None:
            check_revision(record, if_revision)
        record = with_update(record, asked, at.now)
        session.commit(Change(record, answer_entries(before, record)), reserved=reserved)
        if outcome is not None:
            _check_not_cancelled(session, outcome)
        return Written(session, before, at)


def _asked_of_waiting(at: Writing, record: Record, asked: Asked) -> Asked:
    """Returns ``asked`` for work that waits, without a question that was asked and answered before."""
    gone = gone_runs(record)
    if at.config.limits.explicit_approvals:
        check_approved(record, asked.get("phase"), at.now, gone, at.shell())
    if "question" not in asked or is_asking(record) or not rests_with_question(record, at.now, gone):
        return asked
    from .questions import question_of  # few updates have a question

    if asked["question"] != question_of(record).asked:
        return asked
    return {key: value for key, value in asked.items() if key != "question"}  # type: ignore[return-value]  # some of its keys


def finalize(
    at: Writing, agent_id: str, outcome: str, summary: str | None = None, *, error: str | None = None
) -> Written:
    """Ends a session as ``completed``, ``failed`` or ``abandoned``.

    If the session already ended with this outcome, nothing changes.

    Args:
        summary: the result.
        error: is stored as in ``update``.

    Returns:
        The record.

    Raises:
        UnknownOutcome: ``outcome`` is none of the three.
        SessionFinal: the session ended with another outcome.
        InvalidInput, NotApproved, Cancelled: as in ``update``.

    Example:
        agent_id = sessions.create("gitops-operator", "investigation")
        sessions.finalize(agent_id, "completed", "one issue found")
    """
    from gaia_sessions.session.stated_ends import check_ending, reserved_for_texts, with_ending  # an update needs none

    check_ending(outcome, summary, error)
    with at.store.open(agent_id) as session:
        before = session.record
        _check_not_cancelled(session, outcome)
        if at.config.limits.explicit_approvals and waits_for_approval(before["phase"]):
            check_approved(before, outcome, at.now, gone_runs(before), at.shell())
        record = with_ending(before, outcome, at.now, summary, error)
        session.commit(record, reserved=reserved_for_texts(summary, error))
        _check_not_cancelled(session, outcome)
        return Written(session, before, at)


class Written:
    """A session after a change at ``now``: its stored record, its cancellation, and whether it changed."""

    __slots__ = ("cancellation", "is_changed", "limits", "now", "record")

    def __init__(self, session: OpenSession, before: Record, at: Writing) -> None:
        self.now = at.now
        self.limits = at.config.limits
        self.record = record = session.record
        self.is_changed = record is not before
        find = session.cancellation
        self.cancellation = find() if self.is_changed else cancellation_or_unread(find)

    def decision(self) -> Decision:
        """Returns the policy's decision about the written record."""
        from .standing import decide_on_known

        return decide_on_known(self.record, self.cancellation, self.now, self.limits)


def _check_not_cancelled(session: OpenSession, outcome: str) -> None:
    """Raises ``Cancelled``, and abandons the session, if it is cancelled and cannot end with ``outcome``."""
    if is_abandoned(outcome) or session.record["phase"] == outcome:
        return
    cancellation = session.cancellation()
    if cancellation is None:
        return
    if is_open(session.record):
        session.commit(abandoned(session.record, cancellation))
    if is_abandoned(session.record["phase"]):
        from gaia_sessions.errors import Cancelled

        raise Cancelled(session.record["agent_id"], **cancellation)
