"""Which tools an agent may use, and which tasks may be delegated.

``hook.enforcement`` enforces the limits of tokens, rounds and time.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import Cancelled
from gaia_sessions.store.above import all_that_limit, continuing

from .cancelling import cancellation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gaia_sessions.session.guard import GuardAnswer
    from gaia_sessions.session.requests import Start
    from gaia_sessions.session.tools import ToolAnswer, ToolChoice

    from .at import Reading


def choose_tools(
    at: Reading,
    requested: Iterable[str],
    available: Iterable[str] | None = None,
    *,
    agent_name: str | None = None,
    parent_id: str | None = None,
) -> ToolChoice:
    """Says [which tools](limits.md#tools) the agent of a new session may use.

    A requested tool is ``allowed`` if it is not blocked, and is on every list that applies: ``available``, the settings
    for ``agent_name``, and the tools of the session ``parent_id``.

    Raises:
        InvalidInput: the request is empty, or no tool can have one of the names.
        NoToolsLeft: no requested tool is allowed.
    """
    from gaia_sessions.session.tools import chosen_tools

    above = [] if parent_id is None else all_that_limit(at.store, at.store.read(parent_id))
    return chosen_tools(requested, available, at.config.tool_rules, above, agent_name)


def allowed_of(
    at: Reading, tools: Iterable[str] | None, agent_name: str | None, parent_id: str | None
) -> Sequence[str] | None:
    """Returns those of ``tools`` that ``choose_tools`` allows; None if ``tools`` is None."""
    return None if tools is None else choose_tools(at, tools, agent_name=agent_name, parent_id=parent_id)["allowed"]


def check_tool(at: Reading, agent_id: str, name: str) -> ToolAnswer:
    """Says whether the agent of a session may use the tool ``name``, and if not, why.

    The tool must not be blocked. It must be on the list of the session and of each session above, if these sessions
    have lists, and on the lists that the settings have for the agents of these sessions. A name that no tool can have
    is not allowed. While the session is cancelled, no tool is allowed.
    """
    from gaia_sessions.session.tools import may_use

    answer = may_use(name, all_that_limit(at.store, at.store.read(agent_id)), at.config.tool_rules)
    cancelled = cancellation(at, agent_id)
    if cancelled is None:
        return answer
    return {**answer, "allowed": False, "reason": str(Cancelled(agent_id, **cancelled)), "usable_tools": []}


def tools_of(at: Reading, start: Start) -> Sequence[str] | None:
    """Returns the tools that the agent of a run may use; None if the agent may use all that are not blocked."""
    from gaia_sessions.session.tools import usable_tools

    read, rules = at.store.read, at.config.tool_rules
    if start.agent_id is not None:
        return usable_tools(all_that_limit(at.store, read(start.agent_id)), rules)
    earlier = None if start.continues is None else read(start.continues)
    new = start.new_session(earlier and {**earlier, **continuing(at.store, earlier)})
    above = [] if new.parent_id is None else all_that_limit(at.store, read(new.parent_id))
    return usable_tools([new.record(at.now, os.urandom), *above], rules)


def guard(at: Reading, task: str) -> GuardAnswer:
    """Says whether [the guard](limits.md#the-guard) allows the delegation of ``task``, even if the guard is off.

    Raises:
        InvalidInput: the task is blank.
    """
    from gaia_sessions.session.guard import guard as judged

    return judged(task, at.config.guard_words)


def check_task(at: Reading, task: str | None) -> None:
    """Raises ``TaskRefused`` if the guard is on and refuses the task."""
    if task is not None and at.config.guard_mode == "block":
        answer = guard(at, task)
        if not answer["allowed"]:
            from gaia_sessions.errors import TaskRefused

            raise TaskRefused(answer["keyword"] or "", answer["reason"] or "")
