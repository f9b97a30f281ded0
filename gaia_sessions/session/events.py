"""The normal form of an event: what the hook of any host reports, without the host's raw JSON.

Owns the kinds of events and their fields, the form in which ``ingest`` receives them and in which they wait in the
inbox. What has waited is checked by ``event_checks``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from .schema import HostProcess, Usage, Workflow, Worktree

    class Event(TypedDict, total=False):
        """A field whose value is not known is absent.

        - kind: one of ``KINDS``. at: when the hook was called.
        - host_agent_id, tool_use_id, parent_host_agent_id: the host's own keys. key_file, key_name: where the host
          will write the ``tool_use_id``. key_pending: the host names the delegation later.
          reused_id: the host uses a ``tool_use_id`` more than once.
        - workflow: the host's id of the workflow run, and its key of the agent in it; without the key, the
          event is about the workflow itself.
        - host_process: the process that runs the agents. running: the agents of the host that are alive.
        - parent_id: the session for which the host of a delegation works, as its environment says.
        - resume: the session ids that the delegation's resume lines name, each as often as it stands there.
          mentioned: other session ids in its text.
        - marker_phase, marker_id: phase and id in the marker that ends ``last_message``.
          briefed_id: the session id in the note at the beginning of the agent's transcript.
          transcript_path: that of the agent itself.
        - has_message: there was a last message, kept or not; of a failure, the agent itself described it; of a
          notification, false: the agent did its work, and what it said last comes with its stop, if that is reported.
          after_block: a hook kept the agent going after an earlier stop. interrupted: somebody stopped the agent.
          interruption, paused_until: why it was stopped although nobody gave up the work, and until when it must wait.
          interrupted_at: when that was, by the host's files: it says nothing of a run that began later.
        - launch: the host launched the agent, which therefore did not wake. was_running: the agent was at work, though
          no start was reported. unannounced: the host reports no starts.
        - source: how a conversation began, in the host's word.
        - tool_name: the tool that the agent uses. call: the host's key of that single use. writes: the tool edited
          something. tracked: tools are tracked, so that a phase may be inferred from a request for permission.
        - usage: what the agent used, as its host told it. consumed: the sum over all its requests, if the host adds
          that up itself. model: the one that the agent ran on. worktree: the one that the host made for it.
        - outcome_assumed: no outcome was stated, and ``outcome`` is the default.
        - events: those that were reported together.
        """

        kind: str
        at: str
        host: str
        host_session_id: str
        host_agent_id: str
        tool_use_id: str
        parent_host_agent_id: str
        parent_id: str
        workflow: Workflow
        key_file: str
        key_name: str
        host_process: HostProcess
        agent_id: str
        agent_name: str
        purpose: str
        background: bool
        unannounced: bool
        resume: list[str]
        mentioned: list[str]
        transcript_path: str
        last_message: str
        marker_phase: str
        marker_id: str
        briefed_id: str
        has_message: bool
        after_block: bool
        launch: bool
        interrupted: bool
        interruption: str
        interrupted_at: str
        paused_until: str
        was_running: bool
        key_pending: bool
        reused_id: bool
        running: list[str]
        source: str
        outcome: str
        outcome_assumed: bool
        events: list[Event]
        summary: str
        error: str
        tool_name: str
        call: str
        writes: bool
        tracked: bool
        usage: Usage
        consumed: Usage
        model: str
        worktree: Worktree


MAX_MESSAGE_LENGTH = 4000
"""How many characters are kept of an agent's last message, and of the description of a failure."""

DELEGATE = "delegate"
START = "start"
STOP = "stop"
FAIL = "fail"
RETURNED = "returned"
DELEGATION_CLOSED = "delegation_closed"
MESSAGE = "message"
NOTIFICATION = "notification"
SESSION_START = "session_start"
SESSION_END = "session_end"
SESSION_LEFT = "session_left"
MAIN_STOP = "main_stop"
FINALIZE = "finalize"
PERMISSION_REQUEST = "permission"
TOOL_USED = "tool"
SEVERAL = "several"

KINDS = (
    DELEGATE,  # a sub-agent is about to be started
    START,  # a sub-agent is at work
    STOP,  # a sub-agent stopped, perhaps not for good
    FAIL,  # a sub-agent or its delegation failed or was interrupted
    RETURNED,  # a delegation returned its report
    DELEGATION_CLOSED,  # a delegation is over, whatever became of it
    MESSAGE,  # somebody sent a message to a sub-agent
    NOTIFICATION,  # the host informs the main agent what became of a sub-agent
    SESSION_START,
    SESSION_END,
    SESSION_LEFT,  # a conversation ended, and its process continues with another one
    MAIN_STOP,  # the main agent ended its turn
    FINALIZE,  # somebody stated how the work ended
    PERMISSION_REQUEST,  # the host asks a person whether a sub-agent may use a tool
    TOOL_USED,  # a sub-agent has used a tool
    SEVERAL,  # a host reported many events at once; only in the inbox
)
