"""Events in the form that all hosts share, without the host's raw JSON. They wait in the inbox in the same form."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import shapes

    Event = shapes.Event

MOST_RUNNING = 10_000
"""The most agents at work that are looked at when the turn of their main agent ends."""

MOST_TASKS, LONGEST_TASK = 20, 128
"""The most tasks of an agent's own work that are stored, and the most characters of a task's ID."""

MAX_MESSAGE_LENGTH = 4000
"""The most characters that are stored of an agent's last message, or of the description of a failure."""

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
SEVERAL = "several"

KINDS = (
    DELEGATE,  # the main agent is about to start a sub-agent
    START,  # a sub-agent is at work
    STOP,  # a sub-agent stopped, perhaps not for good
    FAIL,  # a sub-agent or its delegation failed or was interrupted
    RETURNED,  # a delegation returned its report
    DELEGATION_CLOSED,  # a delegation is over, however it ended
    MESSAGE,  # somebody sent a message to a sub-agent
    NOTIFICATION,  # the host tells the main agent how a sub-agent ended
    SESSION_START,
    SESSION_END,
    SESSION_LEFT,  # a conversation ended, and its process continues with another one
    MAIN_STOP,  # the main agent ended its turn
    FINALIZE,  # somebody stated how the work ended
    PERMISSION_REQUEST,  # the host asks a person whether a sub-agent may use a tool
    SEVERAL,  # a host reported many events at once; only in the inbox
)
