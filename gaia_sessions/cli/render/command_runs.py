"""What is said of a command while it runs: each line begins with its session.

Owns that wording.
"""

from __future__ import annotations

from gaia_sessions.runner import supervise

from .words import exactly, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.api.command import Command


def event_lines(agent_id: str, event: str, command: Command, *, verbose: bool) -> Iterator[str]:
    """What happened to the ``command`` of a session; what is as expected only if ``verbose``."""
    if event == supervise.STARTED and verbose:
        limit = f"told to end after {exactly(command.timeout)}"
        yield f"{agent_id}: {safe(command.words[0], 80)} runs, and is {limit}"
    elif event == supervise.SOFT_LIMIT:
        yield f"{agent_id}: told to end after {exactly(command.timeout)}; it has {exactly(command.grace)} left"
    elif event == supervise.HARD_LIMIT:
        yield f"{agent_id}: hard timed out after {command.hard_timeout:.10g} seconds, and was killed"
    elif event == supervise.SIGNAL_PASSED:
        yield f"{agent_id}: told to end; once more kills it"
    elif event == supervise.BACKGROUND_ENDED:
        yield f"{agent_id}: what it left in the background was ended (--keep-background leaves it)"
    elif event == supervise.BACKGROUND_LEFT:
        yield f"{agent_id}: what it left in the background goes on without limits"
    elif event == supervise.ANOTHER_CONVERSATION:
        yield f"{agent_id}: that conversation is gone; another one begins, and is told what was said so far"
    elif event == supervise.NOT_KILLED:
        yield f"{agent_id}: not all that it has started could be killed, such as what has become another user's"
