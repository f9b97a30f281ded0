"""Claude Code's task notifications: prompts that nobody typed, by which the main agent learns how a task ended."""

from __future__ import annotations

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.agent_files import existing_folder, transcript_of
from gaia_sessions.hosts.payload import element_in, one_line
from gaia_sessions.session import host_events
from gaia_sessions.session.host_events import MAX_MESSAGE_LENGTH
from gaia_sessions.session.phases import ABANDONED, COMPLETED, FAILED, is_abandoned, is_failure, is_success
from gaia_sessions.session.schema import INTERRUPTED, STOPPED_BY_USER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import HookPayload
    from gaia_sessions.session.host_events import Event

_BY_USER = "was stopped by user"
_LOST_AGENT, _LOST = 'Background agent "', '" was running when the previous Claude Code process exited'
"""What 2.1.197 reports as a failure after ``--continue``, if an agent ended with its client."""

_WAITS = '" is waiting on its own background work'
"""The end of the summary if an agent ended only its turn (2.1.332): the client wakes the agent after its own work."""

_OUTCOMES = {"completed": COMPLETED, "failed": FAILED, "killed": ABANDONED, "stopped": ABANDONED}


def events_of(payload: HookPayload, prompt: str) -> list[Event]:
    """Returns the end of the task in ``prompt``; for a workflow, the ends of its agents, then the workflow's end."""
    # The agent's own words are in the prompt too, and may look like a tag. So the IDs and the status of the task are
    # read from the part before those words.
    head, _, rest = prompt.partition("<summary>")
    agent, tool_use_id = element_in(head, "task-id"), element_in(head, "tool-use-id")
    outcome = _OUTCOMES.get(element_in(head, "status") or "")
    if not outcome or not (agent or tool_use_id):
        return []
    summary, _, rest = rest.partition("</summary>")
    error = None if is_success(outcome) else one_line(summary or outcome, MAX_MESSAGE_LENGTH)
    keys: dict[str, object] = {"host_agent_id": agent, "tool_use_id": tool_use_id, "outcome": outcome, "error": error}
    if is_success(outcome) and summary.rstrip().endswith(_WAITS):  # the figures may follow the last turn's
        return [payload.event(host_events.NOTIFICATION, **keys, waits=True)]
    if "<usage>" in rest or "<worktree>" in rest:
        from .reported_usage import figures_of_notification

        keys |= figures_of_notification(rest)
    event = payload.event(host_events.NOTIFICATION, **keys, **_interruption(payload, outcome, agent, error or ""))
    folder = existing_folder(CLAUDE_CODE, payload.raw.get("transcript_path"), "workflows")
    if folder is None:
        return [event]
    from . import workflows

    return workflows.notification_events(payload, event, folder, rest)


def _interruption(payload: HookPayload, outcome: str, agent: str | None, summary: str) -> dict[str, object]:
    """Returns what the event says of an interruption: by the user, by the end of the client, or by a named limit."""
    if is_abandoned(outcome):
        return {"interruption": STOPPED_BY_USER} if _BY_USER in summary else {}
    if not is_failure(outcome):
        return {}
    if summary.startswith(_LOST_AGENT) and _LOST in summary:
        return {"interruption": INTERRUPTED}
    from . import interruptions

    transcript = transcript_of(payload.raw.get("transcript_path"), agent) if agent else None
    return interruptions.keys_of_failure(None, summary, transcript, payload.now)
