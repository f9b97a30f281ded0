"""Claude Code: its hook JSON as normal events.

Owns what this host calls things, as seen in runs of 2.1.197 and 2.1.330. The tool that starts a sub-agent
is ``Agent`` (``Task`` in older versions); a stop names the agent but not the delegation, which only the
``meta.json`` beside the agent's transcript tells. Everything in a payload is untrusted: what does not
look as expected is not ours.
"""

from __future__ import annotations

import os

from gaia_sessions.clock import write_time
from gaia_sessions.errors import InvalidInput
from gaia_sessions.runs import LONGEST_MESSAGE
from gaia_sessions.stores.directory import Directory
from gaia_sessions.strictjson import load_object

from . import PRE_DELEGATE, SUBAGENT_STOP
from .marker import read_marker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.events import Event
    from gaia_sessions.strictjson import Json

HOST = "claude-code"

LONGEST_PURPOSE = 200

_AGENT_TOOLS = ("Agent", "Task")
_DEFAULT_AGENT = "general-purpose"
_LONGEST_KEY = 512
_LONGEST_META = 1 << 16
_AGENT_ID = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")

_KEPT_CONTROLS = frozenset("\t\n")
_CONTROLS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in _KEPT_CONTROLS}


def delegation(payload: dict[str, Json], config: Config, now: datetime) -> Event | None:
    """The event of a PreToolUse that is about to start a sub-agent; None for every other payload."""
    if payload.get("hook_event_name") != "PreToolUse" or payload.get("tool_name") not in _AGENT_TOOLS:
        return None
    asked, host_session_id, tool_use_id = (
        payload.get("tool_input"),
        _key(payload, "session_id"),
        _key(payload, "tool_use_id"),
    )
    if not isinstance(asked, dict) or not host_session_id or not tool_use_id:
        return None
    event: Event = {
        "kind": "delegate",
        "at": write_time(now),
        "host": HOST,
        "host_session_id": host_session_id,
        "tool_use_id": tool_use_id,
        "agent_name": _key(asked, "subagent_type") or _DEFAULT_AGENT,
        "purpose": _purpose(asked, config),
    }
    parent, background = _key(payload, "agent_id"), asked.get("run_in_background")
    if parent:
        event["parent_host_agent_id"] = parent
    if isinstance(background, bool):
        event["background"] = background
    return event


def stop(payload: dict[str, Json], config: Config, now: datetime) -> Event | None:
    """The event of a SubagentStop; None for every other payload, and for stops of what no delegation started.

    Compaction sends those, with an empty ``agent_type``.
    """
    host_session_id, host_agent_id = _key(payload, "session_id"), _key(payload, "agent_id")
    agent_name = _key(payload, "agent_type")
    if payload.get("hook_event_name") != "SubagentStop" or not host_session_id or not host_agent_id or not agent_name:
        return None
    event: Event = {
        "kind": "stop",
        "at": write_time(now),
        "host": HOST,
        "host_session_id": host_session_id,
        "host_agent_id": host_agent_id,
        "agent_name": agent_name,
        "again": payload.get("stop_hook_active") is True,
    }
    tool_use_id = _delegation_of(payload.get("transcript_path"), host_agent_id)
    if tool_use_id:
        event["tool_use_id"] = tool_use_id
    transcript = payload.get("agent_transcript_path")
    if isinstance(transcript, str):
        event["transcript_path"] = transcript
    return _with_last_words(event, payload.get("last_assistant_message"), config)


def _with_last_words(event: Event, message: Json, config: Config) -> Event:
    event["spoke"] = isinstance(message, str) and bool(message.strip())
    if not isinstance(message, str) or not event["spoke"]:
        return event
    marked, marked_id = read_marker(message)
    if marked:
        event["marked"] = marked
    if marked_id:
        event["marked_id"] = marked_id
    if config.keep_last_message:
        event["last_message"] = message.translate(_CONTROLS)[-LONGEST_MESSAGE:]
    return event


def _purpose(asked: dict[str, Json], config: Config) -> str:
    description = asked.get("description")
    if not config.store_description or not isinstance(description, str):
        return "general"
    words = " ".join(description.translate(_CONTROLS).split())
    return words[:LONGEST_PURPOSE] or "general"


def _key(payload: dict[str, Json], name: str) -> str | None:
    """An id of the host: any short text; None if there is none."""
    value = payload.get(name)
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST_KEY else None


def _delegation_of(transcript_path: Json, host_agent_id: str) -> str | None:
    """The ``toolUseId`` that the host wrote beside the agent's transcript, if it is there by now."""
    if not isinstance(transcript_path, str) or not os.path.isabs(transcript_path) or "\0" in transcript_path:
        return None
    if not _AGENT_ID.issuperset(host_agent_id):
        return None
    folder = os.path.join(transcript_path.removesuffix(".jsonl"), "subagents")
    try:
        with Directory.at(folder) as agents:
            meta = load_object(agents.read(f"agent-{host_agent_id}.meta.json", _LONGEST_META), _LONGEST_META)
    except (OSError, InvalidInput):
        return None
    return _key(meta, "toolUseId")


EVENTS = {PRE_DELEGATE: delegation, SUBAGENT_STOP: stop}
"""What makes the event, by hook."""
