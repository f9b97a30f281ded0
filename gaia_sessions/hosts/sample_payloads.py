"""Complete payloads about one sub-agent, in the form of Claude Code, with which the hooks test themselves."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Sample = dict[str, object]

_SESSION = {"session_id": "test-session"}
_AGENT = "a1"


def delegation(agent_name: str, prompt: str = "Do it", tool_use_id: str = "toolu_test") -> Sample:
    """Returns the beginning of a delegation to ``agent_name``."""
    tool_input = {"description": "A delegation", "prompt": prompt, "subagent_type": agent_name}
    event = {"hook_event_name": "PreToolUse", "tool_name": "Agent"}
    return {**_SESSION, **event, "tool_input": tool_input, "tool_use_id": tool_use_id}


def start(agent_name: str) -> Sample:
    """Returns the start of the agent of a delegation."""
    return {**_SESSION, "hook_event_name": "SubagentStart", "agent_id": _AGENT, "agent_type": agent_name}


def completed_return(agent_name: str) -> Sample:
    """Returns the return of the first delegation, with the report of its agent."""
    response = {"status": "completed", "agentId": _AGENT}
    return {**delegation(agent_name), "hook_event_name": "PostToolUse", "tool_response": response}


def bare_stop() -> Sample:
    """Returns the stop of an agent, without a last message."""
    return {"hook_event_name": "SubagentStop"}
