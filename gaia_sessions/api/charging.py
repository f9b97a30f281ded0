"""What counts against the budget of a session: charges, a stated total, skills."""

from __future__ import annotations

from gaia_sessions.session.budget import (
    check_skill_name,
    check_tokens,
    skill_tokens_of,
    usage_of,
    with_charge,
    with_skill,
    with_total,
)
from gaia_sessions.session.retention import ROOM_FOR_ENDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.budget import LoadedSkill, TokenUsage
    from gaia_sessions.session.schema import Record

    from .at import Reading, Writing


def usage(at: Reading, agent_id: str) -> TokenUsage:
    """Returns how much of [its budget](limits.md#budgets) a session has used.

    Example:
        agent_id = sessions.create("reviewer", max_tokens=64_000)
        sessions.add_skill(agent_id, "pdf", 900)
        sessions.charge(agent_id, 1_500)
        print(sessions.usage(agent_id)["tokens"])
    """
    return usage_of(at.preview().read(agent_id), at.now, at.config.limits_tokens)


def charge(at: Writing, agent_id: str, tokens: int) -> TokenUsage:
    """Counts ``tokens`` more against the budget.

    No charge is lost, even if many processes charge at once. A used-up budget is no error. A charge is activity of the
    session.

    Returns:
        The new usage.

    Raises:
        BadArgument: ``tokens`` is not a whole number from 0 to 10**12.
    """
    check_tokens("tokens", tokens)
    record = at.change(agent_id, lambda record, now: with_charge(record, tokens, now))
    return usage_of(record, at.now, at.config.limits_tokens)


def set_token_total(at: Writing, agent_id: str, total: int) -> TokenUsage:
    """States that ``total`` tokens were used so far.

    Later charges, skills and reported tokens add to this total.

    Returns:
        The new usage.

    Raises:
        BadArgument: as in ``charge``.
    """
    check_tokens("total", total)
    record = at.change(agent_id, lambda record, now: with_total(record, total, now))
    return usage_of(record, at.now, at.config.limits_tokens)


def add_skill(at: Writing, agent_id: str, name: str, tokens: int) -> LoadedSkill:
    """Counts the tokens of a loaded skill against the budget. If the skill was loaded before, nothing changes.

    The skill is in ``skills`` of this session's record only.

    Raises:
        InvalidInput: ``name`` is not one line of at most 200 printable characters.
        BadArgument: as in ``charge``.
    """
    check_skill_name(name)
    check_tokens("tokens", tokens)
    added = False

    def rule(record: Record, now: datetime) -> Record:
        nonlocal added
        changed = with_skill(record, name, tokens, now)
        added = changed is not record
        return changed

    record = at.change(agent_id, rule, ROOM_FOR_ENDS)
    return {
        "agent_id": agent_id,
        "name": name,
        "tokens": record["skills"][name],
        "added": added,
        "skill_tokens": skill_tokens_of(record),
    }
