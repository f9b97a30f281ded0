"""Claude Code's events about a sub-agent itself: it starts, it stops, it fails. No payload names the agent's delegation
or workflow. The client's own files do, in some cases only a moment later.
"""

from __future__ import annotations

import os

from gaia_sessions.hosts import CLAUDE_CODE, agent_files
from gaia_sessions.hosts.payload import HookPayload
from gaia_sessions.session import host_events
from gaia_sessions.session.clock import parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.hosts.payload import Payload
    from gaia_sessions.session.host_events import Event


def start(payload: HookPayload, host_process: object) -> list[Event]:
    """Returns the start of an agent that a delegation started."""
    keys = _agent_keys(payload)
    if not keys:
        return []
    transcript = agent_files.transcript_of(payload.raw.get("transcript_path"), str(keys["host_agent_id"]))
    keys = {"transcript_path": transcript, **keys}
    return [payload.event(host_events.START, **keys, host_process=host_process)]


def stop(payload: HookPayload) -> list[Event]:
    """Returns the stop of an agent that a delegation started."""
    # Compaction sends a stop with an empty ``agent_type`` for an agent that no delegation started. It is ignored.
    keys = _agent_keys(payload)
    if not keys:
        return []
    from gaia_sessions.hosts.marker import read_briefing_id

    transcript = payload.raw.get("agent_transcript_path")
    first_line = "" if "tool_use_id" in keys else agent_files.first_transcript_line(CLAUDE_CODE, transcript)
    end: dict[str, object] = {
        "briefed_id": read_briefing_id(first_line) if first_line else None,
        "after_block": payload.raw.get("stop_hook_active") is True,
        "transcript_path": transcript if isinstance(transcript, str) else None,
        **payload.last_message_keys(payload.text("last_assistant_message")),
    }
    if payload.raw.get("background_tasks"):
        from . import own_work

        end["own_work"] = own_work.of_stop(payload, str(keys["host_agent_id"]))
    return [payload.event(host_events.STOP, **keys | end)]


def failure(payload: HookPayload) -> list[Event]:
    """Returns the failure of an agent, with the agent's last message if there is one."""
    from . import interruptions

    text = payload.text("last_assistant_message") or payload.text("error")
    agent, path = str(payload.key("agent_id")), payload.raw.get("transcript_path")
    keys = _agent_keys(payload) or {"host_agent_id": agent}
    transcript = agent_files.transcript_of(path, agent)
    why = interruptions.keys_of_failure(payload.text("error"), text, transcript, payload.now)
    return [payload.failure(text, **keys, has_message=True, **why)]


def with_workflow(event: Event, config: Config) -> Event:
    """Returns ``event``, with the workflow of its agent if a journal names the agent by now."""
    # On a busy machine the journal of a workflow names an agent a moment late.
    folder = os.path.dirname(event["key_file"])
    raw: Payload = {
        "transcript_path": f"{os.path.dirname(folder)}.jsonl",
        "agent_id": event.get("host_agent_id"),
        "agent_type": event.get("agent_name"),
    }
    at = parse_time(event["at"])
    keys = _agent_keys(HookPayload(event["host"], raw, config, at, {}), since=at)
    if "workflow" not in keys:
        return event
    known = {name: value for name, value in event.items() if name != "key_file"}
    return known | keys  # type: ignore[return-value]  # these are keys of events


def _agent_keys(payload: HookPayload, since: datetime | None = None) -> dict[str, object]:
    """Returns the agent, with its delegation, the file for its delegation, or its workflow; empty if it has no type."""
    agent, name = payload.key("agent_id"), payload.key("agent_type")
    if not agent or not name:
        return {}
    keys: dict[str, object] = {"host_agent_id": agent, "agent_name": name}
    transcript = payload.raw.get("transcript_path")
    tool_use_id = agent_files.delegation_of(CLAUDE_CODE, transcript, agent)
    if tool_use_id:
        return {**keys, "tool_use_id": tool_use_id}
    folder = agent_files.existing_folder(CLAUDE_CODE, transcript, "subagents", "workflows")
    if folder:
        from . import workflows

        # Journals that were not written after ``since`` were read before.
        in_workflow = workflows.agent_keys(payload, folder, agent, since)
        if in_workflow:
            return keys | in_workflow
    return {**keys, "key_file": agent_files.meta_file_of(transcript, agent)}
