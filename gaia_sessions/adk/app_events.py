"""An event of ADK as a message of a transcript: its role, its text for people, and the event itself.

The event stays the text that ADK made of it, so that ADK reads exactly what it wrote.
"""

from __future__ import annotations

import json
from typing import Any

from gaia_sessions.errors import InvalidInput
from gaia_sessions.session.app_sessions import AppEvent
from gaia_sessions.session.clock import UTC, datetime
from gaia_sessions.session.transcript import new_message

_LONGEST_DETAIL = 2000
_USER, _AGENT, _TOOL = "user", "assistant", "tool"


def app_event(text: str) -> AppEvent:
    """Returns the event that ADK wrote as ``text``. Of several calls or results, the first one is named."""
    event = json.loads(text)
    at = float(event["timestamp"])
    if at < 0:
        raise InvalidInput("its time is before 1970", "the event")
    try:
        moment = datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(f"its time cannot be written: {error}", "the event") from None
    parts: list[dict[str, Any]] = (event.get("content") or {}).get("parts") or []
    tool: dict[str, Any] = next((found for part in parts for name in _TOOL_PARTS if (found := part.get(name))), {})
    is_result = any(part.get("function_response") for part in parts)
    role = _TOOL if is_result else _USER if event.get("author") == _USER else _AGENT
    content = "".join(part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought"))
    message = new_message(
        role,
        _clean(content or _failure(event) or _detail(tool)),
        moment,
        tool_name=_name(tool, "name"),
        tool_call_id=_name(tool, "id"),
    )
    message["event"] = text
    return AppEvent(message, at)


_TOOL_PARTS = ("function_call", "function_response")


def _failure(event: dict[str, Any]) -> str:
    return ": ".join(str(event[key]) for key in ("error_code", "error_message") if event.get(key))


def _detail(tool: dict[str, Any]) -> str:
    """Returns the arguments or the result of a tool, for people."""
    found = tool.get("args", tool.get("response"))
    return json.dumps(found, ensure_ascii=False)[:_LONGEST_DETAIL] if found else ""


def _name(tool: dict[str, Any], key: str) -> str | None:
    found = tool.get(key)
    return _clean(found) if isinstance(found, str) else None


def _clean(text: str) -> str:
    """Returns ``text`` without what a line of a transcript may not contain."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
