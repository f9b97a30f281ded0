"""What is said of a command while it runs: each line begins with its session.

Owns that wording.
"""

from __future__ import annotations

import os
from shlex import quote

from gaia_sessions.runner import supervise

from .words import Copyable, exactly, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.api.command import Command


def told_of(agent_id: str, event: str, path: str, command: Command, *, verbose: bool = False) -> tuple[str, str] | None:
    """What happened to the ``command`` of a session, and what to type about it, empty for nothing.

    None for what is as expected, unless ``verbose``. ``path`` is text of a record.
    """
    if event == supervise.STARTED and not verbose:
        return None
    if event == supervise.CONVERSATION_ELSEWHERE:
        what = f"its conversation is in {safe(path)}; {_ANEW}"
        return f"{agent_id}: {what}", Copyable(f"--cwd {quote(path)}", "to continue it, stop this now, and add ")
    if event == supervise.CONVERSATION_MOVED:
        return f"{agent_id}: its conversation was held in {safe(path)}, which is not your folder now; {_ANEW}", ""
    if event == supervise.SESSION_GONE:
        return f"{agent_id}: {_EVENTS[event](command)}", Copyable(f"kill {os.getpid()}", "  to end it: ")
    if event == supervise.BACKGROUND_LEFT and path:
        return f"{agent_id}: {_EVENTS[event](command)}", Copyable(path, "  its output is added to: ")
    return f"{agent_id}: {_EVENTS[event](command)}", ""


_ANEW = "a new one begins, and is told what was said so far"
_EVENTS: dict[str, Callable[[Command], str]] = {
    supervise.STARTED: lambda one: f"{safe(one.words[0], 80)} runs, and is told to end after {exactly(one.timeout)}",
    supervise.OTHERS_NOT_TOLD_APART: lambda _: (
        "what was started before it goes on, but what that detaches meanwhile ends with it: ulimit -x cannot be lowered"
    ),
    supervise.SOFT_LIMIT: lambda one: f"told to end after {exactly(one.timeout)}; it has {exactly(one.grace)} left",
    supervise.HARD_LIMIT: lambda one: f"hard timed out after {one.hard_timeout:.10g} seconds, and was killed",
    supervise.TOKENS_USED_UP: lambda one: f"told to end: its tokens are used up; it has {exactly(one.grace)} left",
    supervise.SIGNAL_PASSED: lambda _: "told to end; once more kills it",
    supervise.BACKGROUND_ENDED: lambda _: "what it left in the background was ended (--keep-background leaves it)",
    supervise.BACKGROUND_LEFT: lambda _: "what it left in the background goes on without limits",
    supervise.BACKGROUND_NOT_KEPT: lambda _: (
        "what it left in the background goes on without limits; the session was removed, so nobody keeps its output"
    ),
    supervise.BACKGROUND_UNREAD: lambda _: (
        "what it left in the background goes on, but may end when it writes: no process could be started to read that"
    ),
    supervise.SESSION_GONE: lambda _: (
        "its session was removed, so cancel does not reach this command any more; its other limits hold"
    ),
    supervise.ANOTHER_CONVERSATION: lambda _: f"its conversation is gone; {_ANEW}",
    supervise.CONVERSATION_UNKNOWN: lambda _: f"its record names no conversation of this client; {_ANEW}",
    supervise.WITHOUT_TASK: lambda _: (
        "a conversation begins that is not told the task, which is not kept: say it by --task"
    ),
    supervise.NOT_KILLED: lambda _: (
        "not all that it has started could be killed, such as what has become another user's"
    ),
}
