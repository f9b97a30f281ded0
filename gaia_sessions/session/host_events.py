"""The normal form of an event: what the hook of any host reports, without the host's raw JSON.

Owns the kinds of events. ``ingest`` receives them in the form in which they wait in the inbox; what has waited is
checked by ``event_checks``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import shapes

    Event = shapes.Event

MOST_RUNNING = 10_000
"""Of the agents that a main agent leaves at work when its turn ends, so many are looked at."""

MOST_TASKS, LONGEST_TASK = 20, 128
"""Of what an agent waits for so many tasks are kept, none with an ID of more characters."""

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
    SEVERAL,  # a host reported many events at once; only in the inbox
)
