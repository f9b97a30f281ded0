"""Approves or denies what a session waits for. The last answer counts."""

from __future__ import annotations

from gaia_sessions.session.requests import checked_answer, with_answer
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.updates import Change, check_revision
from gaia_sessions.store.journal import answer_entries
from gaia_sessions.system import gone_runs

from .preconditions import refuse_cancelled_work
from .updating import Written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.schema import AnswerKey

    from .at import Writing

_BY_PROGRAM = "python"


def approve(at: Writing, agent_id: str, note: str | None = None, *, if_revision: int | None = None) -> Written:
    """[Approves](approve.md) what a session in ``approval`` asks for.

    The phase stays ``approval``, and nothing is resumed. Idle time starts again. To resume the session, delegate with
    [its resume line](approve.md#the-resume-line). The agent is then told the answer and the ``note``. A later answer
    replaces this answer.

    Args:
        if_revision: as in ``update``.

    Returns:
        The new record.

    Raises:
        NothingToAnswer: the session does not wait for an approval.
        AnswerOfAgent: the setting ``approvals`` is ``explicit``, and your program runs in the shell of an agent.
        Cancelled: the session is cancelled.
        RevisionChanged, InvalidInput: as in ``update``.

    Example:
        agent_id = sessions.create("terraform-architect")
        sessions.update(agent_id, phase="approval", question="May I apply the plan?")
        sessions.approve(agent_id, "only in staging")
    """
    return answer(at, agent_id, "approval", note, if_revision, by=_BY_PROGRAM)


def deny(at: Writing, agent_id: str, reason: str | None = None, *, if_revision: int | None = None) -> Written:
    """Denies what a session in ``approval`` asks for.

    The resumed agent is told to find another way. Everything else is as in ``approve``.

    Returns:
        The new record.

    Example:
        agent_id = sessions.create("terraform-architect")
        sessions.update(agent_id, phase="approval", question="May I apply the plan?")
        sessions.deny(agent_id, "too risky")
    """
    return answer(at, agent_id, "denial", reason, if_revision, by=_BY_PROGRAM)


def answer(
    at: Writing, agent_id: str, key: AnswerKey, message: str | None, if_revision: int | None, *, by: str
) -> Written:
    """Stores an answer as ``key`` of the record; ``by`` says how the answer was given, as in ``GivenAnswer``."""
    said, shell = checked_answer(message, if_revision), at.shell()
    if shell is not None and at.config.limits.explicit_approvals:
        from gaia_sessions.errors import AnswerOfAgent
        from gaia_sessions.session.runs import client_of

        raise AnswerOfAgent(agent_id, client_of({"host": shell}), {"approval": "approve", "denial": "deny"}[key])
    with at.store.open(agent_id) as session:
        before = session.record
        refuse_cancelled_work(session)
        check_revision(before, if_revision)
        record = with_answer(before, key, said, at.now, gone_runs(before), by=by, shell=shell)
        session.commit(Change(record, answer_entries(before, record, said)), reserved=RESERVED_BYTES)
        refuse_cancelled_work(session)
        return Written(session, before, at)
