"""The normal event: what a host's hook told, in our words and without its raw JSON.

Owns the shape in which every host's news reaches the lifecycle, and in which it waits in the inbox.
"""

from __future__ import annotations

from .checks import array_of, check_flag, check_string, check_time, object_with, one_of
from .phases import FAILED, OUTCOMES, RESUMABLE
from .schema import check_host_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from .schema import HostProcess

    class Event(TypedDict, total=False):
        """What is not known is absent.

        kind: one of ``KINDS``. at: when we heard of it. host_agent_id, tool_use_id, parent_host_agent_id:
        the host's own keys. key_file, key_name: where the host will have noted the ``tool_use_id``.
        host_process: the process that runs the agents. resume: the sessions that a delegation asks for in
        our own words, as often as it asks; mentioned: the other ones that it names. marked, marked_id: what the
        last line of ``last_message`` says in our own words; told_id: the session that our words in the
        agent's own first message name. spoke: there was a last message, kept or not; of a failure, that
        the agent itself told it. again: the agent had been kept going after an earlier stop. launch: the
        host said that it launched the agent, not that it woke. interrupted: somebody stopped it.
        worked: the agent was at work, though nobody told of its start; unannounced: nobody will tell of that.
        unkeyed: which delegation it works on the host tells later. recurring: the ``tool_use_id`` comes again,
        since it is made of what was asked, or by a model that counts from 0 in every turn.
        running: the host's agents that are alive. source: what a conversation begins with, in the host's
        word. transcript_path: the agent's own. call: the host's key for the very use of a tool that is told
        of; tool_name: which tool an agent uses; writes: it edited something, or ran a command that does not
        only read. outcome_assumed: nobody said how the work ended, and ``outcome`` is what that counts as.
        """

        kind: str
        at: str
        host: str
        host_session_id: str
        host_agent_id: str
        tool_use_id: str
        parent_host_agent_id: str
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
        marked: str
        marked_id: str
        told_id: str
        spoke: bool
        again: bool
        launch: bool
        interrupted: bool
        worked: bool
        unkeyed: bool
        recurring: bool
        running: list[str]
        source: str
        outcome: str
        outcome_assumed: bool
        summary: str
        error: str
        tool_name: str
        call: str
        writes: bool


DELEGATE = "delegate"
START = "start"
STOP = "stop"
FAIL = "fail"
RETURNED = "returned"
DELEGATION_CLOSED = "over"
MESSAGE = "message"
NOTIFICATION = "notification"
SESSION_START = "session_start"
SESSION_END = "session_end"
SESSION_LEFT = "session_left"
MAIN_STOP = "main_stop"
FINALIZE = "finalize"
TOOL_CALL = "call"
PERMISSION_REQUEST = "permission"
TOOL_USED = "tool"

KINDS = (
    DELEGATE,  # a sub-agent is about to be started
    START,  # it is at work
    STOP,  # it stopped, for this time
    FAIL,  # it, or its delegation, failed or was interrupted
    RETURNED,  # its delegation gave its report back
    DELEGATION_CLOSED,  # its delegation is dealt with, whatever became of it
    MESSAGE,  # somebody wrote to it
    NOTIFICATION,  # the main agent is told what became of it
    SESSION_START,
    SESSION_END,
    SESSION_LEFT,  # the conversation ended, and its process goes on with another one
    MAIN_STOP,  # the main agent ended its turn
    FINALIZE,  # somebody said how the work ended
    TOOL_CALL,  # an agent is about to use a tool
    PERMISSION_REQUEST,  # somebody is asked whether it may
    TOOL_USED,  # it has used it
)

_string_keys = (
    "host",
    "host_session_id",
    "host_agent_id",
    "tool_use_id",
    "parent_host_agent_id",
    "agent_id",
    "agent_name",
    "purpose",
    "transcript_path",
    "last_message",
    "marked_id",
    "told_id",
    "key_file",
    "key_name",
    "summary",
    "error",
    "tool_name",
    "call",
    "source",
)

check_event = object_with(
    {"kind": one_of(KINDS), "at": check_time},
    dict.fromkeys(_string_keys, check_string)
    | dict.fromkeys(("background", "spoke", "again", "launch", "interrupted", "writes"), check_flag)
    | dict.fromkeys(("worked", "unkeyed", "recurring", "unannounced", "outcome_assumed"), check_flag)
    | dict.fromkeys(("resume", "mentioned", "running"), array_of(check_string))
    | {"marked": one_of((*RESUMABLE, FAILED)), "outcome": one_of(OUTCOMES), "host_process": check_host_process},
)
"""Nothing for an event; ``InvalidInput`` names the first bad key of anything else."""

REQUIRED_FIELDS = {
    DELEGATE: ("host", "host_session_id", "tool_use_id", "agent_name", "purpose"),
    START: ("host_session_id", "host_agent_id"),
    STOP: ("host_session_id",),
    FAIL: ("host_session_id",),
    RETURNED: ("host_session_id",),
    DELEGATION_CLOSED: ("host_session_id", "tool_use_id"),
    NOTIFICATION: ("host_session_id",),
    MESSAGE: ("host_session_id", "host_agent_id"),
    SESSION_START: (),
    SESSION_END: ("host_session_id",),
    SESSION_LEFT: ("host_session_id",),
    MAIN_STOP: ("host_session_id",),
    FINALIZE: ("agent_id", "outcome"),
    TOOL_CALL: ("host_session_id", "host_agent_id"),
    PERMISSION_REQUEST: ("host_session_id", "host_agent_id"),
    TOOL_USED: ("host_session_id", "host_agent_id", "tool_name", "call"),
}
"""The fields without which an event of each kind cannot be applied, beside those that every event has."""
