"""The normal event: what a host's hook told, in our words and without its raw JSON.

Owns the shape in which every host's news reaches the lifecycle, and in which it waits in the inbox.
"""

from __future__ import annotations

from .checks import flag, members, one_of, text, time
from .phases import FAILED, OUTCOMES, RESUMABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class Event(TypedDict, total=False):
        """What is not known is absent.

        kind: ``delegate`` (a sub-agent is about to be started), ``stop`` (it stopped), ``finalize``
        (somebody said how the work ended). at: when we heard of it. marked, marked_id: what the last
        line of ``last_message`` says in our own words. spoke: there was a last message, kept or not. again:
        the agent had been kept going after an earlier stop. transcript_path: the agent's own.
        """

        kind: str
        at: str
        host: str
        host_session_id: str
        host_agent_id: str
        tool_use_id: str
        parent_host_agent_id: str
        agent_id: str
        agent_name: str
        purpose: str
        background: bool
        transcript_path: str
        last_message: str
        marked: str
        marked_id: str
        spoke: bool
        again: bool
        outcome: str
        summary: str
        error: str


KINDS = ("delegate", "stop", "finalize")

_texts = (
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
    "summary",
    "error",
)

check_event = members(
    {"kind": one_of(KINDS), "at": time},
    dict.fromkeys(_texts, text)
    | dict.fromkeys(("background", "spoke", "again"), flag)
    | {"marked": one_of((*RESUMABLE, FAILED)), "outcome": one_of(OUTCOMES)},
)
"""Nothing for an event; ``InvalidInput`` names the first bad key of anything else."""
