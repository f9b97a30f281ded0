"""Which tools the agent of a session may use: the rule of ``session.tools`` with the sessions above it."""

from __future__ import annotations

from gaia_sessions.session import tools
from gaia_sessions.store import read_ancestors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.tools import ToolAnswer, ToolChoice, ToolRules
    from gaia_sessions.store.port import Reader


def choose(
    sessions: Reader, requested: Iterable[str], available: Iterable[str] | None, parent_id: str | None, rules: ToolRules
) -> ToolChoice:
    """What of ``requested`` the agent of a new session below ``parent_id`` may use.

    Raises ``InvalidInput``, ``NoToolsLeft``; ``SessionNotFound`` and ``CorruptSession`` for the parent.
    """
    above = [] if parent_id is None else _with_ancestors(sessions, parent_id)
    return tools.chosen_tools(requested, available, rules, above)


def check(sessions: Reader, agent_id: str, name: str, rules: ToolRules) -> ToolAnswer:
    """Whether the agent of the session may use the tool ``name``. Raises ``SessionNotFound``, ``CorruptSession``."""
    return tools.may_use(name, _with_ancestors(sessions, agent_id), rules)


def allowed(sessions: Reader, agent_id: str, rules: ToolRules) -> list[str] | None:
    """All tools that the agent of the session may use; None for all but blocked ones. Raises what ``check`` raises."""
    return tools.allowed_tools(_with_ancestors(sessions, agent_id), rules)


def _with_ancestors(sessions: Reader, agent_id: str) -> list[Record]:
    record = sessions.read(agent_id)
    return [record, *filter(None, read_ancestors(sessions, record).values())]
